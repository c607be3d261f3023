//! Remembers by tickets what has changed hands between engines.
//!
//! [`crate::distribute`] shows the protocol, and [`super::stealing`] what is given and taken back.

use crate::sched::When;
use std::ffi::CStr;
use std::iter;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::{NodeOf, Task, Visitor, Walker};
use crate::distribute::{Exchange, FileRange, Finished, Given, ParentId, Stolen, Ticket};
use crate::hashing::HashMap;
use crate::node::{Dir, Node, Place, Side};
use crate::sys::{self, Fd};

/// A directory with more levels above it stays with its engine, because a thief opens each of them.
///
/// Real trees have fewer. In a tree of two directories on each of 100,000 levels, directories would change hands
/// on each level, and the time would grow with the square of the depth.
pub(super) const MOST_LEVELS: usize = 256;

/// The part of an engine in a job that several engines share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// It begins the operands.
    Leader,
    /// It only works on what it gets from others.
    Assistant,
}

/// The part of the work on entries of other engines that a removal or a copy defines.
pub(crate) trait Sharer<V: Visitor>: Sync {
    fn stealing(&self) -> &Stealing<'_, V::Dir, V::Task>;

    /// Returns the number of operands.
    fn operands(&self) -> usize;

    /// Opens one side of an operand that this engine has not begun.
    fn open_operand(&self, operand: u32, side: Side) -> Result<Fd, Errno>;

    /// Makes a node of a directory that belongs to another engine, for which that engine has returned
    /// [`inheritance`](Dir::inheritance). [`Visitor::finish`] must [give it back](super::give_back).
    fn borrow(&self, place: Place<V::Dir>, inheritance: u8) -> NodeOf<V>;

    /// Returns `true` if the identity of a borrowed directory above the parent of the entries must be recorded.
    fn needs_identity(&self, above: &NodeOf<V>) -> bool;

    /// Notes that entries below an operand were reached. `top` is the borrowed node of the operand.
    fn reached(&self, _top: &NodeOf<V>) {}

    /// Notes what another engine has done below `node`.
    fn note(&self, node: &NodeOf<V>, finished: Finished);

    /// Goes on with a task of the visitor that comes back from another engine.
    fn own_returned(&self, task: V::Task, _given: Given, worker: &mut Walker<'_, '_, V>) {
        worker.push(Task::Own(task), When::Next);
    }

    /// Copies a range of the file `name` in the borrowed directory `parent`. Reports no failure, because the other
    /// engine copies the range again.
    fn copy_range(
        &self,
        _parent: &NodeOf<V>,
        _name: &CStr,
        _range: &FileRange,
        _worker: &mut Walker<'_, '_, V>,
    ) -> Given {
        Given::NotReached
    }

    /// Reports entries of `node` that were not processed, because their home could not reach the directory.
    fn home_not_reached(&self, _node: &NodeOf<V>, _names: &[Box<CStr>]) {}
}

/// The entries that have changed hands.
pub(crate) struct Stealing<'a, D: Dir, T> {
    exchange: &'a dyn Exchange,
    part: Part,
    away: Mutex<Away<D, T>>,
    /// The tickets of the entries in each borrowed parent, by the address of its node.
    borrowed: Mutex<HashMap<usize, Ticket>>,
}

/// The entries that this engine has given away.
struct Away<D: Dir, T> {
    next_ticket: u64,
    kept: HashMap<Ticket, Kept<D, T>>,
}

/// Entries that an engine has given away, with their uses of the parent's node.
pub(crate) enum Kept<D: Dir, T> {
    /// Directories with the same parent. Each of them was a task.
    Directories(Vec<Place<D>>),
    /// Entries that were entrusted to their home. They count as one task.
    Entries(Entrusted<D>),
    /// A task of the visitor, which copies a range of a file.
    Own(T),
    /// A range of another engine's file, which a third engine copies.
    Forwarded(Box<Stolen>),
}

/// Entries of one directory and one type that have the same home.
pub(crate) struct Entrusted<D: Dir> {
    /// The directory. Together, the entries are one user of it.
    pub(super) parent: Arc<Node<D>>,
    pub(super) home: u32,
    pub(super) kind: FileType,
    pub(super) names: Vec<Box<CStr>>,
}

impl<D: Dir, T> Kept<D, T> {
    pub(super) fn tasks(&self) -> usize {
        match self {
            Self::Directories(places) => places.len(),
            Self::Entries(_) | Self::Own(_) | Self::Forwarded(_) => 1,
        }
    }
}

/// Directories with the same parent.
pub(super) struct Family<D: Dir> {
    pub(super) parent: Arc<Node<D>>,
    pub(super) places: Vec<Place<D>>,
}

impl<'a, D: Dir, T> Stealing<'a, D, T> {
    pub(crate) fn new(exchange: &'a dyn Exchange, part: Part) -> Self {
        Self {
            exchange,
            part,
            away: Mutex::new(Away {
                next_ticket: 0,
                kept: HashMap::default(),
            }),
            borrowed: Mutex::default(),
        }
    }

