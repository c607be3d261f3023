//! Shares the work of a walk with other engines: gives entries to them, works on theirs, and goes on when entries come back.
//!
//! The unit is [`Names`]: entries of one directory, with their types. They are users of the directory, so it
//! is finished only after the names have come back. A ticket remembers them until then. Names change hands for two
//! reasons: a thief has asked, and gets queued directories or a part of a listing; or another engine is the *home* of the
//! files, and gets them unasked.
//!
//! Names for the same home that a task finds in one directory travel together. They are sent when the task ends, or
//! earlier if there are many. So no engine waits for a name that another worker keeps back.
//!
//! The engine that gets names makes a *borrowed* node of their directory, and of each directory above. Such a node gives
//! names to failures and means to reopen a descriptor, as any other. But its directory belongs to the other engine.
//! So the climb ends there, and the last use of the directory gives the entries back instead of finishing it.
//!
//! [`crate::distribute`] shows the protocol.

use std::ffi::CStr;
use std::iter;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::{NodeOf, Purpose, Task, Unvisited, Visitor, Walk, Walker, filtered, leave, list};
use crate::distribute::{Exchange, FileName, Finished, Incoming, ParentId, Reply, Stolen, Ticket};
use crate::hashing::HashMap;
use crate::node::{Dir, Node, Place, Side};
use crate::paths;
use crate::sched::When;
use crate::sched::others::{Inlet, Thief};
use crate::setup::{Execution, Setup};
use crate::sync::lock;
use crate::sys::{self, Fd, Listed, Listing, Storage};

/// A directory with more levels above it stays with its engine, because a thief opens each of them.
///
/// Real trees have fewer. In a tree of two directories on each of 100,000 levels, directories would change hands
/// on each level, and the time would grow with the square of the depth.
const MOST_LEVELS: usize = 256;

/// Names for a home are sent when they take so much memory: 100 to 200 names.
const MOST_WAITING_BYTES: usize = 8 << 10;

/// The time for which clients of servers may cache names and attributes of directories: `acdirmax` of NFS, and a bit.
const LONGEST_CACHED: Duration = Duration::from_secs(65);
/// The time between two tries to reach a directory.
const PAUSE: Duration = Duration::from_millis(100);

/// The part of a visitor that only other engines need.
pub(crate) trait Sharer: Walk {
    /// Returns the work that is shared with other engines, if there are any. Otherwise no other method is called.
    fn shared(&self) -> Option<&Shared<'_, Self::Dir>>;

    /// Returns how many operands have entries that other engines may give.
    fn operands(&self) -> usize;

    /// Returns the part of a directory's state that another engine needs for the entries in it.
    fn inheritance(_state: &<Self::Dir as Dir>::State) -> u8 {
        0
    }

    /// Makes a node of a directory that belongs to another engine, which has returned
    /// [`inheritance`](Self::inheritance) for it.
    fn borrow(&self, place: Place<Self::Dir>, inheritance: u8) -> Arc<Node<Self::Dir>>;

    /// Opens one side of the directory with which the way to stolen entries begins: the operand, which this engine has not
    /// begun, or the directory that it is in.
    fn reach_first(&self, operand: u32, side: Side) -> Result<Fd, Errno>;

