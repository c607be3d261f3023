//! Calls on the descriptor table of the calling thread as a whole.

use std::ffi::{c_int, c_uint};
use std::os::fd::RawFd;

use libc::syscall;
use rustix::io::Errno;

/// Gives the calling thread a private descriptor table, with copies of the descriptors below `end`.
pub(super) fn unshare_descriptors_below(end: RawFd) -> Result<(), Errno> {
    const CLOSE_RANGE_UNSHARE: c_uint = 1 << 1;
    let (first, last) = (end as c_uint, c_uint::MAX);
    // SAFETY: nothing is closed in the table that was shared. Numbers below `end` mean the same as before.
    let returned = unsafe { syscall(libc::SYS_close_range, first, last, CLOSE_RANGE_UNSHARE) };
    if returned == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&error).unwrap_or(Errno::NOSYS))
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

/// Returns `true` if a sandbox filters the system calls of this thread, or if that is not known.
pub(super) fn has_seccomp() -> bool {
    // SAFETY: the call takes no pointers and changes nothing.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) != 0 }
}