    pub(crate) fn part(&self) -> Part {
        self.part
    }

    /// Reports that the run of this engine has ended.
    pub(super) fn end(&self) {
        self.exchange.end();
    }

    // No change to either table is left half done by a panic.

    fn away(&self) -> MutexGuard<'_, Away<D, T>> {
        self.away.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn borrowed(&self) -> MutexGuard<'_, HashMap<usize, Ticket>> {
        self.borrowed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the entries in a borrowed parent are those of a ticket.
    pub(super) fn borrow(&self, parent: &Arc<Node<D>>, ticket: Ticket) {
        self.borrowed().insert(address(parent), ticket);
    }

    /// Gives back the entries in a borrowed parent.
    pub(super) fn give_back_all_in(&self, parent: &Arc<Node<D>>, given: Given) {
        let ticket = self.borrowed().remove(&address(parent));
        if let Some(ticket) = ticket {
            self.give_back(ticket, given);
        }
    }

    pub(super) fn give_back(&self, ticket: Ticket, given: Given) {
        self.exchange.give_back(ticket, given);
    }

    pub(crate) fn exchange(&self) -> &dyn Exchange {
        self.exchange
    }

    /// Gives entries to their home.
    pub(super) fn entrust(&self, entries: Entrusted<D>) {
        let (home, kind) = (entries.home, entries.kind);
        let parent = Arc::clone(&entries.parent);
        let names = entries.names.clone();
        let stolen = self.keep(&parent, kind, names, Kept::Entries(entries));
        self.exchange.entrust(home, vec![stolen]);
    }

    /// Returns what was kept under a ticket, which has come back.
    pub(super) fn redeem(&self, ticket: Ticket) -> Option<Kept<D, T>> {
        self.away().kept.remove(&ticket)
    }

    /// Keeps something under a new ticket until it comes back.
    pub(super) fn new_ticket(&self, kept: Kept<D, T>) -> Ticket {
        let mut away = self.away();
        let ticket = Ticket {
            victim: self.exchange.engine(),
            number: away.next_ticket,
        };
        away.next_ticket += 1;
        away.kept.insert(ticket, kept);
        ticket
    }

    /// Keeps entries of `parent` until they come back.
    fn keep(
        &self,
        parent: &Node<D>,
        kind: FileType,
        names: Vec<Box<CStr>>,
        kept: Kept<D, T>,
    ) -> Stolen {
        Stolen {
            ticket: self.new_ticket(kept),
            operand: parent.place.operand,
            source: identify(parent, Side::Source),
            dest: identify(parent, Side::Dest),
            inheritance: D::inheritance(&parent.state),
            kind,
            path: path_below_operand(parent),
            names,
            range: None,
        }
    }

    /// Keeps a range of a file in `parent` until it comes back.
    pub(super) fn keep_range(
        &self,
        parent: &Node<D>,
        name: Box<CStr>,
        range: FileRange,
        kept: Kept<D, T>,
    ) -> Stolen {
        Stolen {
            range: Some(Box::new(range)),
            ..self.keep(parent, FileType::RegularFile, vec![name], kept)
        }
    }

    pub(super) fn keep_family(&self, Family { parent, places }: Family<D>) -> Stolen {
        let names = places.iter().map(|place| (*place.name).into()).collect();
        let kept = Kept::Directories(places);
        self.keep(&parent, FileType::Directory, names, kept)
    }
}

/// Returns the directories that `place` is in, from its parent to the operand.
pub(super) fn above<D: Dir>(place: &Place<D>) -> impl Iterator<Item = &Arc<Node<D>>> {
    iter::successors(place.parent.as_ref(), |node| node.place.parent.as_ref())
}

/// Returns the names on the way from the operand to `parent`.
fn path_below_operand<D: Dir>(parent: &Node<D>) -> Vec<Box<CStr>> {
    let places = iter::once(&parent.place).chain(above(&parent.place).map(|node| &node.place));
    let below = places.take_while(|place| place.parent.is_some());
    let mut names: Vec<Box<CStr>> = below.map(|place| (*place.name).into()).collect();
    names.reverse();
    names
}

fn identify<D: Dir>(node: &Node<D>, side: Side) -> ParentId {
    if !D::SIDES.contains(&side) {
        return ParentId::UNKNOWN;
    }
    let slot = node.dir.slot(side);
    let look = || {
        let pin = slot.try_pin_or_import().ok()??;
        Some(sys::stat_directory(pin.as_fd()).ok()?.identity)
    };
    // A directory is identified before it is closed. So look again if it was closed after the first look.
    let identity = slot.identity().or_else(look).or_else(|| slot.identity());
    identity.map_or(ParentId::UNKNOWN, ParentId::of)
}

fn address<D: Dir>(node: &Arc<Node<D>>) -> usize {
    Arc::as_ptr(node).addr()
}
