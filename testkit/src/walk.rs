//! A depth-first walk that neither depth nor PATH_MAX stops: no recursion, every step relative to a
//! dirfd, and at most three descriptors however deep the tree is.
//!
//! The invariant: the walk climbs by `..`, and only from a directory in which it opened a child, which
//! is therefore searchable. A climb that lands elsewhere than it came from fails: nothing outside the
//! tree is ever reached, even if somebody moved a directory away meanwhile.

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
    fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat, fstat, openat, statat},
    io::Errno,
};

/// What a walk does. `Mark` is what the visitor wants to know again of a directory it has listed.
pub(crate) trait Visitor {
    type Mark;

    /// Called in a newly opened directory; returns the sub-directories to enter, in their order.
    fn arrive(
        &mut self,
        dir: BorrowedFd<'_>,
        mark: Self::Mark,
    ) -> io::Result<Vec<(CString, Self::Mark)>>;

    /// Called before a sub-directory is opened.
    fn approach(&mut self, _parent: BorrowedFd<'_>, _name: &CStr) -> io::Result<()> {
        Ok(())
    }

    /// Called when a directory is done, with its parent and its name.
    fn leave(&mut self, _parent: BorrowedFd<'_>, _name: &CStr) -> io::Result<()> {
        Ok(())
    }

    /// Called for a sub-directory that could not be opened.
    fn locked_out(&mut self, _mark: Self::Mark, error: Errno) -> io::Result<()> {
        Err(error.into())
    }
}

/// A place to start: the parent's dirfd and a name in it, since a root has attributes too.
pub(crate) struct Start {
    pub(crate) parent: OwnedFd,
    pub(crate) name: CString,
}

impl Start {
    /// Finds `path`; only its parent must exist. A symlink is not followed, unless slashes are after it.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let (parent, name) = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) if !parent.as_os_str().is_empty() => (parent, name),
            (_, Some(name)) => (Path::new("."), name),
            (_, None) => (path, OsStr::new(".")),
        };
        Ok(Self {
            parent: openat(CWD, parent, OFlags::PATH | dir_flags(), Mode::empty())?,
            name: CString::new(name.as_bytes())?,
        })
    }

    pub(crate) fn stat(&self) -> io::Result<Stat> {
        Ok(statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

struct Level<M> {
    dir: (u64, u64),
    /// The name by which the directory *below* this level was entered.
    entered: CString,
    /// Still to enter here, in reverse order.
    pending: Vec<(CString, M)>,
}

/// Walks the directory at `start`, itself included.
pub(crate) fn walk<V: Visitor>(start: Start, mark: V::Mark, visitor: &mut V) -> io::Result<()> {
    let mut current = start.parent;
    let mut levels = vec![Level::new(current.as_fd(), vec![(start.name, mark)])?];
    while let Some(level) = levels.last_mut() {
        if let Some((name, mark)) = level.pending.pop() {
            visitor.approach(current.as_fd(), &name)?;
            let child = match open_dir(current.as_fd(), &name) {
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
        let parent = openat(child, c"..", OFlags::PATH | dir_flags(), Mode::empty())?;
        if identity(&fstat(&parent)?) == self.dir {
            Ok(parent)
        } else {
            Err(io::Error::other("a directory was moved during the walk"))
        }
    }
}

/// What tells two files apart while both exist.
pub(crate) fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// The type that `stat` tells.
pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

pub(crate) fn dir_flags() -> OFlags {
    OFlags::DIRECTORY | OFlags::CLOEXEC
}

/// Opens a directory for listing, without touching its atime where that is allowed.
fn open_dir(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | dir_flags();
    match openat(parent, name, flags | OFlags::NOATIME, Mode::empty()) {
        // Only its owner may ask for NOATIME.
        Err(Errno::PERM) => openat(parent, name, flags, Mode::empty()),
        outcome => outcome,
    }
}

/// The names in `dir`, sorted, without `.` and `..`.
pub(crate) fn names(dir: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    let mut buffer = Vec::with_capacity(32 * 1024);
    // Not `rustix::fs::Dir`: it opens "." once more, which a directory without x refuses.
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
