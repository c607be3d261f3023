//! An inode that is held without being opened, because to open it could wait, have side effects, or be refused.

use std::ffi::CString;
use std::os::fd::AsFd;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::at::At;
use super::fd::Fd;
use super::inode::Inode;
use super::open::open_path;
use super::path_fd::PathFd;
use super::stat::{file_type, read_link, stat_open};

/// An inode that is held without being opened.
pub(crate) struct PathOnly<'a> {
    fd: Fd,
    stat: Stat,
    /// The place at which the inode was found; `None` for a directory that this run created.
    at: Option<At<'a>>,
}

impl<'a> PathOnly<'a> {
    pub(crate) fn find(at: At<'a>) -> Result<Self, Errno> {
        Self::of(open_path(at)?, Some(at))
    }

    /// Takes over a path descriptor, which was opened by the name `at`. A directory that this run created needs no name.
    pub(crate) fn of(fd: Fd, at: Option<At<'a>>) -> Result<Self, Errno> {
        let stat = stat_open(&fd)?;
        Ok(Self { fd, stat, at })
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

    pub(crate) fn inode(&self) -> Inode<'_> {
        let (fd, at) = (self.fd.as_fd(), self.at);
        Inode::PathOnly(PathFd { fd, at })
    }
}
