//! Visits entries one after the other, in the order of the listing, because the user
//! is asked about them.
//!
//! A subdirectory is finished before the entry after it is visited. Until then, the
//! rest of the buffer waits as a task below the subdirectory's own. If more of the
//! directory is left to list, a descriptor at the right offset waits with it.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::list::lend_position;
use super::{
    NodeOf, OpenDirs, Reason, Task, Visit, Visitor, Walker, filtered, leave, leave_unlisted,
    open_dirs, path,
};
use crate::sched::When;
use crate::sys::{Listing, SharedFd};

/// The entries of a directory that have not been visited.
pub(crate) struct Remainder {
    listing: Listing,
    /// A descriptor at the offset to continue at, or `None` at the end of the directory.
    position: Option<SharedFd>,
}

impl Remainder {
    /// Gives up the descriptor.
    pub(super) fn skip<V: Visitor>(self, visitor: &V) {
        if let Some(position) = self.position {
            drop(position);
            visitor.descriptors().take_back(1);
        }
    }
}

/// Visits the entries of a directory, or its remainder, up to the next subdirectory.
pub(super) fn list<V: Visitor>(
    visitor: &V,
    node: NodeOf<V>,
    remainder: Option<Remainder>,
    worker: &mut Walker<'_, '_, V>,
) {
    let had_position = remainder
        .as_ref()
        .is_some_and(|remainder| remainder.position.is_some());
    let mut buffer = worker.scratch.buffer();
    let left = visit(visitor, &node, remainder, &mut buffer, worker);
    worker.scratch.keep_buffer(buffer);
    let has_position = matches!(&left, Ok(Some(remainder)) if remainder.position.is_some());
    if had_position && !has_position {
        visitor.descriptors().take_back(1);
    }
    match left {
        Ok(Some(remainder)) => worker.push(Task::Remainder { node, remainder }, When::AfterNewest),
        Ok(None) => leave(visitor, Some(node), worker),
        Err(errno) => leave_unlisted(visitor, node, errno, worker),
    }
}

/// Visits entries up to the next subdirectory, which it queues. Returns the entries after that, if
/// there are any.
fn visit<V: Visitor>(
    visitor: &V,
    node: &NodeOf<V>,
    remainder: Option<Remainder>,
    buffer: &mut Listing,
    worker: &mut Walker<'_, '_, V>,
) -> Result<Option<Remainder>, Errno> {
    let dirs = open_dirs(visitor, node)?;
    visitor.report().offer_directory(|| path(visitor, node));
    let mut position = None;
    if let Some(remainder) = remainder {
        let left = visit_files(visitor, &remainder.listing, node, &dirs, worker);
        match (left, remainder.position) {
            (None, None) => return Ok(None),
            (None, Some(fd)) => position = Some(visitor.descriptors().take(fd)?),
            (Some(listing), None) if listing.is_empty() => return Ok(None),
            (Some(listing), position) => return Ok(Some(Remainder { listing, position })),
        }
    }
    let dir = position.as_ref().map_or(dirs.source(), AsFd::as_fd);
    while !visitor.report().must_stop() && fill(visitor, buffer, node, dir)? {
        let Some(mut listing) = visit_files(visitor, buffer, node, &dirs, worker) else {
            continue;
        };
        // Fill the next buffer now, because there is usually no more, and then no descriptor need
        // be kept.
        if fill(visitor, buffer, node, dir)? {
            listing.append(buffer);
            let position = match position {
                Some(position) => Some(position),
                None => {
                    let lent = lend_position(visitor, dir);
                    while lent.is_none() && fill(visitor, buffer, node, dir)? {
                        listing.append(buffer);
                    }
                    lent
                }
            };
            let position = position.map(SharedFd::from);
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

/// Visits entries until a directory is queued, and then returns those after it.
fn visit_files<V: Visitor>(
    visitor: &V,
    listing: &Listing,
    node: &NodeOf<V>,
    dirs: &V::Open<'_>,
    worker: &mut Walker<'_, '_, V>,
) -> Option<Listing> {
    let mut entries = listing.entries();
    while let Some(entry) = entries.next() {
        if visitor.report().must_stop() {
            visitor.entries_stay(node, Reason::Cancelled);
            return None;
        }
        let visit = visitor.visit(node, dirs, entry, worker);
        visitor.report().throttle();
        // The user may take long to answer the next question and watch the progress.
        visitor.report().publish(&mut worker.scratch.tally);
        if visit != Visit::Done {
            return Some(listing.rest(&entries));
        }
    }
    None
}

/// Fills a buffer with the next entries, without those that the filter leaves alone. Returns `false` at the end of
/// the directory.
fn fill<V: Visitor>(
    visitor: &V,
    buffer: &mut Listing,
    node: &NodeOf<V>,
    dir: BorrowedFd<'_>,
) -> Result<bool, Errno> {
    let has_entries = buffer.fill(dir)?;
    filtered::retain(visitor, buffer, node, dir);
    Ok(has_entries)
}
