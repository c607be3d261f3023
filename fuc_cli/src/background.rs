//! Work that goes on after the command has ended.

use std::io;
use std::os::fd::BorrowedFd;

use crate::sys;

/// Runs `job` in a new process, and returns as soon as that process exists.
///
/// | property | of the new process |
/// |---|---|
/// | session | its own, without a terminal; it ignores SIGHUP, and SIGTERM ends it |
/// | standard streams | `/dev/null` |
/// | other descriptors | those in `keep`; all others are closed (before Linux 5.9 they stay open) |
/// | working directory | `/` |
/// | priority | nice 19, and the idle classes of the schedulers for the processor and for disks |
///
/// The process ends when `job` returns or panics. `job` must use no descriptors but those in `keep` and
/// those that it opens itself.
///
/// # Errors
/// If the process cannot be created, nothing has happened. This is so if the system refuses, if there is no
/// `/proc` or `/dev/null`, or if this process has other threads.
pub fn spawn(keep: &[BorrowedFd<'_>], job: impl FnOnce()) -> io::Result<()> {
    sys::spawn_background(keep, job)
}
