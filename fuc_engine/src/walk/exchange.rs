//! Gives entries to other engines, and goes on when they come back.
//!
//! The unit is [`Names`]: entries of one directory, with their types. It is one user of the directory, so the directory
//! is finished only after the names have come back. A ticket remembers them until then. Names change hands for two
//! reasons: a thief has asked, and gets queued directories or a part of a listing; or another engine is the *home* of the
//! files, and gets them unasked.
//!
//! Names for the same home that a task finds in one directory travel together. They are sent when the task ends, or
//! earlier if there are many. So no engine waits for a name that another worker keeps back.
//!
//! [`crate::distribute`] shows the protocol, and [`super::borrowing`] what the other engine does.

use std::iter;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};

use rustix::fs::FileType;

use super::{NodeOf, Purpose, Task, Visitor, Walker, leave};
use crate::distribute::{
    Exchange, FileName, Given, Incoming, ParentId, Role, Sharing, Stolen, Ticket,
};
use crate::hashing::HashMap;
use crate::node::{self, Dir, Finished, Node, Place, Side};
use crate::sched::{Inlet, Take, Thieves, When};
use crate::setup::Execution;
use crate::setup::Setup;
use crate::sync::lock;
use crate::sys::{self, Listed, Listing};

/// A directory with more levels above it stays with its engine, because a thief opens each of them.
///
/// Real trees have fewer. In a tree of two directories on each of 100,000 levels, directories would change hands
/// on each level, and the time would grow with the square of the depth.
const MOST_LEVELS: usize = 256;

/// Names for a home are sent when they take so many bytes: about 200 names.
const MOST_WAITING_BYTES: usize = 8 << 10;

/// Entries of one directory that are given to one engine.
pub(crate) struct Names<D: Dir> {
    /// The directory. Together, the entries are one user of it.
    parent: Arc<Node<D>>,
    entries: Listing,
    /// The engine to which the entries are given unasked.
    home: Option<u32>,
}

impl<D: Dir> Names<D> {
    /// Returns no names yet, which are one more user of `parent`.
    fn new(parent: &Arc<Node<D>>, home: Option<u32>) -> Self {
        parent.retain();
        Self {
            parent: Arc::clone(parent),
            entries: Listing::with_capacity(0),
            home,
        }
    }
}

/// The work that has changed hands.
pub(crate) struct Stealing<'a, D: Dir> {
    pub(crate) exchange: &'a dyn Exchange,
    pub(crate) role: Role,
    execution: Execution,
    away: Mutex<Away<D>>,
    /// The loan in each borrowed parent, by the address of its node.
    borrowed: Mutex<HashMap<usize, Loan>>,
}

/// Names of another engine.
#[derive(Clone, Copy)]
pub(super) struct Loan {
    pub(super) ticket: Ticket,
    /// This engine is the home of the names, so it does not give them away.
    pub(super) is_home: bool,
}

struct Away<D: Dir> {
    next_ticket: u64,
    /// The names that this engine has given away, by the numbers of their tickets.
    names: HashMap<u64, Names<D>>,
}

impl<'a, D: Dir> Stealing<'a, D> {
    /// Returns the work of a run, if other engines share it.
    pub(crate) fn of(setup: &Setup<'a>, execution: Execution) -> Option<Self> {
        let Sharing { exchange, role } = setup.sharing?;
        Some(Self {
            exchange,
            role,
            execution,
            away: Mutex::new(Away {
                next_ticket: 0,
                names: HashMap::default(),
            }),
            borrowed: Mutex::default(),
        })
    }

    /// Returns `true` if this engine gives work to others. In a dry run the leader plans all changes, because no other
    /// engine could see them.
    pub(super) fn gives(&self) -> bool {
        self.execution == Execution::Real
    }

    /// Returns the engine that is the home of the files with this inode number, if that is another engine.
    pub(crate) fn other_home(&self, inode: u64) -> Option<u32> {
        let home = self.gives().then(|| self.exchange.home(inode))?;
        (home != self.exchange.engine()).then_some(home)
    }

    /// Notes which entries of a borrowed parent another engine has given.
    pub(super) fn borrow(&self, parent: &Arc<Node<D>>, loan: Loan) {
        lock(&self.borrowed).insert(parent.address(), loan);
    }

