//! Removing trees.
//!
//! A file costs one `unlinkat`. A directory costs what it takes to list it and one
//! `unlinkat`, by the worker that finishes the last entry under it.
//!
//! ```text
//!               run                  implements the walk's visitor; removes listed files
//!           ┌────┴───────┐
//!        waiting     directory         remove, and return what became of a name
//!           └────┬───────┤
//!             asking   guards          look and ask the user; protect directories
//!                │
//!             prompt                   pure decisions
//! ```
//!
//! The public entry points are here: no module imports `run`.
//!
//! | file | holds |
//! |---|---|
//! | `options` | [`RemoveOp`], the options of a caller: data only |
//! | `run` | one run: the walk's visitor, which knows all the others |
//! | `directory` | removing an operand, or entering it; entering a directory, and removing it when it is empty |
//! | `waiting` | names that are tried again at the end, because the reason to fail may pass |
//! | `guards` | directories that the options protect: `/`, mount points, other filesystems |
//! | `asking` | looking at what a question depends on, asking the user and applying the answer |
//! | `prompt` | whether the user is asked, and what: pure decisions |
//! | `context` | options and operands; opening and unlocking directories; paths, errors and events |
//! | `remover` | removes names, or checks in a dry run that they could be removed |
//! | `count` | the look-ahead: counts what is below operands, beside a removal or a copy |
//! | `node` | the state of a directory in flight; a name to remove, and the directory that it is in |

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::observer::{Counts, Observer, Summary};
use crate::report::complete_or_first_failure;
use crate::sys::Symlinks;

mod asking;
mod context;
mod count;
mod directory;
mod guards;
mod node;
mod options;
mod prompt;
mod remover;
mod run;
mod waiting;

pub(crate) use count::{Content, Survey};
pub use options::{Ask, RemoveOp};

impl RemoveOp<'_> {
    /// Removes `path`, whatever its type is, and all content if it is a directory.
    ///
    /// # Errors
    /// Returns the first failure. Everything else is removed nevertheless. Use [`run`](Self::run) to
    /// receive every failure. If nothing failed but the run was [cancelled](Self::cancelled_by), the error is
    /// [`Refusal::Cancelled`](crate::Refusal::Cancelled).
    pub fn remove(&self, path: impl AsRef<Path>) -> Result<Summary, Error> {
        let path = path.as_ref();
        complete_or_first_failure(path, |failures| self.run([path.to_path_buf()], failures))
    }

    /// Removes the operands that an iterator yields, whatever their types are.
    ///
    /// A symbolic link is removed and never followed, with one exception: a path with a
    /// slash at its end names the target of the link.
    ///
    /// Operands take effect as if they were removed one after the other, and their failures are
    /// reported in that order. Nothing below an operand is reached through a symbolic link,
    /// even if other processes change the tree at the same time.
    ///
    /// An iterator without an upper bound of its [`size_hint`](Iterator::size_hint) yields 16,384 operands at first, and
    /// more of them when these are removed. So any number of them takes a bounded amount of memory.
    ///
    /// ```
    /// use std::sync::Mutex;
    /// use fuc_engine::RemoveOp;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// # let scratch = tempfile::tempdir()?;
    /// # let dir = scratch.path().join("dir");
    /// std::fs::create_dir_all(dir.join("doomed/sub"))?;
    /// let open = std::fs::File::open(&dir)?;
    /// let moved = scratch.path().join("moved");
    /// std::fs::rename(&dir, &moved)?;
    ///
    /// let failures = Mutex::new(Vec::new());
    /// let summary = RemoveOp::new().in_dir(&open).run(["doomed".into()], &failures);
    /// assert_eq!(summary.entries, 2);
    /// assert!(!moved.join("doomed").exists());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Each entry that could not be removed is reported to `observer` once and counted in
    /// [`Summary::failures`]. Its ancestors stay too and are not reported. Everything
    /// else is removed.
    ///
    /// A removal that fails because the filesystem is full is tried again when the others are done, until none
    /// succeeds for about two seconds, and so is that of an emptied directory which a server calls not empty or busy. If
    /// more than 65,536 names have failed so, the others are reported at once.
    ///
    /// It is not a failure if the observer declines. If it declines that a directory is
    /// entered, the ancestors of the directory stay and are not reported. If it declines
    /// anything else, the parent directory is still asked about or tried. Its removal then
    /// fails with `ENOTEMPTY`.
    #[must_use = "only the summary and the observer say whether the run failed"]
    pub fn run(
        &self,
        operands: impl IntoIterator<Item = PathBuf>,
        observer: &dyn Observer,
    ) -> Summary {
        run::remove_all(self, &mut operands.into_iter(), observer)
    }

    /// Counts the entries that a run on these operands would remove, and adds each to `counts` when it is
    /// found. Changes nothing.
    ///
    /// It may run beside the removal itself, and then counts the entries that it finds. It needs the
    /// calling thread only. Entries that cannot be looked at are not counted.
    ///
    /// Returns `true` if everything was counted, and `false` if it was [cancelled](Self::cancelled_by).
    pub fn count(&self, operands: impl IntoIterator<Item = PathBuf>, counts: &Arc<Counts>) -> bool {
        let survey = Survey {
            setup: &self.setup,
            recursive: self.recursive,
            one_file_system: self.one_file_system,
            symlinks: Symlinks::NoFollow,
            content: Content::Ignored,
            skipped_directories: false,
        };
        survey.count(operands, counts)
    }
}

/// Removes `path`, whatever its type is, and all content if it is a directory.
///
/// A symbolic link is removed, not its target. A missing path is a failure, unless the operation
/// [ignores it](RemoveOp::ignore_missing).
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// # let target = dir.path().join("target");
/// std::fs::create_dir_all(target.join("debug/deps"))?;
/// let summary = fuc_engine::remove_tree(&target)?;
/// assert_eq!(summary.directories, 3);
/// assert!(!target.exists());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the first failure. Everything else is removed nevertheless. Use
/// [`RemoveOp::run`] to receive every failure.
pub fn remove_tree(path: impl AsRef<Path>) -> Result<Summary, Error> {
    RemoveOp::new().remove(path)
}

/// Removes the entries of the directory `path`, which stays itself.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// let cache = dir.path().join("cache");
/// std::fs::create_dir_all(cache.join("some/entries"))?;
/// fuc_engine::remove_contents(&cache)?;
/// assert_eq!(std::fs::read_dir(&cache)?.count(), 0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the first failure. Everything else is removed nevertheless. Use
/// [`RemoveOp::run`] to receive every failure.
pub fn remove_contents(path: impl AsRef<Path>) -> Result<Summary, Error> {
    RemoveOp::new().contents_only().remove(path)
}
