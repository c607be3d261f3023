//! Operations on inodes that a descriptor only names (`O_PATH`). The inode may have any type, and to
//! open it could wait, have side effects, or be refused.
//!
//! ```text
//!   mode         fchmodat2 on the descriptor          Linux 6.6
//!   the rest     no call takes such a descriptor: not even setxattrat with AT_EMPTY_PATH
//!
//!   all          through /proc/thread-self/fd         if the kernel serves /proc
//!   directories  by opening `.` in them               if they may be read
//! ```
//!
//! None of them uses a name a second time, so they meet no other inode. What they cannot do is reported.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::fs::{self, AtFlags, CWD, Mode, Timestamps};
use rustix::io::Errno;

use super::at::Symlinks;
use super::interrupted::retry_on_intr;
use super::open::open_directory;
use super::proc::path_of_open;
use super::raw;
use super::stat::{is_directory, stat_open};

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
pub(super) trait InodeOp {
    type Output;

    fn on_open(&mut self, fd: BorrowedFd<'_>) -> Result<Self::Output, Errno>;

    /// The path leads to the inode itself, even if that is a symbolic link.
    fn by_path(&mut self, path: &CStr) -> Result<Self::Output, Errno>;
}

/// Sets the mode of the inode that a path descriptor names.
pub(super) fn set_mode(fd: BorrowedFd<'_>, mode: u32) -> Result<(), Errno> {
    // It publishes only itself, so Relaxed: a thread that misses it makes one more call that fails.
    static LACKS_FCHMODAT2: AtomicBool = AtomicBool::new(false);
    let call = || raw::fchmodat2(fd, mode);
    match unless_missing(&LACKS_FCHMODAT2, raw::has_fchmodat2, call) {
        Err(Errno::NOSYS) => apply(fd, SetMode(mode)).map_err(InodeError::errno),
        set => set,
    }
}

/// Applies an operation that no call on a path descriptor itself can do.
pub(super) fn apply<O: InodeOp>(fd: BorrowedFd<'_>, op: O) -> Result<O::Output, InodeError> {
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

pub(super) struct SetMode(pub(super) u32);

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

pub(super) struct SetTimes<'t>(pub(super) &'t Timestamps);

impl InodeOp for SetTimes<'_> {
    type Output = ();

    fn on_open(&mut self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        retry_on_intr(|| fs::futimens(fd, self.0))
    }

    fn by_path(&mut self, path: &CStr) -> Result<(), Errno> {
        retry_on_intr(|| fs::utimensat(CWD, path, self.0, AtFlags::empty()))
    }
}

#[cfg(test)]
mod tests;
