//! Lists a directory, a buffer at a time, and processes its entries.
//!
//! Entries are visited while the listing goes on, and subdirectories are queued. A
//! listing that has queued many pauses: it becomes a `Resume` task below theirs, so
//! that the memory for queued tasks does not grow with the width of a directory. Only a few directories that are put off
//! may come below that task at each pause.
//!
//! In a wide directory, workers take turns if two may be faster than one there. A worker that has filled a
//! buffer makes a `Resume` task of the rest of the directory, before it visits the entries of its buffer. So a slow
//! entry usually holds up one buffer at most. It holds up the rest, too, if the governor wants only one worker.
//!
//! In a removal, a worker that has met slow entries also splits its buffer. It offers half of the unvisited entries
//! before it visits the next one. So the next slow entry holds up only the other half. If as many offers are waiting as
//! the gate allows, the worker keeps all entries.
//!
//! A slow entry that is known before it is processed runs as soon as it is found. The listing pauses for
//! it, so that other workers can have the rest, and so that the slow entry is not the last to run.
//!
//! The part of a buffer that another worker gets is a `Batch` task. It counts as a user of the node, so the directory is
//! finished only after all of its parts.
//!
//! A `Resume` task needs a descriptor. If none can be lent, the worker goes on with the listing.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::tuning::{
    CHECKPOINT_ENTRIES, SHARE_CONTENT_FROM, SLOW_BYTES, SLOW_ENTRY, are_many_children, tuning,
    zones,
};
use super::{
    NodeOf, OpenDirs, Task, Unvisited, Visit, Visitor, Walker, filtered, leave, leave_unlisted,
    path,
};
use crate::node::{Dir, Side};
use crate::sched::{Job, When, Zones};
use crate::sys::{self, Entries, Fd, Listing, SharedFd, Symlinks};

/// The result of [`visit_all`].
struct BufferResult {
    /// Number of tasks that were queued.
    queued: usize,
    /// `true` if an entry was queued that the entries after it wait for.
    is_interrupted: bool,
}

/// The state of a listing at the end of its task.
enum ListingState {
    ToTheEnd,
    /// A `Resume` task lists the rest.
    Paused,
}

/// Lists `node` from the start, or puts that off if another worker is in the same zone.
pub(super) fn list_or_put_off<V: Visitor>(node: NodeOf<V>, worker: &mut Walker<'_, '_, V>) {
    let zones = zones(worker.job, &node);
    // Without this condition, a directory outside of all zones takes 23 more instructions. The guard's case
    // `cpz-directories` counts them.
    if zones != Zones::NONE {
        // A directory that is put off stays open.
        if worker.should_put_off(zones) && !worker.job.descriptors().are_short() {
            return worker.push(Task::List { node }, When::PutOff);
        }
        worker.enter_zones(zones);
    }
    list(node, None, worker);
}

/// Lists `node` from the start, or from `position`, and climbs at the end.
pub(super) fn list<V: Visitor>(
    node: NodeOf<V>,
    position: Option<Fd>,
    worker: &mut Walker<'_, '_, V>,
) {
    let mut buffer = worker.scratch.buffer();
    let listed = list_into(&mut buffer, &node, position, worker);
    worker.scratch.keep_buffer(buffer);
    match listed {
        Ok(ListingState::Paused) => {}
        Ok(ListingState::ToTheEnd) => leave(Some(node), worker),
        Err(errno) => leave_unlisted(node, errno, worker),
    }
}

/// Lists the rest of `node`, and climbs at the end.
pub(super) fn resume<V: Visitor>(
    node: NodeOf<V>,
    position: SharedFd,
    worker: &mut Walker<'_, '_, V>,
) {
    match worker.job.descriptors().take_over(position) {
        Ok(position) => list(node, Some(position), worker),
        Err(errno) => leave_unlisted(node, errno, worker),
    }
}

