//! The connection between the workers of a run and its [`Observer`]: it passes on failures, events and
//! questions, and keeps the totals.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::FileType;

use crate::cancel::Cancel;
use crate::error::{Error, Refusal};
use crate::observer::{Answer, Counts, Event, Observer, Question, Summary};
use crate::setup::Setup;
use crate::sync::lock;
use crate::throttle::Throttle;

/// The kind under which an entry is counted in a [`Summary`], besides in its `entries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    File,
    Directory,
    Symlink,
    Other,
    HardLink,
    Unknown,
}

impl Counted {
    /// The number of variants, except `File`.
    const BESIDES_FILES: usize = 5;

    /// Returns what a removed name counts as if its directory, or a stat, gives this type.
    #[inline]
    pub(crate) fn of(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Unknown => Self::Unknown,
            _ => Self::Other,
        }
    }

    /// Returns the index of the count. `None`: files are the entries that no other count has, because
    /// most entries are files.
    #[inline]
    fn index(self) -> Option<usize> {
        match self {
            Self::File => None,
            Self::Directory => Some(0),
            Self::Symlink => Some(1),
            Self::Other => Some(2),
            Self::HardLink => Some(3),
            Self::Unknown => Some(4),
        }
    }
}

/// The work that one worker has done and not yet added to the totals. A worker adds it when it has run out
/// of tasks, since all workers write to the totals.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    entries: u64,
    bytes: u64,
    details: Details,
}

/// The part of a tally, or of the totals, that only the summary shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Details {
    /// The entries that are not files, by [`Counted::index`].
    kinds: [u64; Counted::BESIDES_FILES],
    reflinked_bytes: u64,
    kept: u64,
    compared: u64,
}

impl Tally {
    /// Counts one entry.
    #[inline]
    pub(crate) fn count(&mut self, counted: Counted) {
        self.entries += 1;
        if let Some(index) = counted.index() {
            self.details.kinds[index] += 1;
        }
    }

    /// Counts bytes of copied content.
    #[inline]
    pub(crate) fn count_bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Counts bytes, already counted by [`count_bytes`](Self::count_bytes), that share blocks with the source.
    #[inline]
    pub(crate) fn count_reflinked(&mut self, bytes: u64) {
        self.details.reflinked_bytes += bytes;
    }

    /// Counts a source that is not copied because its dest stands for the copy.
    pub(crate) fn count_kept(&mut self) {
        self.details.kept += 1;
    }

    /// Counts a copy that was compared with its source.
    pub(crate) fn count_compared(&mut self) {
        self.details.compared += 1;
    }
}

impl Details {
    fn add(&mut self, other: &Self) {
        for (count, more) in self.kinds.iter_mut().zip(other.kinds) {
            *count += more;
        }
        self.reflinked_bytes += other.reflinked_bytes;
        self.kept += other.kept;
        self.compared += other.compared;
    }
}

/// Says whether the speed of a run is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Throttled {
    Yes,
    No,
}

pub(crate) struct Report<'a> {
    observer: &'a dyn Observer,
    wants_events: bool,
    throttle: Option<&'a dyn Throttle>,
    totals: Counts,
    details: Mutex<Details>,
    /// The observer's own counters, which other threads read during the run.
    live: Option<&'a Counts>,
    failures: AtomicU64,
    declined: AtomicU64,
    cancel: Option<Cancel>,
    /// `true` if work was skipped because the run was cancelled.
    was_cancelled: AtomicBool,
    /// The number of incomplete dests that were removed because the run was cancelled.
    discarded: AtomicU64,
}

impl<'a> Report<'a> {
    pub(crate) fn new(observer: &'a dyn Observer, setup: &Setup<'a>) -> Self {
        Self {
            observer,
            wants_events: observer.wants_events(),
            throttle: setup.throttle,
            totals: Counts::default(),
            details: Mutex::default(),
            live: observer.counts(),
            failures: AtomicU64::new(0),
            declined: AtomicU64::new(0),
            cancel: setup.cancel.clone(),
            was_cancelled: AtomicBool::new(false),
            discarded: AtomicU64::new(0),
        }
    }

    /// Returns `true` if the run was cancelled. The caller then skips work that it would do.
    #[inline]
    pub(crate) fn must_stop(&self) -> bool {
        match &self.cancel {
            Some(cancel) if cancel.is_cancelled() => {
                self.was_cancelled.store(true, Ordering::Relaxed);
                true
            }
            _ => false,
        }
    }

    /// Waits after an entry, if the run is throttled.
    pub(crate) fn throttle(&self) -> Throttled {
        match self.throttle {
            Some(throttle) => {
                throttle.wait(1, 0);
                Throttled::Yes
            }
            None => Throttled::No,
        }
    }

    /// Waits after bytes of content, if the run is throttled.
    pub(crate) fn throttle_bytes(&self, bytes: u64) {
        if let Some(throttle) = self.throttle
            && bytes > 0
        {
            throttle.wait(0, bytes);
        }
    }

