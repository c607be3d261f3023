//! Ctrl-C and SIGTERM end a run between two commands, so that the trees are removed and loop devices unmounted.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, bail};

static ASKED: AtomicBool = AtomicBool::new(false);

/// From here on the signals are only noted. On a terminal the command being measured gets its own.
pub(crate) fn listen() -> Result<()> {
    ctrlc::set_handler(|| ASKED.store(true, Ordering::Relaxed)).context("cannot listen for signals")
}

/// # Errors
/// Once the user asked for the end.
pub(crate) fn check() -> Result<()> {
    if ASKED.load(Ordering::Relaxed) {
        bail!("interrupted: the trees are removed");
    }
    Ok(())
}
