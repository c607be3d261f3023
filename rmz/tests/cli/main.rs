//! rmz as its users see it: each test builds a tree twice, runs rmz on one and GNU's `rm -r` on the
//! other, and compares the trees, the exit status and both streams.

mod asking;
mod empty_directories;
mod many;
mod misuse;
mod mounts;
mod names;
mod operands;
mod permissions;
mod personality;
mod progress;
mod root;
mod streams;
mod support;
mod verbose;
