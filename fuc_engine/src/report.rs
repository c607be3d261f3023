//! The connection between the workers of a run and its [`Observer`]: it passes on failures, events and
//! questions, and keeps the totals.
//!
//! Failures and warnings come in the order of the operands, although several operands are worked on at once. A diagnostic
//! is reported at once if all operands before its own are finished. Otherwise it is held until they are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::FileType;

use crate::error::{Error, Refusal};
use crate::observer::{Counts, Event, Observer, Question, Summary};
use crate::setup::{Cancel, Setup, Throttle};
use crate::sync::lock;

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
}

/// The work that one worker has done and not yet added to the totals. A worker adds it when it has run out
/// of tasks, since all workers write to the totals. The number of files is left out.
pub(crate) type Tally = Summary;

impl Tally {
    /// Counts one entry.
    #[inline]
    pub(crate) fn add_entry(&mut self, counted: Counted) {
        self.entries += 1;
        match counted {
            // Files are the entries that no other count has, because most entries are files.
            Counted::File => {}
            Counted::Directory => self.directories += 1,
            Counted::Symlink => self.symlinks += 1,
            Counted::Other => self.other += 1,
            Counted::HardLink => self.hard_links += 1,
            Counted::Unknown => self.unknown += 1,
        }
    }
}

pub(crate) struct Report<'a> {
    observer: &'a dyn Observer,
    wants_events: bool,
    throttle: Option<&'a dyn Throttle>,
    /// The entries and bytes of all tallies. Workers add to them after each task, so no lock guards them.
    totals: Counts,
    /// The other numbers of the summary.
    rest: Mutex<Summary>,
    /// The observer's own counters, which other threads read during the run.
    live: Option<&'a Counts>,
    cancel: Option<Cancel>,
    held: Mutex<Held>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(observer: &'a dyn Observer, setup: &Setup<'a>) -> Self {
        Self {
            observer,
            wants_events: observer.wants_events(),
            throttle: setup.throttle,
            totals: Counts::default(),
            rest: Mutex::default(),
            live: observer.counts(),
            cancel: setup.cancel.clone(),
            held: Mutex::default(),
        }
    }

    /// Returns `true` if the run was cancelled. The caller then skips work that it would do.
    #[inline]
    pub(crate) fn must_stop(&self) -> bool {
        let is_cancelled = self.cancel.as_ref().is_some_and(Cancel::is_cancelled);
        if is_cancelled {
            lock(&self.rest).cancelled = true;
        }
        is_cancelled
    }

    /// Waits after entries or bytes of content, if the run is throttled.
    pub(crate) fn throttle(&self, entries: u64, bytes: u64) {
        if let Some(throttle) = self.throttle
            && (entries, bytes) != (0, 0)
        {
            throttle.wait(entries, bytes);
        }
    }

    pub(crate) fn is_throttled(&self) -> bool {
        self.throttle.is_some()
    }

    /// Counts an incomplete dest that was removed because the run was cancelled.
    pub(crate) fn count_discarded(&self) {
        lock(&self.rest).discarded += 1;
    }

    /// Returns `true` if the observer receives events. Build paths for events only then.
    pub(crate) fn wants_events(&self) -> bool {
        self.wants_events
    }

    pub(crate) fn event(&self, event: Event<'_>) {
        self.observer.on_event(event);
    }

    /// Asks the user. Counts a name or a dest that the user wants to keep.
    pub(crate) fn confirm(&self, question: Question<'_>) -> bool {
        let confirmed = self.observer.confirm(question);
        if !confirmed {
            lock(&self.rest).declined += 1;
        }
        confirmed
    }

    /// Moves a worker's tally to the totals.
    pub(crate) fn add_tally(&self, tally: &mut Tally) {
        self.add_counts(tally);
        let rest = std::mem::take(tally);
        if rest != Tally::default() {
            *lock(&self.rest) += rest;
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
        if bytes > 0 {
            self.totals.add(0, bytes);
        }
    }

    /// Counts a source that is not copied because its dest stays.
    pub(crate) fn count_skipped(&self, bytes: u64) {
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
        let rest = *lock(&self.rest);
        let entries = self.totals.entries();
        let links = rest.symlinks + rest.hard_links;
        Summary {
            entries,
            files: entries - (rest.directories + links + rest.other + rest.unknown),
            bytes: self.totals.bytes(),
            ..rest
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

/// The failures and warnings of a run that are not yet reported, and the progress of the operands.
#[derive(Default)]
struct Held {
    /// All operands before this one are finished.
    first_unfinished: u32,
    /// The finished operands after it.
    finished: BTreeSet<u32>,
    by_operand: BTreeMap<u32, Vec<Diagnostic>>,
}

/// A report about an operand.
enum Diagnostic {
    Failure(Error),
    Warning(Error),
}

impl Report<'_> {
    /// Counts and reports a failure, when all operands before its own are finished. One of the whole run is of operand 0, which
    /// waits for none.
    #[cold]
    pub(crate) fn fail(&self, operand: u32, error: Error) {
        self.keep_until_due(operand, Diagnostic::Failure(error));
    }

    /// Reports a warning, which is not counted, when all operands before its own are finished.
    #[cold]
    pub(crate) fn warn(&self, operand: u32, warning: Error) {
        self.keep_until_due(operand, Diagnostic::Warning(warning));
    }

    fn keep_until_due(&self, operand: u32, diagnostic: Diagnostic) {
        self.report_due(|held| held.by_operand.entry(operand).or_default().push(diagnostic));
    }

    /// Notes that nothing of an operand is left to do, and reports the diagnostics that waited for it.
    pub(crate) fn finish_operand(&self, operand: u32) {
        self.report_due(|held| {
            if operand == held.first_unfinished {
                held.first_unfinished += 1;
            } else if operand > held.first_unfinished {
                held.finished.insert(operand);
            }
        });
    }

    /// Reports everything that is held, whether or not all operands are finished, and holds nothing any more.
    pub(crate) fn hold_nothing(&self) {
        self.report_due(|held| held.first_unfinished = u32::MAX);
    }

    /// Reports everything that is held, whether or not all operands are finished. Other operands may follow.
    pub(crate) fn report_rest(&self) {
        self.hold_nothing();
        *lock(&self.held) = Held::default();
    }

    /// Changes what is held, and then reports the diagnostics for which no operand is left to wait.
    fn report_due(&self, change: impl FnOnce(&mut Held)) {
        // If the observer has panicked, what is held can still be reported.
        let mut held = lock(&self.held);
        change(&mut held);
        let Held {
            first_unfinished,
            finished,
            by_operand,
        } = &mut *held;
        while finished.remove(first_unfinished) {
            *first_unfinished += 1;
        }
        while let Some(first) = by_operand.first_entry()
            && first.key() <= first_unfinished
        {
            for diagnostic in first.remove() {
                match diagnostic {
                    Diagnostic::Failure(error) => {
                        lock(&self.rest).failures += 1;
                        self.observer.failed(error);
                    }
                    Diagnostic::Warning(warning) => self.observer.warned(warning),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(path: &str) -> Error {
        Error::refused(Refusal::Root, path.into())
    }

    /// Collects failures and warnings.
    #[derive(Default)]
    struct Seen(Mutex<Vec<Error>>);

    impl Observer for Seen {
        fn failed(&self, error: Error) {
            self.0.failed(error);
        }

        fn warned(&self, warning: Error) {
            self.0.failed(warning);
        }
    }

    fn paths(seen: &Seen) -> Vec<String> {
        let seen = seen.0.lock().unwrap();
        let paths = seen.iter().map(|error| error.path().display().to_string());
        paths.collect()
    }

    #[test]
    fn a_failure_waits_for_the_operands_before_its_own() {
        let seen = Seen::default();
        let report = Report::new(&seen, &Setup::default());
        report.warn(99, error("last"));
        report.fail(1, error("second"));
        assert!(paths(&seen).is_empty());
        report.fail(0, error("first"));
        assert_eq!(paths(&seen), ["first"]);
        report.finish_operand(0);
        assert_eq!(paths(&seen), ["first", "second"]);
        for operand in (1..99).rev() {
            report.finish_operand(operand);
        }
        assert_eq!(paths(&seen), ["first", "second", "last"]);
    }

    #[test]
    fn a_report_that_knows_no_order_holds_nothing() {
        let seen = Seen::default();
        let report = Report::new(&seen, &Setup::default());
        report.hold_nothing();
        report.fail(2, error("c"));
        report.warn(0, error("a"));
        assert_eq!(paths(&seen), ["c", "a"]);
    }

    #[test]
    fn failures_that_still_wait_at_the_end_are_reported_in_order() {
        let seen = Seen::default();
        let report = Report::new(&seen, &Setup::default());
        for (operand, path) in [(2, "c1"), (1, "b"), (2, "c2")] {
            report.fail(operand, error(path));
        }
        report.report_rest();
        assert_eq!(paths(&seen), ["b", "c1", "c2"]);
        assert_eq!(report.summary().failures, 3);
    }
}
