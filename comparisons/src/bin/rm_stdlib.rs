//! `rm -r` as the standard library gives it: one thread, one call.

use std::{fs, process::ExitCode};

use comparisons::remove_main;

fn main() -> ExitCode {
    remove_main(|dir| fs::remove_dir_all(dir))
}
