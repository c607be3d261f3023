//! `cp -r` by rayon: the entries of each directory in parallel.

use std::{
    fs::{self, FileType},
    io,
    os::unix::fs::symlink,
    path::Path,
    process::ExitCode,
};

use comparisons::{at, copy_main};
use rayon::prelude::*;

fn main() -> ExitCode {
    copy_main(|src, dst| {
        let kind = fs::symlink_metadata(src).map_err(at(src))?.file_type();
        copy_entry(kind, src, dst)
    })
}

fn copy_entry(kind: FileType, src: &Path, dst: &Path) -> io::Result<()> {
    if kind.is_dir() {
        copy_dir(src, dst)
    } else if kind.is_symlink() {
        let target = fs::read_link(src).map_err(at(src))?;
        symlink(target, dst).map_err(at(dst))
    } else if kind.is_file() {
        fs::copy(src, dst).map(drop).map_err(at(src))
    } else {
        // `fs::copy` would wait for another process to write into a FIFO.
        Err(at(src)(io::ErrorKind::Unsupported.into()))
    }
}

fn copy_dir(src: &Path, dst: &Path) -> io::Result<()> {
    let permissions = fs::metadata(src).map_err(at(src))?.permissions();
    fs::create_dir(dst).map_err(at(dst))?;
    // The entries are collected, because rayon splits a vector without a lock, but an iterator only with a lock.
    let entries = fs::read_dir(src)
        .and_then(Iterator::collect::<io::Result<Vec<_>>>)
        .map_err(at(src))?;
    entries.into_par_iter().try_for_each(|entry| {
        let kind = entry.file_type().map_err(at(&entry.path()))?;
        copy_entry(kind, &entry.path(), &dst.join(entry.file_name()))
    })?;
    // This comes last, because a read-only directory accepts no entries.
    fs::set_permissions(dst, permissions).map_err(at(dst))
}
