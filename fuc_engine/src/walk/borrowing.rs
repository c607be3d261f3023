//! Works on directories and entries that other engines have given.
//!
//! An engine makes a *borrowed* node of the parent of what it has got, and of each directory above. Such a node gives
//! names to failures and means to reopen a descriptor, as any other. But its directory belongs to the other engine.
//! So the climb ends there, and the last use of the parent gives the entries back instead of finishing it.

use std::ffi::CStr;
use std::iter;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::exchange::{Loan, above, stealing};
use super::{NodeOf, Task, Visitor, Walker, filtered, list};
use crate::distribute::{Given, Stolen};
use crate::node::{Dir, Finished, Place, Side};
use crate::paths;
use crate::sched::When;
use crate::sys::{self, Listed, Listing, Storage};

/// The time for which clients of servers may cache names and attributes of directories: `acdirmax` of NFS, and a bit.
const LONGEST_CACHED: Duration = Duration::from_secs(65);
/// The time between two tries to reach a directory.
const PAUSE: Duration = Duration::from_millis(100);

/// Processes names that another engine has given.
pub(super) fn begin<V: Visitor>(stolen: Box<Stolen>, worker: &mut Walker<'_, '_, V>) {
    let visitor = worker.job;
    let Ok(parent) = reach_parent(visitor, &stolen) else {
        return put_off(stolen, worker);
    };
    let loan = Loan {
        ticket: stolen.ticket,
        is_home: stolen.is_for_home,
    };
    stealing(visitor).borrow(&parent, loan);
    let mut entries = Listing::with_capacity(0);
    for (record_type, name) in &stolen.names {
        entries.push(Listed::of_record(name, *record_type));
    }
    list::process_batch(parent, entries, worker);
}

/// Tries later to reach the parent of stolen entries, or gives them back. The other engine can go on with them, unless
/// this one is their home, and has cached what the names on the way to the parent stood for earlier.
#[cold]
fn put_off<V: Visitor>(mut stolen: Box<Stolen>, worker: &mut Walker<'_, '_, V>) {
    let visitor = worker.job;
    let now = Instant::now();
    if stolen.is_for_home && stolen.last_try.is_none() {
        let is_cached = V::Dir::SIDES.iter().any(|&side| {
            let first = visitor.reach_first(&stolen, side);
            first.is_ok_and(|dir| Storage::of(dir.as_fd()) == Storage::Server)
        });
        stolen.last_try = is_cached.then_some(now + LONGEST_CACHED);
    }
    if stolen.last_try.is_some_and(|last| now < last) {
        // It runs when this engine has nothing else to do.
        thread::sleep(PAUSE);
        worker.push(Task::Stolen(stolen), When::Idle);
    } else {
        let exchange = stealing(visitor).exchange;
        exchange.give_back(stolen.ticket, Given::NotReached);
    }
}

/// Opens the parent of stolen entries, and makes borrowed nodes of it and of each directory above.
fn reach_parent<V: Visitor>(visitor: &V, stolen: &Stolen) -> Result<NodeOf<V>, Errno> {
    let operand = stolen.operand;
    if operand as usize >= visitor.operands() {
        return Err(Errno::NOENT);
    }
    let path = paths::to_c(visitor.operand_path(operand))?;
    let borrow = |parent: Option<NodeOf<V>>, name: &CStr| {
        // The first use of the node above is that of this one.
        let place = Place {
            parent,
            name: name.into(),
            operand,
        };
        visitor.borrow(place, stolen.inheritance)
    };
    let mut parent = borrow(None, &path);
    let mut levels = vec![NodeOf::<V>::clone(&parent)];
    for name in &stolen.path {
        parent = borrow(Some(parent), name);
        levels.push(NodeOf::<V>::clone(&parent));
    }
    for &side in V::Dir::SIDES {
        let reached = reach_side(visitor, stolen, &levels, side);
        reached.inspect_err(|_| release(visitor, &parent))?;
    }
    visitor.reached(&levels[0]);
    Ok(parent)
}

/// Opens one side of each of `levels`, and checks that the last one is the parent of the stolen entries.
fn reach_side<V: Visitor>(
    visitor: &V,
    stolen: &Stolen,
    levels: &[NodeOf<V>],
    side: Side,
) -> Result<(), Errno> {
    let descriptors = visitor.descriptors();
    let mut dir = None;
    for (index, node) in levels.iter().enumerate() {
        let opened = descriptors.making_room(|| match &dir {
            None => visitor.reach_first(stolen, side),
            Some(above) => visitor.reach_below(AsFd::as_fd(above), &node.place.name, side),
        })?;
        if side == Side::Source {
            filtered::choose_filter_of_open(visitor, node, opened.as_fd());
        }
        if index + 1 < levels.len() && visitor.needs_identity(node) {
            let found = sys::stat_directory(opened.as_fd())?;
            node.dir.slot(side).record(found.identity);
        }
        dir = Some(opened);
    }
    let (Some(dir), Some(parent)) = (dir, levels.last()) else {
        return Err(Errno::NOENT);
    };
    let found = stolen.parent(side).check(dir.as_fd())?;
    parent.dir.slot(side).record(found);
    descriptors.adopt(parent, side, dir);
    Ok(())
}

/// Closes a borrowed directory. Forgets its filter, and those of the directories above.
fn release<V: Visitor>(visitor: &V, node: &NodeOf<V>) {
    iter::once(node)
        .chain(above(&node.place))
        .for_each(|node| filtered::forget(visitor, node));
    for &side in V::Dir::SIDES {
        visitor.descriptors().close(node, side);
    }
}

/// Finishes a borrowed directory: gives the entries in it back to their engine. The climb ends.
pub(crate) fn give_back<V: Visitor>(
    visitor: &V,
    node: &NodeOf<V>,
    finished: Finished,
) -> ControlFlow<()> {
    release(visitor, node);
    let given = Given::Finished(finished);
    stealing(visitor).give_back_all_in(node, given);
    ControlFlow::Break(())
}
