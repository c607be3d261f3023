//! Gives ranges of large files to other engines, and goes on when they come back.
//!
//! A range is a task of the visitor. A thief may give a range that it has not begun to a third engine. So all engines
//! get ranges of a file, although only one of them has cut it.

use std::ffi::CStr;
use std::ops::Range;
use std::sync::Arc;

use super::exchange::{Kept, MOST_LEVELS, Sharer, Stealing, above};
use super::{NodeOf, Task, Visitor, Walker, leave};
use crate::distribute::{FileRange, Finished, Given, Stolen, Ticket};
use crate::node::{Dir, Node};
use crate::sched::When;

/// A task of a visitor.
pub(crate) trait OwnTask<D: Dir>: Send {
    /// Returns the range of a file that the task copies, if another engine may do that.
    fn range(&self) -> Option<OwnRange<'_, D>> {
        None
    }
}

/// The tasks of a removal, and of a look-ahead.
impl<D: Dir> OwnTask<D> for Range<u32> {}

/// A range of a file that a task copies.
pub(crate) struct OwnRange<'t, D: Dir> {
    /// The directory of the file.
    pub(crate) parent: &'t Arc<Node<D>>,
    pub(crate) name: &'t CStr,
    pub(crate) source_inode: u64,
    /// The name of the incomplete dest, in the directory.
    pub(crate) dest_name: &'t CStr,
    pub(crate) dest_inode: u64,
    pub(crate) content: Range<u64>,
}

impl<D: Dir> OwnRange<'_, D> {
    fn file_range(&self) -> FileRange {
        FileRange {
            source_inode: self.source_inode,
            dest_name: self.dest_name.into(),
            dest_inode: self.dest_inode,
            content: self.content.clone(),
        }
    }
}

/// Returns `true` if another engine could copy the range that a task copies.
pub(super) fn can_take<D: Dir>(task: &impl OwnTask<D>) -> bool {
    let is_near = |range: OwnRange<'_, D>| above(&range.parent.place).nth(MOST_LEVELS).is_none();
    task.range().is_some_and(is_near)
}

/// Keeps a task of the visitor until another engine has copied its range.
pub(super) fn keep<D: Dir, T: OwnTask<D>>(stealing: &Stealing<'_, D, T>, task: T) -> Stolen {
    let Some(range) = task.range() else {
        unreachable!("BUG: a thief was given a task that it cannot take");
    };
    let (parent, name) = (Arc::clone(range.parent), Box::<CStr>::from(range.name));
    let range = range.file_range();
    stealing.keep_range(&parent, &name, range, Kept::Own(task))
}

/// Keeps a range of another engine, which a third one will copy.
pub(super) fn keep_for_other<D: Dir, T>(
    stealing: &Stealing<'_, D, T>,
    stolen: Box<Stolen>,
) -> Stolen {
    let forwarded = (*stolen).clone();
    Stolen {
        ticket: stealing.new_ticket(Kept::Forwarded(stolen)),
        ..forwarded
    }
}

/// Copies a range for another engine. `parent` is its borrowed directory.
pub(super) fn copy<V: Visitor>(
    visitor: &V,
    sharer: &dyn Sharer<V>,
    parent: NodeOf<V>,
    stolen: &Stolen,
    range: &FileRange,
    worker: &mut Walker<'_, '_, V>,
) {
    let given = match stolen.names.first() {
        Some((_, name)) => sharer.copy_range(&parent, name, range, worker),
        None => Given::NotReached,
    };
    // The parent is closed before the ticket is given back.
    leave(visitor, Some(parent), worker);
    give_back(sharer, stolen.ticket, given);
}

/// Goes on with a range of another engine that comes back from a third one.
pub(super) fn take_forwarded_back<V: Visitor>(
    sharer: &dyn Sharer<V>,
    stolen: Box<Stolen>,
    given: Given,
    worker: &mut Walker<'_, '_, V>,
) {
    match given {
        Given::Finished(Finished { kept: false, .. }) => give_back(sharer, stolen.ticket, given),
        Given::Finished(_) | Given::NotReached => worker.push(Task::Stolen(stolen), When::Next),
    }
}

fn give_back<V: Visitor>(sharer: &dyn Sharer<V>, ticket: Ticket, given: Given) {
    sharer.stealing().give_back(ticket, given);
}
