//! Modes, times and extended attributes of what a descriptor only names (`O_PATH`), since it
//! may be anything and opening it could wait, act or be refused.
//!
//! ```text
//!   mode         fchmodat2 of the descriptor          Linux 6.6
//!   the rest     no call takes such a descriptor: not even setxattrat, with AT_EMPTY_PATH
//!
//!   all          by way of /proc/self/fd              where there is a /proc
//!   directories  opened by way of `.`                 who may read them
//!   others       by directory and name once more      xattrs: Linux 6.13
//! ```
//!
//! Only the last of these can meet another inode than the one that is held: whether the name
//! still leads there is looked at right before.

use std::ffi::{CStr, CString, c_int, c_long, c_uint};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{self, AtFlags, FileType, Mode, Timestamps, XattrFlags};
use rustix::io::{Errno, retry_on_intr};

use super::calls::{CWD, Symlinks, file_type, open_directory, set_mode, stat, stat_open};
use super::identity::FileId;

/// Why an operation was not applied to an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InodeError {
    /// This machine has no way to apply it through a descriptor that only names the inode.
    NoWay,
    /// The kernel refused.
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

/// An inode that a descriptor names.
#[derive(Clone, Copy)]
pub(crate) struct PathFd<'a> {
    pub(crate) fd: BorrowedFd<'a>,
    /// Where it was found; without it, only a directory that may be read can do without /proc.
    pub(crate) at: Option<At<'a>>,
}

/// A name in a directory, and what it stands for if it is a link.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) name: &'a CStr,
    pub(crate) symlinks: Symlinks,
}

/// What this machine was found not to have, so that it is not asked for again.
#[derive(Debug, Default)]
pub(super) struct MissingCalls {
    fchmodat2: AtomicBool,
    xattrat: AtomicBool,
    proc: AtomicBool,
}

// Each flag stands for itself, so Relaxed: who does not see it yet finds out as well.
static MISSING: MissingCalls = MissingCalls {
    fchmodat2: AtomicBool::new(false),
    xattrat: AtomicBool::new(false),
    proc: AtomicBool::new(false),
};

/// A call in the forms that it has.
pub(super) trait InodeOp {
    type Output;

    fn on_open(&mut self, fd: BorrowedFd<'_>) -> Result<Self::Output, Errno>;

    /// By a path that leads to the inode itself, even if that is a symbolic link.
    fn by_path(&mut self, path: &CStr) -> Result<Self::Output, Errno>;

    fn by_name(&mut self, at: &At<'_>, missing: &MissingCalls) -> Result<Self::Output, InodeError>;
}

impl PathFd<'_> {
    pub(super) fn set_mode(&self, mode: u32) -> Result<(), Errno> {
        self.set_mode_with(mode, &MISSING)
    }

    fn set_mode_with(&self, mode: u32, missing: &MissingCalls) -> Result<(), Errno> {
        let call = || fchmodat2(self.fd, mode);
        match missing.unless_missing(&missing.fchmodat2, FCHMODAT2, call) {
            Err(Errno::NOSYS) => match self.apply_with(SetMode(mode), missing) {
                Err(InodeError::NoWay) => Err(Errno::NOSYS),
                Err(InodeError::Failed(errno)) => Err(errno),
                Ok(()) => Ok(()),
            },
            set => set,
        }
    }

    /// Does what cannot be done by the descriptor.
    pub(super) fn apply<O: InodeOp>(&self, op: O) -> Result<O::Output, InodeError> {
        self.apply_with(op, &MISSING)
    }

    fn apply_with<O: InodeOp>(
        &self,
        mut op: O,
        missing: &MissingCalls,
    ) -> Result<O::Output, InodeError> {
        let path = CString::new(format!("/proc/self/fd/{}", self.fd.as_raw_fd()));
        let path = path.expect("BUG: a NUL in a number");
        if !missing.proc.load(Ordering::Relaxed) {
            match op.by_path(&path) {
                // The descriptor is open, so it is the path that is not there; unless a filesystem
                // such as FUSE or NFS says so of an inode that has been removed.
                Err(Errno::NOENT | Errno::NOTDIR)
                    if stat(CWD, &path, Symlinks::NoFollow).is_err() =>
                {
                    missing.proc.store(true, Ordering::Relaxed);
                }
                // Of the inode, or of a sandbox without /proc: the other way will tell.
                Err(Errno::ACCESS) => {}
                done => return Ok(done?),
            }
        }
        let found = stat_open(self.fd)?;
        if file_type(&found) == FileType::Directory {
            match self.open_again() {
                Err(Errno::ACCESS) if self.at.is_some() => {}
                opened => return Ok(op.on_open(opened?.as_fd())?),
            }
        }
        let at = self.at.as_ref().ok_or(InodeError::NoWay)?;
        let there = stat(at.dir, at.name, at.symlinks)?;
        if FileId::of(&there) != FileId::of(&found) {
            return Err(Errno::STALE.into());
        }
        op.by_name(at, missing)
    }

    fn open_again(&self) -> Result<OwnedFd, Errno> {
        open_directory(self.fd, c".", Symlinks::NoFollow)
    }
}

impl MissingCalls {
    /// `ENOSYS` if the call of this number is missing.
    fn unless_missing<T>(
        &self,
        is_missing: &AtomicBool,
        number: c_long,
        call: impl FnMut() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        if is_missing.load(Ordering::Relaxed) {
            return Err(Errno::NOSYS);
        }
        match retry_on_intr(call) {
            Err(Errno::NOSYS) => {}
            // Of the inode, or of a sandbox that does not know the call.
            Err(Errno::PERM) if !gets_through(number) => {}
            done => return done,
        }
        is_missing.store(true, Ordering::Relaxed);
        Err(Errno::NOSYS)
    }
}

struct SetMode(u32);

impl InodeOp for SetMode {
    type Output = ();

