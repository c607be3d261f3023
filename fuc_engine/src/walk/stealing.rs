//! Gives queued directories to other engines, and works on those that other engines have given.
//!
//! [`crate::distribute`] shows the protocol. A thief makes a *borrowed* node of the parent of the directories that it
//! has stolen, and of each directory above. Such a node gives names to failures and means to reopen a descriptor,
//! as any other. But its directory belongs to the victim. So the climb ends there, and the last use of the
//! parent gives the directories back instead of removing it.

use std::ffi::CStr;
use std::iter;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::{NodeOf, Purpose, Task, Visitor, Walker, filtered, leave};
use crate::distribute::{Exchange, Finished, Given, Incoming, ParentId, Stolen, Ticket};
use crate::hashing::HashMap;
use crate::node::{Dir, Node, Place, Side};
use crate::operand;
use crate::sched::{Inlet, Thieves};
use crate::sys;

/// A directory with more levels above it stays with its engine, because a thief opens each of them.
///
/// Real trees have fewer. In a tree of two directories on each of 100,000 levels, directories would change hands
/// on each level, and the time would grow with the square of the depth.
const MOST_LEVELS: usize = 256;

/// The part of the work on stolen directories that a removal or a copy defines.
pub(crate) trait Sharer<V: Visitor> {
    fn stealing(&self) -> &Stealing<'_, V::Dir>;

    /// Returns the number of operands.
    fn operands(&self) -> usize;

    /// Makes a node of a directory that belongs to another engine. [`Visitor::finish`] must
    /// [give it back](give_back).
    fn borrow(&self, place: Place<V::Dir>) -> NodeOf<V>;

    /// Notes that an operand was opened, although this engine has not begun it.
    fn reach_operand(&self, operand: u32, dir: BorrowedFd<'_>) -> Result<(), Errno>;

    /// Notes what a thief has done below `node`.
    fn note(&self, node: &NodeOf<V>, finished: Finished);
}

/// The directories that have changed hands.
pub(crate) struct Stealing<'a, D: Dir> {
    exchange: &'a dyn Exchange,
    given: Mutex<AtThieves<D>>,
    /// The tickets of the directories in each borrowed parent, by the address of its node.
    borrowed: Mutex<HashMap<usize, Ticket>>,
}

/// The directories that this engine has given away.
struct AtThieves<D: Dir> {
    next_ticket: u64,
    places: HashMap<Ticket, Vec<Place<D>>>,
}

/// Directories with the same parent.
struct Family<D: Dir> {
    parent: Arc<Node<D>>,
    places: Vec<Place<D>>,
}

impl<'a, D: Dir> Stealing<'a, D> {
    pub(crate) fn new(exchange: &'a dyn Exchange) -> Self {
        Self {
            exchange,
            given: Mutex::new(AtThieves {
                next_ticket: 0,
                places: HashMap::default(),
            }),
            borrowed: Mutex::default(),
        }
    }

    /// Reports that the run of this engine has ended.
    pub(crate) fn end(&self) {
        self.exchange.end();
    }

    // No change to either table is left half done by a panic.

    fn given(&self) -> MutexGuard<'_, AtThieves<D>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn borrowed(&self) -> MutexGuard<'_, HashMap<usize, Ticket>> {
        self.borrowed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the uses that directories have of their parent until they come back.
    fn keep(&self, Family { parent, places }: Family<D>) -> Stolen {
        let names = places.iter().map(|place| place.name.clone()).collect();
        let mut given = self.given();
        let ticket = Ticket {
            victim: self.exchange.engine(),
            number: given.next_ticket,
        };
        given.next_ticket += 1;
        given.places.insert(ticket, places);
        Stolen {
            ticket,
            operand: parent.place.operand,
            parent: identify(&parent),
            path: path_below_operand(&parent),
            names,
        }
    }
}

impl<V: Visitor> Thieves<Task<V>> for Stealing<'_, V::Dir> {
    fn can_take(&self, task: &Task<V>) -> bool {
        match task {
            Task::Enter {
                place,
                purpose: Purpose::Process { pass: 0 },
            } => place.parent.is_some() && above(place).nth(MOST_LEVELS).is_none(),
            _ => false,
        }
    }

