//! Trees with thousands of entries. Deep ones are made by paths through `/proc/self/fd`, since the whole path is too
//! long for the kernel.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::{fd::AsRawFd as _, unix::ffi::OsStrExt as _},
    path::Path,
};

/// Nests `depth` directories, all named `d`, in `dir`, which is made if it is missing.
///
/// Opens at most two descriptors at once. A chain of 2,048 levels exceeds PATH_MAX.
///
/// # Panics
/// Panics if a system call fails, as all generators do.
#[track_caller]
pub fn chain(dir: impl AsRef<Path>, depth: usize) {
    comb_levels(dir.as_ref(), depth, |_| {});
}

/// Makes a [`chain`] with two more directories, `a` and `z`, on each level, each with `files` empty files. One
/// sorts before the next level and one after it.
#[track_caller]
pub fn comb(dir: impl AsRef<Path>, depth: usize, files: usize) {
    comb_levels(dir.as_ref(), depth, |level| {
        wide(level.join("a"), files);
        wide(level.join("z"), files);
    });
}

/// Makes `files` empty files, `f0`, `f1` and so on, in `dir`, which is made if it is missing.
#[track_caller]
pub fn wide(dir: impl AsRef<Path>, files: usize) {
    let dir = dir.as_ref();
    made(dir, fs::create_dir_all(dir));
    for i in 0..files {
        made(dir, File::create_new(dir.join(format!("f{i}"))));
    }
}

/// Makes `dirs` empty directories, `d0`, `d1` and so on, in `dir`, which is made if it is missing.
#[track_caller]
pub fn wide_dirs(dir: impl AsRef<Path>, dirs: usize) {
    let dir = dir.as_ref();
    made(dir, fs::create_dir_all(dir));
    for i in 0..dirs {
        made(dir, fs::create_dir(dir.join(format!("d{i}"))));
    }
}

/// Makes [`wide_dirs`], every seventh of which has three files.
#[track_caller]
pub fn sparse_dirs(dir: impl AsRef<Path>, dirs: usize) {
    wide_dirs(&dir, dirs);
    for i in (0..dirs).step_by(7) {
        wide(dir.as_ref().join(format!("d{i}")), 3);
    }
}

/// Returns names that GNU's commands quote, each in another way.
pub fn odd_names() -> impl Iterator<Item = &'static OsStr> {
    const ODD: [&[u8]; 12] = [
        b"new\nline",
        b"tab\tcr\r",
        b"\xff\xfe",
        b"caf\xc3\xa9",
        b"it's",
        b"\"double\"",
        b"both\"'",
        b"back\\slash",
        b" space ",
        b"$(x)`y`;*?",
        b"~#{[!",
        b"\x01\x1b\x7f",
    ];
    ODD.into_iter().map(OsStr::from_bytes)
}

#[track_caller]
fn comb_levels(dir: &Path, depth: usize, furnish: impl Fn(&Path)) {
    made(dir, fs::create_dir_all(dir));
    let mut level = made(dir, File::open(dir));
    for _ in 0..depth {
        let path = format!("/proc/self/fd/{}", level.as_raw_fd());
        let path = Path::new(&path);
        made(dir, fs::create_dir(path.join("d")));
        furnish(path);
        level = made(dir, File::open(path.join("d")));
    }
}

#[track_caller]
fn made<T>(dir: &Path, outcome: io::Result<T>) -> T {
    match outcome {
        Ok(made) => made,
        Err(e) => panic!("can't generate in {}: {e}", dir.display()),
    }
}
