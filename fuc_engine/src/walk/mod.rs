//! Lists directories, one task for each, and hands their entries to a [`Visitor`].
//!
//! A removal and a copy differ in what they do with an entry and with a finished
//! directory. They share how a directory is cut into tasks, when a listing pauses,
//! and that the last task of a directory climbs to its parent.
//!
//! ```text
//!   Enter --opened--> list: a buffer at a time --end of listing--> climb
//!                       |  ^            |
//!   a full buffer, many |  |            | a part of a buffer,
//!   subdirectories, or  |  |            | because entries are slow
//!   a slow entry        v  |            v
//!                      Resume          Batch --> climb
//!              (both on any worker)
//! ```
//!
//! If another worker is in the same zone, a directory that was opened waits as a `List` task.
//!
//! If the user must be asked in the order of the listing, it pauses at each subdirectory. Its rest then waits below the
//! subdirectory, as a `Batch` and perhaps a `Resume`.
//!
//! If other engines work on the same operands, a `Received` task has come from another engine; see `sharing`.
//!
//! If the caller gives a filter, each buffer passes through [`filtered`] first.
//!
//! | file | holds |
//! |---|---|
//! | `tuning` | what pays for an operation on a filesystem, and the settings of a walk |
//! | `filtered` | asking the caller's filter |
//! | `list` | listing a directory, processing its entries, and giving a part of them to another worker |
//! | `sharing` | giving entries to other engines, and working on theirs; only with the feature |

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use crate::descriptors::{self, Descriptors, Roots};
use crate::node::{self, Dir, Node, Place, Side};
use crate::report::{Report, Tally};
use crate::sched::{self, Job, Limits, When, Worker};
use crate::sys::{
    self, Listed, Listing, Pinned, PrivateTables, SecondWorker, SharedFd, Starter, ThreadUse,
};

use tuning::{BUFFER_BYTES, CHECKPOINT_ENTRIES, MAX_BATCH, SLOW_ENTRY};

pub(crate) use filtered::{kind_of, reconsider};
#[cfg(feature = "distribute")]
pub(crate) use sharing::{Received, Shared, Sharer, entrust};
pub(crate) use tuning::{Settings, Tuning, tuning};

mod filtered;
mod list;
#[cfg(feature = "distribute")]
mod sharing;
mod tuning;

/// A run, and the directories that it keeps in flight.
pub(crate) trait Walk {
    type Dir: Dir;
}

// Without the feature, a visitor needs nothing more.
#[cfg(not(feature = "distribute"))]
use Walk as Sharer;

/// A removal or a copy, as the walk sees it.
pub(crate) trait Visitor: Sync + Sized + Sharer {
    /// Tasks other than those that list a directory.
    type Task: Send;
    /// State that each worker keeps for the visitor.
    type Scratch: Default;

    fn descriptors(&self) -> &Descriptors<Self::Dir>;

    fn report(&self) -> &Report<'_>;

    fn settings(&self) -> &Settings;

    /// Finds out what pays on the filesystem of the operands. Called once at most, see [`tuning()`].
    fn tune(&self) -> Tuning;

    /// Returns the path of an operand, as the caller names it; of a copy, that of the source.
    fn operand_path(&self, operand: u32) -> &Path;