/// Lists `node` into `buffer`, and processes one buffer after the other.
///
/// The rest of a wide directory is offered before the entries of the buffer are visited, so that other workers need not wait
/// for these. Otherwise the listing pauses after them, because only then it is known what they have queued.
fn list_into<V: Visitor>(
    buffer: &mut Listing,
    node: &NodeOf<V>,
    position: Option<Fd>,
    worker: &mut Walker<'_, '_, V>,
) -> Result<ListingState, Errno> {
    let visitor = worker.job;
    let dirs = OpenDirs::pin(visitor, node)?;
    visitor.report().offer_directory(|| path(visitor, node));
    let dir = position.as_ref().map_or(dirs.source(), AsFd::as_fd);
    let mut queued = 0;
    while read_buffer(buffer, node, dir, visitor)? {
        let is_wide = buffer.is_nearly_full();
        filtered::retain_taken(visitor, buffer, node, dirs.source());
        if visitor.report().must_stop() {
            visitor.note_unvisited(node, Unvisited::NotDone);
            break;
        }
        // The filter may have left nothing.
        if buffer.is_empty() {
            continue;
        }
        if is_wide
            && worker.has_company()
            && may_split(visitor)
            && queue_listing(node, dir, When::Last, worker)
        {
            visit_all(buffer, node, &dirs, worker);
            break;
        }
        let processed = visit_all(buffer, node, &dirs, worker);
        queued += processed.queued;
        if processed.is_interrupted && visitor.settings().is_in_order {
            return pause_in_order(buffer, node, &dirs, dir, worker);
        }
        let is_enough = are_many_children(queued, || worker.active_workers());
        if (is_enough || processed.is_interrupted)
            && queue_listing(node, dir, When::AfterOwn, worker)
        {
            return Ok(ListingState::Paused);
        }
    }
    Ok(ListingState::ToTheEnd)
}

/// Reads the next buffer. Returns `false` at the end of the directory, or if it was removed.
#[inline(always)]
fn read_buffer<V: Visitor>(
    buffer: &mut Listing,
    node: &NodeOf<V>,
    dir: BorrowedFd<'_>,
    visitor: &V,
) -> Result<bool, Errno> {
    match buffer.refill(dir) {
        // Without a dest, a directory is only finished if it is empty.
        Err(Errno::NOENT) if !V::Dir::SIDES.contains(&Side::Dest) || was_removed(node, visitor) => {
            Ok(false)
        }
        Err(errno) if visitor.may_list(node, errno) => buffer.refill(dir),
        filled => filled,
    }
}

/// Returns `true` if another process has removed or replaced the directory of `node`, so that its listing, which failed with
/// `ENOENT`, is complete. Some FUSE servers return this error for a directory that is still there.
#[cold]
fn was_removed<V: Visitor>(node: &NodeOf<V>, visitor: &V) -> bool {
    let descriptors = visitor.descriptors();
    let found = descriptors.reopen(node, Side::Source, visitor.roots());
    matches!(found, Err(Errno::NOENT | Errno::STALE))
}

/// Pauses a listing in order. Reads the next buffer now, because there is usually no more, and then no descriptor need be
/// kept. Reads all buffers if none can be.
#[cold]
fn pause_in_order<V: Visitor>(
    buffer: &mut Listing,
    node: &NodeOf<V>,
    dirs: &OpenDirs<'_>,
    dir: BorrowedFd<'_>,
    worker: &mut Walker<'_, '_, V>,
) -> Result<ListingState, Errno> {
    while read_buffer(buffer, node, dir, worker.job)? {
        filtered::retain_taken(worker.job, buffer, node, dirs.source());
        worker.push(batch(buffer.entries().to_listing(), node), When::AfterOwn);
        if queue_listing(node, dir, When::AfterOwn, worker) {
            return Ok(ListingState::Paused);
        }
    }
    Ok(ListingState::ToTheEnd)
}

/// Queues the rest of a listing: below all that the running task has queued, or last, which offers it to other workers
/// beside the caller. Returns `false` if no descriptor can be lent to it.
fn queue_listing<V: Visitor>(
    node: &NodeOf<V>,
    dir: BorrowedFd<'_>,
    when: When,
    worker: &mut Walker<'_, '_, V>,
) -> bool {
    let descriptors = worker.job.descriptors();
    if !descriptors.lend() {
        return false;
    }
    let Ok(position) = sys::duplicate(dir) else {
        descriptors.take_back();
        return false;
    };
    if when == When::Last {
        // The task is one more user of the directory.
        node.retain();
    }
    let node = NodeOf::<V>::clone(node);
    let position = position.into();
    worker.push(Task::Resume { node, position }, when);
    true
}

