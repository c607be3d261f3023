//! Parts that other files build system calls from: a name in a directory, a path through `/proc`, a repetition after a
//! signal, and calls that rustix lacks or has in another form.
//!
//! In a `chroot`, another user may own the directory `/proc`, and lead a path through it anywhere. So it is used only if the
//! kernel serves it.

use std::ffi::{CStr, CString, c_int, c_long, c_uint};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::OnceLock;

use libc::syscall;
use linux_raw_sys::general::{__NR_fchmodat2, PROC_SUPER_MAGIC};
use rustix::fs::{AtFlags, OFlags, statfs};
use rustix::io::Errno;

/// Says what happens if the last component is a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symlinks {
    Follow,
    NoFollow,
}

impl Symlinks {
    pub(super) fn open_flag(self) -> OFlags {
        match self {
            Self::Follow => OFlags::empty(),
            Self::NoFollow => OFlags::NOFOLLOW,
        }
    }

    pub(super) fn at_flag(self) -> AtFlags {
        match self {
            Self::Follow => AtFlags::empty(),
            Self::NoFollow => AtFlags::SYMLINK_NOFOLLOW,
        }
    }
}

/// A name in a directory, and whether a symbolic link there is followed.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) name: &'a CStr,
    pub(crate) symlinks: Symlinks,
}

/// Number of attempts to make a call that signals may interrupt. A broken server can answer each of them like that.
const MOST_ATTEMPTS: u32 = 100;

/// Makes a call again while a signal interrupts it, and fails with `EINTR` if that happens too often.
#[inline]
pub(super) fn retry_on_intr<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    // One place for the call, so that it is inlined there.
    let mut attempts = 1;
    loop {
        match call() {
            Err(Errno::INTR) if attempts < MOST_ATTEMPTS => attempts += 1,
            done => return done,
        }
    }
}

/// Returns `true` if the kernel serves `/proc`.
pub(super) fn is_served() -> bool {
    static IS_SERVED: OnceLock<bool> = OnceLock::new();
    *IS_SERVED.get_or_init(|| {
        let seen = retry_on_intr(|| statfs(c"/proc/thread-self/fd"));
        seen.is_ok_and(|seen| seen.f_type as u64 == u64::from(PROC_SUPER_MAGIC))
    })
}

/// Returns a path that leads to an open file itself, which may be held by a path descriptor.
///
/// # Errors
/// `ENOENT` if the kernel does not serve `/proc`.
pub(super) fn path_of_open(file: BorrowedFd<'_>) -> Result<CString, Errno> {
    if !is_served() {
        return Err(Errno::NOENT);
    }
    let path = CString::new(format!("/proc/thread-self/fd/{}", file.as_raw_fd()));
    Ok(path.expect("BUG: a NUL in a number"))
}

fn result(returned: c_long) -> Result<usize, Errno> {
    usize::try_from(returned).map_err(|_| {
        let error = std::io::Error::last_os_error();
        Errno::from_io_error(&error).unwrap_or(Errno::NOSYS)
    })
}

/// Returns the processor on which the calling thread runs.
///
/// The function of rustix reads memory that valgrind hides, and crashes there.
pub(super) fn processor() -> Option<usize> {
    // SAFETY: the call has no arguments.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Sets the mode of the inode that a path descriptor names. The call is new in Linux 6.6.
pub(super) fn fchmodat2(fd: BorrowedFd<'_>, mode: u32) -> Result<(), Errno> {
    let flags = AtFlags::EMPTY_PATH.bits() as c_uint;
    let mode = (mode & 0o7777) as c_uint;
    let (number, path) = (__NR_fchmodat2 as c_long, c"".as_ptr());
    // SAFETY: the descriptor is open, the path is a C string, and both are only read.
    let returned = unsafe { syscall(number, fd.as_raw_fd(), path, mode, flags) };
    result(returned).map(drop)
}

/// Begins to write all content of a file to the disk, or waits for it, as `flags` say.
pub(super) fn sync_file_range(file: BorrowedFd<'_>, flags: c_uint) -> Result<(), Errno> {
    // A length of zero means up to the end.
    // SAFETY: the descriptor is open, and the call gets no memory.
    let returned = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) };
    result(returned.into()).map(drop)
}

/// Gives the calling thread a private descriptor table, with copies of the descriptors below `end`.
pub(super) fn unshare_descriptors_below(end: RawFd) -> Result<(), Errno> {
    const CLOSE_RANGE_UNSHARE: c_uint = 1 << 1;
    let (first, last) = (end as c_uint, c_uint::MAX);
    // SAFETY: nothing is closed in the table that was shared. Numbers below `end` mean the same as before.
    let returned = unsafe { syscall(libc::SYS_close_range, first, last, CLOSE_RANGE_UNSHARE) };
    result(returned).map(drop)
}

/// Closes the descriptors from `first` on, which must not be used afterwards.
pub(super) fn close_from(first: RawFd) {
    // SAFETY: as the caller promises. The call cannot fail.
    let _ = unsafe { syscall(libc::SYS_close_range, first as c_uint, c_uint::MAX, 0) };
}

/// Returns how the file of a descriptor was opened, or `None` if the number is not that of an open descriptor.
pub(super) fn status_flags(number: RawFd) -> Option<c_int> {
    // SAFETY: the call takes no pointers and changes nothing.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFL) };
    (flags != -1).then_some(flags)
}

/// Replaces the content of `buffer` by directory entries, as many as its capacity has room for.
///
/// The buffer is empty after an error, and at the end of the directory. `RawDir` of rustix would keep
/// a filled buffer borrowed, so it could not be given to another thread.
#[inline]
pub(super) fn getdents64(dir: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> Result<(), Errno> {
    buffer.clear();
    let (start, capacity) = (buffer.as_mut_ptr(), buffer.capacity());
    // SAFETY: the pointer and the capacity describe the allocation of the vector, and the kernel
    // writes at most that many bytes to it.
    let returned = unsafe { syscall(libc::SYS_getdents64, dir.as_raw_fd(), start, capacity) };
    let filled = result(returned)?;
    assert!(filled <= capacity, "BUG: getdents64 wrote too much");
    // SAFETY: the kernel has initialised the first `filled` bytes, which are within the capacity.
    unsafe { buffer.set_len(filled) };
    Ok(())
}
