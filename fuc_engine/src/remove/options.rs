//! The options of a removal.

use std::num::NonZeroUsize;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::setup::{Execution, Setup, setup_methods};

/// Selects the names that the observer is asked about before they are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub enum Ask {
    /// The observer is never asked, as with `rm -f`.
    Never,
    /// The observer is asked about names whose mode forbids to write to them, except for
    /// symbolic links, as `rm` does at a terminal.
    IfWriteProtected,
    /// The observer is asked about each name, and about each directory before it is entered, as
    /// with `rm -i`.
    Always,
}

/// Removes any number of operands. Its fields are the options. The [`Default`] removes directories with their content, as
/// `rm -r` does.
///
/// ```
/// use std::num::NonZeroUsize;
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
/// let removal = RemoveOp::new().with(|removal| {
///     removal.ignore_missing = true;
///     removal.threads = NonZeroUsize::new(4);
/// });
/// let summary = removal.run([unwanted.clone()], &failures);
/// assert_eq!(summary.entries, 5);
/// assert!(summary.is_complete());
/// assert!(!unwanted.exists());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default))]
pub struct RemoveOp<'a> {
    /// Removes directories with their content. Otherwise a directory is
    /// [refused](crate::Refusal::NotRecursive), unless `empty_directories` is set.
    pub recursive: bool,
    /// Ignores missing names, and names that the filesystem calls invalid. Otherwise they are failures.
    pub ignore_missing: bool,
    /// Refuses the root directory, whatever path leads to it.
    pub preserve_root: bool,
    /// Refuses an operand that is a directory on another device than its parent, or a bind mount. The kernel can
    /// tell a bind mount of the same filesystem apart since Linux 5.8.
    pub preserve_mount_points: bool,
    /// Removes operands that are empty directories, even without `recursive`. The kernel refuses other
    /// directories, so `preserve_root` and `preserve_mount_points` do not matter.
    pub empty_directories: bool,
    /// [Refuses](crate::Refusal::OtherFilesystem) directories on another filesystem than
    /// their operand. If the operand's own filesystem is mounted once more below the operand, that directory counts
    /// as another filesystem. The kernel can tell it apart since Linux 5.8.
    ///
    /// If the observer allows the removal of an empty directory there, it is tried: it may be a subvolume,
    /// which can be removed, and not a mount point.
    pub one_file_system: bool,
    /// Selects the names that the observer is [asked](crate::Observer::confirm) about.
    ///
    /// With [`Ask::Always`], or if only one thread is allowed, the questions come in the order
    /// in which directories are listed. Otherwise several threads may ask at the same time.
    pub ask: Ask,
    /// Gives the user all permissions (`u+rwx`) on a directory of the user, if they are the reason why it cannot be
    /// listed, or why a name in it cannot be removed.
    ///
    /// They are changed only after a call has failed, and only at an operand and below it. Directories that stay keep
    /// them. A dry run changes nothing, so it reports these failures.
    pub unlock: bool,
    /// Limits the number of threads, which includes the caller's.
    ///
    /// With `None` there are up to as many as the process has cores to run on, or up to 128 while
    /// they wait for a disk or a server, as long as each doubling makes the removal faster. There
    /// are fewer if more would not be faster, if the system refuses to start a thread, or if a limit
    /// is low: on open descriptors (one thread for each 12) or on address space (one for each
    /// 128 MiB). A small tree never starts a thread.
    pub threads: Option<NonZeroUsize>,
    /// Counts the sizes of the regular files that are removed as [`Summary::bytes`](crate::Summary::bytes), once for each of
    /// their names. That takes a `stat` for each name that is not a directory. A dry run always counts them.
    pub count_bytes: bool,
    /// Says whether anything is removed.
    ///
    /// [`Execution`] lists what a dry run cannot know.
    pub execution: Execution,
    /// Only the entries of operands are removed.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) keeps_operands: bool,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) setup: Setup<'a>,
}

setup_methods!(RemoveOp);

impl RemoveOp<'_> {
    /// Removes the entries of operands, which are directories and stay themselves.
    ///
    /// A directory is not emptied through a symbolic link, unless its path has a slash at its end. Entries
    /// that other processes create during the run may stay. If several listings in turn find entries to remove, that is
    /// a failure with `ENOTEMPTY`.
    #[must_use]
    pub fn contents_only(mut self) -> Self {
        self.keeps_operands = true;
        self
    }
}

impl<'a> RemoveOp<'a> {
    /// Lets a run be cancelled and throttled together with another one.
    pub(crate) fn together_with(mut self, other: &Setup<'a>) -> Self {
        self.setup.cancel.clone_from(&other.cancel);
        self.setup.throttle = other.throttle;
        self
    }
}

impl Default for RemoveOp<'_> {
    fn default() -> Self {
        Self {
            recursive: true,
            ignore_missing: false,
            preserve_root: true,
            preserve_mount_points: false,
            empty_directories: false,
            one_file_system: false,
            ask: Ask::Never,
            unlock: false,
            threads: None,
            count_bytes: false,
            execution: Execution::Real,
            keeps_operands: false,
            setup: Setup::default(),
        }
    }
}
