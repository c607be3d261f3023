//! The interface between a run and its caller: failures, events and questions while the run goes on,
//! and a summary at the end.

use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::sync::lock;

/// Receives failures, events and questions of a run.
///
/// The methods are called from several threads at once. Events come in no order, with these exceptions:
///
/// - A directory is removed after everything in it.
/// - A directory is created before everything in it.
/// - Events come in the order of the operands. So do failures and warnings, except those that
///   [`CopyOp::verify`](crate::CopyOp::verify) finds.
///
/// The calls happen on the engine's threads, which have stacks of 256 KiB. A thread does nothing else
/// until the call returns. If a method panics, the other threads finish the work that they have, and
/// then the panic continues in the thread that called the run.
pub trait Observer: Sync {
    /// Receives one failure.
    ///
    /// Each failed entry is reported once, by this method, and counted in [`Summary::failures`]. The run
    /// goes on with the other entries.
    fn failed(&self, error: Error);

    /// Receives one warning, which is not a failure and is not counted. The default ignores it.
    ///
    /// There are five kinds of warnings. [`Error::cause`] tells them apart:
    ///
    /// - A dest holds a part of the content, because its copy has failed:
    ///   [`Refusal::LeftIncomplete`](crate::Refusal::LeftIncomplete).
    /// - A source was named twice: [`Refusal::FileNamedTwice`](crate::Refusal::FileNamedTwice) or
    ///   [`Refusal::DirectoryNamedTwice`](crate::Refusal::DirectoryNamedTwice).
    /// - A source is not linked to the copy of another one with its inode number:
    ///   [`Refusal::SharedInodeNumber`](crate::Refusal::SharedInodeNumber).
    /// - An extended attribute could not be copied under [`Xattrs::Warn`](crate::Xattrs::Warn):
    ///   [`Operation::KeepXattrs`](crate::Operation::KeepXattrs).
    /// - The older copy whose files would be linked cannot be opened:
    ///   [`Operation::OpenLinkDest`](crate::Operation::OpenLinkDest).
    fn warned(&self, warning: Error) {
        let _ = warning;
    }

    /// Returns `true` if the run calls [`on_event`](Self::on_event). The default is `false`.
    ///
    /// The run asks once, before it begins. Without events it builds no paths, and a removal may work on several
    /// operands at once, which makes it faster.
    fn wants_events(&self) -> bool {
        false
    }

    /// Receives one event: something was done. The default ignores it.
    fn on_event(&self, event: Event<'_>) {
        let _ = event;
    }

    /// Returns counters that the run keeps up to date. The default is `None`.
    ///
    /// The run asks once, before it begins. To count is much cheaper than to receive events.
    fn counts(&self) -> Option<&Counts> {
        None
    }

    /// Answers a question that the run asks because of its options. Returns `true` if the run may act. The default returns
    /// `false`, and the file stays as it is.
    fn confirm(&self, question: Question<'_>) -> bool {
        let _ = question;
        false
    }
}

/// An action that the run asks about before it acts; see [`Observer::confirm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Question<'a> {
    /// Asks whether to remove a name. If it is a directory, it is empty.
    Remove(RemovalTarget<'a>),
    /// Asks whether to enter a directory and remove its entries.
    Descend(RemovalTarget<'a>),
    /// Asks whether to try to remove a directory that cannot be read.
    RemoveInaccessible(RemovalTarget<'a>),
    /// Asks whether to overwrite a dest.
    #[non_exhaustive]
    Overwrite {
        /// The path of the dest.
        path: &'a Path,
        /// The permission bits of the file that the copy writes to: of a link's target, if it follows the link.
        mode: u32,
        /// Is `true` if the file may not be written to.
        is_write_protected: bool,
        /// Is `true` if the options let the copy remove the dest first. Otherwise the copy of a file that is
        /// write-protected will probably fail.
        is_removed_first: bool,
    },
}

/// The name that a removal asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemovalTarget<'a> {
    /// The path of the name.
    pub path: &'a Path,
    /// The type of the file.
    pub kind: Kind,
    /// Is `true` if the file may not be written to.
    pub is_write_protected: bool,
}

/// The type of a file; regular files are divided by whether they have content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The file is a regular file with content.
    File,
    /// The file is a regular file of size 0.
    EmptyFile,
    /// The file is a directory.
    Directory,
    /// The file is a symbolic link.
    Symlink,
    /// The file is a FIFO.
    Fifo,
    /// The file is a socket.
    Socket,
    /// The file is a block device.
    BlockDevice,
    /// The file is a character device.
    CharacterDevice,
    /// The file has a type that this list does not contain.
    Other,
}

