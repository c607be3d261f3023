//! Failures with the same reason as many others. On a full disk, each of thousands of files fails with one reason,
//! and at a terminal their lines would push everything else out of sight. In a job of many processes, there are millions.
//!
//! Each failure is either written or counted, and each count is written at the end of the run.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};

use fuc_engine::Cause;

use crate::streams::stderr;
use crate::sync::lock;
use crate::wording;

/// Up to this number of failures, the user sees them all.
pub(crate) const FEW_FAILURES: u64 = 10;

/// The failures of a run, by their reasons.
#[derive(Debug)]
pub(crate) struct Repeats {
    /// The number of failures with one reason that are written.
    written: u64,
    /// Says whether failures are only counted at all: if stderr is a terminal, or in any case. It is looked up at the
    /// first failure, so that a run without failures makes no system call.
    is_counted: OnceLock<bool>,
    failures: Mutex<BTreeMap<String, u64>>,
}

impl Repeats {
    /// Counts what a user may watch at a terminal.
    pub(crate) fn at_terminal() -> Self {
        Self {
            written: FEW_FAILURES,
            is_counted: OnceLock::new(),
            failures: Mutex::default(),
        }
    }

    /// Counts all but the first failures of each reason, which are `written`.
    pub(crate) fn above(written: u64) -> Self {
        Self {
            written,
            is_counted: true.into(),
            failures: Mutex::default(),
        }
    }

    /// Counts a failure. Returns `true` if it should not be written, because as many as are written had the same reason.
    pub(crate) fn is_surplus(&self, cause: Cause) -> bool {
        if !*self.is_counted.get_or_init(|| stderr().is_terminal()) {
            return false;
        }
        let mut failures = lock(&self.failures);
        let failures = failures.entry(wording::reason(cause)).or_default();
        *failures += 1;
        *failures > self.written
    }

    /// Returns the number of failures that were not written, by their reasons.
    pub(crate) fn surplus(&self) -> BTreeMap<String, u64> {
        let failures = lock(&self.failures);
        let surplus = failures
            .iter()
            .map(|(reason, &failures)| (reason.clone(), failures.saturating_sub(self.written)));
        surplus.filter(|&(_, failures)| failures > 0).collect()
    }
}