/// Processes the part of a listing that a `Batch` task holds.
pub(super) fn process_batch<V: Visitor>(
    node: NodeOf<V>,
    listing: Listing,
    worker: &mut Walker<'_, '_, V>,
) {
    match OpenDirs::pin(worker.job, &node) {
        Ok(dirs) => {
            visit_all(&listing, &node, &dirs, worker);
        }
        Err(errno) => worker.job.not_listed(&node, errno),
    }
    worker.scratch.keep_buffer(listing);
    leave(Some(node), worker);
}

/// Visits the entries of `buffer`, with checkpoints between them.
fn visit_all<V: Visitor>(
    buffer: &Listing,
    node: &NodeOf<V>,
    dirs: &OpenDirs<'_>,
    worker: &mut Walker<'_, '_, V>,
) -> BufferResult {
    let visitor = worker.job;
    let mut entries = buffer.entries();
    if worker.is_at_start() && !worker.scratch.has_looked {
        entries = look_ahead(entries, node, dirs, worker);
    } else if offers_half(worker) || V::is_asked(worker) && is_worth_splitting(&entries) {
        entries = split_off_half(entries, node, worker);
    }
    let (mut queued, mut is_interrupted) = (0, false);
    let mut left = worker.scratch.checkpoint_interval();
    while let Some(entry) = entries.next() {
        let visit = visitor.visit(node, dirs, entry, worker);
        queued += usize::from(visit != Visit::Done);
        if visit == Visit::QueuedSlow || visit == Visit::Queued && visitor.settings().is_in_order {
            visitor.report().throttle(1, 0);
            queued += queue_unvisited(entries, node, worker);
            is_interrupted = true;
            break;
        }
        left -= 1;
        if left > 0 {
            continue;
        }
        match checkpoint(entries, node, worker) {
            Some(rest) => entries = rest,
            None => break,
        }
        left = worker.scratch.checkpoint_interval();
    }
    BufferResult {
        queued,
        is_interrupted,
    }
}

/// Stands between two entries. Returns those of `entries` that this worker still visits, or `None` if the run was cancelled.
///
/// The order of its steps matters:
///
/// 1. What was done is counted and shown before the throttle waits, and the throttle may wait until the run is cancelled.
/// 2. A request for entries is read before the checkpoint, which meets it if there are queued tasks.
/// 3. The checkpoint hands out queued tasks, and may begin the governor. So zones are known only after it, and entries are
///    shared only if there was nothing else to hand out.
/// 4. The pace belongs to the interval before, so it is noted before the next interval begins.
fn checkpoint<'a, V: Visitor>(
    entries: Entries<'a>,
    node: &NodeOf<V>,
    worker: &mut Walker<'_, '_, V>,
) -> Option<Entries<'a>> {
    let visitor = worker.job;
    visitor.report().publish(&mut worker.scratch.tally);
    visitor.report().offer_directory(|| path(visitor, node));
    visitor.report().throttle(1, 0);
    let is_asked = V::is_asked(worker);
    let time = worker.checkpoint();
    if !worker.is_in_zones() {
        worker.enter_zones(zones(visitor, node));
    }
    if visitor.report().must_stop() {
        visitor.note_unvisited(node, Unvisited::NotDone);
        return None;
    }
    let per_entry = worker.scratch.note_pace(time);
    // The user may take long to answer the next question and watch the progress. So the next checkpoint comes soon.
    if visitor.settings().is_in_order || visitor.report().is_throttled() {
        worker.scratch.note_slow(per_entry);
    }
    let is_wanted = wants_entries(worker) || offers_half(worker);
    let is_shared = is_wanted && per_entry >= share_from(worker)
        // Nothing is measured if only one worker is allowed.
        || is_asked && (per_entry >= SLOW_ENTRY || is_worth_splitting(&entries));
    Some(match is_shared {
        true => split_off_half(entries, node, worker),
        false => entries,
    })
}

