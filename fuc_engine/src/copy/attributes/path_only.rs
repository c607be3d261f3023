//! An inode that is held without being opened, because to open it could wait, have side effects, or be refused.

use std::ffi::CString;
use std::os::fd::AsFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::sys::{self, At, Fd, Inode, PathFd, Stat};

/// An inode that is held without being opened.
pub(in crate::copy) struct PathOnly<'a> {
    fd: Fd,
    stat: Stat,
    /// The place at which the inode was found; `None` for a directory that this run created.
    at: Option<At<'a>>,
}

impl<'a> PathOnly<'a> {
    pub(in crate::copy) fn find(at: At<'a>) -> Result<Self, Errno> {
        Self::of(sys::open_path(at)?, Some(at))
    }

    /// Takes over a path descriptor, which was opened by the name `at`. A directory that this run created needs no name.
    pub(in crate::copy) fn of(fd: Fd, at: Option<At<'a>>) -> Result<Self, Errno> {
        let stat = sys::stat_open(&fd)?;
        Ok(Self { fd, stat, at })
    }

    pub(in crate::copy) fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Reads the target of a symbolic link.
    ///
    /// # Errors
    /// `EINVAL` if the inode is not a symbolic link, as from `readlink`.
    pub(in crate::copy) fn read_link(&self) -> Result<CString, Errno> {
        match sys::file_type(&self.stat) {
            FileType::Symlink => sys::read_link(self.fd.as_fd(), c""),
            _ => Err(Errno::INVAL),
        }
    }

    pub(super) fn inode(&self) -> Inode<'_> {
        let (fd, at) = (self.fd.as_fd(), self.at);
        Inode::PathOnly(PathFd { fd, at })
    }
}
