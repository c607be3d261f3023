//! `cp -r` as the standard library gives it: recursive `fs::copy` on one thread.

use std::{fs, io, path::Path, process::ExitCode};

use comparisons::{at, copy_file, copy_main};

fn main() -> ExitCode {
    copy_main(copy_dir)
}

fn copy_dir(src: &Path, dst: &Path) -> io::Result<()> {
    let permissions = fs::metadata(src).map_err(at(src))?.permissions();
    fs::create_dir(dst).map_err(at(dst))?;
    for entry in fs::read_dir(src).map_err(at(src))? {
        let entry = entry.map_err(at(src))?;
        let (from, to) = (entry.path(), dst.join(entry.file_name()));
        let kind = entry.file_type().map_err(at(&from))?;
        match kind.is_dir() {
            true => copy_dir(&from, &to)?,
            false => copy_file(kind, &from, &to)?,
        }
    }
    // This comes last, because a read-only directory accepts no entries.
    fs::set_permissions(dst, permissions).map_err(at(dst))
}