    /// Counts an incomplete dest that was removed because the run was cancelled.
    pub(crate) fn discarded(&self) {
        self.discarded.fetch_add(1, Ordering::Relaxed);
    }

    // All counters are Relaxed: `summary` is called after the threads have ended.

    /// Counts a failure and reports it.
    pub(crate) fn failed(&self, error: Error) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.observer.failed(error);
    }

    /// Counts a name, or a dest, that stays because the answer to a question was no.
    pub(crate) fn declined(&self) {
        self.declined.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports a warning, which is not counted.
    pub(crate) fn warn(&self, warning: Error) {
        self.observer.warned(warning);
    }

    /// Returns `true` if the observer receives events. Build paths for events only then.
    pub(crate) fn wants_events(&self) -> bool {
        self.wants_events
    }

    pub(crate) fn event(&self, event: Event<'_>) {
        self.observer.on_event(event);
    }

    pub(crate) fn confirm(&self, question: Question<'_>) -> Answer {
        self.observer.confirm(question)
    }

    /// Moves a worker's tally to the totals.
    pub(crate) fn add(&self, tally: &mut Tally) {
        self.add_counts(tally);
        let details = std::mem::take(&mut tally.details);
        if details != Details::default() {
            lock(&self.details).add(&details);
        }
    }

    fn add_counts(&self, tally: &mut Tally) {
        let entries = std::mem::take(&mut tally.entries);
        let bytes = std::mem::take(&mut tally.bytes);
        if entries > 0 || bytes > 0 {
            self.totals.add(entries, bytes);
            if let Some(live) = self.live {
                live.add(entries, bytes);
            }
        }
    }

    /// Moves the counts that other threads read to the totals while the worker has tasks, if they are read.
    pub(crate) fn publish(&self, tally: &mut Tally) {
        if self.live.is_some() {
            self.add_counts(tally);
        }
    }

    /// Adds bytes that no worker has counted.
    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.totals.add(0, bytes);
    }

    /// Counts a source that is not copied because its dest stays.
    pub(crate) fn skipped(&self, bytes: u64) {
        if let Some(live) = self.live {
            live.add_skipped(bytes);
        }
    }

    /// Passes on the path of a directory in which a worker is, if another thread has asked for one.
    #[inline]
    pub(crate) fn offer_directory(&self, directory: impl FnOnce() -> PathBuf) {
        if let Some(live) = self.live {
            live.offer_directory(directory);
        }
    }

    pub(crate) fn summary(&self) -> Summary {
        let Details {
            kinds,
            reflinked_bytes,
            kept,
            compared,
        } = *lock(&self.details);
        let [directories, symlinks, other, hard_links, unknown] = kinds;
        let entries = self.totals.entries();
        let besides_files: u64 = kinds.iter().sum();
        Summary {
            entries,
            files: entries - besides_files,
            directories,
            symlinks,
            other,
            hard_links,
            unknown,
            reflinked_bytes,
            kept,
            compared,
            bytes: self.totals.bytes(),
            failures: self.failures.load(Ordering::Relaxed),
            declined: self.declined.load(Ordering::Relaxed),
            cancelled: self.was_cancelled.load(Ordering::Relaxed),
            discarded: self.discarded.load(Ordering::Relaxed),
            ..Summary::default()
        }
    }
}

/// Starts a run with `run` and returns its summary, or the first failure that it reports. A run of `operand` that was
/// cancelled is a failure, too.
pub(crate) fn complete_or_first_failure(
    operand: &Path,
    run: impl FnOnce(&dyn Observer) -> Summary,
) -> Result<Summary, Error> {
    let failures = Mutex::new(Vec::new());
    let summary = run(&failures);
    let failures = failures
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    match failures.into_iter().next() {
        Some(failure) => Err(failure),
        None if summary.cancelled => Err(Error::refused(Refusal::Cancelled, operand.to_path_buf())),
        None => Ok(summary),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_a_removed_name_is_counted_once() {
        let failures = Mutex::new(Vec::new());
        let report = Report::new(&failures, &Setup::default());
        let mut tally = Tally::default();
        for (kind, times) in [
            (FileType::RegularFile, 1),
            (FileType::Directory, 2),
            (FileType::Symlink, 3),
            (FileType::Fifo, 2),
            (FileType::Socket, 1),
            (FileType::CharacterDevice, 1),
            (FileType::Unknown, 5),
        ] {
            (0..times).for_each(|_| tally.count(Counted::of(kind)));
            report.add(&mut tally);
        }
        let expected = Summary {
            entries: 15,
            files: 1,
            directories: 2,
            symlinks: 3,
            other: 4,
            unknown: 5,
            ..Summary::default()
        };
        assert_eq!(report.summary(), expected);
    }
}
