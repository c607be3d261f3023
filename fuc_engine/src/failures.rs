//! Reports failures and warnings in the order of the operands, although several operands are worked on at once.
//!
//! A diagnostic is reported at once if all operands before its own are finished. Otherwise it is held until
//! they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use crate::distribute::Role;
use crate::error::Error;
use crate::report::Report;
use crate::setup::Setup;
use crate::sync::lock;

/// The failures and warnings of a run that are not yet reported, and the progress of the operands.
#[derive(Default)]
pub(crate) struct Failures(Mutex<Held>);

#[derive(Default)]
struct Held {
    /// All operands before this one are finished.
    first_unfinished: u32,
    /// The finished operands after it.
    finished: BTreeSet<u32>,
    by_operand: BTreeMap<u32, Vec<Diagnostic>>,
}

/// A report about an operand.
pub(crate) enum Diagnostic {
    Failure(Error),
    Warning(Error),
}

impl Failures {
    /// Makes the state of a run. An engine that assists does not know which operands are finished, so it holds no
    /// diagnostic.
    pub(crate) fn new(setup: &Setup<'_>) -> Self {
        let sharing = setup.sharing.as_ref();
        match sharing.is_some_and(|sharing| sharing.role == Role::Assistant) {
            true => Self::in_any_order(),
            false => Self::default(),
        }
    }

    fn in_any_order() -> Self {
        Self(Mutex::new(Held {
            first_unfinished: u32::MAX,
            ..Held::default()
        }))
    }

    /// Notes that nothing of an operand is left to do, and reports the diagnostics that waited for it.
    pub(crate) fn end_operand(&self, operand: u32, report: &Report<'_>) {
        self.report_due(report, |held| {
            if operand == held.first_unfinished {
                held.first_unfinished += 1;
            } else if operand > held.first_unfinished {
                held.finished.insert(operand);
            }
        });
    }

    /// Reports a diagnostic about an operand, or holds it.
    #[cold]
    pub(crate) fn report(&self, operand: u32, diagnostic: Diagnostic, report: &Report<'_>) {
        self.report_due(report, |held| {
            held.by_operand.entry(operand).or_default().push(diagnostic);
        });
    }

    /// Reports everything that is held, after a run in which some operands may not have been finished.
    pub(crate) fn report_rest(&self, report: &Report<'_>) {
        self.report_due(report, |held| held.first_unfinished = u32::MAX);
    }

    /// Changes what is held, and then reports the diagnostics for which no operand is left to wait.
    fn report_due(&self, report: &Report<'_>, change: impl FnOnce(&mut Held)) {
        // If the observer has panicked, what is held can still be reported.
        let mut held = lock(&self.0);
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
                    Diagnostic::Failure(error) => report.failed(error),
                    Diagnostic::Warning(warning) => report.warn(warning),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Refusal;
    use crate::observer::Observer;

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
        let failures = Failures::default();
        failures.report(99, Diagnostic::Warning(error("last")), &report);
        failures.report(1, Diagnostic::Failure(error("second")), &report);
        assert!(paths(&seen).is_empty());
        failures.report(0, Diagnostic::Failure(error("first")), &report);
        assert_eq!(paths(&seen), ["first"]);
        failures.end_operand(0, &report);
        assert_eq!(paths(&seen), ["first", "second"]);
        for operand in (1..99).rev() {
            failures.end_operand(operand, &report);
        }
        assert_eq!(paths(&seen), ["first", "second", "last"]);
    }

    #[test]
    fn an_engine_that_knows_no_order_holds_nothing() {
        let seen = Seen::default();
        let report = Report::new(&seen, &Setup::default());
        let failures = Failures::in_any_order();
        failures.report(2, Diagnostic::Failure(error("c")), &report);
        failures.report(0, Diagnostic::Warning(error("a")), &report);
        assert_eq!(paths(&seen), ["c", "a"]);
    }

    #[test]
    fn failures_that_still_wait_at_the_end_are_reported_in_order() {
        let seen = Seen::default();
        let report = Report::new(&seen, &Setup::default());
        let failures = Failures::default();
        for (operand, path) in [(2, "c1"), (1, "b"), (2, "c2")] {
            failures.report(operand, Diagnostic::Failure(error(path)), &report);
        }
        failures.report_rest(&report);
        assert_eq!(paths(&seen), ["b", "c1", "c2"]);
        assert_eq!(report.summary().failures, 3);
    }
}
