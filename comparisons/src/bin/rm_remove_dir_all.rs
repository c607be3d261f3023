//! `rm -r` by the crate `remove_dir_all`, with its parallel feature.
//!
//! The crate (1.0.0) opens each entry to learn its type, so a FIFO in the tree makes it wait forever.

use std::{fs, io, path::Path, process::ExitCode};

use comparisons::{at, remove_main};

fn main() -> ExitCode {
    remove_main(remove)
}

fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).map_err(at(path))?.is_dir() {
        remove_dir_all::remove_dir_all(path).map_err(at(path))
    } else {
        fs::remove_file(path).map_err(at(path))
    }
}
