//! The token by which SIGINT, SIGTERM and SIGHUP cancel a run.

use fuc_engine::Cancel;

use crate::sys;

/// Returns the token for the engine. From now on, the first of these signals cancels it instead
/// of ending the process. Another signal ends the process at once, unless it comes within half a second.
///
/// If the run does not end within two seconds, because a system call hangs, the process ends
/// by the signal. Signals that were ignored when the process began stay ignored.
#[must_use]
pub fn cancel_on_signals() -> Cancel {
    sys::cancel_on_signals()
}
