//! Sets and reads times, owner, mode and extended attributes of one inode of any type.
//!
//! An inode may be held without being opened, because to open it could wait, have side effects, or be refused. Its
//! descriptor then only names it (`O_PATH`), and most calls refuse such a descriptor:
//!
//! ```text
//!   mode         fchmodat2 on the descriptor          Linux 6.6
//!   xattrs       no call takes such a descriptor: not even setxattrat with AT_EMPTY_PATH
//!
//!   all          through /proc/thread-self/fd         if the kernel serves /proc
//!   directories  by opening `.` in them               if they may be read
//! ```
//!
//! None of these ways uses a name a second time, so they meet no other inode. What they cannot do fails with `EBADF`, as a
//! call that takes no path descriptor does.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::{
    self, AtFlags, CWD, FileType, Gid, Mode, Stat, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;

use super::calls;
use super::calls::{At, Symlinks, path_of_open, retry_on_intr};
use super::data::check_content;
use super::fd::Fd;
use super::open::{open_directory, open_path};
use super::stat::{FileTime, file_type, is_directory, owner_of_open, read_link, stat_open, times};

/// An inode that a descriptor holds.
#[derive(Clone, Copy)]
pub(crate) enum Inode<'a> {
    Opened(BorrowedFd<'a>),
    /// A descriptor that may only name the inode.
    PathOnly(BorrowedFd<'a>),
}

impl Inode<'_> {
    pub(crate) fn stat(&self) -> Result<Stat, Errno> {
        let (Self::Opened(fd) | Self::PathOnly(fd)) = self;
        stat_open(fd)
    }

    /// Returns `true` if the inode has the user and the group of `other`.
    pub(crate) fn has_owner_of(&self, other: &Stat) -> bool {
        let (Self::Opened(fd) | Self::PathOnly(fd)) = self;
        owner_of_open(*fd) == Ok((other.st_uid, other.st_gid))
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
    pub(crate) fn set_times(&self, source: &Stat) -> Result<(), Errno> {
        let [accessed, modified, _] = times(source).map(timespec);
        self.set_both_times(accessed, modified)
    }

    /// Sets the time of modification, and leaves the time of access.
    ///
    /// Both are set, because many FUSE servers ignore a call that sets only one of them.
    pub(crate) fn set_modified(&self, time: FileTime) -> Result<(), Errno> {
        let [accessed, ..] = times(&self.stat()?);
        self.set_both_times(timespec(accessed), timespec(time))
    }

    /// Sets the time of access, and leaves the time of modification. Both are set, as by
    /// [`set_modified`](Self::set_modified).
    pub(crate) fn set_accessed(&self, time: FileTime) -> Result<(), Errno> {
        let [_, modified, _] = times(&self.stat()?);
        self.set_both_times(timespec(time), timespec(modified))
    }

    fn set_both_times(
        &self,
        last_access: Timespec,
        last_modification: Timespec,
    ) -> Result<(), Errno> {
        let times = Timestamps {
            last_access,
            last_modification,
        };
        if let Self::PathOnly(fd) = self {
            let set = || fs::utimensat(fd, c"", &times, AtFlags::EMPTY_PATH);
            match retry_on_intr(set) {
                // Linux before 5.8 does not know this flag.
                Err(Errno::INVAL) => {}
                set => return set,
            }
        }
        self.call(|inode| match inode {
            Reached::Opened(fd) => fs::futimens(fd, &times),
            Reached::By(path) => fs::utimensat(CWD, path, &times, AtFlags::empty()),
        })
    }

    pub(crate) fn set_owner(&self, user: Option<u32>, group: u32) -> Result<(), Errno> {
        let (user, group) = (user.map(Uid::from_raw), Some(Gid::from_raw(group)));
        retry_on_intr(|| match self {
            Self::Opened(fd) => fs::fchown(fd, user, group),
            Self::PathOnly(fd) => fs::chownat(fd, c"", user, group, AtFlags::EMPTY_PATH),
        })
    }

    pub(crate) fn set_mode(&self, mode: u32) -> Result<(), Errno> {
        // It publishes only itself, so Relaxed: a thread that misses it makes one more call that fails.
        static LACKS_FCHMODAT2: AtomicBool = AtomicBool::new(false);
        if let Self::PathOnly(fd) = self
            && !LACKS_FCHMODAT2.load(Relaxed)
        {
            match retry_on_intr(|| calls::fchmodat2(*fd, mode)) {
                Err(Errno::NOSYS) => LACKS_FCHMODAT2.store(true, Relaxed),
                // A sandbox that does not know the call may return this. If it is about the inode, the next way fails, too.
                Err(Errno::PERM) => {}
                set => return set,
            }
        }
        let bits = Mode::from_raw_mode(mode & 0o7777);
        self.call(|inode| match inode {
            Reached::Opened(fd) => fs::fchmod(fd, bits),
            Reached::By(path) => fs::chmodat(CWD, path, bits, AtFlags::empty()),
        })
    }

    /// Returns the names of all extended attributes that may be listed, each followed by a NUL.
    pub(crate) fn xattr_names(&self) -> Result<Vec<u8>, Errno> {
        read_into_buffer(|buffer| {
            self.call(|inode| match inode {
                Reached::Opened(fd) => fs::flistxattr(fd, &mut *buffer),
                Reached::By(path) => fs::listxattr(path, &mut *buffer),
            })
        })
    }

    /// Returns the value of an extended attribute.
    pub(crate) fn xattr(&self, name: &CStr) -> Result<Vec<u8>, Errno> {
        read_into_buffer(|buffer| {
            self.call(|inode| match inode {
                Reached::Opened(fd) => fs::fgetxattr(fd, name, &mut *buffer),
                Reached::By(path) => fs::getxattr(path, name, &mut *buffer),
            })
        })
    }

    pub(crate) fn set_xattr(&self, name: &CStr, value: &[u8]) -> Result<(), Errno> {
        self.call(|inode| match inode {
            Reached::Opened(fd) => fs::fsetxattr(fd, name, value, XattrFlags::empty()),
            Reached::By(path) => fs::setxattr(path, name, value, XattrFlags::empty()),
        })
    }

    pub(crate) fn remove_xattr(&self, name: &CStr) -> Result<(), Errno> {
        self.call(|inode| match inode {
            Reached::Opened(fd) => fs::fremovexattr(fd, name),
            Reached::By(path) => fs::removexattr(path, name),
        })
    }

    /// Makes a call that takes an open file or a path.
    fn call<T>(&self, mut call: impl FnMut(Reached<'_>) -> Result<T, Errno>) -> Result<T, Errno> {
        match self {
            Self::Opened(fd) => retry_on_intr(|| call(Reached::Opened(*fd))),
            Self::PathOnly(fd) => call_by_path(path_of_open(*fd), *fd, call),
        }
    }
}

/// The means by which a call reaches an inode.
enum Reached<'a> {
    Opened(BorrowedFd<'a>),
    /// The path leads to the inode itself, even if that is a symbolic link.
    By(&'a CStr),
}

/// Makes a call on the inode that a path descriptor names, to which `path` leads.
fn call_by_path<T>(
    path: Result<CString, Errno>,
    fd: BorrowedFd<'_>,
    mut call: impl FnMut(Reached<'_>) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let refused = match path {
        Ok(path) => match retry_on_intr(|| call(Reached::By(&path))) {
            // The error is about the inode, or comes from a sandbox without /proc. The next way shows which.
            Err(Errno::ACCESS) => Errno::ACCESS,
            done => return done,
        },
        Err(_) => Errno::BADF,
    };
    if !is_directory(&stat_open(fd)?) {
        return Err(refused);
    }
    let opened = open_directory(fd, c".", Symlinks::NoFollow)?;
    retry_on_intr(|| call(Reached::Opened(opened.as_fd())))
}

fn timespec(time: FileTime) -> Timespec {
    Timespec {
        tv_sec: time.seconds as _,
        tv_nsec: time.nanoseconds.into(),
    }
}

/// Returns the bytes that `read` puts into a buffer, which first is small, then as large as can be needed.
fn read_into_buffer(
    mut read: impl FnMut(&mut [u8]) -> Result<usize, Errno>,
) -> Result<Vec<u8>, Errno> {
    /// The kernel's limit for the value of an attribute, and also for a list of names.
    const MAX_BYTES: usize = linux_raw_sys::general::XATTR_SIZE_MAX as usize;
    let mut small = [0; 256];
    match read(&mut small) {
        Err(Errno::RANGE) => {
            let mut large = vec![0; MAX_BYTES];
            let length = read(&mut large)?;
            large.truncate(length);
            Ok(large)
        }
        read => Ok(small[..read?].to_vec()),
    }
}

/// Reads the rules of the system about extended attributes.
pub(crate) fn read_xattr_conf() -> std::io::Result<Vec<u8>> {
    std::fs::read("/etc/xattr.conf")
}

/// Returns `true` if `name` matches a pattern of these rules.
pub(crate) fn matches_pattern(pattern: &CStr, name: &CStr) -> bool {
    // SAFETY: both strings end in a NUL, and are read only.
    unsafe { libc::fnmatch(pattern.as_ptr(), name.as_ptr(), 0) == 0 }
}

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

#[cfg(test)]
mod tests;
