//! Large files: which they are, which of them are written at the same time, and the way of one from its listing to its end.
//!
//! ```text
//! listed ─▶ waits ─▶ may be written now ─▶ copied ─▶ named ─▶ ended
//!             ▲                                                 │
//!             └───────────────── the next one ──────────────────┘
//! ```
//!
//! All of them wait in one queue. A task writes the first one that may be written now. There is such a task for each file
//! that was queued, and another one when a file begins or ends while others wait.
//!
//! These are the sizes from which a file is treated differently:
//!
//! | from | a file | constant |
//! |---|---|---|
//! | 1 MiB | gets its name last, if it is new | `dest::NAMED_LAST_FROM` |
//! | 1 MiB | begins with a trial if a server stores it | `content::TRIAL_FROM` |
//! | 4 MiB | is copied by a task of its own, and waits for room, unless 64 others wait | `TASK_FROM` |
//! | 4 MiB | is cloned if possible | `content::CLONE_FROM` |
//! | as the caller says | is copied in parts by helpers of the caller | `dest::is_divided` |
//! | 16 MiB | is copied by the kernel in pieces | `content::PIECE_BYTES`, twice |
//! | 64 MiB | is compared at once by `--verify` | `verifying::BATCH_BYTES` |
//!
//! # Room
//!
//! Two files that are written at the same time can both run out of room, even if there is enough
//! for one of them. So a large file waits until it can be written alone, unless there is room for
//! all. It also waits if the process may use too little memory for more writers: the kernel counts
//! pages that are not yet on the disk, too, and would kill the process. After a write has failed
//! for lack of room, a large file is begun only if it fits: otherwise the old content of its dest
//! would be lost, and no copy gained.
//!
//! A write makes a dest look new, so after SIGKILL a later `cp -u` keeps it. Of the dests that exist and are written in
//! place, only one may be incomplete then, as with cp. So they are written one after the other.
//!
//! Invariant: while a file waits, another one is being written, or such a task is queued.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::sync::{Mutex, OnceLock};

use rustix::io::Errno;

use super::tasks::resume;
use super::{CopyRun, CopyTask, EntryCopy, Processed};
use crate::copy::context::Failure;
use crate::copy::decide::mode::Origin;
use crate::copy::entry::{Entry, StoredEntry};
use crate::copy::facts::Symlinks;
use crate::copy::options::Reflink;
use crate::error::Operation;
use crate::hashing::HashMap;
use crate::node::Side;
use crate::paths;
use crate::sched::When;
use crate::sync::lock;
use crate::sys::{self, Stat};
use crate::walk::{Task, Walker};

/// Size from which a file is copied by a task of its own.
const TASK_FROM: u64 = 4 << 20;

/// Memory for each worker that writes a large file.
///
/// In a memory cgroup of 12 to 16 MiB, the kernel killed 4 of 42 copies of 25 files of 8 MB by two
/// workers, and none with 24 MiB (Linux 6.18, a cgroup of version 1).
const MEMORY_PER_WRITER: u64 = 12 << 20;

/// At most this number of files wait. If there are more, the first one is begun at once.
const MOST_WAITING: usize = 64;

/// Returns `true` if much content may have to be written.
#[inline]
fn has_much_content(entry: &Entry<'_>, source: &Stat) -> bool {
    let policy = &entry.ctx.policy;
    let options = policy.options;
    source.st_size as u64 >= TASK_FROM
        && sys::is_regular(source)
        && options.reflink != Reflink::Always
        && policy.writes_content
        && options.as_links.is_none()
}

/// Returns `true` if the content may be copied at another time than the entries beside it.
#[inline]
pub(super) fn may_come_later(entry: &Entry<'_>, source: &Stat) -> bool {
    has_much_content(entry, source)
        && !entry.is_operand()
        && !entry.ctx.policy.options.rules.ask
        // Other names of the source wait until the copy is complete, so it is made at once.
        && !entry.has_other_names(source)
}

/// A large file whose content is still to be copied. Its dest was not touched yet.
struct LargeFile {
    entry: StoredEntry,
    needs: Needs,
}

/// The room and the turn that a file needs before it is written.
#[derive(Clone, Copy)]
struct Needs {
    /// Bytes that a copy takes at least, if its holes stay holes.
    bytes: u64,
    /// The dest exists and is written in place.
    overwrites: bool,
}

/// The large files of a run that are being written, and those that wait.
#[derive(Default)]
pub(super) struct Room {
    lane: Mutex<Lane>,
    /// How many may be written at the same time. Found when it is first needed.
    most_writers: OnceLock<u64>,
}