    fn give(&self, tasks: Vec<Task<V>>) {
        let mut families: Vec<Family<V::Dir>> = Vec::new();
        for task in tasks {
            let Task::Enter { place, .. } = task else {
                unreachable!("BUG: a thief was given a task that it cannot take");
            };
            let Some(parent) = &place.parent else {
                unreachable!("BUG: a thief was given an operand");
            };
            match families.last_mut() {
                Some(last) if Arc::ptr_eq(&last.parent, parent) => last.places.push(place),
                _ => families.push(Family {
                    parent: Arc::clone(parent),
                    places: vec![place],
                }),
            }
        }
        let stolen = families.into_iter().map(|family| self.keep(family));
        self.exchange.give(stolen.collect());
    }

    fn steal(&self) {
        self.exchange.steal();
    }
}

/// Returns the directories that `place` is in, from its parent to the operand.
fn above<D: Dir>(place: &Place<D>) -> impl Iterator<Item = &Arc<Node<D>>> {
    iter::successors(place.parent.as_ref(), |node| node.place.parent.as_ref())
}

/// Returns the names on the way from the operand to `parent`.
fn path_below_operand<D: Dir>(parent: &Node<D>) -> Vec<Box<CStr>> {
    let places = iter::once(&parent.place).chain(above(&parent.place).map(|node| &node.place));
    let below = places.take_while(|place| place.parent.is_some());
    let mut names: Vec<_> = below.map(|place| place.name.clone()).collect();
    names.reverse();
    names
}

fn identify<D: Dir>(node: &Node<D>) -> ParentId {
    let slot = node.dir.slot(Side::Source);
    let open = slot.try_pin();
    let looked_at = open.and_then(|dir| sys::stat_directory(dir.as_fd()).ok());
    // The identity of a closed directory is known.
    let identity = looked_at.map(|stat| stat.identity).or(slot.identity());
    identity.map_or(ParentId::UNKNOWN, ParentId::of)
}

/// Passes messages of other engines on to the workers, until there are no more.
pub(crate) fn attend<V: Visitor>(sharer: &dyn Sharer<V>, inlet: &Inlet<'_, V>) {
    let stealing = sharer.stealing();
    loop {
        match stealing.exchange.receive() {
            Incoming::Request => inlet.request(),
            Incoming::Stolen(stolen) => {
                let boxed = stolen.into_iter().map(Box::new);
                inlet.put(boxed.map(Task::Stolen).collect());
            }
            Incoming::Returned(ticket, given) => {
                let places = stealing.given().places.remove(&ticket);
                if let Some(places) = places {
                    let given_tasks = places.len();
                    inlet.put_back(Task::Returned { places, given }, given_tasks);
                }
            }
            Incoming::End => return,
        }
    }
}

/// Queues directories that another engine has given.
pub(super) fn begin<V: Visitor>(
    visitor: &V,
    sharer: &dyn Sharer<V>,
    stolen: Stolen,
    worker: &mut Walker<'_, '_, V>,
) {
    let stealing = sharer.stealing();
    let Ok(parent) = reach_parent(visitor, sharer, &stolen) else {
        stealing
            .exchange
            .give_back(stolen.ticket, Given::NotReached);
        return;
    };
    stealing.borrowed().insert(address(&parent), stolen.ticket);
    for name in &stolen.names {
        let place = parent.child(name);
        let purpose = Purpose::Process { pass: 0 };
        worker.push(Task::Enter { place, purpose });
    }
    leave(visitor, Some(parent), worker);
}

