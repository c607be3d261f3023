//! Trees with thousands of entries. They are made relative to a dirfd, since the path of a deep tree is too
//! long for the kernel.

use std::{
    ffi::CString,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{CWD, Mode, OFlags, mkdirat, openat},
    io::Errno,
};

use crate::walk::open_path;

/// Nests `depth` directories, all named `d`, in `dir`, which is made if it is missing.
///
/// Opens at most two descriptors at once. A chain of 2,048 levels exceeds PATH_MAX.
///
/// # Panics
/// Panics if a system call fails, as all generators do.
#[track_caller]
pub fn chain(dir: impl AsRef<Path>, depth: usize) {
    comb_levels(dir.as_ref(), depth, |_| Ok(()));
}

/// Makes a [`chain`] with two more directories, `a` and `z`, on each level, each with `files` empty files. One
/// sorts before the next level and one after it.
#[track_caller]
pub fn comb(dir: impl AsRef<Path>, depth: usize, files: usize) {
    comb_levels(dir.as_ref(), depth, |level| {
        for sibling in [c"a", c"z"] {
            mkdirat(level, sibling, Mode::from_raw_mode(0o755))?;
            let sibling = open_path(level, sibling)?;
            fill(sibling.as_fd(), files)?;
        }
        Ok(())
    });
}

/// Makes `files` empty files, `f0`, `f1` and so on, in `dir`, which is made if it is missing.
#[track_caller]
pub fn wide(dir: impl AsRef<Path>, files: usize) {
    made(dir.as_ref(), |dir| fill(dir.as_fd(), files));
}

/// Makes `dirs` empty directories, `d0`, `d1` and so on, in `dir`, which is made if it is missing.
#[track_caller]
pub fn wide_dirs(dir: impl AsRef<Path>, dirs: usize) {
    made(dir.as_ref(), |dir| {
        for i in 0..dirs {
            mkdirat(&dir, numbered("d", i), Mode::from_raw_mode(0o755))?;
        }
        Ok(())
    });
}

#[track_caller]
fn comb_levels(dir: &Path, depth: usize, furnish: impl Fn(BorrowedFd<'_>) -> Result<(), Errno>) {
    made(dir, |mut level| {
        for _ in 0..depth {
            mkdirat(&level, c"d", Mode::from_raw_mode(0o755))?;
            furnish(level.as_fd())?;
            level = open_path(&level, c"d")?;
        }
        Ok(())
    });
}

#[track_caller]
fn made(dir: &Path, make: impl FnOnce(OwnedFd) -> Result<(), Errno>) {
    let outcome = std::fs::create_dir_all(dir)
        .and_then(|()| make(open_path(CWD, dir)?).map_err(io::Error::from));
    if let Err(e) = outcome {
        panic!("can't generate in {}: {e}", dir.display());
    }
}

fn fill(dir: BorrowedFd<'_>, files: usize) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    for i in 0..files {
        openat(dir, numbered("f", i), flags, Mode::from_raw_mode(0o644))?;
    }
    Ok(())
}

fn numbered(prefix: &str, i: usize) -> CString {
    CString::new(format!("{prefix}{i}")).expect("BUG: digits hold no NUL")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        snapshot::{Attributes, Snapshot},
        tree::Scratch,
    };

    fn entries(scratch: &Scratch) -> usize {
        Snapshot::of(scratch, Attributes::CONTENT).len()
    }

    #[test]
    fn chain_goes_past_path_max() {
        let scratch = Scratch::new();
        chain(scratch.path().join("new"), 5_000);
        assert_eq!(entries(&scratch), 1 + 1 + 5_000);
    }

    #[test]
    fn comb_has_siblings_and_files_on_each_level() {
        let scratch = Scratch::new();
        comb(&scratch, 10, 3);
        assert_eq!(entries(&scratch), 1 + 10 * (1 + 2 + 2 * 3));
    }

    #[test]
    fn wide_ones_are_wide() {
        let scratch = Scratch::new();
        wide(scratch.path().join("files"), 700);
        wide_dirs(scratch.path().join("dirs"), 300);
        assert_eq!(entries(&scratch), 1 + 1 + 700 + 1 + 300);
    }
}