/// An action that the run has done; see [`Observer::on_event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A name was removed that was not a directory.
    Removed(&'a Path),
    /// A directory was removed.
    RemovedDirectory(&'a Path),
    /// A source was copied. If it is a directory, only the directory itself exists so far; the events of its entries
    /// follow.
    #[non_exhaustive]
    Copied {
        /// The path of the source.
        source: &'a Path,
        /// The path of the copy.
        dest: &'a Path,
        /// The path of the backup of the previous file, if one was made.
        backup: Option<&'a Path>,
        /// Says how the content was copied, if it was and if [that is wanted](crate::CopyOp::reports_methods).
        method: Option<CopyMethod>,
        /// Says whether the dest is new, or why it was copied to.
        change: Change,
    },
    /// A copy was begun and has failed. The failure is reported next. Never sent for a directory.
    ///
    /// `cp -v` shows a copy before it begins, so [`gnu`](crate::gnu) needs this.
    #[non_exhaustive]
    Attempted {
        /// The path of the source.
        source: &'a Path,
        /// The path of the intended copy.
        dest: &'a Path,
        /// The path of the backup of the previous file, if one was made.
        backup: Option<&'a Path>,
        /// Says how the content was copied before the failure, as in [`Copied`](Self::Copied).
        method: Option<CopyMethod>,
    },
    /// A dest was unlinked to make room for its copy.
    RemovedDest(&'a Path),
    /// A dest stays as it is.
    #[non_exhaustive]
    SkippedDest {
        /// The path of the dest.
        path: &'a Path,
        /// The reason why it stays.
        reason: KeepReason,
    },
    /// A directory was created because a dest lies below it.
    #[non_exhaustive]
    MadeParent {
        /// The corresponding directory of the source.
        source: &'a Path,
        /// The path of the new directory.
        dest: &'a Path,
    },
    /// A backup got its old name back because the copy failed.
    #[non_exhaustive]
    RestoredBackup {
        /// The path that the backup had.
        backup: &'a Path,
        /// The path that it has again.
        dest: &'a Path,
    },
}

/// Says whether a dest is new, or how it was different from its source.
///
/// The first difference of type, size and time counts. [`DestRules`](crate::DestRules) says which dests are copied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The dest is new.
    New,
    /// The dest is new, and a link to an unchanged file in [`CopyOp::link_dest`](crate::CopyOp::link_dest).
    Linked,
    /// The dest had another type.
    OtherType,
    /// The dest had another size.
    OtherSize,
    /// The dest had another time of modification.
    OtherTime,
    /// The dest seemed to be a copy already, and was copied to again.
    Again,
}

impl Change {
    /// Returns `true` if nothing was at the dest before.
    #[must_use]
    pub fn is_new(self) -> bool {
        matches!(self, Self::New | Self::Linked)
    }
}

/// The reason why a copy has left a dest as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeepReason {
    /// The [rules](crate::DestRules::replace) replace no dest.
    Exists,
    /// The dest is not older than its source, and only older dests are replaced.
    NotOlder,
    /// The dest has the type, the size and the time of its source, and only those that differ are replaced.
    Unchanged,
    /// [`Observer::confirm`] has returned `false`.
    Declined,
}

/// The way in which the content of a file was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyMethod {
    /// Says whether the kernel copied the data without passing it through this process.
    pub offload: Mechanism,
    /// Says whether the copy shares blocks with the source.
    pub reflink: Mechanism,
    /// Says how holes were found. `None`: the copy has shared blocks, or failed before it looked for holes.
    pub holes: Option<HoleSearch>,
}

/// The result of trying one mechanism of copying.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mechanism {
    /// The copy did not try the mechanism, or needed it for no data.
    #[default]
    Unknown,
    /// The copy used the mechanism.
    Used,
    /// The options forbid the mechanism.
    Avoided,
    /// The mechanism does not work between these two files.
    Unsupported,
}

/// The ways in which a copy found the holes of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HoleSearch {
    /// Is `true` if the filesystem reported holes of the source.
    pub asks_filesystem: bool,
    /// Is `true` if the copy made holes of blocks that contain only zeros.
    pub finds_zeros: bool,
}

