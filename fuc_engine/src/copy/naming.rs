//! When dests get their names: facts that the stages share.

use std::sync::atomic::{AtomicBool, Ordering};

/// Says when a dest gets its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// The dest has its name while it is written.
    AtOnce,
    /// The dest gets its name when it is complete, if that is possible.
    WhenComplete,
}

/// Says whether the filesystems of this run's dests have files without a name, as far as is known.
pub(super) struct UnnamedFiles(AtomicBool);

impl Default for UnnamedFiles {
    fn default() -> Self {
        Self(AtomicBool::new(true))
    }
}

impl UnnamedFiles {
    // Relaxed: the flag only saves calls that would fail, and publishes nothing.

    pub(super) fn may_exist(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Notes that a dest could not be created without a name.
    pub(super) fn note_missing(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
