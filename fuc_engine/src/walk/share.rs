//! Gives a part of a directory's listing to an idle worker.
//!
//! The part is a `Batch` task. It counts as a user of the node, so the directory is
//! finished only after all of its parts.

use super::{NodeOf, Task, Visitor, Walker};
use crate::sys::{Entries, Listing};

/// Hands `listing` to an idle worker.
pub(super) fn share<V: Visitor>(
    listing: Listing,
    node: &NodeOf<V>,
    worker: &mut Walker<'_, '_, V>,
) {
    node.retain();
    let node = NodeOf::<V>::clone(node);
    worker.push(Task::Batch { node, listing });
    worker.checkpoint();
}

/// Hands the second half of `entries` to an idle worker and returns the first half.
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