    /// Opens a directory in `dir` in the same way as when another engine entered it.
    fn reach_below(&self, dir: BorrowedFd<'_>, name: &CStr, side: Side) -> Result<Fd, Errno>;

    /// Notes that entries below an operand were reached. `top` is the borrowed node of the operand.
    fn reached(&self, _top: &Node<Self::Dir>) {}

    /// Reports entries of `node` that were not processed, because their home could not reach the directory.
    fn home_not_reached(&self, _node: &Arc<Node<Self::Dir>>, _names: &Listing) {}

    /// Ends the work on the entries in a borrowed directory. Returns what their engine must know.
    fn end_borrowed(&self, node: &Arc<Node<Self::Dir>>) -> Finished;

    /// Notes what another engine has done below a directory.
    fn note_finished(&self, _node: &Node<Self::Dir>, _finished: Finished) {}
}

/// Entries of one directory that are given to one engine. Together they are one user of the directory.
pub(crate) struct Names<D: Dir> {
    parent: Arc<Node<D>>,
    entries: Listing,
    /// The engine to which the entries are given unasked.
    home: Option<u32>,
}

/// The entries that a task has found for their homes.
pub(super) type Entrusted<V> = Vec<Names<<V as Walk>::Dir>>;

/// A task that has come from another engine.
pub(crate) enum Received<V: Visitor> {
    /// Process entries of the other engine.
    Stolen(Box<Stolen>),
    /// Go on with entries of this engine that come back.
    Returned(Box<Names<V::Dir>>, Reply),
}

/// The work that is shared with other engines.
pub(crate) struct Shared<'a, D: Dir> {
    pub(crate) exchange: &'a dyn Exchange,
    assists: bool,
    /// This engine gives work to others. In a dry run the leader plans all changes, because no other engine could see them.
    gives: bool,
    /// `true` if another engine asks for work, and no worker has answered.
    is_asked: AtomicBool,
    lent: Mutex<Lent<D>>,
    /// The names in each borrowed directory, by the address of its node.
    borrowed: Mutex<HashMap<usize, Borrowed>>,
}

/// The names that this engine has given to others.
struct Lent<D: Dir> {
    next_ticket: u64,
    names: HashMap<u64, Names<D>>,
}

/// Names of another engine.
#[derive(Clone, Copy)]
struct Borrowed {
    ticket: Ticket,
    /// This engine is the home of the names, so it does not give them away.
    is_home: bool,
}

impl<'a, D: Dir> Shared<'a, D> {
    /// Returns the work of a run, if other engines share it.
    pub(crate) fn of(setup: &Setup<'a>, execution: Execution) -> Option<Self> {
        Some(Self {
            exchange: setup.exchange?,
            assists: setup.assists,
            gives: execution == Execution::Real,
            is_asked: AtomicBool::new(false),
            lent: Mutex::new(Lent {
                next_ticket: 0,
                names: HashMap::default(),
            }),
            borrowed: Mutex::default(),
        })
    }

    /// Returns the engine that is the home of the files with this inode number, if that is another engine.
    pub(crate) fn other_home(&self, inode: u64) -> Option<u32> {
        let home = self.gives.then(|| self.exchange.home(inode))?;
        (home != self.exchange.engine()).then_some(home)
    }

    /// Returns `true` if another engine has found this one to be the home of the entries in `parent`.
    pub(crate) fn is_home_of(&self, parent: &Arc<Node<D>>) -> bool {
        let borrowed = lock(&self.borrowed).get(&parent.address()).copied();
        borrowed.is_some_and(|borrowed| borrowed.is_home)
    }

    /// Returns `true` if a thief could process a task that is queued, one of as many as `queued`.
    fn can_take<V: Visitor<Dir = D>>(&self, task: &Task<V>, queued: usize) -> bool {
        let is_near = |place: &Place<D>| place.names_up().nth(MOST_LEVELS).is_none();
        match task {
            // A chain of directories does not change hands.
            Task::Enter {
                place,
                purpose: Purpose::Process { pass: 0 } | Purpose::ProcessEntries,
            } => queued > 1 && place.parent.is_some() && is_near(place),
            // Another task has the rest of the listing.
            Task::Batch { node, .. } => is_near(&node.place) && !self.is_home_of(node),
            _ => false,
        }
    }
}

impl<D: Dir> Thief for Shared<'_, D> {
    fn steal(&self) {
        self.exchange.steal();
    }
}

/// Keeps names until they come back. Returns them in the form in which they travel.
fn pack<V: Visitor>(shared: &Shared<'_, V::Dir>, names: Names<V::Dir>) -> Stolen {
    let parent = Arc::clone(&names.parent);
    let is_for_home = names.home.is_some();
    let entries = names.entries.entries();
    let travelling = entries.map(|entry| (entry.record_type, entry.name.into()));
    let travelling = travelling.collect();
    let mut path: Vec<FileName> = parent.place.names_up().map(FileName::from).collect();
    path.reverse();
    let mut lent = lock(&shared.lent);
    let ticket = Ticket {
        victim: shared.exchange.engine(),
        number: lent.next_ticket,
    };
    lent.next_ticket += 1;
    lent.names.insert(ticket.number, names);
    drop(lent);
    Stolen {
        ticket,
        operand: parent.place.operand,
        parents: [Side::Source, Side::Dest].map(|side| identify(&parent, side)),
        inheritance: V::inheritance(&parent.state),
        path,
        is_for_home,
        last_try: None,
        names: travelling,
    }
}