    fn on_open(&mut self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        set_mode(fd, self.0)
    }

    fn by_path(&mut self, path: &CStr) -> Result<(), Errno> {
        let bits = Mode::from_raw_mode(self.0 & 0o7777);
        retry_on_intr(|| fs::chmodat(CWD, path, bits, AtFlags::empty()))
    }

    /// Who could do that could have done it by the descriptor.
    fn by_name(&mut self, _: &At<'_>, _: &MissingCalls) -> Result<(), InodeError> {
        Err(InodeError::NoWay)
    }
}

pub(super) struct SetTimes<'t>(pub(super) &'t Timestamps);

impl InodeOp for SetTimes<'_> {
    type Output = ();

    fn on_open(&mut self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        fs::futimens(fd, self.0)
    }

    fn by_path(&mut self, path: &CStr) -> Result<(), Errno> {
        fs::utimensat(CWD, path, self.0, AtFlags::empty())
    }

    fn by_name(&mut self, at: &At<'_>, _: &MissingCalls) -> Result<(), InodeError> {
        Ok(fs::utimensat(
            at.dir,
            at.name,
            self.0,
            at.symlinks.at_flag(),
        )?)
    }
}

/// A call on extended attributes; those that read return the bytes that they wrote to the buffer.
pub(super) enum Xattr<'c> {
    List(&'c mut [u8]),
    Get(&'c CStr, &'c mut [u8]),
    Set(&'c CStr, &'c [u8]),
    Remove(&'c CStr),
}

impl InodeOp for Xattr<'_> {
    type Output = usize;

    fn on_open(&mut self, fd: BorrowedFd<'_>) -> Result<usize, Errno> {
        match self {
            Self::List(buffer) => fs::flistxattr(fd, &mut **buffer),
            Self::Get(name, buffer) => fs::fgetxattr(fd, *name, &mut **buffer),
            Self::Set(name, value) => {
                fs::fsetxattr(fd, *name, value, XattrFlags::empty()).map(|()| 0)
            }
            Self::Remove(name) => fs::fremovexattr(fd, *name).map(|()| 0),
        }
    }

    fn by_path(&mut self, path: &CStr) -> Result<usize, Errno> {
        match self {
            Self::List(buffer) => fs::listxattr(path, &mut **buffer),
            Self::Get(name, buffer) => fs::getxattr(path, *name, &mut **buffer),
            Self::Set(name, value) => {
                fs::setxattr(path, *name, value, XattrFlags::empty()).map(|()| 0)
            }
            Self::Remove(name) => fs::removexattr(path, *name).map(|()| 0),
        }
    }

    fn by_name(&mut self, at: &At<'_>, missing: &MissingCalls) -> Result<usize, InodeError> {
        let number = self.number();
        match missing.unless_missing(&missing.xattrat, number, || self.xattrat(at)) {
            Err(Errno::NOSYS) => Err(InodeError::NoWay),
            done => Ok(done?),
        }
    }
}

// The C library's, which returns -1 and sets `errno`; rustix has not got these calls.
unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

