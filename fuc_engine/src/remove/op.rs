//! The public interface of a removal.

use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::context::{Extent, Scope};
use super::options::{Ask, RemoveOptions};
use super::remover::{Others, Remover};
use super::run::Removal;
use crate::cancel::Cancel;
use crate::count::{self, Content};
use crate::distribute::Exchange;
use crate::error::Error;
use crate::execution::Execution;
use crate::filter::{Filter, SharedFilter};
use crate::observer::{Counts, Observer, Summary};
use crate::report::{Report, complete_or_first_failure};
use crate::setters::setters;
use crate::sys::{CWD, Symlinks};
use crate::walk::Part;

/// The number of operands that are held at the same time. Workers wait for each other between two such portions.
///
/// With names of 100 bytes, a removal of a million files takes at most 5 MB of memory.
const HELD_OPERANDS: usize = 16_384;

/// Removes any number of operands.
///
/// ```
/// use std::sync::Mutex;
/// use fuc_engine::RemoveOp;
///
/// # fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// let unwanted = dir.path().join("unwanted");
/// std::fs::create_dir_all(unwanted.join("with/sub/directories"))?;
/// std::fs::write(unwanted.join("and a file"), "content")?;
///
/// let failures = Mutex::new(Vec::new());
/// let removal = RemoveOp::new().ignore_missing(true).threads(4);
/// let summary = removal.run([&unwanted], &failures);
/// assert_eq!(summary.entries, 5);
/// assert!(summary.is_complete());
/// assert!(!unwanted.exists());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct RemoveOp {
    options: RemoveOptions,
    cancel: Option<Cancel>,
    filter: Option<SharedFilter>,
}

impl RemoveOp {
    /// Creates a removal with the default options: it removes directories with their content, as `rm -r`
    /// does.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a removal with these options.
    #[must_use]
    pub fn with_options(options: RemoveOptions) -> Self {
        Self {
            options,
            cancel: None,
            filter: None,
        }
    }

    setters! { RemoveOptions in options:
        /// Says whether directories are removed with their content.
        recursive: bool,
        /// Says whether missing names are ignored. Otherwise they are failures.
        ignore_missing: bool,
        /// Says whether the root directory is refused.
        preserve_root: bool,
        /// Says whether operands that are mount points are refused.
        preserve_mount_points: bool,
        /// Says whether operands that are empty directories are removed even without recursion.
        empty_directories: bool,
        /// Says whether directories on another filesystem than their operand are refused.
        one_file_system: bool,
        /// Selects the names that the observer is asked about.
        ask: Ask,
        /// Says whether anything is removed.
        execution: Execution,
    }

    /// Limits the number of threads, which includes the caller's. With 0, the engine chooses the number.
    ///
    /// Sets [`RemoveOptions::threads`].
    #[must_use]
    pub fn threads(mut self, most: usize) -> Self {
        self.options.threads = NonZeroUsize::new(most);
        self
    }

    /// Lets `cancel` stop the runs of this removal.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Removes `path`, whatever its type is, and all content if it is a directory.
    ///
    /// A [cancelled](Self::cancelled_by) run is not a failure: look at [`Summary::cancelled`].
    ///
    /// # Errors
    /// Returns the first failure. Everything else is removed nevertheless. Use [`run`](Self::run) to
    /// receive every failure. If nothing failed but the run was [cancelled](Self::cancelled_by), the error is
    /// [`Refusal::Cancelled`](crate::Refusal::Cancelled).
    pub fn remove(&self, path: impl AsRef<Path>) -> Result<Summary, Error> {
        let path = path.as_ref();
        complete_or_first_failure(path, |failures| self.run([path], failures))
    }

    /// Removes the entries of the directory `path`, which stays itself.
    ///
    /// A [cancelled](Self::cancelled_by) run is not a failure: look at [`Summary::cancelled`].
    ///
    /// # Errors
    /// Returns the first failure. Everything else is removed nevertheless. Use
    /// [`run_contents`](Self::run_contents) to receive every failure. A cancelled run fails as with
    /// [`remove`](Self::remove).
    pub fn remove_contents(&self, path: impl AsRef<Path>) -> Result<Summary, Error> {
        let path = path.as_ref();
        complete_or_first_failure(path, |failures| self.run_contents([path], failures))
    }

