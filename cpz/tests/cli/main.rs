//! cpz as its users see it: each test builds a tree twice, runs cpz on one and GNU's `cp -r` on the
//! other, and compares the trees, the exit status and both streams.

mod content;
mod data;
mod dereference;
mod destination;
mod filesystems;
mod into_itself;
mod linking;
mod many;
mod misuse;
mod modes;
mod names;
mod overwriting;
mod permissions;
mod personality;
mod room;
mod same_file;
mod several;
mod special;
mod streams;
mod support;
mod verbose;
