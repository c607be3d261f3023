//! The public face of a removal.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Mutex;

use super::tree::Removal;
use crate::error::Error;
use crate::observer::{Observer, Summary};

/// About what the observer is asked before it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Nothing.
    Never,
    /// What its mode forbids to write to, symbolic links excepted.
    IfWriteProtected,
    /// Each name, and each directory before it is entered.
    Always,
}

/// How a removal goes. [`Default`] removes directories whole, as `rm -r` does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RemoveOptions {
    /// Remove directories with all that is in them. Without it a directory is
    /// [refused](crate::Refusal::NotRecursive), unless `empty_directories` is set.
    pub recursive: bool,
    /// What does not exist (any more) is no failure.
    pub ignore_missing: bool,
    /// Refuse the root directory, by whatever path it is reached.
    pub preserve_root: bool,
    /// Refuse an operand that is a directory on another device than the one it is in.
    pub preserve_mount_points: bool,
    /// Without `recursive`: remove directories that are empty.
    pub empty_directories: bool,
    /// [Leave alone](crate::Refusal::OtherFilesystem) what is on another
    /// filesystem than its operand. An empty directory there is tried all the
    /// same, since a subvolume is no mount point. A directory that the operand's
    /// own filesystem is mounted on once more is emptied.
    pub one_file_system: bool,
    /// What the observer is [asked](Observer::confirm) about. Who is asked
    /// about everything, or allows one thread only, is asked in the order in
    /// which directories are listed; else several threads may ask at once.
    pub ask: Ask,
    /// Threads at most, the caller's own included. `None`: as many as the
    /// process has cores to run on, or four times as many (32 at most) where
    /// they wait for a disk or a server. Fewer where they do not pay, where a
    /// thread is refused, or where the limit on open descriptors is low (one
    /// for each 12); a small tree never starts one.
    pub threads: Option<NonZeroUsize>,
}

impl Default for RemoveOptions {
    fn default() -> Self {
        Self {
            recursive: true,
            ignore_missing: false,
            preserve_root: true,
            preserve_mount_points: false,
            empty_directories: false,
            one_file_system: false,
            ask: Ask::Never,
            threads: None,
        }
    }
}

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
        Removal::new(&self.options, observer).run(operands)
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
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    failures.into_iter().next().map_or(Ok(summary), Err)
}