fn identify<D: Dir>(node: &Node<D>, side: Side) -> ParentId {
    let slot = node.dir.slot(side);
    let look = || {
        let pin = slot.try_pin_or_import().ok()??;
        Some(sys::stat_directory(pin.as_fd()).ok()?.identity)
    };
    // A directory is identified before it is closed. So look again if it was closed after the first look.
    let identity = slot.identity().or_else(look).or_else(|| slot.identity());
    identity.map(ParentId::of).unwrap_or_default()
}

/// Guard that reports the end of the run to the exchange, even if an observer has panicked.
pub(super) struct End<'e>(&'e dyn Exchange);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Takes part in the work of all engines until the guard is dropped. Returns `None` after an engine that assists has done
/// so: it does not begin the tasks of the run, because the leader does.
pub(super) fn take_part<'e, V: Visitor>(worker: &mut Walker<'_, 'e, V>) -> Option<Option<End<'e>>> {
    let visitor = worker.job;
    let Some(shared) = visitor.shared() else {
        return Some(None);
    };
    worker.attend(|inlet| attend::<V>(shared, inlet));
    let end = End(shared.exchange);
    if !shared.assists {
        return Some(Some(end));
    }
    // Only the leader knows which operands are finished, so no failure waits for them.
    visitor.report().hold_nothing();
    worker.run_all();
    None
}

/// Passes messages of other engines on to the workers, until the exchange ends. The run of an assistant does not end
/// before that.
fn attend<V: Visitor>(shared: &Shared<'_, V::Dir>, inlet: &Inlet<'_, Task<V>>) {
    if !shared.assists {
        inlet.allow_end();
    }
    loop {
        match shared.exchange.receive() {
            // Relaxed: the request publishes nothing.
            Incoming::Request => shared.is_asked.store(shared.gives, Ordering::Relaxed),
            Incoming::Stolen(stolen) => {
                let received = stolen.into_iter().map(Box::new).map(Received::Stolen);
                inlet.put(received.map(Task::Received).collect(), 0);
            }
            Incoming::Returned(ticket, reply) => {
                let names = lock(&shared.lent).names.remove(&ticket.number);
                if let Some(names) = names.map(Box::new) {
                    let returned = Received::Returned(names, reply);
                    inlet.put([Task::Received(returned)].into(), 1);
                }
            }
            Incoming::End => break,
        }
    }
    if shared.assists {
        inlet.allow_end();
    }
}

/// Returns the way to tasks of other engines.
pub(super) fn thief<V: Visitor>(visitor: &V) -> Option<&dyn Thief> {
    let shared = visitor.shared()?;
    shared.gives.then_some(shared as _)
}

/// Returns `true` if another engine asks for work, and none that is queued here can be given to it.
pub(super) fn is_asked<V: Visitor>(worker: &Walker<'_, '_, V>) -> bool {
    let queued = worker.queued_tasks();
    worker.job.shared().is_some_and(|shared| {
        shared.is_asked.load(Ordering::Relaxed)
            && !worker.has_one_to_give(|task| shared.can_take(task, queued))
    })
}

/// Gives queued tasks to a thief that has asked for some.
#[inline]
pub(super) fn give<V: Visitor>(worker: &mut Walker<'_, '_, V>) {
    if let Some(shared) = worker.job.shared()
        // If there is nothing to give, the thief asks again later. So each request looks at the tasks once.
        && shared.is_asked.load(Ordering::Relaxed)
        && shared.is_asked.swap(false, Ordering::Relaxed)
    {
        give_from(shared, worker);
    }
}

