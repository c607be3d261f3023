//! Keeps workers on different processors.
//!
//! The kernel divides the processors between threads, not between programs. If another program keeps one of two
//! processors busy, two workers may take turns on the other one for most of a run. On different processors they have 1.5
//! of them, not 1.0. So a started worker that shares its processor with another worker moves to one that no worker uses.
//! That one may be busy with another program. Only machines with two processors were measured.
//!
//! The records are hints, which publish nothing. A worker writes to them only after it or another worker has moved.
//!
//! Times without this, relative to those with it, two cores, one of them busy (medians of 7 to 20 rounds): copies of 50,000
//! files of 4 KB 1.10 on tmpfs and ext4, and 1.04 to 1.08 on XFS; removals of them 1.00 to 1.05 on tmpfs, 1.08 on ext4, and
//! 0.98 to 1.03 on XFS. On btrfs, where workers wait for each other, both take 0.97 to 0.99. Cells: those of
//! `benches steady --busy`.

use std::iter;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use super::meter::nanos;
use crate::sys;

/// The most workers that are kept apart. With so many, two that share a processor cost little.
const MOST_WORKERS: usize = 64;

/// The shortest time between two looks of a worker at its processor. Threads that take turns change after milliseconds. With
/// 1 ms, copies and removals of 50,000 files on tmpfs, ext4, XFS and btrfs take 0.99 to 1.03 of the time (one core busy, 9 rounds).
/// With zero they take 0.99 and 1.00 on tmpfs. Cells: those of `benches steady --busy`.
const LOOK_EVERY: Duration = Duration::from_micros(100);

/// The shortest time between two moves of a worker. A move takes 25 µs (median of 300), and the kernel may undo
/// it. With 1 ms and with 16 ms, the same copies and removals take 0.97 to 1.02 of the time.
const MOVE_EVERY: Duration = Duration::from_millis(4);

/// The number of the first worker, which runs on the caller's thread. It never moves: a thread that has set its processors
/// once does not get those that are added to its cpuset later. Either worker sees that they share a processor, so it
/// suffices if the other one moves.
const CALLER: u32 = 0;

/// No worker or no processor.
const NONE: u32 = u32::MAX;

/// Knows which worker runs on which processor.
pub(super) struct Placement {
    workers: AtomicU32,
    /// Made when a worker first has company.
    records: OnceLock<Records>,
}

/// A worker, as its [`Placement`] knows it.
pub(super) struct PlacedWorker {
    number: u32,
    /// The earliest time of its next look, in nanoseconds since the meter has started.
    next_look_nanos: u64,
}

impl Placement {
    pub(super) fn new() -> Self {
        Self {
            workers: AtomicU32::new(0),
            records: OnceLock::new(),
        }
    }

    /// Returns a new worker. The first one runs on the caller's thread.
    pub(super) fn add_worker(&self) -> PlacedWorker {
        PlacedWorker {
            number: self.workers.fetch_add(1, Relaxed),
            // A run that is shorter than that does not look.
            next_look_nanos: nanos(MOVE_EVERY),
        }
    }

    /// Moves the calling worker if it shares its processor with another one, and there is a processor without a worker.
    /// Does nothing if more workers are `active` than there are processors: they wait for requests most of the time.
    #[inline]
    pub(super) fn keep_apart(&self, worker: &mut PlacedWorker, active: usize, now_nanos: u64) {
        if now_nanos >= worker.next_look_nanos {
            self.look(worker, active, now_nanos);
        }
    }

    #[cold]
    #[inline(never)]
    fn look(&self, worker: &mut PlacedWorker, active: usize, now_nanos: u64) {
        let records = self.records.get_or_init(Records::new);
        let is_shared = active <= records.processors
            && records.notices_company(worker.number, sys::current_processor());
        let pause = if is_shared && worker.number != CALLER {
            records.move_away(worker.number);
            MOVE_EVERY
        } else {
            LOOK_EVERY
        };
        worker.next_look_nanos = now_nanos + nanos(pause);
    }

    /// Notes that the worker does not run any more, or for now.
    pub(super) fn leave(&self, worker: &PlacedWorker) {
        if let Some(records) = self.records.get() {
            records.leave(worker.number);
        }
    }
}

struct Records {
    /// How many processors the workers may use; zero if they must not move.
    processors: usize,
    /// For each processor, the worker that was seen there last.
    last_worker: Box<[AtomicU32]>,
    /// For each worker, the processor on which it was seen last, or [`NONE`] while it does not run.
    processor_of: Box<[AtomicU32]>,
}

impl Records {
    fn new() -> Self {
        Self::of(&sys::movable_processors())
    }

    /// `allowed` is in ascending order.
    fn of(allowed: &[usize]) -> Self {
        let unknown = |len| {
            iter::repeat_with(|| AtomicU32::new(NONE))
                .take(len)
                .collect()
        };
        Self {
            processors: allowed.len(),
            last_worker: unknown(allowed.last().map_or(0, |last| last + 1)),
            processor_of: unknown(MOST_WORKERS),
        }
    }

    /// Notes that the worker runs on `processor`. Returns `true` if another one was seen there since this one was, and
    /// nowhere else afterwards.
    fn notices_company(&self, worker: u32, processor: usize) -> bool {
        let before = self.note(worker, processor);
        before != worker && self.is_on(before, processor)
    }

    /// Notes that the worker runs on `processor`. Returns the worker that was seen there before, which may be the same one, or
    /// [`NONE`].
    fn note(&self, worker: u32, processor: usize) -> u32 {
        let (Some(last), Some(own)) = (
            self.last_worker.get(processor),
            self.processor_of.get(worker as usize),
        ) else {
            return NONE;
        };
        if last.load(Relaxed) == worker && self.is_on(worker, processor) {
            return worker;
        }
        own.store(processor as u32, Relaxed);
        last.swap(worker, Relaxed)
    }