/// Notes whether there are many `entries`. Lets another worker in before the first of them is visited, if that one is slow
/// and a second worker pays. Returns the entries that are left to this worker.
#[cold]
fn look_ahead<'a, V: Visitor>(
    entries: Entries<'a>,
    node: &NodeOf<V>,
    dirs: &OpenDirs<'_>,
    worker: &mut Walker<'_, '_, V>,
) -> Entries<'a> {
    if is_worth_splitting(&entries) {
        worker.expect_many();
    }
    let mut files = entries.clone().filter(|e| e.kind() != FileType::Directory);
    let Some(first) = files.next() else {
        return entries;
    };
    worker.scratch.has_looked = true;
    let settings = worker.job.settings();
    if !settings.may_be_slow || settings.is_alone() {
        return entries;
    }
    let stat = sys::stat(dirs.source(), first.name, Symlinks::NoFollow);
    if !stat.is_ok_and(|stat| stat.st_blocks as u64 * 512 >= SLOW_BYTES) {
        return entries;
    }
    worker.expect_slow_work();
    match wants_entries(worker) && may_split(worker.job) {
        true => split_off_half(entries, node, worker),
        false => entries,
    }
}

/// Returns `true` if two workers may be faster than one in the same directory.
fn may_split<V: Visitor>(visitor: &V) -> bool {
    !visitor.settings().is_alone() && tuning(visitor).share_from < Duration::MAX
}

/// Returns the time per entry from which another worker gets half of the rest of a listing. The tuning is known if a
/// worker is idle, or if an entry took longer than the first measurement.
fn share_from<V: Visitor>(worker: &Walker<'_, '_, V>) -> Duration {
    match worker.job.settings().tuning.get() {
        None => Duration::MAX,
        Some(_) if worker.scratch.had_content => SHARE_CONTENT_FROM,
        Some(tuning) => tuning.share_from,
    }
}

/// Returns `true` if this worker should leave half of its entries for the next one that runs out of tasks, because they
/// may be slow, and there is nothing else to leave.
fn offers_half<V: Visitor>(worker: &Walker<'_, '_, V>) -> bool {
    let slowest = worker.scratch.slowest();
    !slowest.is_zero()
        && worker.job.settings().may_be_slow
        && slowest >= share_from(worker)
        && worker.queued_tasks() == 0
        && worker.has_company()
}

/// Returns `true` if there are so many entries that half of them are worth a message to another process, even if they
/// are fast.
fn is_worth_splitting(entries: &Entries<'_>) -> bool {
    entries.clone().nth(CHECKPOINT_ENTRIES).is_some()
}

/// Hands `task` to an idle worker, or to another process that has asked for work. If none is idle, and this one expects
/// slow operations, leaves a task for the next worker that runs out of tasks. Otherwise queues it.
pub(crate) fn offer<V: Visitor>(task: Task<V>, worker: &mut Walker<'_, '_, V>) {
    worker.push(task, When::Next);
    worker.checkpoint();
}

/// Returns `true` if another worker is idle, and there is nothing to give it but a part of the running task.
fn wants_entries<V: Visitor>(worker: &Walker<'_, '_, V>) -> bool {
    worker.has_idle_worker() && worker.queued_tasks() == 0
}

/// Returns a task for `listing`.
fn batch<V: Visitor>(listing: Listing, node: &NodeOf<V>) -> Task<V> {
    node.retain();
    let node = NodeOf::<V>::clone(node);
    Task::Batch { node, listing }
}

/// Queues `entries`, if there are any, below the task of the entry before. Other workers get them at its next
/// checkpoint. If none has been started, and a second worker pays, one gets the slow entry at once. Returns the number of
/// tasks queued.
#[cold]
fn queue_unvisited<V: Visitor>(
    entries: Entries<'_>,
    node: &NodeOf<V>,
    worker: &mut Walker<'_, '_, V>,
) -> usize {
    let has_entries = entries.clone().next().is_some();
    if has_entries {
        worker.push(batch(entries.to_listing(), node), When::AfterNewest);
    }
    // Within XFS, a large file is usually cloned in no time.
    if worker.is_at_start()
        && !worker.job.settings().is_alone()
        && tuning(worker.job).groups.is_none()
    {
        worker.expect_slow_work();
    }
    usize::from(has_entries)
}

/// Shares the second half of `entries` and returns the first half.
#[cold]
fn split_off_half<'a, V: Visitor>(
    entries: Entries<'a>,
    node: &NodeOf<V>,
    worker: &mut Walker<'_, '_, V>,
) -> Entries<'a> {
    let mut second = worker.scratch.buffer();
    let first = entries.halve(&mut second);
    if second.entries().next().is_some() {
        offer(batch(second, node), worker);
    } else {
        worker.scratch.keep_buffer(second);
    }
    first
}