/// Collects the failures of runs, and counts their progress. Ignores warnings.
///
/// An observer that does more can contain one, and pass on what it receives.
#[derive(Debug, Default)]
pub struct Failures {
    errors: Mutex<Vec<Error>>,
    counts: Counts,
}

impl Failures {
    /// Creates an observer that has received nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the failures, in the order in which they were received.
    #[must_use]
    pub fn into_errors(self) -> Vec<Error> {
        self.errors
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the progress, which is that of all runs together.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

impl Observer for Failures {
    fn failed(&self, error: Error) {
        lock(&self.errors).push(error);
    }

    fn counts(&self) -> Option<&Counts> {
        Some(&self.counts)
    }
}

/// Collects the failures of a run, and ignores its warnings.
impl Observer for std::sync::Mutex<Vec<Error>> {
    fn failed(&self, error: Error) {
        lock(self).push(error);
    }
}

/// The progress of a run, which any thread may read at any time; see [`Observer::counts`].
///
/// A worker adds to the counters after a few entries or megabytes. They never decrease.
#[derive(Debug, Default)]
pub struct Counts {
    entries: AtomicU64,
    bytes: AtomicU64,
    /// The work of sources that were not copied.
    skipped_work: AtomicU64,
    /// Is `true` if the next worker that publishes its counts writes to `directory`.
    wants_directory: AtomicBool,
    directory: Mutex<Option<PathBuf>>,
}

/// Bytes that cost about as much as creating one more file.
pub(crate) const BYTES_PER_WORK: u64 = 16 << 10;

impl Counts {
    /// Returns the number of entries so far, as in [`Summary::entries`].
    #[must_use]
    pub fn entries(&self) -> u64 {
        // Relaxed, like all accesses: the counters publish nothing but themselves.
        self.entries.load(Relaxed)
    }

    /// Returns the number of bytes so far, as in [`Summary::bytes`]. A removal has 0 until it ends.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Returns a measure of the work so far: one for each entry, and one for each 16 KiB. It includes sources that
    /// were not copied because their dests stay, and directories that existed.
    ///
    /// The portion that is done is this number divided by that of a look-ahead; see
    /// [`CopyOp::count`](crate::CopyOp::count).
    #[must_use]
    pub fn work(&self) -> u64 {
        let skipped = self.skipped_work.load(Relaxed);
        self.entries() + self.bytes() / BYTES_PER_WORK + skipped
    }

    /// Returns a directory in which the run has worked since the last call or shortly before it. Of a copy, it is
    /// the source.
    ///
    /// The first call returns `None`. Each call asks the workers for the answer of the next one.
    pub fn directory(&self) -> Option<PathBuf> {
        self.wants_directory.store(true, Relaxed);
        lock(&self.directory).clone()
    }

    /// Adds what another process has done of the same work, in the numbers of its own counts. Only
    /// [`directory`](Self::directory) does not change.
    pub fn add_shared(&self, entries: u64, bytes: u64, work: u64) {
        self.add(entries, bytes);
        let skipped = work.saturating_sub(entries + bytes / BYTES_PER_WORK);
        self.skipped_work.fetch_add(skipped, Relaxed);
    }

    pub(crate) fn add(&self, entries: u64, bytes: u64) {
        self.entries.fetch_add(entries, Relaxed);
        if bytes > 0 {
            self.bytes.fetch_add(bytes, Relaxed);
        }
    }

    pub(crate) fn add_skipped(&self, bytes: u64) {
        let work = 1 + bytes / BYTES_PER_WORK;
        self.skipped_work.fetch_add(work, Relaxed);
    }

    /// Writes the path that `directory` returns, if a reader has asked for one.
    #[inline]
    pub(crate) fn offer_directory(&self, directory: impl FnOnce() -> PathBuf) {
        // Only one of the workers that see the request answers it.
        if self.wants_directory.load(Relaxed) && self.wants_directory.swap(false, Relaxed) {
            let path = directory();
            *lock(&self.directory) = Some(path);
        }
    }
}

/// The totals of a run that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub struct Summary {
    /// The number of names that a removal removed, or that a copy created or replaced at the dest. It is the sum
    /// of the six counts by kind that follow.
    pub entries: u64,
    /// The number of those entries that are regular files, but not `hard_links`.
    pub files: u64,
    /// The number of those entries that are directories.
    pub directories: u64,
    /// The number of directories into which a copy copied, and which existed before. They are not among the `entries`. A
    /// removal has 0.
    pub merged: u64,
    /// The number of those entries that are symbolic links, including those of
    /// [`LinkKind::Symbolic`](crate::LinkKind::Symbolic).
    pub symlinks: u64,
    /// The number of those entries that are FIFOs, sockets or devices.
    pub other: u64,
    /// The number of dests that a copy made hard links, to another dest, to the source or to an older copy. A removal has 0.
    pub hard_links: u64,
    /// The number of names that a removal removed without knowing their kind: some filesystems do not list the
    /// kinds of names, and another process can replace a directory by something else. A copy has 0.
    pub unknown: u64,
    /// The number of bytes of copied content, including content of copies that failed later. For a removal, the sizes
    /// of the regular files, if [they are counted](crate::RemoveOp::count_bytes).
    pub bytes: u64,
    /// The number of those bytes that share the blocks of their source. More may be shared:
    /// `copy_file_range`, which copies smaller files, does not say whether it shares blocks.
    pub reflinked_bytes: u64,
    /// The number of sources that a copy did not copy because their dests are not older
    /// ([`Replace::Older`](crate::Replace::Older)) or seem equal ([`Replace::Changed`](crate::Replace::Changed)). A removal
    /// has 0.
    pub kept: u64,
    /// The number of files that [`CopyOp::verify`](crate::CopyOp::verify) has compared, including those that differ.
    pub compared: u64,
    /// The number of failures. The observer received each of them. Warnings are not counted.
    pub failures: u64,
    /// The number of names and dests that stayed because [`Observer::confirm`] returned `false`. They are not failures.
    pub declined: u64,
    /// The run was [cancelled](crate::Cancel) before all work was done.
    pub cancelled: bool,
    /// The number of incomplete dests that a cancelled copy removed. Only dests that the run itself had created are
    /// removed.
    pub discarded: u64,
    /// The number of names that a copy has [deleted](crate::CopyOp::delete) because its sources do not have them. They
    /// are not among the `entries`. A removal has 0.
    pub deleted: u64,
    /// The number of names that a copy has not deleted because of [the limit](crate::Deletion::most).
    pub not_deleted: u64,
}

impl Summary {
    /// Returns `true` if nothing failed, the run was not cancelled, and no limit has kept anything.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.failures == 0 && !self.cancelled && self.not_deleted == 0
    }
}

