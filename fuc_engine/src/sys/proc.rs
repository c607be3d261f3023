//! Finds out whether `/proc` can be used, and builds paths through it.
//!
//! In a `chroot`, another user may own the directory `/proc`, and lead a path through it anywhere. So it is used only if the
//! kernel serves it.

use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;

use linux_raw_sys::general::PROC_SUPER_MAGIC;
use rustix::fs::statfs;
use rustix::io::Errno;

use super::interrupted::retry_on_intr;

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
