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

use super::{OpenDirs, Task, Visitor, Walker, leave, lend, open_dirs};

/// What is left of a directory.
pub(crate) struct Remainder {
    listing: Listing,
    /// Where to list on; `None`: that is all.
    position: Option<OwnedFd>,
}

/// Visits what is in a directory, or the rest of it, as far as the next sub-directory.
pub(super) fn list<O: Visitor>(
    op: &O,
    node: Arc<Node<O::Dir>>,
    remainder: Option<Remainder>,
    worker: &mut Walker<'_, '_, O>,
) {
    let had_position = remainder
        .as_ref()
        .is_some_and(|remainder| remainder.position.is_some());
    let mut buffer = worker.scratch.buffer();
    let left = visit(op, &node, remainder, &mut buffer, worker);
    worker.scratch.keep_buffer(buffer);
    let has_position = matches!(&left, Ok(Some(remainder)) if remainder.position.is_some());
    if had_position && !has_position {
        op.descriptors().take_back(1);
    }
    match left {
        Ok(Some(remainder)) => worker.push_under(1, Task::Remainder { node, remainder }),
        Ok(None) => leave(op, Some(node), worker),
        Err(errno) => {
            op.listing_failed(&node, errno);
            leave(op, Some(node), worker);
        }
    }
}

/// Returns what is left after the sub-directory that was queued, if anything is.
fn visit<O: Visitor>(
    op: &O,
    node: &Arc<Node<O::Dir>>,
    remainder: Option<Remainder>,
    buffer: &mut Listing,
    worker: &mut Walker<'_, '_, O>,
) -> Result<Option<Remainder>, Errno> {
    let dirs = open_dirs(op, node)?;
    worker.scratch.queued = 0;
    let mut position = None;
    if let Some(remainder) = remainder {
        let left = visit_files(op, &remainder.listing, (node, &dirs), worker);
        match (left, remainder.position) {
            (None, None) => return Ok(None),
            (None, Some(fd)) => position = Some(fd),
            (Some(listing), None) if listing.is_empty() => return Ok(None),
            (Some(listing), position) => return Ok(Some(Remainder { listing, position })),
        }
    }
    let dir = position.as_ref().map_or(dirs.source.as_fd(), AsFd::as_fd);
    while buffer.fill(dir)? {
        let Some(mut listing) = visit_files(op, buffer, (node, &dirs), worker) else {
            continue;
        };
        // Mostly it was the last buffer, and no descriptor need be kept.
        if buffer.fill(dir)? {
            listing.append(buffer);
            let position = match position {
                Some(position) => Some(position),
                None => lend_or_list(op, dir, &mut listing, buffer)?,
            };
            return Ok(Some(Remainder { listing, position }));
        }
        let remainder = Remainder {
            listing,
            position: None,
        };
        return Ok((!remainder.listing.is_empty()).then_some(remainder));
    }
    Ok(None)
}

/// Visits entries until one of them is queued: then returns those after it.
fn visit_files<O: Visitor>(
    op: &O,
    listing: &Listing,
    (node, dirs): (&Arc<Node<O::Dir>>, &OpenDirs<'_>),
    worker: &mut Walker<'_, '_, O>,
) -> Option<Listing> {
    let mut entries = listing.entries();
    while let Some(entry) = entries.next() {
        op.visit(node, dirs, entry, worker);
        // Somebody takes time to answer, and may look on meanwhile.
        op.report().show(&mut worker.scratch.tally);
        if worker.scratch.queued > 0 {
            return Some(listing.rest(&entries));
        }
    }
    None
}

/// A descriptor to list on from, or, if there is none to spare, all the rest.
fn lend_or_list<O: Visitor>(
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
