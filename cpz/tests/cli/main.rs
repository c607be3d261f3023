//! Tests of the command cpz. Most build a tree twice, run cpz on one and GNU's `cp -r` on the other, and compare
//! the trees, the exit status and both streams.

mod asking;
mod backups;
mod content;
mod data;
mod dereference;
mod destination;
mod filesystems;
mod interrupts;
mod into_itself;
mod killed;
mod leases;
mod linked;
mod linking;
mod many;
mod misuse;
mod modes;
mod names;
mod out_of_reach;
mod overlays;
mod overwriting;
mod parents;
mod permissions;
mod personality;
mod preserving;
mod progress;
mod renumbered;
mod room;
mod same_file;
mod same_file_by_rule;
mod several;
mod special;
mod streams;
mod support;
mod updating;
mod verbose;
