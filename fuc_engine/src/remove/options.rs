//! The options of a removal.

use std::num::NonZeroUsize;

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
