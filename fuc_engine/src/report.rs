//! Where the workers of a run bring their news and their counts.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::observer::{Answer, Counts, Event, Observer, Question, Summary};

/// What one worker has done and not yet told.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

pub(crate) struct Report<'a> {
    observer: &'a dyn Observer,
    wants_events: bool,
    wants_copy_method: bool,
    done: Counts,
    /// Counts that somebody looks at meanwhile.
    shown: Option<&'a Counts>,
    failures: AtomicU64,
    declined: AtomicU64,
}

impl<'a> Report<'a> {
    pub(crate) fn new(observer: &'a dyn Observer) -> Self {
        let wants_events = observer.wants_events();
        Self {
            observer,
            wants_events,
            wants_copy_method: wants_events && observer.wants_copy_method(),
            done: Counts::default(),
            shown: observer.counts(),
            failures: AtomicU64::new(0),
            declined: AtomicU64::new(0),
        }
    }

    // The counts are Relaxed throughout: `summary` is called after the threads have ended.

    pub(crate) fn failed(&self, error: Error) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.observer.failed(error);
    }

    /// Somebody wanted to keep a dest.
    pub(crate) fn declined(&self) {
        self.declined.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports something that is not a failure and is not counted.
    pub(crate) fn warn(&self, warning: Error) {
        self.observer.warned(warning);
    }

    /// Whether anybody wants to hear of what is done: only then build a path.
    pub(crate) fn wants_events(&self) -> bool {
        self.wants_events
    }

    /// Whether anybody wants to hear how content is copied.
    pub(crate) fn wants_copy_method(&self) -> bool {
        self.wants_copy_method
    }

    pub(crate) fn event(&self, event: Event<'_>) {
        self.observer.on_event(event);
    }

    pub(crate) fn confirm(&self, question: Question<'_>) -> Answer {
        self.observer.confirm(question)
    }

    pub(crate) fn add(&self, tally: &mut Tally) {
        let Tally { entries, bytes } = std::mem::take(tally);
        if entries > 0 || bytes > 0 {
            self.done.add(entries, bytes);
            if let Some(shown) = self.shown {
                shown.add(entries, bytes);
            }
        }
    }

    /// The same in the middle of a task, for whoever looks on.
    pub(crate) fn show(&self, tally: &mut Tally) {
        if self.shown.is_some() {
            self.add(tally);
        }
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary {
            entries: self.done.entries(),
            bytes: self.done.bytes(),
            failures: self.failures.load(Ordering::Relaxed),
            declined: self.declined.load(Ordering::Relaxed),
        }
    }
}
