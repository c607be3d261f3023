//! Gives queued directories and other entries to other engines, and goes on when they come back.
//!
//! [`crate::distribute`] shows the protocol, and [`super::borrowing`] what the other engine does.

use std::collections::VecDeque;
use std::sync::Arc;

use super::tickets::{Entrusted, Family, Kept, MOST_LEVELS, Sharer, Stealing, above};
use super::{Purpose, Task, Visitor, Walker, leave, ranges};
use crate::distribute::{Finished, Given, Incoming};
use crate::node::Place;
use crate::sched::{Inlet, Thieves, When};

impl<V: Visitor> Thieves<Task<V>> for Stealing<'_, V::Dir, V::Task> {
    fn can_take(&self, task: &Task<V>) -> bool {
        match task {
            Task::Enter {
                place,
                purpose: Purpose::Process { pass: 0 },
            } => place.parent.is_some() && above(place).nth(MOST_LEVELS).is_none(),
            Task::Own(task) => ranges::can_take(task),
            Task::Stolen(stolen) => stolen.range.is_some(),
            _ => false,
        }
    }

    fn give(&self, tasks: Vec<Task<V>>) {
        let mut families: Vec<Family<V::Dir>> = Vec::new();
        let mut stolen = Vec::new();
        for task in tasks {
            let place = match task {
                Task::Enter { place, .. } => place,
                Task::Own(task) => {
                    stolen.push(ranges::keep(self, task));
                    continue;
                }
                Task::Stolen(range) => {
                    stolen.push(ranges::keep_for_other(self, range));
                    continue;
                }
                _ => unreachable!("BUG: a thief was given a task that it cannot take"),
            };
            let Some(parent) = &place.parent else {
                unreachable!("BUG: a thief was given an operand");
            };
            match families.last_mut() {
                Some(last) if Arc::ptr_eq(&last.parent, parent) => last.places.push(place),
                _ => families.push(Family {
                    parent: Arc::clone(parent),
                    places: vec![place],
                }),
            }
        }
        let families = families.into_iter();
        stolen.extend(families.map(|family| self.keep_family(family)));
        self.exchange().give(stolen);
    }

    fn steal(&self) {
        self.exchange().steal();
    }
}

/// Passes messages of other engines on to the workers, until the exchange ends.
pub(super) fn attend<V: Visitor>(
    stealing: &Stealing<'_, V::Dir, V::Task>,
    inlet: &Inlet<'_, Task<V>>,
) {
    loop {
        match stealing.exchange().receive() {
            Incoming::Request => inlet.request(),
            Incoming::Stolen(stolen) => {
                let boxed = stolen.into_iter().map(Box::new);
                inlet.put(boxed.map(Task::Stolen).collect::<VecDeque<_>>());
            }
            Incoming::Returned(ticket, given) => {
                let kept = stealing.redeem(ticket);
                if let Some(kept) = kept {
                    let given_tasks = kept.tasks();
                    let kept = Box::new(kept);
                    inlet.put_back(Task::Returned { kept, given }, given_tasks);
                }
            }
            Incoming::End => return,
        }
    }
}

/// Goes on with entries that come back from another engine.
pub(super) fn take_back<V: Visitor>(
    visitor: &V,
    sharer: &dyn Sharer<V>,
    kept: Kept<V::Dir, V::Task>,
    given: Given,
    worker: &mut Walker<'_, '_, V>,
) {
    match kept {
        Kept::Directories(places) => {
            take_directories_back(visitor, sharer, places, given, worker);
        }
        Kept::Entries(entries) => take_entries_back(visitor, sharer, entries, given, worker),
        Kept::Own(task) => sharer.own_returned(task, given, worker),
        Kept::Forwarded(stolen) => ranges::take_forwarded_back(sharer, stolen, given, worker),
    }
}

/// Goes on with directories that come back from a thief. In a cancelled run, those that the thief could not
/// reach stay.
fn take_directories_back<V: Visitor>(
    visitor: &V,
    sharer: &dyn Sharer<V>,
    places: Vec<Place<V::Dir>>,
    given: Given,
    worker: &mut Walker<'_, '_, V>,
) {
    let must_stop = visitor.report().must_stop();
    for place in places {
        match (given, &place.parent) {
            (Given::NotReached, _) if !must_stop => {
                let purpose = Purpose::Process { pass: 0 };
                worker.push(Task::Enter { place, purpose }, When::Next);
                continue;
            }
            (Given::NotReached, Some(parent)) => sharer.note(parent, Finished::NOT_BEGUN),
            (Given::Finished(finished), Some(parent)) => sharer.note(parent, finished),
            (_, None) => {}
        }
        leave(visitor, place.parent, worker);
    }
}

/// Goes on with entries that come back from their home. Those that the home could not reach fail, except in a
/// cancelled run.
fn take_entries_back<V: Visitor>(
    visitor: &V,
    sharer: &dyn Sharer<V>,
    entries: Entrusted<V::Dir>,
    given: Given,
    worker: &mut Walker<'_, '_, V>,
) {
    let Entrusted { parent, names, .. } = entries;
    match given {
        Given::Finished(finished) => sharer.note(&parent, finished),
        Given::NotReached if visitor.report().must_stop() => {
            sharer.note(&parent, Finished::NOT_BEGUN);
        }
        Given::NotReached => sharer.home_not_reached(&parent, &names),
    }
    leave(visitor, Some(parent), worker);
}
