//! Ends a job when the dest is full, before each of millions of files fails and leaves an incomplete copy.

use std::io::ErrorKind;
use std::sync::{Mutex, PoisonError};

use fuc_cli::console::Console;
use fuc_cli::reporter::Reporter;
use fuc_cli::wording;
use fuc_engine::{Answer, Cancel, Cause, Counts, Error, Event, Observer, Question};

/// The number of failures after which the job ends, if no entry was finished between them.
const ENOUGH: u64 = 64;

/// The observer of a rank, which cancels its run when the dest is full.
#[derive(Debug)]
pub(crate) struct FullWatch<'a> {
    reporter: &'a Reporter<'a>,
    console: &'a Console,
    cancel: &'a Cancel,
    row: Mutex<Row>,
}

/// The last failures.
#[derive(Debug, Default)]
struct Row {
    failures: u64,
    /// The entries that were finished before them.
    entries: u64,
}

impl<'a> FullWatch<'a> {
    /// Makes the observer of a run, whose failures `reporter` writes to `console`.
    pub(crate) fn new(
        reporter: &'a Reporter<'a>,
        console: &'a Console,
        cancel: &'a Cancel,
    ) -> Self {
        Self {
            reporter,
            console,
            cancel,
            row: Mutex::default(),
        }
    }

    /// Notes that there was no room. Returns `true` once, at the end of a row.
    fn ends_row(&self) -> bool {
        let entries = self.counts().map_or(0, Counts::entries);
        let mut row = self.row.lock().unwrap_or_else(PoisonError::into_inner);
        if entries != row.entries {
            *row = Row {
                failures: 0,
                entries,
            };
        }
        row.failures += 1;
        row.failures == ENOUGH
    }
}

impl Observer for FullWatch<'_> {
    fn failed(&self, error: Error) {
        let cause = error.cause();
        self.reporter.failed(error);
        if let Cause::Failed(_, errno) = cause
            && matches!(
                errno.kind(),
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded
            )
            && self.ends_row()
        {
            let reason = wording::errno_text(&errno.into());
            let line = format!("{ENOUGH} failures in a row, so the job ends: {reason}");
            self.console.error(line);
            self.cancel.cancel();
        }
    }

    fn warned(&self, warning: Error) {
        self.reporter.warned(warning);
    }

    fn wants_events(&self) -> bool {
        self.reporter.wants_events()
    }

    fn on_event(&self, event: Event<'_>) {
        self.reporter.on_event(event);
    }

    fn counts(&self) -> Option<&Counts> {
        self.reporter.counts()
    }

    fn confirm(&self, question: Question<'_>) -> Answer {
        self.reporter.confirm(question)
    }
}
