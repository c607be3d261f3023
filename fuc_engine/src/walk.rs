//! Lists directories, one task each, and hands what is in them to an operation.
//!
//! Removal and copying differ in what they do with an entry and with a
//! finished directory. What they share is here: which task a directory is cut
//! into, when a listing pauses, and that each of them ends in a climb.
//!
//! ```text
//!   Enter --opened--> list: a buffer at a time --end of listing--> climb
//!                       |  ^            |
//!     many sub-         |  |            | wide, and another worker is hungry
//!     directories       v  |            v
//!     are queued      Resume          Batch (elsewhere) --> climb
//! ```
//!
//! Where questions are to come in order, so do the [entries](in_order): one after
//! the other, and the rest of a listing waits as a task (`Remainder`).

use std::ffi::CStr;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;

use crate::descriptors::{self, Descriptors, Roots};
use crate::node::{self, Dir, Node, Place, Side};
use crate::report::{Report, Tally};
use crate::sched::{Job, Limits, SLOW_OPERATION, Worker};
use crate::sys::{self, Entries, Entry, Listing, Pinned};

use in_order::Remainder;

mod in_order;

/// What a directory of about a thousand short names fills.
const BUFFER_BYTES: usize = 32 << 10;
/// Empty buffers that a worker keeps, beside the one it fills.
const SPARE_BUFFERS: usize = 1;
/// Entries after which a worker looks up, to be measured and to feed others, unless
/// they take long. Removing 100 000 files on tmpfs with two workers took 1.18 times
/// the kernel's own time with 128, 1.10 with 32: the hungry wait for less long.
const CHECKPOINT_ENTRIES: usize = 32;
/// Directories given to a hungry worker at once, at most: small ones are done
/// faster than a message is sent.
const MAX_BATCH: usize = 64;
/// Workers for each core that may wait for a disk or a server at once: with a cold
/// cache eight on two cores copied 11 000 files from a virtual disk in 0.6 of the
/// time that two took.
const WAITING: usize = 4;
/// ... and so many in all.
const MOST_WAITING: usize = 32;
/// A listing pauses, if a descriptor can be lent to it until it goes on, when it has queued this many sub-directories ...
const MANY_CHILDREN: usize = 512;
/// ... or any, when this many tasks wait on the worker.
const LONG_STACK: usize = 1 << 14;

/// What removing and copying put into the walk.
pub(crate) trait Visitor: Sync + Sized + Roots {
    type Dir: Dir;
    /// Tasks that are not about listing a directory.
    type Task: Send;
    /// What a worker keeps for the operation.
    type Scratch: Default;

    fn descriptors(&self) -> &Descriptors<Self::Dir>;

    fn report(&self) -> &Report<'_>;

    /// Opens the directory at `place`, or deals with it otherwise (then `None`,
    /// and `place` has been left by [`leave`]). `pass` counts how often it was tried.
    fn enter(
        &self,
        place: Place<Self::Dir>,
        pass: u8,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Option<Arc<Node<Self::Dir>>>;

    /// Processes an entry of `node`; a directory is queued by [`queue`].
    fn visit(
        &self,
        node: &Arc<Node<Self::Dir>>,
        dirs: &OpenDirs<'_>,
        entry: Entry<'_>,
        worker: &mut Walker<'_, '_, Self>,
    );

    /// The listing of `node` broke off.
    fn listing_failed(&self, node: &Arc<Node<Self::Dir>>, errno: Errno);

    /// Nothing under `node` is left to do. See [`node::climb`].
    fn finish(
        &self,
        node: &Arc<Node<Self::Dir>>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> ControlFlow<()>;

    fn run_own(&self, task: Self::Task, worker: &mut Walker<'_, '_, Self>);

    /// As [`Job::limits`].
    fn limits(&self) -> Limits;

    /// As [`Job::initial_workers`].
    fn initial_workers(&self) -> usize;

    /// Whether entries are visited in the order of the listing, each
    /// sub-directory with all that is in it in its turn. Then there must be
    /// one worker.
    fn is_in_order(&self) -> bool;
}

/// The directories of a node, kept open while its entries are processed.
pub(crate) struct OpenDirs<'n> {
    pub(crate) source: Pinned<'n>,
    /// `None` in a removal.
    pub(crate) dest: Option<Pinned<'n>>,
}

pub(crate) enum Task<O: Visitor> {
    /// Open a directory and list it.
    Enter {
        place: Place<O::Dir>,
        pass: u8,
    },
    /// List on, from where this descriptor stands.
    Resume {
        node: Arc<Node<O::Dir>>,
        position: OwnedFd,
    },
    /// Process a part of a listing.
    Batch {
        node: Arc<Node<O::Dir>>,
        listing: Listing,
    },
    /// List on in order.
    Remainder {
        node: Arc<Node<O::Dir>>,
        remainder: Remainder,
    },
    Own(O::Task),
}

pub(crate) type Walker<'s, 'e, O> = Worker<'s, 'e, O>;

pub(crate) struct Scratch<S> {
    pub(crate) own: S,
    pub(crate) tally: Tally,
    spare: Vec<Listing>,
    /// Directories queued by the listing under way.
    queued: usize,
    /// Entries since the last one that took long.
    quick: usize,
}

impl<S> Scratch<S> {
    /// Entries to process before the next look up: until many have been quick, each
    /// may be one that others had better not wait for.
    fn checkpoint_interval(&self) -> usize {
        if self.quick < CHECKPOINT_ENTRIES {
            1
        } else {
            CHECKPOINT_ENTRIES
        }
    }

