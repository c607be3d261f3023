//! Reports failures and warnings in the order of the operands, although several operands are worked on at once.
//!
//! A message is reported at once if all operands before its own are finished. Otherwise it is held until
//! they are. Without failures, an operand costs two atomic operations.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;
use crate::report::Report;
use crate::sync::lock;

/// The failures and warnings of a run that are not yet reported, and the progress of the operands.
///
/// The worker that finishes an operand sets its flag before it reads `holds`. The worker that fails sets `holds`
/// before it reads the others. All four accesses are `SeqCst`, so at least one of them sees the flag of the other,
/// and reports the failure.
#[derive(Default)]
pub(crate) struct Failures {
    /// Says of each operand whether it is finished.
    finished: Vec<AtomicBool>,
    /// Is `true` while failures are held.
    holds: AtomicBool,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// All operands before this one are finished.
    first_unfinished: u32,
    by_operand: BTreeMap<u32, Vec<Message>>,
}

/// A report about an operand.
pub(crate) enum Message {
    Failure(Error),
    Warning(Error),
}

impl Failures {
    /// Makes the state for this number of operands.
    pub(crate) fn of(operands: usize) -> Self {
        Self {
            finished: (0..operands).map(|_| AtomicBool::new(false)).collect(),
            ..Self::default()
        }
    }

    /// Makes the state of an engine that does not know which operands are finished: it holds no message.
    pub(crate) fn in_any_order(operands: usize) -> Self {
        let held = Held {
            first_unfinished: u32::MAX,
            ..Held::default()
        };
        Self {
            held: Mutex::new(held),
            ..Self::of(operands)
        }
    }

    /// Notes that nothing of an operand is left to do, and reports the messages that waited for it.
    #[inline]
    pub(crate) fn finish(&self, operand: u32, report: &Report<'_>) {
        self.finished[operand as usize].store(true, Ordering::SeqCst);
        if self.holds.load(Ordering::SeqCst) {
            self.report_due(report, |_| {});
        }
    }

    /// Reports a message about an operand, or holds it.
    #[cold]
    pub(crate) fn report(&self, operand: u32, message: Message, report: &Report<'_>) {
        self.report_due(report, |held| {
            held.by_operand.entry(operand).or_default().push(message);
            self.holds.store(true, Ordering::SeqCst);
        });
    }

    /// Reports everything that is held, after a run in which some operands may not have been finished.
    pub(crate) fn report_rest(&self, report: &Report<'_>) {
        self.report_due(report, |held| held.first_unfinished = u32::MAX);
    }

    /// Changes what is held, and then reports the messages for which no operand is left to wait.
    #[cold]
    fn report_due(&self, report: &Report<'_>, change: impl FnOnce(&mut Held)) {
        // If the observer has panicked, what is held can still be reported.
        let mut held = lock(&self.held);
        change(&mut held);
        let Held {
            first_unfinished,
            by_operand,
        } = &mut *held;
        while self.is_finished(*first_unfinished) {
            *first_unfinished += 1;
        }
        while let Some(first) = by_operand.first_entry()
            && first.key() <= first_unfinished
        {
            for message in first.remove() {
                match message {
                    Message::Failure(error) => report.failed(error),
                    Message::Warning(warning) => report.warn(warning),
                }
            }
        }
        if by_operand.is_empty() {
            self.holds.store(false, Ordering::SeqCst);
        }
    }

    fn is_finished(&self, operand: u32) -> bool {
        let finished = self.finished.get(operand as usize);
        finished.is_some_and(|finished| finished.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Refusal;
    use crate::observer::Observer;
    use crate::setup::Setup;

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
        let failures = Failures::of(100);
        failures.report(99, Message::Warning(error("last")), &report);
        failures.report(1, Message::Failure(error("second")), &report);
        assert!(paths(&seen).is_empty());
        failures.report(0, Message::Failure(error("first")), &report);
        assert_eq!(paths(&seen), ["first"]);
        failures.finish(0, &report);
        assert_eq!(paths(&seen), ["first", "second"]);
        for operand in (1..99).rev() {
            failures.finish(operand, &report);
        }
        assert_eq!(paths(&seen), ["first", "second", "last"]);
    }

    #[test]
    fn an_engine_that_knows_no_order_holds_nothing() {
        let seen = Seen::default();
        let report = Report::new(&seen, &Setup::default());
        let failures = Failures::in_any_order(3);
        failures.report(2, Message::Failure(error("c")), &report);
        failures.report(0, Message::Warning(error("a")), &report);
        assert_eq!(paths(&seen), ["c", "a"]);
    }

    #[test]
    fn failures_that_still_wait_at_the_end_are_reported_in_order() {
        let seen = Seen::default();
        let report = Report::new(&seen, &Setup::default());
        let failures = Failures::of(3);
        for (operand, path) in [(2, "c1"), (1, "b"), (2, "c2")] {
            failures.report(operand, Message::Failure(error(path)), &report);
        }
        failures.report_rest(&report);
        assert_eq!(paths(&seen), ["b", "c1", "c2"]);
        assert_eq!(report.summary().failures, 3);
    }
}
