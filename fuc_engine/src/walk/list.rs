//! Lists a directory, a buffer at a time, and processes its entries.
//!
//! Entries are visited while the listing goes on, and subdirectories are queued. A
//! listing that has queued many pauses: it becomes a `Resume` task below theirs, so
//! that the memory for queued tasks does not grow with the width of a directory.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::limits::{MANY_CHILDREN, SLOW_ENTRY};
use super::share::{share, share_half};
use super::{NodeOf, OpenDirs, Task, Visit, Visitor, Walker, leave, open_dirs};
use crate::sys::{self, Listing};

/// The state of a listing at the end of its task.
enum Listed {
    ToTheEnd,
    /// A `Resume` task lists the rest.
    Paused,
}

/// Lists `node` from the start, or from `position`, and climbs at the end.
pub(super) fn list<V: Visitor>(
    visitor: &V,
    node: NodeOf<V>,
    position: Option<OwnedFd>,
    worker: &mut Walker<'_, '_, V>,
) {
    let mut buffer = worker.scratch.buffer();
    let listed = list_into(visitor, &mut buffer, &node, position, worker);
    worker.scratch.keep_buffer(buffer);
    match listed {
        Ok(Listed::Paused) => return,
        Ok(Listed::ToTheEnd) => {}
        Err(errno) => visitor.listing_failed(&node, errno),
    }
    leave(visitor, Some(node), worker);
}

fn list_into<V: Visitor>(
    visitor: &V,
    buffer: &mut Listing,
    node: &NodeOf<V>,
    position: Option<OwnedFd>,
    worker: &mut Walker<'_, '_, V>,
) -> Result<Listed, Errno> {
    let dirs = open_dirs(visitor, node)?;
    let dir = position.as_ref().map_or(dirs.source(), AsFd::as_fd);
    let mut queued = 0;
    while buffer.fill(dir)? {
        if visitor.report().must_stop() {
            visitor.entries_skipped(node);
            break;
        }
        let is_wide = buffer.is_nearly_full();
        if is_wide && worker.has_idle_worker() && worker.queued_tasks() == 0 {
            let empty = worker.scratch.buffer();
            share(std::mem::replace(buffer, empty), node, worker);
            continue;
        }
        queued += process(visitor, buffer, node, &dirs, worker);
        if queued >= MANY_CHILDREN
            && let Some(position) = lend_position(visitor, dir)
        {
            let node = NodeOf::<V>::clone(node);
            worker.push_under(queued, Task::Resume { node, position });
            return Ok(Listed::Paused);
        }
    }
    Ok(Listed::ToTheEnd)
}

/// Duplicates `dir` for a task that continues its listing, if a descriptor can be lent.
pub(super) fn lend_position<V: Visitor>(visitor: &V, dir: BorrowedFd<'_>) -> Option<OwnedFd> {
    let descriptors = visitor.descriptors();
    if !descriptors.lend(1) {
        return None;
    }
    let position = sys::duplicate(dir);
    if position.is_err() {
        descriptors.take_back(1);
    }
    position.ok()
}

/// Processes the part of a listing that a `Batch` task holds.
pub(super) fn process_batch<V: Visitor>(
    visitor: &V,
    node: NodeOf<V>,
    listing: Listing,
    worker: &mut Walker<'_, '_, V>,
) {
    match open_dirs(visitor, &node) {
        Ok(dirs) => {
            process(visitor, &listing, &node, &dirs, worker);
        }
        Err(errno) => visitor.listing_failed(&node, errno),
    }
    worker.scratch.keep_buffer(listing);
    leave(visitor, Some(node), worker);
}

/// Visits the entries of `buffer`, with checkpoints between them. Returns how many
/// directories were queued.
fn process<V: Visitor>(
    visitor: &V,
    buffer: &Listing,
    node: &NodeOf<V>,
    dirs: &V::Open<'_>,
    worker: &mut Walker<'_, '_, V>,
) -> usize {
    let mut entries = buffer.entries();
    let mut queued = 0;
    let mut left = worker.scratch.checkpoint_interval();
    while let Some(entry) = entries.next() {
        if visitor.visit(node, dirs, entry, worker) == Visit::Queued {
            queued += 1;
        }
        left -= 1;
        if left > 0 {
            continue;
        }
        visitor.report().publish(&mut worker.scratch.tally);
        let time = worker.checkpoint();
        if visitor.report().must_stop() {
            visitor.entries_skipped(node);
            break;
        }
        let visited = worker.scratch.checkpoint_interval();
        let per_entry = time / visited as u32;
        worker.scratch.quick += visited;
        if per_entry >= SLOW_ENTRY {
            worker.scratch.quick = 0;
            let is_wanted = worker.has_idle_worker() && worker.queued_tasks() == 0;
            if is_wanted && per_entry >= visitor.share_from() {
                entries = share_half(entries, node, worker);
            }
        }
        left = worker.scratch.checkpoint_interval();
    }
    queued
}