    /// Opens the directory at `place`.
    ///
    /// Returns `None` if the directory must not be listed. Then the visitor has dealt
    /// with it and has called [`leave`] for `place`.
    fn enter(
        &self,
        place: Place<Self::Dir>,
        purpose: Purpose,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Option<NodeOf<Self>>;

    /// Returns a directory that was entered, unless it must wait until another one is done. Then the visitor queues a
    /// [`Task::List`] for it later.
    fn await_turn(&self, node: NodeOf<Self>) -> Option<NodeOf<Self>> {
        Some(node)
    }

    /// Processes an entry of `node`. Calls [`queue`] for a directory, and [`reconsider`] if the entry proves to be
    /// of another type.
    fn visit(
        &self,
        node: &NodeOf<Self>,
        dirs: &OpenDirs<'_>,
        entry: Listed<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Visit;

    /// Notes that entries of `node` are not visited.
    fn note_unvisited(&self, _node: &NodeOf<Self>, _reason: Unvisited) {}

    /// Removes the reason why `node` cannot be listed, which failed with `errno`. Returns `true` if another attempt may
    /// succeed. Some servers check when a directory is listed what others check when it is opened.
    fn may_list(&self, _node: &NodeOf<Self>, _errno: Errno) -> bool {
        false
    }

    /// Reports that the listing of `node` broke off.
    fn not_listed(&self, node: &NodeOf<Self>, errno: Errno);

    /// Finishes a directory under which nothing is left to do. See [`node::climb`].
    fn finish(&self, node: &NodeOf<Self>, worker: &mut Walker<'_, '_, Self>) -> ControlFlow<()>;

    /// Runs one of the visitor's own tasks.
    fn run_own(&self, task: Self::Task, worker: &mut Walker<'_, '_, Self>);

    /// Returns the permission to give threads private descriptor tables, and the descriptors that all of them need.
    fn private_tables(&self) -> Option<(PrivateTables, Vec<BorrowedFd<'_>>)> {
        None
    }

    /// Returns the means to reopen an evicted directory.
    fn roots(&self) -> &dyn Roots;
}

/// The directories in flight of a visitor `V`.
pub(crate) type NodeOf<V> = Arc<Node<<V as Walk>::Dir>>;

/// A worker that runs the tasks of a visitor `V`.
pub(crate) type Walker<'s, 'e, V> = Worker<'s, 'e, V>;

/// The result of [`Visitor::visit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Visit {
    /// The entry needs no task of its own.
    Done,
    /// The entry is a directory, and a task for it was queued.
    Queued,
    /// The entry takes long, and a task for it was queued. It runs before the rest of the listing, which
    /// other workers can have in the meantime.
    QueuedSlow,
}

/// The reason why entries are not visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unvisited {
    /// The run was cancelled.
    NotDone,
    /// The filter leaves them alone.
    LeftAlone,
}

/// The open directories of one node: those that a removal or a copy needs.
pub(crate) struct OpenDirs<'n> {
    source: Pinned<'n>,
    /// `None` unless the walk is a copy.
    dest: Option<Pinned<'n>>,
}

impl<'n> OpenDirs<'n> {
    /// Opens the directories of `node`, for its entries to be visited.
    #[inline]
    pub(crate) fn pin<V: Visitor>(visitor: &V, node: &'n NodeOf<V>) -> Result<Self, Errno> {
        let pin = |side| visitor.descriptors().pin(node, side, visitor.roots());
        Ok(Self {
            source: pin(Side::Source)?,
            dest: match V::Dir::SIDES.contains(&Side::Dest) {
                true => Some(pin(Side::Dest)?),
                false => None,
            },
        })
    }

    /// Returns the directory to list.
    pub(crate) fn source(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }

    /// Returns the directory that a copy fills.
    pub(crate) fn dest(&self) -> BorrowedFd<'_> {
        let dest = self.dest.as_ref();
        dest.expect("BUG: only a copy has a dest").as_fd()
    }
}

pub(crate) enum Task<V: Visitor> {
    /// Open a directory and list it.
    Enter {
        place: Place<V::Dir>,
        purpose: Purpose,
    },
    /// List a directory that was opened before.
    List { node: NodeOf<V> },
    /// Continue a listing at the offset of this descriptor.
    Resume { node: NodeOf<V>, position: SharedFd },
    /// Process a part of a listing.
    Batch { node: NodeOf<V>, listing: Listing },
    /// Do what another engine has asked for.
    #[cfg(feature = "distribute")]
    Received(Received<V>),
    /// Run a task of the visitor.
    Own(V::Task),
}

/// The purpose of entering a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The directory is processed with its entries. `pass` is the number of its earlier listings.
    Process { pass: u8 },
    /// Only entries are processed, because the filter skips the directory itself.
    ProcessEntries,
}

impl Purpose {
    fn of(entry: Listed<'_>) -> Self {
        match entry.is_skipped() {
            true => Self::ProcessEntries,
            false => Self::Process { pass: 0 },
        }
    }
}

/// State that each worker keeps for the walk.
pub(crate) struct Scratch<V: Visitor> {
    pub(crate) own: V::Scratch,
    pub(crate) tally: Tally,
    /// The last directory that is done. The next one takes its memory.
    ///
    /// Removing 1,000 directories of one file with musl's allocator takes 1.57 million instructions. Without this, it
    /// takes 1.8 to 2.6 million, depending on the length of the program's path and other allocations (callgrind,
    /// the guard's case `rmz-directories`).
    pub(crate) finished: Option<NodeOf<V>>,
    /// Entries that the running task has found for other engines.
    #[cfg(feature = "distribute")]
    entrusted: sharing::Entrusted<V>,
    /// An empty buffer for the next listing.
    spare: Option<Listing>,
    /// Entries processed since the last checkpoint at which they were slow, or since the beginning.
    quick: usize,
    /// See [`slowest`](Self::slowest).
    slowest: Duration,
    /// `true` after the first entry that is not a directory was looked at.
    has_looked: bool,
    /// `true` if the last entry had content that was copied.
    pub(crate) had_content: bool,
}

