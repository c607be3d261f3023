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
//! None of these ways uses a name a second time, so they meet no other inode. What they cannot do is reported.

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
use super::stat::{FileTime, file_type, is_directory, read_link, stat_open, times};

/// An inode that a descriptor holds.
#[derive(Clone, Copy)]
pub(crate) enum Inode<'a> {
    Opened(BorrowedFd<'a>),
    /// A descriptor that only names the inode.
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
                    Err(Errno::INVAL) => apply_to_path_only(*fd, SetTimes(&times)),
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
            Self::PathOnly(fd) => set_mode_of_path_only(*fd, mode),
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
            Self::PathOnly(fd) => apply_to_path_only(*fd, op),
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

/// Why an operation was not applied to an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InodeError {
    /// This machine cannot apply the change through a descriptor that only names the inode.
    NoWay,
    /// The kernel refused the operation.
    Failed(Errno),
}

impl InodeError {
    /// Returns the errno to report.
    pub(crate) fn errno(self) -> Errno {
        match self {
            Self::NoWay => Errno::OPNOTSUPP,
            Self::Failed(errno) => errno,
        }
    }
}

impl From<Errno> for InodeError {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno)
    }
}

/// An operation on an inode, in the forms that its system call has.
trait InodeOp {
    type Output;

    fn on_open(&mut self, fd: BorrowedFd<'_>) -> Result<Self::Output, Errno>;

    /// The path leads to the inode itself, even if that is a symbolic link.
    fn by_path(&mut self, path: &CStr) -> Result<Self::Output, Errno>;
}

/// Sets the mode of the inode that a path descriptor names.
fn set_mode_of_path_only(fd: BorrowedFd<'_>, mode: u32) -> Result<(), Errno> {
    // It publishes only itself, so Relaxed: a thread that misses it makes one more call that fails.
    static LACKS_FCHMODAT2: AtomicBool = AtomicBool::new(false);
    let call = || calls::fchmodat2(fd, mode);
    match unless_missing(&LACKS_FCHMODAT2, calls::has_fchmodat2, call) {
        Err(Errno::NOSYS) => apply_to_path_only(fd, SetMode(mode)).map_err(InodeError::errno),
        set => set,
    }
}

/// Applies an operation that no call on a path descriptor itself can do.
fn apply_to_path_only<O: InodeOp>(fd: BorrowedFd<'_>, op: O) -> Result<O::Output, InodeError> {
    apply_by(path_of_open(fd), fd, op)
}

fn apply_by<O: InodeOp>(
    path: Result<CString, Errno>,
    fd: BorrowedFd<'_>,
    mut op: O,
) -> Result<O::Output, InodeError> {
    let refused = match path {
        Ok(path) => match op.by_path(&path) {
            // The error is about the inode, or comes from a sandbox without /proc. The next way shows which.
            Err(Errno::ACCESS) => Errno::ACCESS.into(),
            done => return Ok(done?),
        },
        Err(_) => InodeError::NoWay,
    };
    if !is_directory(&stat_open(fd)?) {
        return Err(refused);
    }
    let opened = open_directory(fd, c".", Symlinks::NoFollow)?;
    Ok(op.on_open(opened.as_fd())?)
}

/// Makes a call by `attempt`, or returns `ENOSYS` if this machine lacks it.
fn unless_missing<T>(
    is_missing: &AtomicBool,
    is_available: impl FnOnce() -> bool,
    attempt: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    if is_missing.load(Relaxed) {
        return Err(Errno::NOSYS);
    }
    match retry_on_intr(attempt) {
        Err(Errno::NOSYS) => {}
        // A sandbox that does not know the call may return this; otherwise it is about the inode.
        Err(Errno::PERM) if !is_available() => {}
        done => return done,
    }
    is_missing.store(true, Relaxed);
    Err(Errno::NOSYS)
}

struct SetMode(u32);

impl InodeOp for SetMode {
    type Output = ();

    fn on_open(&mut self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        retry_on_intr(|| fs::fchmod(fd, Mode::from_raw_mode(self.0 & 0o7777)))
    }

    fn by_path(&mut self, path: &CStr) -> Result<(), Errno> {
        let bits = Mode::from_raw_mode(self.0 & 0o7777);
        retry_on_intr(|| fs::chmodat(CWD, path, bits, AtFlags::empty()))
    }
}

struct SetTimes<'t>(&'t Timestamps);

impl InodeOp for SetTimes<'_> {
    type Output = ();

    fn on_open(&mut self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        retry_on_intr(|| fs::futimens(fd, self.0))
    }

    fn by_path(&mut self, path: &CStr) -> Result<(), Errno> {
        retry_on_intr(|| fs::utimensat(CWD, path, self.0, AtFlags::empty()))
    }
}

/// A call on extended attributes.
///
/// It returns the number of bytes that it wrote to the buffer, if it has one.
enum Xattr<'c> {
    List(&'c mut [u8]),
    Get(&'c CStr, &'c mut [u8]),
    Set(&'c CStr, &'c [u8]),
    Remove(&'c CStr),
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

impl InodeOp for Xattr<'_> {
    type Output = usize;

    fn on_open(&mut self, fd: BorrowedFd<'_>) -> Result<usize, Errno> {
        retry_on_intr(|| match self {
            Self::List(buffer) => fs::flistxattr(fd, &mut **buffer),
            Self::Get(name, buffer) => fs::fgetxattr(fd, *name, &mut **buffer),
            Self::Set(name, value) => {
                fs::fsetxattr(fd, *name, value, XattrFlags::empty()).map(|()| 0)
            }
            Self::Remove(name) => fs::fremovexattr(fd, *name).map(|()| 0),
        })
    }

    fn by_path(&mut self, path: &CStr) -> Result<usize, Errno> {
        retry_on_intr(|| match self {
            Self::List(buffer) => fs::listxattr(path, &mut **buffer),
            Self::Get(name, buffer) => fs::getxattr(path, *name, &mut **buffer),
            Self::Set(name, value) => {
                fs::setxattr(path, *name, value, XattrFlags::empty()).map(|()| 0)
            }
            Self::Remove(name) => fs::removexattr(path, *name).map(|()| 0),
        })
    }
}

#[cfg(test)]
mod tests;
