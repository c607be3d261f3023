//! The state of the deletions of a run.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use super::facts::FileId;
use crate::hashing::HashSet;

// The counters are Relaxed: they publish nothing, and the totals are read after the threads have ended.
#[derive(Default)]
pub(super) struct Deletions {
    /// The number of entries that the limit has permitted to delete.
    pub(super) permitted: AtomicU64,
    /// The number of entries that stay because of the limit.
    pub(super) not_deleted: AtomicU64,
    pub(super) deleted: AtomicU64,
    /// The sources, the directories above them, and the dests that operands have entered.
    pub(super) in_use: Arc<Mutex<HashSet<FileId>>>,
    /// Set if a directory in use was met among what was to be deleted.
    pub(super) has_met_one: Arc<AtomicBool>,
}
