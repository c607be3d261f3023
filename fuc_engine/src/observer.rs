//! What a caller may want to hear while an operation runs, and what it is told at the end.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;

/// Hears of a run as it happens, from several threads at once and in no order
/// but this: a directory's removal follows that of what was in it, and a
/// directory's creation precedes that of what goes into it.
///
/// It is called on the engine's threads, whose stacks are 256 KiB. While it
/// takes its time, its thread does nothing else. A panic reaches the caller of
/// the run when the other threads have done what they had.
pub trait Observer: Sync {
    /// One entry failed. Each failure is reported once, here, and counted in
    /// [`Summary::failures`]; the rest of the work goes on.
    fn failed(&self, error: Error);

    /// Something worth mentioning that is not a failure and is not counted. The default
    /// calls [`failed`](Self::failed).
    ///
    /// The warnings are: a source that was named twice
    /// ([`FileNamedTwice`](crate::Refusal::FileNamedTwice),
    /// [`DirectoryNamedTwice`](crate::Refusal::DirectoryNamedTwice)), and an extended attribute
    /// that could not be copied under [`Xattrs::Warn`](crate::Xattrs::Warn)
    /// ([`Operation::KeepXattrs`](crate::Operation::KeepXattrs)).
    fn warned(&self, warning: Error) {
        self.failed(warning);
    }

    /// Whether [`on_event`](Self::on_event) is to be called. Asked once, before
    /// the work begins: paths are built for nobody who does not want them.
    fn wants_events(&self) -> bool {
        false
    }

    /// Whether files whose content is copied are told as [`Event::CopiedContent`]. Asked
    /// once, if [`on_event`](Self::on_event) is to be called.
    fn wants_copy_method(&self) -> bool {
        false
    }

    /// One entry is done.
    fn on_event(&self, event: Event<'_>) {
        let _ = event;
    }

    /// Where the run is to count what is done while it goes on, beside its [`Summary`].
    /// Asked once, before the work begins.
    fn counts(&self) -> Option<&Counts> {
        None
    }

    /// Whether to do something that the options ask about. As every method, it
    /// may be called from several threads at once. Where nobody answers, the
    /// answer is no.
    fn confirm(&self, question: Question<'_>) -> Answer {
        let _ = question;
        Answer::No
    }
}

/// What is to be done with something about which was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Do it.
    Yes,
    /// Leave it as it is.
    No,
}

/// Something about to be done; see [`Observer::confirm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Question<'a> {
    /// Remove this name; a directory is empty.
    Remove(RemovalTarget<'a>),
    /// Go into this directory, to remove what is in it.
    Descend(RemovalTarget<'a>),
    /// Try to remove this directory, which cannot be read.
    RemoveInaccessible(RemovalTarget<'a>),
    /// Copy over this dest. [`Answer::No`] counts as [`Summary::declined`].
    Overwrite(OverwriteTarget<'a>),
}

/// A dest about which a copy asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverwriteTarget<'a> {
    /// Where it is.
    pub path: &'a Path,
    /// Its permission bits; those of its target, if it is a link that is written through.
    pub mode: u32,
    /// Whether its mode forbids to write to it.
    pub protection: Protection,
}

/// What a dest's mode means for a copy over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// It can be written to.
    None,
    /// It cannot, but it is removed then.
    Overridden,
    /// It cannot, so the copy will probably fail.
    Unwritable,
}

/// What a removal asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemovalTarget<'a> {
    /// Where it is.
    pub path: &'a Path,
    /// What it is.
    pub kind: Kind,
    /// Whether its mode forbids to write to it.
    pub is_write_protected: bool,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A regular file with something in it.
    File,
    /// A regular file of size 0.
    EmptyFile,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharacterDevice,
    /// Something else.
    Other,
}

/// Something that has been done; see [`Observer::on_event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A name that is no directory is gone.
    Removed(&'a Path),
    /// A directory is gone.
    RemovedDirectory(&'a Path),
    /// A source is being copied to its dest: a directory exists from now on, anything else is complete.
    Copied {
        /// Where it came from.
        source: &'a Path,
        /// Where it now is.
        dest: &'a Path,
        /// Where that is now which was there before.
        backup: Option<&'a Path>,
    },
    /// A file's content is complete at its dest: instead of `Copied`, for who
    /// [wants](Observer::wants_copy_method) to know how that was done.
    CopiedContent {
        /// Where it came from.
        source: &'a Path,
        /// Where it now is.
        dest: &'a Path,
        /// How.
        method: CopyMethod,
    },
    /// Copying what is no directory had begun and has failed; the failure is told next.
    Attempted {
        /// What was to be copied.
        source: &'a Path,
        /// Where it was to go.
        dest: &'a Path,
        /// Where that is now which was there before.
        backup: Option<&'a Path>,
    },
    /// A dest was unlinked, so that its copy could be made.
    RemovedDest(&'a Path),
    /// A directory was made because a dest was to lie below it.
    MadeParent {
        /// The one that leads to the source.
        source: &'a Path,
        /// The new one.
        dest: &'a Path,
    },
    /// A backup got its name back, because the copy had failed.
    RestoredBackup {
        /// Where it was.
        backup: &'a Path,
        /// Where it is again.
        dest: &'a Path,
    },
}

/// How a file's content was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyMethod {
    /// Whether the kernel moved it by itself.
    pub offload: Mechanism,
    /// Whether blocks are shared with the source.
    pub reflink: Mechanism,
    /// How holes were found.
    pub holes: HoleDetection,
}

/// What became of a way to copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mechanism {
    /// There was no need for it.
    #[default]
    NotNeeded,
    /// It was used.
    Used,
    /// The options forbid it.
    Avoided,
    /// It is not possible between these two files.
    Unsupported,
    /// The kernel may have used it, and does not tell.
    Unknown,
}

/// How holes were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HoleDetection {
    /// They were not looked for.
    #[default]
    None,
    /// Blocks of zeros were taken for holes.
    Zeros,
    /// The filesystem said where they are.
    Seek,
    /// Both.
    SeekAndZeros,
}

/// Collects the failures of a run, and its warnings, and nothing else.
impl Observer for std::sync::Mutex<Vec<Error>> {
    fn failed(&self, error: Error) {
        self.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push(error);
    }
}

/// How far a run has come, for any thread to look at; see [`Observer::counts`].
///
/// Workers add to it after a few entries or megabytes. It never decreases.
#[derive(Debug, Default)]
pub struct Counts {
    entries: AtomicU64,
    bytes: AtomicU64,
}

impl Counts {
    /// As [`Summary::entries`], so far.
    #[must_use]
    pub fn entries(&self) -> u64 {
        // Relaxed, as all of them: the number tells nothing but itself.
        self.entries.load(Ordering::Relaxed)
    }

    /// As [`Summary::bytes`], so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, entries: u64, bytes: u64) {
        self.entries.fetch_add(entries, Ordering::Relaxed);
        if bytes > 0 {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "a run that failed says so only here and to its observer"]
#[non_exhaustive]
pub struct Summary {
    /// Names removed, or names created at the dest (those that replaced something counted too).
    pub entries: u64,
    /// Bytes of content copied, some perhaps in copies that failed then; 0 for a removal.
    pub bytes: u64,
    /// Entries that failed; each was given to the observer. Warnings do not count.
    pub failures: u64,
    /// Dests that somebody who was asked wanted to keep; no failures.
    pub declined: u64,
}

impl Summary {
    /// Whether everything that was asked for is done.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.failures == 0
    }
}
