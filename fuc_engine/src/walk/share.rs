//! Makes tasks of parts of a directory's listing, for other workers.
//!
//! A part is a `Batch` task. It counts as a user of the node, so the directory is
//! finished only after all of its parts.

use super::tuning::tuning;
use super::{NodeOf, Task, Visitor, Walker};
use crate::sched::When;
use crate::sys::{Entries, Listing};

/// Hands `listing` to an idle worker. If none is idle, and this one expects slow operations, leaves it for the next
/// worker that runs out of tasks. Otherwise queues it.
pub(super) fn share<V: Visitor>(
    listing: Listing,
    node: &NodeOf<V>,
    worker: &mut Walker<'_, '_, V>,
) {
    offer(batch(listing, node), worker);
}

/// Hands `task` to an idle worker, or to another engine that has asked for work. Otherwise queues it.
pub(crate) fn offer<V: Visitor>(task: Task<V>, worker: &mut Walker<'_, '_, V>) {
    worker.push(task, When::Next);
    worker.checkpoint();
}

/// Returns `true` if another worker is idle, and there is nothing to give it but a part of the running task.
pub(super) fn wants_entries<V: Visitor>(worker: &Walker<'_, '_, V>) -> bool {
    worker.has_idle_worker() && worker.queued_tasks() == 0
}

/// Returns a task for `listing`.
pub(super) fn batch<V: Visitor>(listing: Listing, node: &NodeOf<V>) -> Task<V> {
    node.retain();
    let node = NodeOf::<V>::clone(node);
    Task::Batch { node, listing }
}

/// Queues `entries`, if there are any, below the task of the entry before. Other workers get them at its next
/// checkpoint. If none has been started, and a second worker pays, one gets the slow entry at once. Returns the number of
/// tasks queued.
#[cold]
pub(super) fn queue_rest<V: Visitor>(
    visitor: &V,
    entries: Entries<'_>,
    node: &NodeOf<V>,
    worker: &mut Walker<'_, '_, V>,
) -> usize {
    let has_entries = entries.clone().next().is_some();
    if has_entries {
        worker.push(batch(entries.to_listing(), node), When::AfterNewest);
    }
    // Within XFS, a large file is usually cloned in no time.
    if worker.is_at_start() && !visitor.settings().is_alone() && tuning(visitor).groups.is_none() {
        worker.expect_slow_work();
    }
    usize::from(has_entries)
}

/// Shares the second half of `entries` and returns the first half.
#[cold]
pub(super) fn share_half<'a, V: Visitor>(
    entries: Entries<'a>,
    node: &NodeOf<V>,
    worker: &mut Walker<'_, '_, V>,
) -> Entries<'a> {
    let mut second = worker.scratch.buffer();
    let first = entries.halve(&mut second);
    if second.entries().next().is_some() {
        share(second, node, worker);
    } else {
        worker.scratch.keep_buffer(second);
    }
    first
}
