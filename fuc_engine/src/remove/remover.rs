//! Removes names. A dry run checks instead that they could be removed.
//!
//! Only this module knows whether a run is dry. All else is as in a real run, so the decisions are, too. A dry run decides
//! by what is there: a name that an earlier operand would have removed is met again.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::node::{DECLINED, State};
use super::options::RemoveOp;
use crate::paths;
use crate::setup::Execution;
use crate::sys::{self, Fd, Stat, Symlinks};

/// The means to remove names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remover {
    Real,
    /// Looks for the sizes of the regular files.
    Counting,
    /// Does the same, and removes nothing.
    Planned,
}

impl Remover {
    pub(super) fn new(op: &RemoveOp<'_>) -> Self {
        match op.execution {
            Execution::Real if op.count_bytes => Self::Counting,
            Execution::Real => Self::Real,
            Execution::DryRun => Self::Planned,
        }
    }

    /// Returns `true` if names that count as gone can still be found.
    pub(super) fn leaves_names(self) -> bool {
        self == Self::Planned
    }

    /// Opens a directory to list it. A dry run does not change its time of access, if the kernel permits that.
    pub(super) fn open_directory(self, dir: BorrowedFd<'_>, name: &CStr) -> Result<Fd, Errno> {
        match self.leaves_names() {
            true => Ok(sys::open_directory_noatime(dir, name, Symlinks::NoFollow)?.0),
            false => sys::open_directory(dir, name, Symlinks::NoFollow),
        }
    }

    /// Removes a name other than a directory. Returns the bytes of a regular file, if they are counted.
    pub(super) fn unlink(self, dir: BorrowedFd<'_>, name: &CStr) -> Result<u64, Errno> {
        match self {
            Self::Real => sys::unlink(dir, name).map(|()| 0),
            Self::Counting => {
                let stat = sys::stat(dir, name, Symlinks::NoFollow);
                sys::unlink(dir, name)?;
                Ok(stat.as_ref().map_or(0, size))
            }
            Self::Planned => {
                let trimmed = paths::without_slashes(name);
                let stat = sys::stat(dir, &trimmed, Symlinks::NoFollow)?;
                match sys::file_type(&stat) {
                    FileType::Directory => return Err(Errno::ISDIR),
                    _ if *trimmed != *name => return Err(Errno::NOTDIR),
                    _ => {}
                }
                sys::check_adding(dir, &paths::directory_of(name))?;
                Ok(size(&stat))
            }
        }
    }

    /// Removes a directory, which must be empty. A dry run takes one that cannot be read for one that has entries.
    pub(super) fn remove_directory(self, dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        self.remove_if_empty(dir, name, || {
            let opened = self.open_directory(dir, name);
            opened.and_then(|opened| sys::is_empty_directory(opened.as_fd())) == Ok(true)
        })
    }

    /// Removes a directory that has no entries but those that the user has declined to remove.
    pub(super) fn remove_emptied(
        self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        state: &State,
    ) -> Result<(), Errno> {
        self.remove_if_empty(dir, name, || !state.marks.has(DECLINED))
    }

    /// Removes a directory. A dry run asks `is_empty`, and a real one the kernel.
    fn remove_if_empty(
        self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        is_empty: impl FnOnce() -> bool,
    ) -> Result<(), Errno> {
        if !self.leaves_names() {
            return sys::remove_directory(dir, name);
        }
        check_directory_name(dir, name)?;
        // The kernel checks permissions first.
        sys::check_adding(dir, &paths::directory_of(name))?;
        match is_empty() {
            true => Ok(()),
            false => Err(Errno::NOTEMPTY),
        }
    }
}

fn size(stat: &Stat) -> u64 {
    match sys::is_regular(stat) {
        true => stat.st_size as u64,
        false => 0,
    }
}

/// Fails as `rmdir` does if `name` does not name a directory by which it could be removed.
fn check_directory_name(dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    match paths::split(name.to_bytes()).1 {
        b"" => return Err(Errno::BUSY),
        b"." => return Err(Errno::INVAL),
        b".." => return Err(Errno::NOTEMPTY),
        _ => {}
    }
    let stat = sys::stat(dir, &paths::without_slashes(name), Symlinks::NoFollow)?;
    match sys::file_type(&stat) {
        FileType::Directory => Ok(()),
        _ => Err(Errno::NOTDIR),
    }
}
