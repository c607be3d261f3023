//! Tests of the command rmz. Most build a tree twice, run rmz on one and GNU's `rm -r` on the other, and compare
//! the trees, the exit status and both streams.

mod asking;
mod configuration;
mod detach;
mod dry_run;
mod empty_directories;
mod excluding;
mod faults;
mod installed_files;
mod interrupts;
mod killed;
mod listed;
mod many;
mod misuse;
mod mounts;
mod names;
mod operands;
mod overlays;
mod permissions;
mod personality;
mod preloaded;
mod progress;
mod root;
mod served;
mod served_filesystems;
mod stats;
mod streams;
mod suggestions;
mod support;
mod unlock;
mod verbose;
mod waiting;