    /// Returns `true` if another engine has found this one to be the home of the entries in `parent`.
    pub(crate) fn is_home_of(&self, parent: &Arc<Node<D>>) -> bool {
        let loan = lock(&self.borrowed).get(&parent.address()).copied();
        loan.is_some_and(|loan| loan.is_home)
    }

    /// Gives back the entries in a borrowed parent.
    pub(super) fn give_back_all_in(&self, parent: &Arc<Node<D>>, given: Given) {
        let loan = lock(&self.borrowed).remove(&parent.address());
        if let Some(loan) = loan {
            self.exchange.give_back(loan.ticket, given);
        }
    }

    /// Keeps names until they come back.
    fn keep(&self, names: Names<D>) -> Stolen {
        let parent = Arc::clone(&names.parent);
        let is_for_home = names.home.is_some();
        let entries = names.entries.entries();
        let travelling = entries.map(|entry| (entry.record_type(), entry.name.into()));
        let travelling = travelling.collect();
        let mut away = lock(&self.away);
        let ticket = Ticket {
            victim: self.exchange.engine(),
            number: away.next_ticket,
        };
        away.next_ticket += 1;
        away.names.insert(ticket.number, names);
        drop(away);
        Stolen {
            ticket,
            operand: parent.place.operand,
            source: identify(&parent, Side::Source),
            dest: identify(&parent, Side::Dest),
            inheritance: D::inheritance(&parent.state),
            path: path_below_operand(&parent),
            is_for_home,
            last_try: None,
            names: travelling,
        }
    }

    /// Returns the names that come back under a ticket.
    fn redeem(&self, ticket: Ticket) -> Option<Names<D>> {
        lock(&self.away).names.remove(&ticket.number)
    }
}

impl<V: Visitor> Thieves<Task<V>> for Stealing<'_, V::Dir> {
    fn can_take(&self, task: &Task<V>) -> Take {
        let is_near = |place| above(place).nth(MOST_LEVELS).is_none();
        match task {
            Task::Enter {
                place,
                purpose: Purpose::Process { pass: 0 } | Purpose::ProcessEntries,
            } if place.parent.is_some() && is_near(place) => Take::UnlessLast,
            // Another task has the rest of the listing.
            Task::Batch { node, .. } if is_near(&node.place) && !self.is_home_of(node) => {
                Take::Always
            }
            _ => Take::Never,
        }
    }

    fn give(&self, tasks: Vec<Task<V>>, expect: &dyn Fn(usize)) {
        let mut all: Vec<Names<V::Dir>> = Vec::new();
        for task in tasks {
            match task {
                Task::Enter { place, purpose } => add_directory(&mut all, place, purpose),
                Task::Batch { node, listing } => all.push(Names {
                    parent: node,
                    // The names only, without the room of a buffer.
                    entries: listing.entries().to_listing(),
                    home: None,
                }),
                _ => unreachable!("BUG: a thief was given a task that it cannot take"),
            }
        }
        // They may come back as soon as they are given.
        expect(all.len());
        let stolen = all.into_iter().map(|names| self.keep(names));
        self.exchange.give(stolen.collect());
    }

    fn steal(&self) {
        self.exchange.steal();
    }
}

/// Adds a queued directory to the last names, if they have the same parent.
fn add_directory<D: Dir>(all: &mut Vec<Names<D>>, place: Place<D>, purpose: Purpose) {
    let Some(parent) = place.parent else {
        unreachable!("BUG: a thief was given an operand");
    };
    let is_last = |last: &Names<D>| Arc::ptr_eq(&last.parent, &parent);
    if !all.last().is_some_and(is_last) {
        all.push(Names::new(&parent, None));
    }
    if let Some(last) = all.last_mut() {
        let entry = Listed::new(&place.name, FileType::Directory);
        last.entries.push(match purpose {
            Purpose::ProcessEntries => entry.skipped(),
            Purpose::Process { .. } => entry,
        });
    }
    // The names are another user of the directory, so this one is never the last.
    node::climb(parent, |_| unreachable!("BUG: the names are a user"));
}

/// Returns the work that the engines share, after some of it has changed hands.
pub(super) fn stealing<V: Visitor>(visitor: &V) -> &Stealing<'_, V::Dir> {
    visitor.stealing().expect("BUG: nothing is shared")
}