    /// Returns `true` if the worker was seen on `processor` last.
    fn is_on(&self, worker: u32, processor: usize) -> bool {
        self.processor_of
            .get(worker as usize)
            .is_some_and(|of_worker| of_worker.load(Relaxed) == processor as u32)
    }

    /// Moves the calling worker to a processor without a worker, if there is one.
    fn move_away(&self, worker: u32) {
        if sys::move_to_processor(|processor| self.is_free(processor)) {
            // Noted at once, so that no other worker moves there before the next look of this one.
            self.note(worker, sys::current_processor());
        }
    }

    fn is_free(&self, processor: usize) -> bool {
        self.processor_of
            .iter()
            .all(|of_worker| of_worker.load(Relaxed) != processor as u32)
    }

    fn leave(&self, worker: u32) {
        if let Some(own) = self.processor_of.get(worker as usize)
            && own.load(Relaxed) != NONE
        {
            own.store(NONE, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_a_processor_if_they_take_turns_on_it() {
        let records = Records::of(&[0, 1]);
        assert!(!records.notices_company(0, 1));
        assert!(records.notices_company(1, 1));
        assert!(!records.notices_company(1, 1), "no other worker ran since");
        assert!(records.notices_company(0, 1));
        assert!(records.is_free(0));
        assert!(!records.is_free(1));
    }

    #[test]
    fn a_worker_that_has_moved_or_left_shares_nothing() {
        let records = Records::of(&[0, 1]);
        records.notices_company(0, 1);
        records.notices_company(0, 0);
        assert!(!records.notices_company(1, 1), "the first worker has moved");
        assert!(records.notices_company(1, 0));
        records.leave(1);
        assert!(!records.notices_company(0, 0), "the second worker has left");
        assert!(records.is_free(1));
    }

    #[test]
    fn workers_and_processors_without_a_record_are_not_noted() {
        let records = Records::of(&[0, 5]);
        let most = MOST_WORKERS as u32;
        records.notices_company(0, 5);
        assert!(!records.notices_company(most, 5));
        records.leave(most);
        assert!(!records.is_free(5));
        assert!(!records.notices_company(0, 6));
        assert!(!records.notices_company(1, 6));
    }

    #[derive(Debug, PartialEq)]
    enum Outcome {
        Stayed,
        TriedToMove,
        Moved,
    }

    /// Lets `worker` look at its processor 1,000 times, each time after `other` was seen there, on threads that may move.
    fn look_beside(
        placement: &Placement,
        other: u32,
        worker: &mut PlacedWorker,
        active: usize,
    ) -> Vec<Outcome> {
        let records = placement.records.get_or_init(Records::new);
        let mut look = || {
            let now = worker.next_look_nanos;
            let processor = sys::current_processor();
            records.note(worker.number, processor);
            assert!(records.notices_company(other, processor));
            placement.keep_apart(worker, active, now);
            if worker.next_look_nanos < now + nanos(MOVE_EVERY) {
                Outcome::Stayed
            } else if records.is_on(worker.number, processor) {
                Outcome::TriedToMove
            } else {
                Outcome::Moved
            }
        };
        let look_on_new_thread = |_| {
            std::thread::scope(|scope| scope.spawn(&mut look).join())
                .expect("the thread must not panic")
        };
        (0..1_000).map(look_on_new_thread).collect()
    }

    fn can_move(placement: &Placement) -> bool {
        placement.records.get_or_init(Records::new).processors >= 2
    }

    const CANNOT_MOVE: &str = "this process must not move, or may use one processor only";

    #[test]
    fn a_started_worker_leaves_a_processor_that_it_shares() {
        let placement = Placement::new();
        let [_, mut started] = [placement.add_worker(), placement.add_worker()];
        if !can_move(&placement) {
            testkit::skip!("{CANNOT_MOVE}");
        }
        // The kernel may move the thread between the notes. Then there is nothing to leave.
        assert!(look_beside(&placement, CALLER, &mut started, 2).contains(&Outcome::Moved));
    }

    #[test]
    fn workers_move_again_when_no_more_are_active_than_there_are_processors() {
        let placement = Placement::new();
        let mut workers = [(); MOST_WORKERS / 2].map(|()| placement.add_worker());
        if !can_move(&placement) {
            testkit::skip!("{CANNOT_MOVE}");
        }
        let too_many = placement.records.get_or_init(Records::new).processors + 1;
        let [.., one, two] = &mut workers;
        let outcomes = look_beside(&placement, one.number, two, too_many);
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Stayed));
        assert!(look_beside(&placement, one.number, two, 2).contains(&Outcome::Moved));
    }

    #[test]
    fn the_callers_thread_stays() {
        let placement = Placement::new();
        let [mut caller, started] = [placement.add_worker(), placement.add_worker()];
        if !can_move(&placement) {
            testkit::skip!("{CANNOT_MOVE}");
        }
        let outcomes = look_beside(&placement, started.number, &mut caller, 2);
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Stayed));
    }

    #[test]
    fn a_worker_that_has_just_looked_does_not_look_again() {
        let placement = Placement::new();
        let mut worker = placement.add_worker();
        let next = worker.next_look_nanos;
        placement.keep_apart(&mut worker, 2, next - 1);
        assert_eq!(worker.next_look_nanos, next);
        placement.keep_apart(&mut worker, 2, next);
        assert_eq!(worker.next_look_nanos, next + nanos(LOOK_EVERY));
    }
}
