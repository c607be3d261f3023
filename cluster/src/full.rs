//! Ends a job when the dest is full, before each of millions of files fails and leaves an incomplete copy.

use std::io::{self, ErrorKind};
use std::sync::{Mutex, PoisonError};

use fuc_cli::console::Console;
use fuc_cli::wording;
use fuc_engine::{Cancel, Cause, Counts};

/// The number of failures after which the job ends, if no entry was finished between them.
const ENOUGH: u64 = 64;

/// Cancels the run of a rank when the dest is full.
#[derive(Debug)]
pub(crate) struct FullWatch<'a> {
    console: &'a Console,
    cancel: &'a Cancel,
    counts: &'a Counts,
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
    /// Watches the run that `cancel` stops, and that keeps `counts` up to date.
    pub(crate) fn new(console: &'a Console, cancel: &'a Cancel, counts: &'a Counts) -> Self {
        Self {
            console,
            cancel,
            counts,
            row: Mutex::default(),
        }
    }

    /// Notes a failure that was reported.
    pub(crate) fn note(&self, cause: Cause) {
        let Cause::Failed(_, raw) = cause else {
            return;
        };
        let error = io::Error::from_raw_os_error(raw);
        let is_full = matches!(
            error.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded
        );
        if is_full && self.ends_row() {
            let reason = wording::errno_text(&error);
            let line = format!("{ENOUGH} failures in a row, so the job ends: {reason}");
            self.console.error(line);
            self.cancel.cancel();
        }
    }

    /// Notes that there was no room. Returns `true` once, at the end of a row.
    fn ends_row(&self) -> bool {
        let entries = self.counts.entries();
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