    /// Lets `filter` choose the entries that are removed.
    ///
    /// Everything above an entry that stays also stays. This is not a failure, and the user is not asked about
    /// these directories, except whether to enter them. Clones of this operation share the filter.
    #[must_use]
    pub fn filtered_by(mut self, filter: Arc<dyn Filter>) -> Self {
        self.filter = Some(SharedFilter(filter));
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
    /// A removal that fails because the filesystem is full is tried again when the others are done, until none
    /// succeeds for about two seconds. If more than 65,536 names have failed so, the others are reported at once.
    ///
    /// It is not a failure if the observer declines. If it declines that a directory is
    /// entered, the ancestors of the directory stay and are not reported. If it declines
    /// anything else, the parent directory is still asked about or tried. Its removal then
    /// fails with `ENOTEMPTY`.
    ///
    /// # Operands
    /// The operands are an array, a slice or a vector. A single path is not accepted, because a path is a
    /// sequence of its components: `/home/me/tmp` would be `/`, `home`, `me` and `tmp`.
    ///
    /// ```compile_fail,E0277
    /// # use std::{path::Path, sync::Mutex};
    /// # use fuc_engine::RemoveOp;
    /// RemoveOp::new().run(Path::new("/home/me/tmp"), &Mutex::new(Vec::new()));
    /// ```
    #[must_use = "only the summary and the observer say whether the run failed"]
    pub fn run<P: AsRef<Path>>(
        &self,
        operands: impl AsRef<[P]>,
        observer: &dyn Observer,
    ) -> Summary {
        self.run_in(CWD, operands, observer)
    }

    /// Removes the entries of directories, which stay themselves.
    ///
    /// A directory is not emptied through a symbolic link, unless its path has a slash at its end. Entries
    /// that other processes create during the run may stay. The operation otherwise works as [`run`](Self::run).
    /// If several listings in turn find entries to remove, that is a failure with `ENOTEMPTY`.
    #[must_use = "only the summary and the observer say whether the run failed"]
    pub fn run_contents<P: AsRef<Path>>(
        &self,
        directories: impl AsRef<[P]>,
        observer: &dyn Observer,
    ) -> Summary {
        self.run_contents_in(CWD, directories, observer)
    }

    /// Removes the entries of directories as [`run_contents`](Self::run_contents) does, but looks up relative
    /// paths in the open directory `dir` instead of the working directory. The path `.` is `dir` itself.
    #[must_use = "only the summary and the observer say whether the run failed"]
    pub fn run_contents_in<P: AsRef<Path>>(
        &self,
        dir: impl AsFd,
        directories: impl AsRef<[P]>,
        observer: &dyn Observer,
    ) -> Summary {
        self.run_extent(dir.as_fd(), Scope::Contents, directories, observer)
    }

    /// Removes the operands as [`run`](Self::run) does, but looks up relative paths in the open directory
    /// `dir` instead of the working directory.
    ///
    /// The directory may be renamed or replaced by another at any time: only the open one matters. Errors and
    /// events have the paths as given; see [`Error::below`].
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
    /// let summary = RemoveOp::default().run_in(&open, ["doomed"], &failures);
    /// assert_eq!(summary.entries, 2);
    /// assert!(!moved.join("doomed").exists());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As with [`run`](Self::run).
    #[must_use = "only the summary and the observer say whether the run failed"]
    pub fn run_in<P: AsRef<Path>>(
        &self,
        dir: impl AsFd,
        operands: impl AsRef<[P]>,
        observer: &dyn Observer,
    ) -> Summary {
        self.run_extent(dir.as_fd(), Scope::Whole, operands, observer)
    }

    /// Removes the operands as [`run`](Self::run) does, and shares the work with other engines. They call
    /// [`assist`](Self::assist) with the same operands and options.
    ///
    /// Each engine reports the failures and events that it meets, and its own part of the summary. The order
    /// of the operands holds for this engine's reports only. Questions, too, come from every engine and
    /// in no order. A removal that fails because the filesystem is full is not tried again.
    ///
    /// # Panics
    /// If the system refuses the thread that talks to the other engines.
    #[must_use = "only the summary and the observer say whether the run failed"]
    pub fn lead<P: AsRef<Path>>(
        &self,
        operands: impl AsRef<[P]>,
        observer: &dyn Observer,
        exchange: &dyn Exchange,
    ) -> Summary {
        self.run_shared(Part::Leader, operands.as_ref(), observer, exchange)
    }

    /// Takes part in a removal that another engine [leads](Self::lead), until the exchange ends it.
    ///
    /// A relative operand must name the same directory for each engine. If it does not, this engine gives the work
    /// back undone.
    ///
    /// # Panics
    /// If the system refuses the thread that talks to the other engines.
    #[must_use = "only the summary and the observer say whether the run failed"]
    pub fn assist<P: AsRef<Path>>(
        &self,
        operands: impl AsRef<[P]>,
        observer: &dyn Observer,
        exchange: &dyn Exchange,
    ) -> Summary {
        self.run_shared(Part::Assistant, operands.as_ref(), observer, exchange)
    }

    fn run_shared<P: AsRef<Path>>(
        &self,
        part: Part,
        operands: &[P],
        observer: &dyn Observer,
        exchange: &dyn Exchange,
    ) -> Summary {
        let report = Report::new(observer, self.cancel.clone());
        // Every engine begins anywhere in the tree.
        let remover = Remover::new(self.options.execution, operands, Others::MayFollow);
        let extent = Extent {
            base: CWD,
            scope: Scope::Whole,
            filter: self.filter.clone(),
            remover: &remover,
        };
        let removal = Removal::new(&self.options, extent, operands, report);
        summary(&removal.shared(exchange, part).run(), &remover)
    }

    fn run_extent<P: AsRef<Path>>(
        &self,
        base: BorrowedFd<'_>,
        scope: Scope,
        operands: impl AsRef<[P]>,
        observer: &dyn Observer,
    ) -> Summary {
        let report = Report::new(observer, self.cancel.clone());
        let remover = Remover::new(self.options.execution, operands.as_ref(), Others::None);
        let extent = Extent {
            base,
            scope,
            filter: self.filter.clone(),
            remover: &remover,
        };
        let removal = Removal::new(&self.options, extent, operands.as_ref(), report);
        // The run has its own copies of the paths.
        drop(operands);
        summary(&removal.run(), &remover)
    }

    /// Removes operands that an iterator yields, as [`run`](Self::run) does.
    ///
    /// The iterator yields more operands when those before are removed, so any number of them takes a
    /// bounded amount of memory. A dry run of more than 16,384 operands takes memory for each removal,
    /// because it must recognise names that would be gone by then.
    #[must_use = "only the summary and the observer say whether the run failed"]
    pub fn run_all(
        &self,
        operands: impl IntoIterator<Item = PathBuf>,
        observer: &dyn Observer,
    ) -> Summary {
        let mut report = Report::new(observer, self.cancel.clone());
        let mut operands = operands.into_iter();
        let mut held: Vec<PathBuf> = operands.by_ref().take(HELD_OPERANDS).collect();
        let others = match held.len() {
            HELD_OPERANDS => Others::MayFollow,
            _ => Others::None,
        };
        let remover = Remover::new(self.options.execution, &held, others);
        // Another thread may cancel the run while the iterator waits.
        while !report.must_stop() && !held.is_empty() {
            let extent = Extent {
                base: CWD,
                scope: Scope::Whole,
                filter: self.filter.clone(),
                remover: &remover,
            };
            report = Removal::new(&self.options, extent, &held, report).run();
            held.clear();
            held.extend(operands.by_ref().take(HELD_OPERANDS));
        }
        summary(&report, &remover)
    }

    /// Counts the entries that a run on these operands would remove, and adds them to `counts`. Changes
    /// nothing.
    ///
    /// It may run beside the removal itself, and then counts the entries that it finds. It needs the
    /// calling thread only. Entries that cannot be looked at are not counted.
    ///
    /// Returns `true` if everything was counted, and `false` if it was [cancelled](Self::cancelled_by).
    pub fn count<P: AsRef<Path>>(&self, operands: impl AsRef<[P]>, counts: &Counts) -> bool {
        self.count_in(CWD, operands, counts)
    }

    /// Counts as [`count`](Self::count) does, but looks up relative paths in the open directory `dir` instead
    /// of the working directory.
    pub fn count_in<P: AsRef<Path>>(
        &self,
        dir: impl AsFd,
        operands: impl AsRef<[P]>,
        counts: &Counts,
    ) -> bool {
        let survey = count::Survey {
            base: dir.as_fd(),
            recursive: self.options.recursive,
            one_file_system: self.options.one_file_system,
            operands: Symlinks::NoFollow,
            content: Content::Ignored,
            skipped_directories: false,
            filter: self.filter.clone(),
        };
        count::count(survey, operands.as_ref(), counts, self.cancel.clone())
    }
}

/// Returns the totals of a run.
fn summary(report: &Report<'_>, remover: &Remover) -> Summary {
    report.add_bytes(remover.bytes());
    report.summary()
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
/// [`RemoveOp::run_contents`] to receive every failure.
pub fn remove_contents(path: impl AsRef<Path>) -> Result<Summary, Error> {
    RemoveOp::new().remove_contents(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_no_threads_lets_the_engine_choose() {
        assert_eq!(RemoveOp::new().threads(2).threads(0).options.threads, None);
    }
}
