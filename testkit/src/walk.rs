//! A depth-first walk without a limit of depth or of PATH_MAX. It does not recurse, takes each step relative to a
//! dirfd, and opens at most three descriptors at once.
//!
//! The invariant: the walk climbs by `..`, and only from a directory in which it has opened a child, so that the
//! directory is searchable. A climb fails if it does not return to where the walk came from. So the walk never
//! leaves the tree, even if another process moves a directory away.

use std::{
    ffi::{CStr, CString, OsStr},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat, Timespec, Timestamps, fstat, openat,
        statat,
    },
    io::Errno,
    path::Arg,
};

/// The actions of a walk. A `Mark` is data that a visitor keeps for a sub-directory until the walk enters it.
pub(crate) trait Visitor {
    type Mark;

    /// Visits a newly opened directory. Returns the sub-directories to enter, in this order.
    fn arrive(
        &mut self,
        dir: BorrowedFd<'_>,
        mark: Self::Mark,
    ) -> io::Result<Vec<(CString, Self::Mark)>>;

    /// Finishes the directory `name` in `parent`.
    fn leave(&mut self, _parent: BorrowedFd<'_>, _name: &CStr) -> io::Result<()> {
        Ok(())
    }

    /// Handles a sub-directory that could not be opened.
    fn locked_out(&mut self, _mark: Self::Mark, error: Errno) -> io::Result<()> {
        Err(error.into())
    }
}

/// The start of a walk: the descriptor of the parent directory, and the name of the root in it. The root has
/// attributes too.
pub(crate) struct Start {
    pub(crate) parent: OwnedFd,
    pub(crate) name: CString,
}

impl Start {
    /// Finds `path`. Only its parent must exist. A symlink is not followed unless slashes come after it.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let (parent, name) = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) if !parent.as_os_str().is_empty() => (parent, name),
            (_, Some(name)) => (Path::new("."), name),
            (_, None) => (path, OsStr::new(".")),
        };
        Ok(Self {
            parent: open_path(CWD, parent)?,
            name: CString::new(name.as_bytes())?,
        })
    }
}

struct Level<M> {
    dir: (u64, u64),
    /// Name of the directory *below* this level that the walk is in.
    entered: CString,
    /// Sub-directories to enter, in reverse order.
    pending: Vec<(CString, M)>,
}

/// Walks the directory at `start` and everything below it.
pub(crate) fn walk<V: Visitor>(start: Start, mark: V::Mark, visitor: &mut V) -> io::Result<()> {
    let mut current = start.parent;
    let mut levels = vec![Level::new(current.as_fd(), vec![(start.name, mark)])?];
    while let Some(level) = levels.last_mut() {
        if let Some((name, mark)) = level.pending.pop() {
            let child = match open_unnoticed(current.as_fd(), &name, OFlags::DIRECTORY) {
                Ok(child) => child,
                Err(error) => {
                    visitor.locked_out(mark, error)?;
                    continue;
                }
            };
            let below = visitor.arrive(child.as_fd(), mark)?;
            if below.is_empty() {
                visitor.leave(current.as_fd(), &name)?;
            } else {
                level.entered = name;
                levels.push(Level::new(child.as_fd(), below)?);
                current = child;
            }
        } else {
            levels.pop();
            if let Some(above) = levels.last() {
                current = above.climb_from(current.as_fd())?;
                visitor.leave(current.as_fd(), &above.entered)?;
            }
        }
    }
    Ok(())
}

impl<M> Level<M> {
    fn new(dir: BorrowedFd<'_>, mut pending: Vec<(CString, M)>) -> io::Result<Self> {
        pending.reverse();
        Ok(Self {
            dir: identity(&fstat(dir)?),
            entered: CString::default(),
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

/// Returns the numbers that identify an inode while it exists.
pub(crate) fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// Returns the file type in `stat`.
pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Returns the times in `stat`.
pub(crate) fn times(stat: &Stat) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: stat.st_atime,
            tv_nsec: stat.st_atime_nsec as i64,
        },
        last_modification: Timespec {
            tv_sec: stat.st_mtime,
            tv_nsec: stat.st_mtime_nsec as i64,
        },
    }
}

/// Opens a directory as the base of paths.
pub(crate) fn open_path(dir: impl AsFd, path: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(dir, path, flags, Mode::empty())
}

/// Returns the attributes of an entry. Does not follow a symlink.
pub(crate) fn stat_at(dir: BorrowedFd<'_>, name: &CStr) -> Result<Stat, Errno> {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
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
pub(crate) fn names(dir: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
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
