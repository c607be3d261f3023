//! Work that goes on after the command has ended.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::sys;

/// Runs `job` in a new process, and returns as soon as that process exists. A pair of connected sockets of type
/// `SOCK_SEQPACKET` joins both processes: one is returned, and `job` gets the other.
///
/// If this process ends, however it ends, the socket of `job` is at its end.
///
/// | property | of the new process |
/// |---|---|
/// | session | its own, without a terminal; it ignores SIGHUP, SIGPIPE and SIGUSR1 |
/// | SIGINT and SIGTERM | their actions in this process; see [`cancel_on_signals`](crate::interrupt::cancel_on_signals), but without its limit of two seconds |
/// | standard streams | `/dev/null` |
/// | other descriptors | those in `keep`; all others are closed (before Linux 5.9 they stay open) |
/// | working directory | `/` |
///
/// The process ends when `job` returns. `job` must use no descriptors but those in `keep`, its socket, and those that
/// it opens itself.
///
/// # Errors
/// If the process cannot be created, nothing has happened. This is so if the system refuses, if there is no
/// `/proc` or `/dev/null`, or if this process has other threads.
pub fn spawn(keep: &[BorrowedFd<'_>], job: impl FnOnce(OwnedFd)) -> io::Result<OwnedFd> {
    sys::spawn_background(keep, job)
}

/// Lets this process have only processor and disk time that no other process wants, as far as the schedulers know such
/// a class: nice 19, and the idle classes for the processor and for disks.
pub fn lower_priority() {
    sys::lower_priority();
}
