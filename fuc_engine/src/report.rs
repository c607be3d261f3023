//! The connection between the workers of a run and its [`Observer`]: it passes on failures, events and
//! questions, and keeps the totals.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::cancel::Cancel;
use crate::error::Error;
use crate::observer::{Answer, Counts, Event, Observer, Question, Summary};

/// The work that one worker has done and not yet added to the totals. A worker adds it when it has run out
/// of tasks, since all workers write to the totals.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

pub(crate) struct Report<'a> {
    observer: &'a dyn Observer,
    wants_events: bool,
    wants_copy_method: bool,
    totals: Counts,
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
    pub(crate) fn new(observer: &'a dyn Observer, cancel: Option<Cancel>) -> Self {
        let wants_events = observer.wants_events();
        Self {
            observer,
            wants_events,
            wants_copy_method: wants_events && observer.wants_copy_method(),
            totals: Counts::default(),
            live: observer.counts(),
            failures: AtomicU64::new(0),
            declined: AtomicU64::new(0),
            cancel,
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

    /// Counts a dest that stays because the answer to a question was no.
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

    /// Returns `true` if the observer also receives the method by which content was copied.
    pub(crate) fn wants_copy_method(&self) -> bool {
        self.wants_copy_method
    }

    pub(crate) fn event(&self, event: Event<'_>) {
        self.observer.on_event(event);
    }

    pub(crate) fn confirm(&self, question: Question<'_>) -> Answer {
        self.observer.confirm(question)
    }

    /// Moves a worker's tally to the totals.
    pub(crate) fn add(&self, tally: &mut Tally) {
        let Tally { entries, bytes } = std::mem::take(tally);
        if entries > 0 || bytes > 0 {
            self.totals.add(entries, bytes);
            if let Some(live) = self.live {
                live.add(entries, bytes);
            }
        }
    }

    /// Moves a worker's tally to the totals while the worker has tasks, if other threads read the counters.
    pub(crate) fn publish(&self, tally: &mut Tally) {
        if self.live.is_some() {
            self.add(tally);
        }
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary {
            entries: self.totals.entries(),
            bytes: self.totals.bytes(),
            failures: self.failures.load(Ordering::Relaxed),
            declined: self.declined.load(Ordering::Relaxed),
            cancelled: self.was_cancelled.load(Ordering::Relaxed),
            discarded: self.discarded.load(Ordering::Relaxed),
        }
    }
}

/// Starts a run with `run` and returns its summary, or the first failure that it reports.
pub(crate) fn summary_or_first_failure(
    run: impl FnOnce(&dyn Observer) -> Summary,
) -> Result<Summary, Error> {
    let failures = Mutex::new(Vec::new());
    let summary = run(&failures);
    let failures = failures
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    failures.into_iter().next().map_or(Ok(summary), Err)
}