/// Adds the totals of another run. The sum is cancelled if one of the runs was.
impl AddAssign for Summary {
    fn add_assign(&mut self, run: Self) {
        macro_rules! add {
            ($($number:ident)*) => {
                // Naming all fields makes the compiler find a new one that is not added.
                let Self { cancelled, $($number),* } = run;
                self.cancelled |= cancelled;
                $(self.$number += $number;)*
            };
        }
        add! {
            entries files directories merged symlinks other hard_links unknown bytes reflinked_bytes
            kept compared failures declined discarded deleted not_deleted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_include_those_of_other_engines() {
        let (here, elsewhere) = (Counts::default(), Counts::default());
        here.add(1, 0);
        elsewhere.add(20, 3 * BYTES_PER_WORK);
        elsewhere.add_skipped(BYTES_PER_WORK);
        let [entries, bytes, work] = [elsewhere.entries(), elsewhere.bytes(), elsewhere.work()];
        here.add_shared(entries, bytes, work);
        assert_eq!((here.entries(), here.bytes()), (21, 3 * BYTES_PER_WORK));
        assert_eq!(here.work(), 21 + 3 + 2);
    }

    #[test]
    fn a_sum_of_two_runs_has_the_totals_of_both() {
        let run = |factor| Summary {
            entries: 21 * factor,
            files: factor,
            directories: 2 * factor,
            merged: 16 * factor,
            symlinks: 3 * factor,
            other: 4 * factor,
            hard_links: 5 * factor,
            unknown: 6 * factor,
            bytes: 7 * factor,
            reflinked_bytes: 8 * factor,
            failures: 9 * factor,
            declined: 10 * factor,
            cancelled: factor == 2,
            discarded: 11 * factor,
            kept: 12 * factor,
            compared: 13 * factor,
            deleted: 14 * factor,
            not_deleted: 15 * factor,
        };
        let mut sum = run(1);
        sum += run(2);
        let cancelled = true;
        assert_eq!(
            sum,
            Summary {
                cancelled,
                ..run(3)
            }
        );
        sum += run(1);
        assert_eq!(
            sum,
            Summary {
                cancelled,
                ..run(4)
            }
        );
    }
}