#[cold]
fn give_from<'e, V: Visitor>(shared: &'e Shared<'_, V::Dir>, worker: &mut Walker<'_, 'e, V>) {
    let mut all = Vec::new();
    let queued = worker.queued_tasks();
    for task in worker.take_to_give(|task| shared.can_take(task, queued)) {
        match task {
            Task::Enter { place, purpose } => {
                let Some(parent) = place.parent else {
                    unreachable!("BUG: a thief was given an operand");
                };
                let entry = Listed::new(&place.name, FileType::Directory);
                let entry = match purpose {
                    Purpose::ProcessEntries => entry.as_skipped(),
                    Purpose::Process { .. } => entry,
                };
                add_name(&mut all, &parent, None, entry);
                // Now the names are a user of the parent.
                leave(Some(parent), worker);
            }
            Task::Batch { node, listing } => all.push(Names {
                parent: node,
                // The names only, without the room of a buffer.
                entries: listing.entries().to_listing(),
                home: None,
            }),
            _ => unreachable!("BUG: a thief was given a task that it cannot take"),
        }
    }
    if !all.is_empty() {
        // They may come back as soon as they are given.
        worker.expect_returns(all.len());
        let stolen = all.into_iter().map(|names| pack::<V>(shared, names));
        shared.exchange.give(stolen.collect());
    }
}

/// Adds an entry of `parent` to those that are given away together, and returns their index. Together they are one user of the
/// directory.
fn add_name<D: Dir>(
    all: &mut Vec<Names<D>>,
    parent: &Arc<Node<D>>,
    home: Option<u32>,
    entry: Listed<'_>,
) -> usize {
    let is_like = |names: &Names<D>| names.home == home && Arc::ptr_eq(&names.parent, parent);
    let index = all.iter().rposition(is_like).unwrap_or_else(|| {
        parent.retain();
        all.push(Names {
            parent: Arc::clone(parent),
            entries: Listing::with_capacity(0),
            home,
        });
        all.len() - 1
    });
    all[index].entries.extend([entry]);
    index
}

/// Gives an entry of `node` to its home, at the latest when the task ends.
pub(crate) fn entrust<V: Visitor>(
    node: &NodeOf<V>,
    entry: Listed<'_>,
    home: u32,
    worker: &mut Walker<'_, '_, V>,
) {
    let waiting = &mut worker.scratch.entrusted;
    let index = add_name(waiting, node, Some(home), entry);
    if waiting[index].entries.capacity() >= MOST_WAITING_BYTES {
        let full = waiting.swap_remove(index);
        send(full, worker);
    }
}

/// Gives the entries to their homes that the task has found.
#[inline]
pub(super) fn send_entrusted<V: Visitor>(worker: &mut Walker<'_, '_, V>) {
    while let Some(names) = worker.scratch.entrusted.pop() {
        send(names, worker);
    }
}

#[cold]
fn send<V: Visitor>(names: Names<V::Dir>, worker: &Walker<'_, '_, V>) {
    if let Some(shared) = worker.job.shared()
        && let Some(home) = names.home
    {
        // They may come back as soon as they are given.
        worker.expect_returns(1);
        let stolen = pack::<V>(shared, names);
        shared.exchange.entrust(home, vec![stolen]);
    }
}

/// Does what another engine has asked for. In a cancelled run, only gives back what must be given back.
#[cold]
pub(super) fn process_received<V: Visitor>(received: Received<V>, worker: &mut Walker<'_, '_, V>) {
    let Some(shared) = worker.job.shared() else {
        return;
    };
    match received {
        Received::Returned(names, reply) => process_returned(*names, reply, worker),
        Received::Stolen(stolen) if worker.job.report().must_stop() => {
            let not_done = Finished {
                kept: true,
                ..Finished::default()
            };
            shared
                .exchange
                .give_back(stolen.ticket, Reply::Finished(not_done));
        }
        Received::Stolen(stolen) => process_stolen(stolen, shared, worker),
    }
}

/// Goes on with names that come back from another engine. Those that a thief could not reach are processed here, and those
/// that their home could not reach fail. In a cancelled run, both stay.
fn process_returned<V: Visitor>(
    names: Names<V::Dir>,
    reply: Reply,
    worker: &mut Walker<'_, '_, V>,
) {
    let visitor = worker.job;
    let (node, listing) = (names.parent, names.entries);
    match reply {
        Reply::Finished(finished) => visitor.note_finished(&node, finished),
        Reply::NotReached if visitor.report().must_stop() => {
            visitor.note_unvisited(&node, Unvisited::NotDone);
        }
        Reply::NotReached if names.home.is_none() => {
            return worker.push(Task::Batch { node, listing }, When::Next);
        }
        Reply::NotReached => visitor.home_not_reached(&node, &listing),
    }
    leave(Some(node), worker);
}

