//! One entry after the other, as they are listed: for whoever is asked about each.
//!
//! A sub-directory comes in its turn, with all that is in it. So a directory is
//! listed whole, and what comes after a sub-directory waits as a task below it.

use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::io::Errno;

use crate::node::{Node, Side};
use crate::sys::Listing;

use super::{Operation, Task, Walker, hold, leave};

/// What is left of a listing.
pub(crate) struct Rest {
    listing: Listing,
    offset: usize,
}

/// Lists a directory, and visits what is in it as far as the first sub-directory.
pub(super) fn list<O: Operation>(op: &O, node: Arc<Node<O::Dir>>, worker: &mut Walker<'_, '_, O>) {
    let mut buffer = worker.scratch.buffer();
    let listed = op
        .descriptors()
        .pin(&node, Side::Source, op)
        .map(|dir| buffer.whole(dir.as_fd()));
    worker.scratch.keep_buffer(buffer);
    let listing = match listed {
        Ok((listing, end)) => {
            if let Err(errno) = end {
                op.listing_failed(&node, errno);
            }
            listing
        }
        Err(errno) => {
            op.listing_failed(&node, errno);
            return leave(op, Some(node), worker);
        }
    };
    go_on(op, node, Rest { listing, offset: 0 }, worker);
}

/// Visits the rest, as far as the next sub-directory.
pub(super) fn go_on<O: Operation>(
    op: &O,
    node: Arc<Node<O::Dir>>,
    rest: Rest,
    worker: &mut Walker<'_, '_, O>,
) {
    match visit_files(op, &node, &rest, worker) {
        Ok(Some(offset)) => {
            let rest = Rest { offset, ..rest };
            worker.push_below(1, Task::Rest { node, rest });
        }
        Ok(None) => leave(op, Some(node), worker),
        Err(errno) => {
            op.listing_failed(&node, errno);
            leave(op, Some(node), worker);
        }
    }
}

/// Returns the offset after the sub-directory that was queued, if there is more.
fn visit_files<O: Operation>(
    op: &O,
    node: &Arc<Node<O::Dir>>,
    rest: &Rest,
    worker: &mut Walker<'_, '_, O>,
) -> Result<Option<usize>, Errno> {
    let held = hold(op, node)?;
    worker.scratch.queued = 0;
    let mut entries = rest.listing.entries_from(rest.offset);
    while worker.scratch.queued == 0 {
        let Some(entry) = entries.next() else {
            break;
        };
        op.visit(node, &held, entry, worker);
    }
    Ok(rest.listing.offset_of_rest(&entries))
}