impl<V: Visitor> Scratch<V> {
    /// Returns how many entries to process before the next checkpoint: one at a time
    /// until 32 in a row were fast, so that slow entries cannot delay handing out work.
    fn checkpoint_interval(&self) -> usize {
        if self.quick < CHECKPOINT_ENTRIES {
            1
        } else {
            CHECKPOINT_ENTRIES
        }
    }

    /// Notes that the entries since the last checkpoint took `time`. Returns the time per entry.
    fn note_pace(&mut self, time: Duration) -> Duration {
        let visited = self.checkpoint_interval();
        let per_entry = time / visited as u32;
        self.quick += visited;
        if per_entry >= SLOW_ENTRY {
            self.note_slow(per_entry);
        }
        per_entry
    }

    /// Notes that the last entries were slow.
    fn note_slow(&mut self, per_entry: Duration) {
        self.slowest = self.slowest().max(per_entry);
        self.quick = 0;
    }

    /// Returns the time per entry of the slowest of the last entries, or zero if many were fast since.
    fn slowest(&self) -> Duration {
        match self.quick < CHECKPOINT_ENTRIES {
            true => self.slowest,
            false => Duration::ZERO,
        }
    }

    fn buffer(&mut self) -> Listing {
        self.spare
            .take()
            .unwrap_or_else(|| Listing::with_capacity(BUFFER_BYTES))
    }

    /// Keeps a buffer for the next listing, unless it is a small one that holds names of another engine.
    fn keep_buffer(&mut self, listing: Listing) {
        if listing.capacity() >= BUFFER_BYTES {
            self.spare.get_or_insert(listing);
        }
    }
}

/// Runs tasks of the visitor, one after the other, with everything that they queue. If other engines share the work,
/// takes part in the work of all.
pub(crate) fn run_tasks<V: Visitor>(visitor: &V, tasks: impl IntoIterator<Item = V::Task>) {
    let _end_run = EndRun;
    sched::scope(visitor, |worker| {
        #[cfg(feature = "distribute")]
        let Some(_end) = sharing::take_part(worker) else {
            return;
        };
        for task in tasks {
            worker.push(Task::Own(task), When::Next);
            worker.run_all();
        }
    });
}

/// Guard that closes descriptors after all threads have ended, even if an observer has panicked.
struct EndRun;

impl Drop for EndRun {
    fn drop(&mut self) {
        sys::end_run();
    }
}

/// Queues an entry of `node` that is visited as a directory. For one that only proves to be a directory, call
/// [`reconsider`] instead.
pub(crate) fn queue<V: Visitor>(
    node: &NodeOf<V>,
    entry: Listed<'_>,
    worker: &mut Walker<'_, '_, V>,
) -> Visit {
    let (place, purpose) = (node.child(entry.name), Purpose::of(entry));
    worker.push(Task::Enter { place, purpose }, When::Next);
    Visit::Queued
}

/// Enters an entry of `node` that is visited as a directory at once, and queues its listing only.
pub(crate) fn enter_at_once<V: Visitor>(
    node: &NodeOf<V>,
    entry: Listed<'_>,
    worker: &mut Walker<'_, '_, V>,
) -> Visit {
    let (place, purpose) = (node.child(entry.name), Purpose::of(entry));
    if let Some(node) = enter_filtered(place, purpose, worker) {
        worker.push(Task::List { node }, When::Next);
    }
    Visit::Queued
}

/// Opens the directory at `place` and finds the filter for its entries. Returns `None` if it must not be listed, or not
/// yet.
#[inline]
fn enter_filtered<V: Visitor>(
    place: Place<V::Dir>,
    purpose: Purpose,
    worker: &mut Walker<'_, '_, V>,
) -> Option<NodeOf<V>> {
    let node = worker.job.enter(place, purpose, worker)?;
    match filtered::choose_filter(worker.job, &node) {
        Ok(()) => worker.job.await_turn(node),
        Err(errno) => {
            leave_unlisted(node, errno, worker);
            None
        }
    }
}

/// Returns the path of `node` for users; of a copy, that of the source.
fn path<V: Visitor>(visitor: &V, node: &NodeOf<V>) -> PathBuf {
    node.place
        .path(visitor.operand_path(node.place.operand), None)
}

/// Gives up one use of `parent` and climbs. A [`Place`] in `parent` is such a use.
pub(crate) fn leave<V: Visitor>(parent: Option<NodeOf<V>>, worker: &mut Walker<'_, '_, V>) {
    if let Some(parent) = parent {
        let finished = node::climb(parent, |node| {
            #[cfg(feature = "distribute")]
            if sharing::give_back(worker.job, node) {
                return ControlFlow::Break(());
            }
            let finished = worker.job.finish(node, worker);
            filtered::forget_filter(worker.job, node);
            finished
        });
        if finished.is_some() {
            worker.scratch.finished = finished;
        }
    }
}

