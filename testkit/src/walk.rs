//! A depth-first walk without a limit of depth or of PATH_MAX. It does not recurse, takes each step relative to a
//! dirfd, and opens at most three descriptors at once.
//!
//! The invariant: the walk climbs by `..`, and only from a directory in which it has opened a child, so that the
//! directory is searchable. A climb fails if it does not return to where the walk came from. So the walk never
//! leaves the tree, even if another process moves a directory away.

use std::{
    ffi::{CStr, CString},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat, StatxFlags, Timespec, Timestamps,
        fstat, openat, statat, statx,
    },
    io::Errno,
    path::Arg,
};

/// The actions of a walk. A visitor gives each directory a number, by which the walk refers to it.
pub(crate) trait Visitor {
    /// Visits an entry of the directory `parent`, before those below it. Returns the number of the entry, which counts
    /// if it is a directory.
    fn visit(&mut self, entry: &Found<'_>, parent: usize) -> io::Result<usize>;

    /// Handles a directory that may not be listed or searched.
    fn locked_out(&mut self, _directory: usize) {}
}

/// An entry, by its directory and its name.
pub(crate) struct Found<'a> {
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) name: &'a CStr,
    pub(crate) stat: Stat,
}

impl<'a> Found<'a> {
    /// Looks an entry up. Does not follow a symlink.
    fn at(dir: BorrowedFd<'a>, name: &'a CStr) -> Result<Self, Errno> {
        // A kernel that caches attributes for a server may show the number of links from before a link was made.
        let fresh = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_FORCE_SYNC;
        let _ = statx(dir, name, fresh, StatxFlags::BASIC_STATS);
        let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(Self { dir, name, stat })
    }

    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// Returns the numbers that identify the inode while it exists.
    pub(crate) fn identity(&self) -> (u64, u64) {
        identity(&self.stat)
    }

    pub(crate) fn times(&self) -> Timestamps {
        let Stat {
            st_atime,
            st_atime_nsec,
            st_mtime,
            st_mtime_nsec,
            ..
        } = self.stat;
        let time = |tv_sec, nanoseconds| Timespec {
            tv_sec,
            tv_nsec: nanoseconds as i64,
        };
        Timestamps {
            last_access: time(st_atime, st_atime_nsec),
            last_modification: time(st_mtime, st_mtime_nsec),
        }
    }
}

struct Level {
    dir: (u64, u64),
    /// Sub-directories to enter, in reverse order.
    pending: Vec<(CString, usize)>,
}

/// Visits the entry at `path`, and everything below it if it is a directory. A symlink is not followed.
pub(crate) fn walk(path: &Path, visitor: &mut impl Visitor) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::other("the path has no last name"));
    };
    let mut current = open_path(CWD, parent)?;
    let name = CString::new(name.as_bytes())?;
    let root = Found::at(current.as_fd(), &name)?;
    let number = visitor.visit(&root, 0)?;
    if root.kind() != FileType::Directory {
        return Ok(());
    }
    let mut levels = vec![Level::new(current.as_fd(), vec![(name, number)])?];
    while let Some(level) = levels.last_mut() {
        if let Some((name, number)) = level.pending.pop() {
            let child = match open_unnoticed(current.as_fd(), &name, OFlags::DIRECTORY) {
                Err(Errno::ACCESS) => {
                    visitor.locked_out(number);
                    continue;
                }
                child => child?,
            };
            let below = visit_entries(child.as_fd(), number, visitor)?;
            if !below.is_empty() {
                levels.push(Level::new(child.as_fd(), below)?);
                current = child;
            }
        } else {
            levels.pop();
            if let Some(above) = levels.last() {
                current = above.climb_from(current.as_fd())?;
            }
        }
    }
    Ok(())
}

/// Visits the entries of a directory in the order of their names. Returns the sub-directories and their numbers.
fn visit_entries(
    dir: BorrowedFd<'_>,
    number: usize,
    visitor: &mut impl Visitor,
) -> io::Result<Vec<(CString, usize)>> {
    let mut below = Vec::new();
    for name in names(dir)? {
        match Found::at(dir, &name) {
            Ok(entry) => {
                let (number, kind) = (visitor.visit(&entry, number)?, entry.kind());
                below.extend((kind == FileType::Directory).then_some((name, number)));
            }
            // The directory can be listed but not searched, so its entries cannot be looked up.
            Err(Errno::ACCESS) => visitor.locked_out(number),
            Err(e) => return Err(e.into()),
        }
    }
    Ok(below)
}

impl Level {
    fn new(dir: BorrowedFd<'_>, mut pending: Vec<(CString, usize)>) -> io::Result<Self> {
        pending.reverse();
        Ok(Self {
            dir: identity(&fstat(dir)?),
            pending,
        })
    }

    fn climb_from(&self, child: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        let parent = open_path(child, c"..")?;
        if identity(&fstat(&parent)?) == self.dir {
            Ok(parent)
        } else {
            Err(io::Error::other("a directory was moved during the walk"))
        }
    }
}

fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// Opens a directory as the base of paths.
fn open_path(dir: impl AsFd, path: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(dir, path, flags, Mode::empty())
}

/// Opens an entry for reading. Leaves its atime as it is if that is permitted.
pub(crate) fn open_unnoticed(
    dir: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | flags;
    match openat(dir, name, flags | OFlags::NOATIME, Mode::empty()) {
        // Only the owner may use O_NOATIME.
        Err(Errno::PERM) => openat(dir, name, flags, Mode::empty()),
        outcome => outcome,
    }
}

/// Returns the sorted names in `dir`, without `.` and `..`.
fn names(dir: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    let mut buffer = Vec::with_capacity(32 * 1024);
    // Do not use `rustix::fs::Dir`: it opens "." again, which fails in a directory without permission to search.
    let mut listing = RawDir::new(dir, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = listing.next() {
        let name = entry?.file_name().to_owned();
        if name.as_bytes() != b"." && name.as_bytes() != b".." {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}
