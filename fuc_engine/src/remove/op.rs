//! The public interface of a removal.

use std::path::Path;

use super::options::RemoveOptions;
use super::run::Removal;
use crate::cancel::Cancel;
use crate::error::Error;
use crate::observer::{Observer, Summary};
use crate::report::{Report, summary_or_first_failure};

/// Removes any number of operands.
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
    cancel: Option<Cancel>,
}

impl RemoveOp {
    /// Creates a removal with these options.
    #[must_use]
    pub fn new(options: RemoveOptions) -> Self {
        Self {
            options,
            cancel: None,
        }
    }

    /// Lets `cancel` stop the runs of this removal.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Removes the operands, whatever their types are.
    ///
    /// A symbolic link is removed and never followed, with one exception: a path with a
    /// slash at its end names the target of the link.
    ///
    /// Operands take effect as if they were removed one after the other, and their failures are
    /// reported in that order. Nothing below an operand is reached through a symbolic link,
    /// even if other processes change the tree at the same time.
    ///
    /// # Errors
    /// Each entry that could not be removed is reported to `observer` once and counted in
    /// [`Summary::failures`]. Its ancestors stay too and are not reported. Everything
    /// else is removed.
    ///
    /// It is not a failure if the observer declines. If it declines that a directory is
    /// entered, the ancestors of the directory stay and are not reported. If it declines
    /// anything else, the parent directory is still asked about or tried. Its removal then
    /// fails with `ENOTEMPTY`.
    pub fn run<P: AsRef<Path>>(
        &self,
        operands: impl IntoIterator<Item = P>,
        observer: &dyn Observer,
    ) -> Summary {
        let report = Report::new(observer, self.cancel.clone());
        Removal::new(&self.options, operands, report).run()
    }
}

/// Removes `path`, whatever its type is, and all content if it is a directory.
///
/// # Errors
/// Returns the first failure. Everything else is removed nevertheless. Use
/// [`RemoveOp::run`] to receive every failure.
pub fn remove_tree(path: impl AsRef<Path>) -> Result<Summary, Error> {
    summary_or_first_failure(|failures| RemoveOp::default().run([path], failures))
}
