//! Repeats calls that a signal has interrupted.

use rustix::io::Errno;

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
