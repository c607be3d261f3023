//! An inode that is held without being opened, because to open it could wait, have side effects, or be refused.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::at::At;
use super::fd::Fd;
use super::inode::Inode;
use super::open::open_path;
use super::stat::{file_type, read_link, stat_open};

/// An inode that is held without being opened.
pub(crate) struct PathOnly {
    fd: Fd,
    stat: Stat,
}

impl PathOnly {
    pub(crate) fn find(at: At<'_>) -> Result<Self, Errno> {
        Self::of(open_path(at)?)
    }

    /// Takes over a path descriptor.
    pub(crate) fn of(fd: Fd) -> Result<Self, Errno> {
        let stat = stat_open(&fd)?;
        Ok(Self { fd, stat })
    }

    pub(crate) fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Reads the target of a symbolic link.
    ///
    /// # Errors
    /// `EINVAL` if the inode is not a symbolic link, as from `readlink`.
    pub(crate) fn read_link(&self) -> Result<CString, Errno> {
        match file_type(&self.stat) {
            FileType::Symlink => read_link(self.fd.as_fd(), c""),
            _ => Err(Errno::INVAL),
        }
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(crate) fn inode(&self) -> Inode<'_> {
        Inode::PathOnly(self.fd.as_fd())
    }
}