/// Opens the parent of stolen directories, and makes a borrowed node of it.
fn reach_parent<V: Visitor>(
    visitor: &V,
    sharer: &dyn Sharer<V>,
    stolen: &Stolen,
) -> Result<NodeOf<V>, Errno> {
    let (descriptors, roots) = (visitor.descriptors(), visitor.roots());
    let operand = stolen.operand;
    if operand as usize >= sharer.operands() {
        return Err(Errno::NOENT);
    }
    let mut dir = descriptors.making_room(|| roots.open_operand(operand, Side::Source))?;
    sharer.reach_operand(operand, dir.as_fd())?;
    let mut node = sharer.borrow(Place {
        parent: None,
        name: operand::to_c(visitor.operand_path(operand))?,
        operand,
    });
    enter_filtered(visitor, &node, dir.as_fd());
    for name in &stolen.path {
        let opened = descriptors.making_room(|| roots.open_below(dir.as_fd(), name, Side::Source));
        dir = opened.inspect_err(|_| forget(visitor, &node))?;
        // The first use of the node above is that of this one.
        node = sharer.borrow(Place {
            parent: Some(node),
            name: name.clone(),
            operand,
        });
        enter_filtered(visitor, &node, dir.as_fd());
    }
    let found = stolen.parent.check(dir.as_fd());
    let found = found.inspect_err(|_| forget(visitor, &node))?;
    node.dir.slot(Side::Source).record(found);
    descriptors.adopt(&node, Side::Source, dir);
    Ok(node)
}

fn enter_filtered<V: Visitor>(visitor: &V, node: &NodeOf<V>, dir: BorrowedFd<'_>) {
    if let Some(filters) = visitor.filters() {
        filtered::enter_open(visitor, node, dir, filters);
    }
}

/// Forgets the filters of a borrowed directory and of those above.
fn forget<V: Visitor>(visitor: &V, node: &NodeOf<V>) {
    iter::once(node)
        .chain(above(&node.place))
        .for_each(|node| filtered::forget(visitor, node));
}

/// Finishes a borrowed directory: gives the directories in it back to their engine. The climb ends.
pub(crate) fn give_back<V: Visitor>(
    visitor: &V,
    sharer: &dyn Sharer<V>,
    node: &NodeOf<V>,
    given: Given,
) -> ControlFlow<()> {
    forget(visitor, node);
    visitor.descriptors().close(node, Side::Source);
    let stealing = sharer.stealing();
    let ticket = stealing.borrowed().remove(&address(node));
    if let Some(ticket) = ticket {
        stealing.exchange.give_back(ticket, given);
    }
    ControlFlow::Break(())
}

/// Gives stolen directories back in a run that was cancelled before they were begun.
pub(super) fn skip_stolen<V: Visitor>(sharer: &dyn Sharer<V>, ticket: Ticket) {
    let given = Given::Finished(Finished::NOT_BEGUN);
    sharer.stealing().exchange.give_back(ticket, given);
}

/// Goes on with directories that come back from a thief. In a cancelled run, those that the thief could not
/// reach stay.
pub(super) fn take_back<V: Visitor>(
    visitor: &V,
    sharer: &dyn Sharer<V>,
    places: Vec<Place<V::Dir>>,
    given: Given,
    worker: &mut Walker<'_, '_, V>,
) {
    let must_stop = visitor.report().must_stop();
    for place in places {
        match (given, &place.parent) {
            (Given::NotReached, _) if !must_stop => {
                let purpose = Purpose::Process { pass: 0 };
                worker.push(Task::Enter { place, purpose });
                continue;
            }
            (Given::NotReached, Some(parent)) => sharer.note(parent, Finished::NOT_BEGUN),
            (Given::Finished(finished), Some(parent)) => sharer.note(parent, finished),
            (_, None) => {}
        }
        leave(visitor, place.parent, worker);
    }
}

fn address<D: Dir>(node: &Arc<Node<D>>) -> usize {
    Arc::as_ptr(node).addr()
}
