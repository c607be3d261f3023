//! Lets Ctrl-C and SIGTERM end a run between two commands, so that trees are removed and loop devices unmounted.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, bail};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Makes the signals set a flag from now on. On a terminal, Ctrl-C also sends the signal to the measured command.
pub(crate) fn listen() -> Result<()> {
    ctrlc::set_handler(|| ASKED.store(true, Ordering::Relaxed)).context("cannot listen for signals")
}

/// Checks that the run may go on.
///
/// # Errors
/// If there was a signal.
pub(crate) fn check() -> Result<()> {
    if ASKED.load(Ordering::Relaxed) {
        bail!("interrupted: the trees are removed");
    }
    Ok(())
}
