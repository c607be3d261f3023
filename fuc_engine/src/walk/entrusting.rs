//! Gives entries to the engine that is the home of their files.
//!
//! The names that a task finds in one directory travel together. They are sent when the task ends, or earlier if
//! there are many. So no engine waits for a name that another worker keeps back.

use std::sync::Arc;

use super::tickets::{Entrusted, Sharer};
use super::{NodeOf, Visitor, Walker};
use crate::sys::Entry;

/// The most names that wait for the end of a task, for each home.
const MOST_WAITING: usize = 256;

/// Gives an entry of `node` to its home, before the end of the task.
pub(crate) fn entrust<V: Visitor>(
    sharer: &dyn Sharer<V>,
    node: &NodeOf<V>,
    entry: Entry<'_>,
    home: u32,
    worker: &mut Walker<'_, '_, V>,
) {
    let waiting = &mut worker.scratch.entrusted;
    let is_like = |other: &Entrusted<V::Dir>| {
        other.home == home && other.kind == entry.kind() && Arc::ptr_eq(&other.parent, node)
    };
    let index = waiting.iter().position(is_like).unwrap_or_else(|| {
        node.retain();
        waiting.push(Entrusted {
            parent: NodeOf::<V>::clone(node),
            home,
            kind: entry.kind(),
            names: Vec::new(),
        });
        waiting.len() - 1
    });
    waiting[index].names.push(entry.name.into());
    if waiting[index].names.len() == MOST_WAITING {
        let full = waiting.swap_remove(index);
        send(sharer, full, worker);
    }
}

/// Gives the entries to their homes that the task has found.
#[cold]
pub(super) fn send_rest<V: Visitor>(sharer: &dyn Sharer<V>, worker: &mut Walker<'_, '_, V>) {
    while let Some(entries) = worker.scratch.entrusted.pop() {
        send(sharer, entries, worker);
    }
}

fn send<V: Visitor>(
    sharer: &dyn Sharer<V>,
    entries: Entrusted<V::Dir>,
    worker: &mut Walker<'_, '_, V>,
) {
    // They may come back as soon as they are given.
    worker.expect(1);
    sharer.stealing().entrust(entries);
}
