//! Runs a job, alone or together with other engines. [`crate::distribute`] shows the protocol.

use super::exchange::{self, Sharer};
use super::{Task, Visitor};
use crate::distribute::{Exchange, Part};
use crate::sched::{self, Inlet, When};
use crate::sys;

/// Runs tasks of the visitor, one after the other, with everything that they queue. If there is a sharer, takes part
/// in the work of all engines. An engine that assists does not begin the tasks, because the leader does.
pub(crate) fn run<V: Visitor>(
    visitor: &V,
    sharer: Option<&dyn Sharer<V>>,
    tasks: impl IntoIterator<Item = V::Task>,
) {
    let _end_run = EndRun;
    let stealing = sharer.map(Sharer::stealing);
    let attend = stealing
        .map(|stealing| move |inlet: &Inlet<'_, Task<V>>| exchange::attend::<V>(stealing, inlet));
    sched::scope(visitor, attend, |worker| {
        let _end = stealing.map(|stealing| End(stealing.exchange()));
        if stealing.is_some_and(|stealing| stealing.part() == Part::Assistant) {
            return worker.run_all();
        }
        for task in tasks {
            worker.push(Task::Own(task), When::Next);
            worker.run_all();
        }
    });
}

/// Guard that closes descriptors after all threads have ended, even if an observer has panicked.
struct EndRun;

impl Drop for EndRun {
    fn drop(&mut self) {
        sys::end_run();
    }
}

/// Guard that reports the end of the run to the exchange, even if an observer has panicked.
struct End<'e>(&'e dyn Exchange);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