// The same on every architecture that has got its calls from the generic table since Linux 5.0.
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const GETXATTRAT: c_long = 464;
const LISTXATTRAT: c_long = 465;
const REMOVEXATTRAT: c_long = 466;

/// On these the numbers begin elsewhere, and then name other calls.
const HAS_OTHER_NUMBERS: bool = cfg!(any(
    target_arch = "mips",
    target_arch = "mips64",
    target_arch = "mips32r6",
    target_arch = "mips64r6",
    all(target_arch = "x86_64", target_pointer_width = "32"),
));

fn result(returned: c_long) -> Result<usize, Errno> {
    usize::try_from(returned).map_err(|_| {
        let error = std::io::Error::last_os_error();
        Errno::from_io_error(&error).unwrap_or(Errno::NOSYS)
    })
}

/// Whether one of these calls gets as far as to have its arguments looked at.
fn gets_through(number: c_long) -> bool {
    // Every argument has the width of a register, so that none is left to chance.
    let (no_dir, zero): (c_long, c_long) = (-1, 0);
    // SAFETY: with no directory and without a path, each of them fails before it does anything.
    let returned = unsafe { syscall(number, no_dir, zero, zero, zero, zero, zero) };
    !matches!(result(returned), Err(Errno::NOSYS | Errno::PERM))
}

fn fchmodat2(fd: BorrowedFd<'_>, mode: u32) -> Result<(), Errno> {
    if HAS_OTHER_NUMBERS {
        return Err(Errno::NOSYS);
    }
    let flags = AtFlags::EMPTY_PATH.bits() as c_uint;
    let mode = (mode & 0o7777) as c_uint;
    // SAFETY: the descriptor is open, the path is a C string, and both are only read.
    let returned = unsafe { syscall(FCHMODAT2, fd.as_raw_fd(), c"".as_ptr(), mode, flags) };
    result(returned).map(drop)
}

/// The kernel's `struct xattr_args`.
#[repr(C, align(8))]
struct XattrArgs {
    value: u64,
    size: u32,
    flags: u32,
}

impl XattrArgs {
    const BYTES: usize = size_of::<Self>();

    fn new(value: *const u8, size: usize) -> Self {
        Self {
            value: value.expose_provenance() as u64,
            // No attribute is larger than 64 KiB.
            size: u32::try_from(size).unwrap_or(u32::MAX),
            flags: 0,
        }
    }
}

impl Xattr<'_> {
    fn number(&self) -> c_long {
        match self {
            Self::List(_) => LISTXATTRAT,
            Self::Get(..) => GETXATTRAT,
            Self::Set(..) => SETXATTRAT,
            Self::Remove(_) => REMOVEXATTRAT,
        }
    }

    fn xattrat(&mut self, at: &At<'_>) -> Result<usize, Errno> {
        if HAS_OTHER_NUMBERS {
            return Err(Errno::NOSYS);
        }
        let dir: c_int = at.dir.as_raw_fd();
        let path = at.name.as_ptr();
        let flags = at.symlinks.at_flag().bits() as c_uint;
        let returned = match self {
            Self::List(buffer) => {
                let (start, length) = (buffer.as_mut_ptr(), buffer.len());
                // SAFETY: the directory is open and the path is a C string, as in all four. To the
                // buffer, which is borrowed for that, the kernel writes no more than it is told.
                unsafe { syscall(LISTXATTRAT, dir, path, flags, start, length) }
            }
            Self::Get(name, buffer) => {
                let mut args = XattrArgs::new(buffer.as_mut_ptr(), buffer.len());
                let (args, name) = (&raw mut args, name.as_ptr());
                // SAFETY: as above, with the buffer and its length in a structure of the size given.
                unsafe { syscall(GETXATTRAT, dir, path, flags, name, args, XattrArgs::BYTES) }
            }
            Self::Set(name, value) => {
                let args = XattrArgs::new(value.as_ptr(), value.len());
                let (args, name) = (&raw const args, name.as_ptr());
                // SAFETY: as above; the value is only read.
                unsafe { syscall(SETXATTRAT, dir, path, flags, name, args, XattrArgs::BYTES) }
            }
            // SAFETY: as above, without a buffer.
            Self::Remove(name) => unsafe {
                syscall(REMOVEXATTRAT, dir, path, flags, name.as_ptr())
            },
        };
        result(returned)
    }
}

#[cfg(test)]
mod tests;
