//! Operations on inodes that a descriptor only names (`O_PATH`). The inode may have any type, and to
//! open it could wait, have side effects, or be refused.
//!
//! ```text
//!   mode         fchmodat2 on the descriptor          Linux 6.6
//!   the rest     no call takes such a descriptor: not even setxattrat with AT_EMPTY_PATH
//!
//!   all          through /proc/thread-self/fd         if /proc is mounted
//!   directories  by opening `.` in them               if they may be read
//!   others       by directory and name again          xattrs: Linux 6.13
//! ```
//!
//! Only the last way could meet another inode than the one that is held. Therefore the identity of
//! the named inode is compared right before.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::fs::{self, AtFlags, CWD, Mode, Timestamps};
use rustix::io::Errno;

use super::at::{At, Symlinks};
use super::identity::FileId;
use super::interrupted::retry_on_intr;
use super::open::{open_directory, proc_path};
use super::raw::{self, Call};
use super::stat::{is_directory, stat, stat_open};

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

/// A path descriptor, and perhaps the name by which it was opened.
#[derive(Clone, Copy)]
pub(crate) struct PathFd<'a> {
    pub(crate) fd: BorrowedFd<'a>,
    /// The name by which the inode was opened. Without it, only operations on a readable directory work if /proc is
    /// missing.
    pub(crate) at: Option<At<'a>>,
}

/// The optional features that this machine has turned out to lack; they are not tried again.
#[derive(Debug, Default)]
pub(super) struct MissingCalls {
    pub(super) fchmodat2: AtomicBool,
    pub(super) xattrat: AtomicBool,
    pub(super) proc: AtomicBool,
}

// Each flag publishes only itself, so Relaxed: a thread that misses it makes one more call that fails.
static MISSING: MissingCalls = MissingCalls {
    fchmodat2: AtomicBool::new(false),
    xattrat: AtomicBool::new(false),
    proc: AtomicBool::new(false),
};

/// An operation on an inode, in the forms that its system call has.
pub(super) trait InodeOp {
    type Output;

    fn on_open(&mut self, fd: BorrowedFd<'_>) -> Result<Self::Output, Errno>;

    /// The path leads to the inode itself, even if that is a symbolic link.
    fn by_path(&mut self, path: &CStr) -> Result<Self::Output, Errno>;

    /// Fails by default: no call does it without following symbolic links.
    fn by_name(&mut self, _: &At<'_>, _: &MissingCalls) -> Result<Self::Output, InodeError> {
        Err(InodeError::NoWay)
    }
}

impl PathFd<'_> {
    pub(super) fn set_mode(&self, mode: u32) -> Result<(), Errno> {
        self.set_mode_with(mode, &MISSING)
    }

    fn set_mode_with(&self, mode: u32, missing: &MissingCalls) -> Result<(), Errno> {
        let call = || raw::fchmodat2(self.fd, mode);
        match unless_missing(&missing.fchmodat2, Call::FCHMODAT2, call) {
            Err(Errno::NOSYS) => match self.apply_with(SetMode(mode), missing) {
                Err(InodeError::NoWay) => Err(Errno::NOSYS),
                Err(InodeError::Failed(errno)) => Err(errno),
                Ok(()) => Ok(()),
            },
            set => set,
        }
    }

    /// Applies an operation that no call on the descriptor itself can do.
    pub(super) fn apply<O: InodeOp>(&self, op: O) -> Result<O::Output, InodeError> {
        self.apply_with(op, &MISSING)
    }

    fn apply_with<O: InodeOp>(
        &self,
        mut op: O,
        missing: &MissingCalls,
    ) -> Result<O::Output, InodeError> {
        let path = proc_path(self.fd);
        if !missing.proc.load(Relaxed) {
            match op.by_path(&path) {
                // The descriptor is open, so /proc is missing. The look excludes the filesystems,
                // such as FUSE and NFS, that return this for an inode that was removed.
                Err(Errno::NOENT | Errno::NOTDIR)
                    if stat(CWD, &path, Symlinks::NoFollow).is_err() =>
                {
                    missing.proc.store(true, Relaxed);
                }
                // The error is about the inode, or comes from a sandbox without /proc. The next way shows which.
                Err(Errno::ACCESS) => {}
                done => return Ok(done?),
            }
        }
        let held = stat_open(self.fd)?;
        if is_directory(&held) {
            match open_directory(self.fd, c".", Symlinks::NoFollow) {
                Err(Errno::ACCESS) if self.at.is_some() => {}
                opened => return Ok(op.on_open(opened?.as_fd())?),
            }
        }
        let at = self.at.as_ref().ok_or(InodeError::NoWay)?;
        let named = stat(at.dir, at.name, at.symlinks)?;
        if FileId::of(&named) != FileId::of(&held) {
            return Err(Errno::STALE.into());
        }
        op.by_name(at, missing)
    }
}

/// Does `call` by `attempt`, or returns `ENOSYS` if this machine lacks it.
pub(super) fn unless_missing<T>(
    is_missing: &AtomicBool,
    call: Call,
    attempt: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    if is_missing.load(Relaxed) {
        return Err(Errno::NOSYS);
    }
    match retry_on_intr(attempt) {
        Err(Errno::NOSYS) => {}
        // A sandbox that does not know the call may return this; otherwise it is about the inode.
        Err(Errno::PERM) if !call.is_available() => {}
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

    fn by_name(&mut self, at: &At<'_>, _: &MissingCalls) -> Result<(), InodeError> {
        let flags = at.symlinks.at_flag();
        Ok(retry_on_intr(|| {
            fs::utimensat(at.dir, at.name, self.0, flags)
        })?)
    }
}

#[cfg(test)]
mod tests;
