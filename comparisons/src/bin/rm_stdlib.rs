//! `rm -r` as the standard library gives it: one thread, one call.

use std::{fs, io, path::Path, process::ExitCode};

use comparisons::{at, remove_main};

fn main() -> ExitCode {
    remove_main(remove)
}

fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).map_err(at(path))?.is_dir() {
        fs::remove_dir_all(path).map_err(at(path))
    } else {
        fs::remove_file(path).map_err(at(path))
    }
}
