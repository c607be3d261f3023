//! Runs a job, alone or together with other engines. [`crate::distribute`] shows the protocol.

use super::exchange::{self, Sharer, Stealing};
use super::{Task, Visitor};
use crate::distribute::Part;
use crate::node::Dir;
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
    let attend = sharer.map(|sharer| move |inlet: &Inlet<'_, Task<V>>| attend(sharer, inlet));
    sched::scope(visitor, attend, |worker| {
        let stealing = sharer.map(Sharer::stealing);
        let _end = stealing.map(End);
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
struct End<'a, 'e, D: Dir, T>(&'a Stealing<'e, D, T>);

impl<D: Dir, T> Drop for End<'_, '_, D, T> {
    fn drop(&mut self) {
        self.0.exchange().end();
    }
}

/// Talks to the other engines until the run has ended.
fn attend<V: Visitor>(sharer: &dyn Sharer<V>, inlet: &Inlet<'_, Task<V>>) {
    let part = sharer.stealing().part();
    if part == Part::Leader {
        inlet.close();
    }
    exchange::attend(sharer.stealing(), inlet);
    if part == Part::Assistant {
        inlet.close();
    }
}