/// Ends the work on a directory whose listing broke off.
fn leave_unlisted<V: Visitor>(node: NodeOf<V>, errno: Errno, worker: &mut Walker<'_, '_, V>) {
    worker.job.not_listed(&node, errno);
    leave(Some(node), worker);
}

/// Frees the resources of a task, without doing its work.
#[cold]
fn skip<V: Visitor>(task: Task<V>, worker: &mut Walker<'_, '_, V>) {
    let visitor = worker.job;
    let node = match task {
        Task::Enter { place, .. } => place.parent,
        Task::Resume { node, position } => {
            drop(position);
            visitor.descriptors().take_back();
            Some(node)
        }
        Task::List { node } | Task::Batch { node, .. } => Some(node),
        #[cfg(feature = "distribute")]
        Task::Received(received) => return sharing::process_received(received, worker),
        // The visitor skips its own tasks.
        Task::Own(task) => return visitor.run_own(task, worker),
    };
    if let Some(node) = &node {
        visitor.note_unvisited(node, Unvisited::NotDone);
    }
    leave(node, worker);
}

impl<V: Visitor> Job for V {
    type Task = Task<V>;
    type Scratch = Scratch<V>;

    fn scratch(&self) -> Self::Scratch {
        Scratch {
            own: V::Scratch::default(),
            tally: Tally::default(),
            finished: None,
            #[cfg(feature = "distribute")]
            entrusted: Vec::new(),
            spare: None,
            quick: 0,
            slowest: Duration::ZERO,
            has_looked: false,
            had_content: false,
        }
    }

    fn run_task(&self, task: Task<V>, worker: &mut Worker<'_, '_, Self>) {
        if self.report().must_stop() {
            skip(task, worker);
            return;
        }
        match task {
            Task::Enter { place, purpose } => {
                if let Some(node) = enter_filtered(place, purpose, worker) {
                    list::list_or_put_off(node, worker);
                }
            }
            Task::List { node } => list::list_or_put_off(node, worker),
            Task::Resume { node, position } => {
                list::resume(node, position, worker);
                self.descriptors().take_back();
            }
            Task::Batch { node, listing } => list::process_batch(node, listing, worker),
            #[cfg(feature = "distribute")]
            Task::Received(received) => sharing::process_received(received, worker),
            Task::Own(task) => self.run_own(task, worker),
        }
        worker.leave_zones();
        #[cfg(feature = "distribute")]
        sharing::send_entrusted(worker);
        self.report().publish(&mut worker.scratch.tally);
    }

    fn begin_thread(&self, starter: Starter) -> ThreadUse {
        starter.begin_thread(self.private_tables().filter(|_| !descriptors::are_few()))
    }

    fn note_slow_task(&self, scratch: &mut Scratch<V>) {
        scratch.note_slow(Duration::ZERO);
    }

    fn out_of_tasks(&self, scratch: &mut Scratch<V>) {
        self.report().add_tally(&mut scratch.tally);
    }

    fn can_migrate(&self, task: &Task<V>) -> bool {
        match task {
            // An evicted parent is cheap to reopen only on the way back up to it.
            Task::Enter { place, .. } => place
                .parent
                .as_ref()
                .is_none_or(|parent| parent.dir.slot(Side::Source).is_open()),
            Task::List { node } => node.dir.slot(Side::Source).is_open(),
            Task::Resume { .. } | Task::Batch { .. } | Task::Own(_) => true,
            #[cfg(feature = "distribute")]
            Task::Received(_) => true,
        }
    }

    fn max_batch(&self) -> usize {
        // The parents of a batch's last tasks may be evicted before these tasks run.
        if self.descriptors().are_short() {
            1
        } else {
            MAX_BATCH
        }
    }

    fn limits(&self) -> Limits {
        self.settings().limits()
    }

    fn second_worker(&self) -> SecondWorker {
        tuning::tuning(self).second_worker
    }

    #[cfg(feature = "distribute")]
    fn thief(&self) -> Option<&dyn sched::others::Thief> {
        sharing::thief(self)
    }

    #[cfg(feature = "distribute")]
    fn is_asked(worker: &Worker<'_, '_, Self>) -> bool {
        sharing::is_asked(worker)
    }

    #[cfg(feature = "distribute")]
    fn give(worker: &mut Worker<'_, '_, Self>) {
        sharing::give(worker);
    }
}