    fn buffer(&mut self) -> Listing {
        self.spare
            .pop()
            .unwrap_or_else(|| Listing::with_capacity(BUFFER_BYTES))
    }

    fn keep_buffer(&mut self, listing: Listing) {
        if self.spare.len() <= SPARE_BUFFERS {
            self.spare.push(listing);
        }
    }
}

/// Workers at most: as asked, else one for each core the process may use, and more
/// where they wait; no more than the limit on descriptors allows for.
pub(crate) fn worker_limits(asked: Option<NonZeroUsize>) -> Limits {
    let within = descriptors::most_workers();
    if let Some(asked) = asked {
        return Limits::of(asked.get().min(within));
    }
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let waiting = (cores * WAITING).min(MOST_WAITING).max(cores);
    Limits {
        computing: cores.min(within),
        waiting: waiting.min(within),
    }
}

/// Queues a directory found in `node`.
pub(crate) fn queue<O: Visitor>(
    node: &Arc<Node<O::Dir>>,
    name: &CStr,
    worker: &mut Walker<'_, '_, O>,
) {
    worker.scratch.queued += 1;
    worker.push(Task::Enter {
        place: node.child(name),
        pass: 0,
    });
}

/// Gives up the use of `parent` that a [`Place`] in it had.
pub(crate) fn leave<O: Visitor>(
    op: &O,
    parent: Option<Arc<Node<O::Dir>>>,
    worker: &mut Walker<'_, '_, O>,
) {
    if let Some(parent) = parent {
        node::climb(parent, |node| op.finish(node, worker));
    }
}

enum Listed {
    ToTheEnd,
    Paused,
}

impl<O: Visitor> Job for O {
    type Task = Task<O>;
    type Scratch = Scratch<O::Scratch>;

    fn scratch(&self) -> Self::Scratch {
        Scratch {
            own: O::Scratch::default(),
            tally: Tally::default(),
            spare: Vec::new(),
            queued: 0,
            quick: 0,
        }
    }

    fn run(&self, task: Task<O>, worker: &mut Worker<'_, '_, Self>) {
        match task {
            Task::Enter { place, pass } => {
                if let Some(node) = self.enter(place, pass, worker) {
                    if self.is_in_order() {
                        in_order::list(self, node, None, worker);
                    } else {
                        list(self, node, None, worker);
                    }
                }
            }
            Task::Resume { node, position } => {
                list(self, node, Some(position), worker);
                self.descriptors().take_back(1);
            }
            Task::Batch { node, listing } => process_batch(self, node, listing, worker),
            Task::Remainder { node, remainder } => {
                in_order::list(self, node, Some(remainder), worker);
            }
            Task::Own(task) => self.run_own(task, worker),
        }
        self.report().add(&mut worker.scratch.tally);
    }

    fn can_migrate(&self, task: &Task<O>) -> bool {
        match task {
            // An evicted parent is cheap to reopen only on the way back up to it.
            Task::Enter { place, .. } => place
                .parent
                .as_ref()
                .is_none_or(|parent| parent.dir.slot(Side::Source).is_open()),
            Task::Resume { .. } | Task::Batch { .. } | Task::Remainder { .. } | Task::Own(_) => {
                true
            }
        }
    }

    fn max_batch(&self) -> usize {
        // Of many, the last would find their parents evicted where descriptors are short.
        if self.descriptors().are_short() {
            1
        } else {
            MAX_BATCH
        }
    }

    fn limits(&self) -> Limits {
        Visitor::limits(self)
    }

