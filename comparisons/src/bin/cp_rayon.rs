//! `cp -r` by rayon: the entries of each directory in parallel.

use std::{fs, io, path::Path, process::ExitCode};

use comparisons::{at, copy_file, copy_main};
use rayon::prelude::*;

fn main() -> ExitCode {
    copy_main(copy_dir)
}

fn copy_dir(src: &Path, dst: &Path) -> io::Result<()> {
    let permissions = fs::metadata(src).map_err(at(src))?.permissions();
    fs::create_dir(dst).map_err(at(dst))?;
    // The entries are collected, because rayon splits a vector without a lock, but an iterator only with a lock.
    let entries = fs::read_dir(src)
        .and_then(Iterator::collect::<io::Result<Vec<_>>>)
        .map_err(at(src))?;
    entries.into_par_iter().try_for_each(|entry| {
        let (from, to) = (entry.path(), dst.join(entry.file_name()));
        let kind = entry.file_type().map_err(at(&from))?;
        match kind.is_dir() {
            true => copy_dir(&from, &to),
            false => copy_file(kind, &from, &to),
        }
    })?;
    // This comes last, because a read-only directory accepts no entries.
    fs::set_permissions(dst, permissions).map_err(at(dst))
}