#[derive(Default)]
struct Lane {
    /// How many files are being written.
    writers: u64,
    /// The bytes of all of them. A sum of what filesystems say does not overflow.
    bytes: u128,
    /// One of them is written in place.
    is_overwriting: bool,
    waiting: VecDeque<LargeFile>,
    /// The filesystems on which a write has failed for lack of room, and the last error on each.
    full: HashMap<u32, Errno>,
}

impl Room {
    /// Takes the first file that may be written now, until [`dismiss`](Self::dismiss). Of those that would be written in place, all
    /// wait for one. `free` returns the free bytes on the filesystem of a dest, and is called only if others are being written.
    fn admit(&self, free: impl FnOnce(&StoredEntry) -> Option<u64>) -> Option<LargeFile> {
        let lane = &mut *lock(&self.lane);
        let may_be_next = |file: &LargeFile| !(file.needs.overwrites && lane.is_overwriting);
        let next = lane.waiting.iter().position(may_be_next);
        let fits = |file: &LargeFile| {
            let bytes = lane.bytes + u128::from(file.needs.bytes);
            lane.writers == 0
                || lane.writers < *self.most_writers.get_or_init(most_writers)
                    && free(&file.entry).is_none_or(|free| bytes <= u128::from(free))
        };
        let next = next.filter(|&next| fits(&lane.waiting[next]));
        let are_too_many = lane.waiting.len() > MOST_WAITING;
        let file = lane.waiting.remove(next.or(are_too_many.then_some(0))?)?;
        lane.writers += 1;
        lane.bytes += u128::from(file.needs.bytes);
        lane.is_overwriting |= file.needs.overwrites;
        Some(file)
    }

    /// Notes that a file is not being written any more.
    fn dismiss(&self, needs: Needs) {
        let mut lane = lock(&self.lane);
        lane.writers -= 1;
        lane.bytes -= u128::from(needs.bytes);
        lane.is_overwriting &= !needs.overwrites;
    }

    /// Notes that a write to the dest of `entry` has failed, if that was for lack of room.
    pub(super) fn note_failure(&self, entry: &Entry<'_>, errno: Option<Errno>) {
        if let Some(errno @ (Errno::NOSPC | Errno::DQUOT)) = errno
            && let Some(directory) = paths::directory_id_of(entry.dest.dir, entry.dest.name)
        {
            lock(&self.lane).full.insert(directory.device, errno);
        }
    }

    /// Returns the error of an earlier write that found no room, if this source does not fit either.
    #[cold]
    fn shortage(&self, entry: &Entry<'_>, source: &Stat) -> Option<Errno> {
        if lock(&self.lane).full.is_empty() {
            return None;
        }
        let (dir, name) = (entry.dest.dir, entry.dest.name);
        let device = paths::directory_id_of(dir, name)?.device;
        let errno = *lock(&self.lane).full.get(&device)?;
        let free = || sys::free_bytes(paths::open_directory_of(dir, name).ok()?.as_fd());
        // The old content makes room when it is truncated or unlinked.
        let old = sys::stat(dir, name, Symlinks::Follow);
        let old_bytes = old.map_or(0, |old| bytes_on_disk(&old));
        let needed = bytes_on_disk(source);
        let lacks_room = match errno {
            // The kernel cannot be asked how much of a quota is left. Incomplete files have
            // used it up.
            Errno::DQUOT => needed > old_bytes,
            _ => free().is_some_and(|free| needed > old_bytes.saturating_add(free)),
        };
        lacks_room.then_some(errno)
    }
}

/// Returns how many files may be written at the same time.
fn most_writers() -> u64 {
    sys::memory_limit().map_or(u64::MAX, |bytes| bytes / MEMORY_PER_WRITER)
}

/// Returns how many bytes a copy of the file takes at least, if its holes stay holes.
#[allow(clippy::unnecessary_cast)] // The types of the fields depend on the architecture.
fn bytes_on_disk(stat: &Stat) -> u64 {
    (stat.st_size as u64).min((stat.st_blocks as u64).saturating_mul(512))
}

/// Queues a large file to be copied by a task of its own, so that several workers can share a directory of large files.
#[cold]
pub(super) fn queue(copy: &mut EntryCopy<'_, '_, '_, '_>, source: &Stat) -> Processed {
    let file = LargeFile {
        entry: StoredEntry::of(copy.entry),
        needs: Needs {
            bytes: bytes_on_disk(source),
            overwrites: is_written_in_place(copy.entry),
        },
    };
    lock(&copy.run.room.lane).waiting.push_back(file);
    push_next(copy.worker);
    Processed::QueuedLarge
}

/// Queues a task for the next file, if one waits.
fn push_next(worker: &mut Walker<'_, '_, CopyRun<'_>>) {
    if !lock(&worker.job.room.lane).waiting.is_empty() {
        worker.push(Task::Own(CopyTask::Large), When::Next);
    }
}

