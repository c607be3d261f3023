//! Sets and reads times, owner, mode and extended attributes of one inode of any type.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::fs::{self, AtFlags, Gid, Stat, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use super::data::check_content;
use super::interrupted::retry_on_intr;
use super::path_fd::{self, InodeError, InodeOp, SetMode, SetTimes};
use super::stat::{FileTime, stat_open, times};
use super::xattr::Xattr;

/// An inode that a descriptor holds.
#[derive(Clone, Copy)]
pub(crate) enum Inode<'a> {
    Opened(BorrowedFd<'a>),
    /// A descriptor that only names the inode. Most calls refuse it; [`path_fd`] has other ways.
    PathOnly(BorrowedFd<'a>),
}

impl<'a> Inode<'a> {
    /// Returns the inode of a directory; `fd` may be a path descriptor.
    pub(crate) fn directory(fd: BorrowedFd<'a>) -> Self {
        Self::PathOnly(fd)
    }

    pub(crate) fn stat(&self) -> Result<Stat, Errno> {
        let (Self::Opened(fd) | Self::PathOnly(fd)) = self;
        stat_open(fd)
    }

    /// Finds out whether a call on the inode has failed with `errno` because content is lost.
    ///
    /// # Errors
    /// As [`check_content`].
    pub(crate) fn check_content(&self, errno: Errno) -> Result<(), Errno> {
        match self {
            Self::Opened(fd) => check_content(*fd, errno),
            Self::PathOnly(_) => Ok(()),
        }
    }

    /// Sets the times of access and of modification to those of `source`.
    pub(crate) fn set_times(&self, source: &Stat) -> Result<(), InodeError> {
        let [accessed, modified, _] = times(source).map(timespec);
        self.set(accessed, modified)
    }

    /// Sets the time of modification, and leaves the time of access.
    ///
    /// Both are set, because many FUSE servers ignore a call that sets only one of them.
    pub(crate) fn set_modified(&self, time: FileTime) -> Result<(), InodeError> {
        let [accessed, ..] = times(&self.stat()?);
        self.set(timespec(accessed), timespec(time))
    }

    /// Sets the time of access, and leaves the time of modification. Both are set, as by
    /// [`set_modified`](Self::set_modified).
    pub(crate) fn set_accessed(&self, time: FileTime) -> Result<(), InodeError> {
        let [_, modified, _] = times(&self.stat()?);
        self.set(timespec(time), timespec(modified))
    }

    fn set(&self, last_access: Timespec, last_modification: Timespec) -> Result<(), InodeError> {
        let times = Timestamps {
            last_access,
            last_modification,
        };
        match self {
            Self::Opened(fd) => Ok(SetTimes(&times).on_open(*fd)?),
            Self::PathOnly(fd) => {
                let set = || fs::utimensat(fd, c"", &times, AtFlags::EMPTY_PATH);
                match retry_on_intr(set) {
                    // Linux before 5.8 does not know this flag.
                    Err(Errno::INVAL) => path_fd::apply(*fd, SetTimes(&times)),
                    result => Ok(result?),
                }
            }
        }
    }

    pub(crate) fn set_owner(&self, user: Option<u32>, group: u32) -> Result<(), Errno> {
        let (user, group) = (user.map(Uid::from_raw), Some(Gid::from_raw(group)));
        retry_on_intr(|| match self {
            Self::Opened(fd) => fs::fchown(fd, user, group),
            Self::PathOnly(fd) => fs::chownat(fd, c"", user, group, AtFlags::EMPTY_PATH),
        })
    }

    pub(crate) fn set_mode(&self, mode: u32) -> Result<(), Errno> {
        match self {
            Self::Opened(fd) => SetMode(mode).on_open(*fd),
            Self::PathOnly(fd) => path_fd::set_mode(*fd, mode),
        }
    }

    /// Returns the names of all extended attributes that may be listed, each followed by a NUL.
    pub(crate) fn xattr_names(&self) -> Result<Vec<u8>, InodeError> {
        read_into_buffer(|buffer| self.apply(Xattr::List(buffer)))
    }

    /// Returns the value of an extended attribute.
    pub(crate) fn xattr(&self, name: &CStr) -> Result<Vec<u8>, InodeError> {
        read_into_buffer(|buffer| self.apply(Xattr::Get(name, buffer)))
    }

    pub(crate) fn set_xattr(&self, name: &CStr, value: &[u8]) -> Result<(), InodeError> {
        self.apply(Xattr::Set(name, value)).map(drop)
    }

    pub(crate) fn remove_xattr(&self, name: &CStr) -> Result<(), InodeError> {
        self.apply(Xattr::Remove(name)).map(drop)
    }

    fn apply(&self, mut op: Xattr<'_>) -> Result<usize, InodeError> {
        match self {
            Self::Opened(fd) => Ok(op.on_open(*fd)?),
            Self::PathOnly(fd) => path_fd::apply(*fd, op),
        }
    }
}

fn timespec(time: FileTime) -> Timespec {
    Timespec {
        tv_sec: time.seconds as _,
        tv_nsec: time.nanoseconds.into(),
    }
}

/// Returns the bytes that `read` puts into a buffer, which first is small, then as large as can be needed.
fn read_into_buffer(
    mut read: impl FnMut(&mut [u8]) -> Result<usize, InodeError>,
) -> Result<Vec<u8>, InodeError> {
    /// The kernel's limit for the value of an attribute, and also for a list of names.
    const MAX_BYTES: usize = linux_raw_sys::general::XATTR_SIZE_MAX as usize;
    let mut small = [0; 256];
    match read(&mut small) {
        Ok(length) => Ok(small[..length].to_vec()),
        Err(InodeError::Failed(Errno::RANGE)) => {
            let mut large = vec![0; MAX_BYTES];
            let length = read(&mut large)?;
            large.truncate(length);
            Ok(large)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{ACCESS_ACL, plain_acl};
    use std::os::fd::AsFd;

    #[test]
    fn a_plain_acl_is_the_mode() {
        let file = tempfile::tempfile().unwrap();
        let inode = Inode::Opened(file.as_fd());
        match inode.set_xattr(ACCESS_ACL, &plain_acl(0o751)) {
            Err(InodeError::Failed(Errno::OPNOTSUPP)) => testkit::skip!("no ACLs here"),
            set => {
                set.unwrap();
                assert_eq!(fs::fstat(&file).unwrap().st_mode & 0o7777, 0o751);
            }
        }
    }
}
