//! `rm -r` by the crate `remove_dir_all`, with its parallel feature.
//!
//! The crate (1.0.0) opens each entry to learn its type, so a FIFO in the tree makes it wait forever.

use std::process::ExitCode;

use comparisons::remove_main;

fn main() -> ExitCode {
    remove_main(|dir| remove_dir_all::remove_dir_all(dir))
}
