//! `rm -r` by rayon: the entries of each directory in parallel, then the directory.

use std::{
    fs::{self, DirEntry},
    io,
    path::Path,
    process::ExitCode,
};

use comparisons::{at, remove_main};
use rayon::prelude::*;

fn main() -> ExitCode {
    remove_main(remove_dir)
}

fn remove_dir(dir: &Path) -> io::Result<()> {
    // The entries are collected, because rayon splits a vector without a lock, but an iterator only with a lock.
    let entries = fs::read_dir(dir)
        .and_then(Iterator::collect::<io::Result<Vec<_>>>)
        .map_err(at(dir))?;
    entries.into_par_iter().try_for_each(remove_entry)?;
    fs::remove_dir(dir).map_err(at(dir))
}

fn remove_entry(entry: DirEntry) -> io::Result<()> {
    let path = entry.path();
    // The listing has the type, so a file needs no stat.
    if entry.file_type().map_err(at(&path))?.is_dir() {
        remove_dir(&path)
    } else {
        fs::remove_file(&path).map_err(at(&path))
    }
}
