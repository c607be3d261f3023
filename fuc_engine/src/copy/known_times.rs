//! The filesystems of the dests, and the rules by which they store times, as far as probes have shown them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::decide::stored_times::StoredTimes;
use crate::hashing::HashMap;

/// The knowledge about each filesystem, by the number of its device in a [`FileId`](crate::sys::FileId).
#[derive(Default)]
pub(super) struct KnownTimes(Mutex<HashMap<u32, StoredTimes>>);

impl KnownTimes {
    fn map(&self) -> MutexGuard<'_, HashMap<u32, StoredTimes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn of(&self, device: u32) -> Option<StoredTimes> {
        self.map().get(&device).copied()
    }

    /// Adds what a probe has shown.
    pub(super) fn add(&self, device: u32, shown: StoredTimes) {
        let mut map = self.map();
        let known = shown.added_to(map.get(&device).copied());
        map.insert(device, known);
    }
}