/// Gives an entry of `node` to its home, at the latest when the task ends.
pub(crate) fn entrust<V: Visitor>(
    node: &NodeOf<V>,
    entry: Listed<'_>,
    home: u32,
    worker: &mut Walker<'_, '_, V>,
) {
    let waiting = &mut worker.scratch.entrusted;
    let is_like =
        |names: &Names<V::Dir>| names.home == Some(home) && Arc::ptr_eq(&names.parent, node);
    let index = waiting.iter().position(is_like).unwrap_or_else(|| {
        waiting.push(Names::new(node, Some(home)));
        waiting.len() - 1
    });
    waiting[index].entries.push(entry);
    if waiting[index].entries.bytes() >= MOST_WAITING_BYTES {
        let full = waiting.swap_remove(index);
        send(full, worker);
    }
}

/// Gives the entries to their homes that the task has found.
#[cold]
pub(super) fn send_rest<V: Visitor>(worker: &mut Walker<'_, '_, V>) {
    while let Some(names) = worker.scratch.entrusted.pop() {
        send(names, worker);
    }
}

fn send<V: Visitor>(names: Names<V::Dir>, worker: &Walker<'_, '_, V>) {
    let stealing = stealing(worker.job);
    let Some(home) = names.home else {
        unreachable!("BUG: names without a home were entrusted");
    };
    // They may come back as soon as they are given.
    worker.expect_returns(1);
    let stolen = stealing.keep(names);
    stealing.exchange.entrust(home, vec![stolen]);
}

/// Passes messages of other engines on to the workers, until the exchange ends. The run of an assistant does not end
/// before that.
pub(super) fn attend<V: Visitor>(stealing: &Stealing<'_, V::Dir>, inlet: &Inlet<'_, Task<V>>) {
    if stealing.role == Role::Leader {
        inlet.allow_end();
    }
    loop {
        match stealing.exchange.receive() {
            Incoming::Request => inlet.request(),
            Incoming::Stolen(stolen) => {
                let tasks = stolen.into_iter().map(Box::new).map(Task::Stolen);
                inlet.put(tasks.collect(), 0);
            }
            Incoming::Returned(ticket, given) => {
                if let Some(names) = stealing.redeem(ticket) {
                    let names = Box::new(names);
                    inlet.put([Task::Returned { names, given }].into(), 1);
                }
            }
            Incoming::End => break,
        }
    }
    if stealing.role == Role::Assistant {
        inlet.allow_end();
    }
}

/// Goes on with names that come back from another engine. Those that a thief could not reach are processed here, and those
/// that their home could not reach fail. In a cancelled run, both stay.
pub(super) fn take_back<V: Visitor>(
    names: Names<V::Dir>,
    given: Given,
    worker: &mut Walker<'_, '_, V>,
) {
    let visitor = worker.job;
    let (node, listing) = (names.parent, names.entries);
    match given {
        Given::Finished(finished) => visitor.note_finished(&node, finished),
        Given::NotReached if visitor.report().must_stop() => {
            visitor.note_finished(&node, Finished::NOT_DONE);
        }
        Given::NotReached if names.home.is_none() => {
            return worker.push(Task::Batch { node, listing }, When::Next);
        }
        Given::NotReached => visitor.home_not_reached(&node, &listing),
    }
    leave(Some(node), worker);
}

/// Returns the directories that `place` is in, from its parent to the operand.
pub(super) fn above<D: Dir>(place: &Place<D>) -> impl Iterator<Item = &Arc<Node<D>>> {
    iter::successors(place.parent.as_ref(), |node| node.place.parent.as_ref())
}

/// Returns the number of names on the way from the operand to `node`.
pub(crate) fn levels<D: Dir>(node: &Node<D>) -> usize {
    above(&node.place).count()
}

/// Returns the names on the way from the operand to `parent`.
fn path_below_operand<D: Dir>(parent: &Node<D>) -> Vec<FileName> {
    let places = iter::once(&parent.place).chain(above(&parent.place).map(|node| &node.place));
    let below = places.take_while(|place| place.parent.is_some());
    let mut names: Vec<FileName> = below.map(|place| (&*place.name).into()).collect();
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