/// Copies the next large file, if it may be written now. Its dest is created, truncated or renamed only now.
pub(super) fn copy_next(worker: &mut Walker<'_, '_, CopyRun<'_>>) {
    let run = worker.job;
    let ctx = &run.ctx;
    let free = |entry: &StoredEntry| {
        let node = entry.place.parent.as_ref()?;
        let dir = ctx.descriptors.pin(node, Side::Dest, ctx).ok()?;
        sys::free_bytes(dir.as_fd())
    };
    let Some(LargeFile { entry, needs }) = run.room.admit(free) else {
        return;
    };
    // There may be room for another one, too.
    push_next(worker);
    if let Some(node) = &entry.place.parent {
        let directory = || ctx.place_path(&node.place, Side::Source);
        ctx.report.offer_directory(directory);
    }
    resume(entry, worker, |copy| match copy.look_at_source()? {
        ControlFlow::Continue(source) => copy.copy_looked(&source).map(drop),
        ControlFlow::Break(_) => Ok(()),
    });
    run.room.dismiss(needs);
    push_next(worker);
}

/// Returns `true` if the dest is a file that keeps its inode.
fn is_written_in_place(entry: &Entry<'_>) -> bool {
    entry.dest_directory_origin() == Origin::Existing
        && !entry.treatment().vacates()
        && entry.stat_dest(Symlinks::Follow).is_ok()
}

/// Fails before a dest is touched, if a large file has no room.
#[inline]
pub(super) fn check_room(
    run: &CopyRun<'_>,
    entry: &Entry<'_>,
    source: &Stat,
) -> Result<(), Failure> {
    let is_large = has_much_content(entry, source);
    match is_large.then(|| run.room.shortage(entry, source)).flatten() {
        None => Ok(()),
        Some(errno) => Err(entry.making_failure(Operation::Write, errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Place;
    use rustix::fs::FileType;

    fn queue(room: &Room, bytes: u64, overwrites: bool) {
        let place = Place {
            parent: None,
            name: c"f".into(),
            operand: 0,
        };
        let file = LargeFile {
            entry: StoredEntry {
                place,
                kind: FileType::RegularFile,
            },
            needs: Needs { bytes, overwrites },
        };
        lock(&room.lane).waiting.push_back(file);
    }

    /// Lets a file wait, and begins to write the first one that may be written.
    fn begin(room: &Room, bytes: u64, overwrites: bool, free: Option<u64>) -> Option<Needs> {
        queue(room, bytes, overwrites);
        next(room, free)
    }

    fn next(room: &Room, free: Option<u64>) -> Option<Needs> {
        room.admit(|_| free).map(|file| file.needs)
    }

    #[test]
    fn a_file_alone_needs_no_known_room() {
        let room = Room::default();
        for _ in 0..2 {
            queue(&room, 7, false);
            let begun = room.admit(|_| unreachable!("no other file is written"));
            room.dismiss(begun.unwrap().needs);
            assert!(next(&room, None).is_none());
        }
    }

    #[test]
    fn files_are_written_together_if_there_is_room_for_all() {
        let room = Room::default();
        let first = begin(&room, 6, false, None).unwrap();
        assert!(begin(&room, 4, false, Some(9)).is_none());
        assert!(begin(&room, 5, false, Some(10)).is_some());
        room.dismiss(first);
        assert_eq!(next(&room, Some(9)).unwrap().bytes, 5);
        assert!(begin(&room, 6, false, Some(14)).is_none());
        assert!(next(&room, None).is_some(), "the room is unknown");
    }

    #[test]
    fn no_more_files_are_written_together_than_the_memory_bears() {
        let room = Room::default();
        room.most_writers.set(2).unwrap();
        let both = [(); 2].map(|()| begin(&room, 1, false, None).unwrap());
        assert!(begin(&room, 1, false, None).is_none());
        room.dismiss(both[0]);
        assert!(next(&room, None).is_some());
    }

    #[test]
    fn dests_are_overwritten_one_by_one() {
        let room = Room::default();
        let first = begin(&room, 1, true, None).unwrap();
        assert!(begin(&room, 1, true, None).is_none());
        let other = begin(&room, 1, false, None).unwrap();
        assert!(!other.overwrites);
        room.dismiss(other);
        assert!(next(&room, None).is_none());
        room.dismiss(first);
        assert!(next(&room, None).unwrap().overwrites);
        assert!(begin(&room, 1, true, None).is_none());
    }

    #[test]
    fn no_more_than_a_few_files_wait() {
        let room = Room::default();
        assert!(begin(&room, 1, true, None).is_some());
        for _ in 0..MOST_WAITING {
            assert!(begin(&room, 1, true, None).is_none());
        }
        assert!(begin(&room, 1, true, None).is_some());
        assert!(next(&room, None).is_none());
    }
}