    fn initial_workers(&self) -> usize {
        Visitor::initial_workers(self)
    }
}

fn list<O: Visitor>(
    op: &O,
    node: Arc<Node<O::Dir>>,
    position: Option<OwnedFd>,
    worker: &mut Walker<'_, '_, O>,
) {
    let mut buffer = worker.scratch.buffer();
    let listed = list_into(op, &mut buffer, &node, position, worker);
    worker.scratch.keep_buffer(buffer);
    match listed {
        Ok(Listed::Paused) => return,
        Ok(Listed::ToTheEnd) => {}
        Err(errno) => op.listing_failed(&node, errno),
    }
    leave(op, Some(node), worker);
}

fn list_into<O: Visitor>(
    op: &O,
    buffer: &mut Listing,
    node: &Arc<Node<O::Dir>>,
    position: Option<OwnedFd>,
    worker: &mut Walker<'_, '_, O>,
) -> Result<Listed, Errno> {
    let dirs = open_dirs(op, node)?;
    worker.scratch.queued = 0;
    let dir = position.as_ref().map_or(dirs.source.as_fd(), AsFd::as_fd);
    while buffer.fill(dir)? {
        let is_wide = buffer.is_nearly_full();
        if is_wide && worker.has_idle_worker() && worker.backlog() == 0 {
            let empty = worker.scratch.buffer();
            share(std::mem::replace(buffer, empty), node, worker);
            continue;
        }
        process(op, buffer, node, &dirs, worker);
        let queued = worker.scratch.queued;
        if (queued >= MANY_CHILDREN || queued > 0 && worker.backlog() > LONG_STACK)
            && let Some(position) = lend(op, dir)
        {
            worker.push_under(
                queued,
                Task::Resume {
                    node: Arc::clone(node),
                    position,
                },
            );
            return Ok(Listed::Paused);
        }
    }
    Ok(Listed::ToTheEnd)
}

/// A descriptor to go on from later, if there is one to spare.
fn lend<O: Visitor>(op: &O, dir: impl AsFd) -> Option<OwnedFd> {
    let descriptors = op.descriptors();
    if !descriptors.lend(1) {
        return None;
    }
    let position = sys::duplicate(dir.as_fd());
    if position.is_err() {
        descriptors.take_back(1);
    }
    position.ok()
}

/// Lets a hungry worker have what is listed.
fn share<O: Visitor>(listing: Listing, node: &Arc<Node<O::Dir>>, worker: &mut Walker<'_, '_, O>) {
    node.retain();
    worker.push(Task::Batch {
        node: Arc::clone(node),
        listing,
    });
    worker.checkpoint();
}

fn process<O: Visitor>(
    op: &O,
    buffer: &Listing,
    node: &Arc<Node<O::Dir>>,
    dirs: &OpenDirs<'_>,
    worker: &mut Walker<'_, '_, O>,
) {
    let mut entries = buffer.entries();
    let mut left = worker.scratch.checkpoint_interval();
    while let Some(entry) = entries.next() {
        op.visit(node, dirs, entry, worker);
        left -= 1;
        if left > 0 {
            continue;
        }
        op.report().show(&mut worker.scratch.tally);
        let time = worker.checkpoint();
        worker.scratch.quick += worker.scratch.checkpoint_interval();
        if time >= SLOW_OPERATION {
            worker.scratch.quick = 0;
            if worker.has_idle_worker() && worker.backlog() == 0 {
                entries = share_half(entries, node, worker);
            }
        }
        left = worker.scratch.checkpoint_interval();
    }
}

/// Lets a hungry worker have half of what is to be processed; returns the other half.
#[cold]
fn share_half<'a, O: Visitor>(
    entries: Entries<'a>,
    node: &Arc<Node<O::Dir>>,
    worker: &mut Walker<'_, '_, O>,
) -> Entries<'a> {
    let mut second = worker.scratch.buffer();
    let first = entries.halve(&mut second);
    if second.entries().next().is_some() {
        share(second, node, worker);
    } else {
        worker.scratch.keep_buffer(second);
    }
    first
}

fn process_batch<O: Visitor>(
    op: &O,
    node: Arc<Node<O::Dir>>,
    listing: Listing,
    worker: &mut Walker<'_, '_, O>,
) {
    match open_dirs(op, &node) {
        Ok(dirs) => process(op, &listing, &node, &dirs, worker),
        Err(errno) => op.listing_failed(&node, errno),
    }
    worker.scratch.keep_buffer(listing);
    leave(op, Some(node), worker);
}

/// Keeps the directories of `node` open, for its entries to be processed.
pub(crate) fn open_dirs<'n, O: Visitor>(
    op: &O,
    node: &'n Arc<Node<O::Dir>>,
) -> Result<OpenDirs<'n>, Errno> {
    let descriptors = op.descriptors();
    let source = descriptors.pin(node, Side::Source, op)?;
    let dest = if O::Dir::HAS_DEST {
        Some(descriptors.pin(node, Side::Dest, op)?)
    } else {
        None
    };
    Ok(OpenDirs { source, dest })
}
