//! Failures with the same reason as many others. On a full disk, each of thousands of files fails with one reason,
//! and at a terminal their lines would push everything else out of sight.
//!
//! Each failure is either written or counted, and each count is written at the end of the run.

use std::sync::{Mutex, OnceLock, PoisonError};

use fuc_engine::Cause;

use crate::streams::Stderr;
use crate::wording;

/// Up to this number of failures, the user sees them all.
pub(crate) const FEW_FAILURES: u64 = 10;

/// The failures of a run that a user may watch at a terminal.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// Looked up at the first failure, so that a run without failures makes no system call.
    is_terminal: OnceLock<bool>,
    reasons: Mutex<Vec<Reason>>,
}

#[derive(Debug)]
struct Reason {
    text: String,
    failures: u64,
}

impl Repeats {
    /// Counts a failure. Returns `true` if it should not be written: stderr is a terminal, and it shows
    /// [`FEW_FAILURES`] with the same reason.
    pub(crate) fn is_surplus(&self, cause: Cause) -> bool {
        if !*self.is_terminal.get_or_init(|| Stderr.is_terminal()) {
            return false;
        }
        let text = wording::reason(cause);
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        let known = reasons.iter().position(|reason| reason.text == text);
        let at = known.unwrap_or_else(|| {
            reasons.push(Reason { text, failures: 0 });
            reasons.len() - 1
        });
        reasons[at].failures += 1;
        reasons[at].failures > FEW_FAILURES
    }

    /// Returns a line for each reason with failures that were not written, without the command's name.
    pub(crate) fn lines(&self) -> Vec<String> {
        let reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        let surplus = reasons
            .iter()
            .filter(|reason| reason.failures > FEW_FAILURES);
        let line =
            |reason: &Reason| wording::repeated(reason.failures - FEW_FAILURES, &reason.text);
        surplus.map(line).collect()
    }
}