/// Processes names that another engine has given.
fn process_stolen<V: Visitor>(
    stolen: Box<Stolen>,
    shared: &Shared<'_, V::Dir>,
    worker: &mut Walker<'_, '_, V>,
) {
    let Ok(parent) = reach_parent(worker.job, &stolen) else {
        return put_off(stolen, shared, worker);
    };
    let borrowed = Borrowed {
        ticket: stolen.ticket,
        is_home: stolen.is_for_home,
    };
    lock(&shared.borrowed).insert(parent.address(), borrowed);
    let mut entries = Listing::with_capacity(0);
    let names = stolen.names.iter();
    entries.extend(names.map(|&(record_type, ref name)| Listed { name, record_type }));
    list::process_batch(parent, entries, worker);
}

/// Tries later to reach the parent of stolen entries, or gives them back. The other engine can go on with them, unless
/// this one is their home, and has cached what the names on the way to the parent stood for earlier.
#[cold]
fn put_off<V: Visitor>(
    mut stolen: Box<Stolen>,
    shared: &Shared<'_, V::Dir>,
    worker: &mut Walker<'_, '_, V>,
) {
    let visitor = worker.job;
    let now = Instant::now();
    if stolen.is_for_home && stolen.last_try.is_none() {
        let is_cached = V::Dir::SIDES.iter().any(|&side| {
            let first = visitor.reach_first(stolen.operand, side);
            first.is_ok_and(|dir| Storage::of(dir.as_fd()) == Storage::Server)
        });
        stolen.last_try = is_cached.then_some(now + LONGEST_CACHED);
    }
    if stolen.last_try.is_some_and(|last| now < last) {
        // It runs when this engine has nothing else to do.
        thread::sleep(PAUSE);
        worker.push(Task::Received(Received::Stolen(stolen)), When::Idle);
    } else {
        let reply = Reply::NotReached;
        shared.exchange.give_back(stolen.ticket, reply);
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
        reached.inspect_err(|_| close_borrowed(visitor, &parent))?;
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
    let mut last = None;
    for node in levels {
        let opened = descriptors.making_room(|| match &last {
            None => visitor.reach_first(stolen.operand, side),
            Some((above, _)) => visitor.reach_below(Fd::as_fd(above), &node.place.name, side),
        })?;
        if side == Side::Source {
            filtered::choose_filter_of_open(visitor, node, opened.as_fd());
        }
        let found = sys::stat_directory(opened.as_fd())?.identity;
        node.dir.slot(side).set_identity(found);
        last = Some((opened, found));
    }
    let (Some((dir, found)), Some(parent)) = (last, levels.last()) else {
        return Err(Errno::NOENT);
    };
    if !stolen.parents[side as usize].is_of(dir.as_fd(), found) {
        return Err(Errno::STALE);
    }
    descriptors.adopt(parent, side, dir);
    Ok(())
}

/// Closes a borrowed directory. Forgets its filter, and those of the directories above.
fn close_borrowed<V: Visitor>(visitor: &V, node: &NodeOf<V>) {
    iter::successors(Some(node), |node| node.place.parent.as_ref())
        .for_each(|node| filtered::forget_filter(visitor, node));
    for &side in V::Dir::SIDES {
        visitor.descriptors().close(node, side);
    }
}

/// Gives the entries in a directory back to their engine, if that is another one. Returns `false` if the directory is of
/// this engine, and must be finished.
#[inline]
pub(super) fn give_back<V: Visitor>(visitor: &V, node: &NodeOf<V>) -> bool {
    let Some(shared) = visitor.shared() else {
        return false;
    };
    let Some(borrowed) = lock(&shared.borrowed).remove(&node.address()) else {
        return false;
    };
    let reply = Reply::Finished(visitor.end_borrowed(node));
    close_borrowed(visitor, node);
    shared.exchange.give_back(borrowed.ticket, reply);
    true
}
