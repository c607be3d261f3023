//! The state of the deletions of a run.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::io::Errno;

use super::facts::{CopyNode, FileId};
use crate::hashing::HashMap;
use crate::sync::lock;

// The counters are Relaxed: they publish nothing, and the totals are read after the threads have ended.
#[derive(Default)]
pub(super) struct Deletions {
    /// The number of entries that the limit has permitted to delete.
    pub(super) permitted: AtomicU64,
    /// The number of entries that stay because of the limit.
    pub(super) not_deleted: AtomicU64,
    pub(super) deleted: AtomicU64,
    pub(super) in_use: Arc<InUse>,
    /// The directories that wait until everything is copied. `None`: none has to wait.
    pub(super) put_off: Mutex<Option<Vec<CopyNode>>>,
}

/// The use of a file or directory that must not be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It is a source, a directory above one, or a dest that an operand has entered.
    Operand,
    /// It was copied, and was reached through a link below an operand.
    BehindLink,
}

#[derive(Default)]
pub(super) struct InUse(Mutex<HashMap<FileId, Use>>);

impl InUse {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<FileId, Use>> {
        lock(&self.0)
    }

    /// Returns `true` if this must not be deleted, or could not be looked at.
    pub(super) fn contains(&self, id: Result<FileId, Errno>) -> bool {
        id.map_or(true, |id| self.lock().contains_key(&id))
    }
}
