//! The public type [`Cancel`], which stops runs before their end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A token that stops the runs that have it.
///
/// Clones are cheap and share their state. A run checks the token before each task, between
/// batches of at most 32 entries, and between the pieces of a file of more than 16 MiB. It then skips
/// the rest of its work, and its [`Summary`](crate::Summary) says so.
///
/// ```
/// use fuc_engine::{Cancel, RemoveOp};
///
/// # fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// # let tree = dir.path().join("tree");
/// # std::fs::create_dir(&tree)?;
/// let cancel = Cancel::new();
/// cancel.cancel();
/// let removal = RemoveOp::new().cancelled_by(cancel);
/// let summary = removal.run([tree.clone()], &std::sync::Mutex::new(Vec::new()));
/// assert!(summary.cancelled && tree.exists());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Creates a token that stops nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the runs that have this token or a clone of it. It cannot be undone.
    ///
    /// This only stores to an atomic, so a signal handler may call it.
    pub fn cancel(&self) {
        // Relaxed: no other data is published with it.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if [`cancel`](Self::cancel) was called.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
