//! The public interface of a removal.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::options::RemoveOptions;
use super::run::Removal;
use crate::error::Error;
use crate::observer::{Observer, Summary};

/// A removal, ready to run on any number of operands.
///
/// ```
/// use std::sync::Mutex;
/// use fuc_engine::{RemoveOp, RemoveOptions};
///
/// # fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// let doomed = dir.path().join("doomed");
/// std::fs::create_dir_all(doomed.join("with/sub/directories"))?;
/// std::fs::write(doomed.join("and a file"), "content")?;
///
/// let failures = Mutex::new(Vec::new());
/// let summary = RemoveOp::new(RemoveOptions::default()).run([&doomed], &failures);
/// assert_eq!(summary.entries, 5);
/// assert!(summary.is_complete());
/// assert!(!doomed.exists());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct RemoveOp {
    options: RemoveOptions,
}

impl RemoveOp {
    /// A removal with these options.
    #[must_use]
    pub fn new(options: RemoveOptions) -> Self {
        Self { options }
    }

    /// Removes the operands, of whatever type they are; a symbolic link is
    /// removed, never followed (but for one with a trailing slash, which names
    /// its target).
    ///
    /// Operands take effect as if they were removed one after the other.
    /// Nothing below an operand is reached through a symbolic link, whatever
    /// happens to the tree meanwhile.
    ///
    /// # Errors
    /// Each entry that stays behind is given to `observer`, once, and counted in
    /// [`Summary::failures`]; its ancestors then stay too, without a word. The
    /// rest of the work is done all the same.
    ///
    /// What the observer declines is no failure. If it was a directory to go
    /// into, its ancestors stay without a word. If it was anything else, the
    /// directory that it is in is asked about or tried in its turn, and to
    /// remove that fails with `ENOTEMPTY`.
    pub fn run<P: AsRef<Path>>(
        &self,
        operands: impl IntoIterator<Item = P>,
        observer: &dyn Observer,
    ) -> Summary {
        Removal::new(&self.options, operands, observer).run()
    }
}

/// Removes `path`, a directory with all that is in it, or anything else.
///
/// # Errors
/// The first entry that could not be removed. Everything that can be removed is,
/// nevertheless; [`RemoveOp::run`] tells of every failure.
pub fn remove_tree(path: impl AsRef<Path>) -> Result<Summary, Error> {
    let failures = Mutex::new(Vec::new());
    let summary = RemoveOp::default().run([path], &failures);
    let failures = failures
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    failures.into_iter().next().map_or(Ok(summary), Err)
}
