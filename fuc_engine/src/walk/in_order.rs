//! One entry after the other, as they are listed: for whoever is asked about each.
//!
//! A sub-directory comes in its turn, with all that is in it. What comes after
//! it in the buffer waits as a task below its own, together with a descriptor
//! from which to list on if that is not all.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;

use crate::node::Node;
use crate::sys::Listing;

use super::{Held, Operation, Task, Walker, hold, leave, lend};

/// What is left of a directory.
pub(crate) struct Rest {
    listing: Listing,
    /// Where to list on; `None`: that is all.
    position: Option<OwnedFd>,
}

/// Visits what is in a directory, or the rest of it, as far as the next sub-directory.
pub(super) fn list<O: Operation>(
    op: &O,
    node: Arc<Node<O::Dir>>,
    rest: Option<Rest>,
    worker: &mut Walker<'_, '_, O>,
) {
    let had_position = rest.as_ref().is_some_and(|rest| rest.position.is_some());
    let mut buffer = worker.scratch.buffer();
    let left = visit(op, &node, rest, &mut buffer, worker);
    worker.scratch.keep_buffer(buffer);
    let has_position = matches!(&left, Ok(Some(rest)) if rest.position.is_some());
    if had_position && !has_position {
        op.descriptors().take_back(1);
    }
    match left {
        Ok(Some(rest)) => worker.push_below(1, Task::Rest { node, rest }),
        Ok(None) => leave(op, Some(node), worker),
        Err(errno) => {
            op.listing_failed(&node, errno);
            leave(op, Some(node), worker);
        }
    }
}

/// Returns what is left after the sub-directory that was queued, if anything is.
fn visit<O: Operation>(
    op: &O,
    node: &Arc<Node<O::Dir>>,
    rest: Option<Rest>,
    buffer: &mut Listing,
    worker: &mut Walker<'_, '_, O>,
) -> Result<Option<Rest>, Errno> {
    let held = hold(op, node)?;
    worker.scratch.queued = 0;
    let mut position = None;
    if let Some(rest) = rest {
        let left = visit_files(op, &rest.listing, (node, &held), worker);
        match (left, rest.position) {
            (None, None) => return Ok(None),
            (None, Some(fd)) => position = Some(fd),
            (Some(listing), None) if listing.is_empty() => return Ok(None),
            (Some(listing), position) => return Ok(Some(Rest { listing, position })),
        }
    }
    let dir = position.as_ref().map_or(held.source.as_fd(), AsFd::as_fd);
    while buffer.fill(dir)? {
        let Some(mut listing) = visit_files(op, buffer, (node, &held), worker) else {
            continue;
        };
        // Mostly it was the last buffer, and no descriptor need be kept.
        if buffer.fill(dir)? {
            listing.append(buffer);
            let position = match position {
                Some(position) => Some(position),
                None => lend_or_list(op, dir, &mut listing, buffer)?,
            };
            return Ok(Some(Rest { listing, position }));
        }
        let rest = Rest {
            listing,
            position: None,
        };
        return Ok((!rest.listing.is_empty()).then_some(rest));
    }
    Ok(None)
}

/// Visits entries until one of them is queued: then returns those after it.
fn visit_files<O: Operation>(
    op: &O,
    listing: &Listing,
    (node, held): (&Arc<Node<O::Dir>>, &Held<'_>),
    worker: &mut Walker<'_, '_, O>,
) -> Option<Listing> {
    let mut entries = listing.entries();
    while let Some(entry) = entries.next() {
        op.visit(node, held, entry, worker);
        // Somebody takes time to answer, and may look on meanwhile.
        op.report().show(&mut worker.scratch.tally);
        if worker.scratch.queued > 0 {
            return Some(listing.rest(&entries));
        }
    }
    None
}

/// A descriptor to list on from, or, if there is none to spare, all the rest.
fn lend_or_list<O: Operation>(
    op: &O,
    dir: BorrowedFd<'_>,
    listing: &mut Listing,
    buffer: &mut Listing,
) -> Result<Option<OwnedFd>, Errno> {
    let position = lend(op, dir);
    if position.is_none() {
        while buffer.fill(dir)? {
            listing.append(buffer);
        }
    }
    Ok(position)
}
