//! Keeps workers on different processors.
//!
//! The kernel divides the processors between threads, not between programs. If another program keeps one of two
//! processors busy, two workers may take turns on the other one for most of a run. On different processors they have 1.5
//! of them, not 1.0. So a started worker that shares its processor with another worker moves to one that no worker uses.
//!
//! Both arrays are hints, which publish nothing. A worker writes to them only after it or another worker has moved.
//!
//! Times without this, relative to those with it, two cores, one of them busy (medians of 7 to 20 rounds): copies of 50,000
//! files of 4 KB 1.10 on tmpfs and ext4, and 1.04 to 1.08 on XFS; removals of them 1.00 to 1.05 on tmpfs and 1.08 on ext4.
//! On tmpfs, nine of ten runs are within 1.04 instead of 1.20. On btrfs, where workers wait for each other: 0.99. Cells:
//! those of `benches steady --busy`.

use std::array;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use crate::sys;

/// The most workers that are kept apart. With so many, two that share a processor cost little.
const MOST: usize = 64;

/// The shortest time between two moves of a worker. A move takes 25 µs (median of 300), and the kernel may undo it.
const SHORTEST_STAY: Duration = Duration::from_millis(4);

/// The number of the first worker, which runs on the caller's thread. It never moves: a thread that has set its processors
/// once does not get those that are added to its cpuset later. Either worker sees that they share a processor, so it
/// suffices if the other one moves.
const CALLER: u32 = 1;

/// The value of a place or a number that is not known.
const NONE: u32 = 0;

/// Says which worker runs on which processor.
pub(super) struct Placement {
    workers: AtomicU32,
    /// The most workers that can have a processor each; zero if workers must not move.
    room: OnceLock<u32>,
    /// For each processor modulo [`MOST`], the number of the worker that was seen there last.
    last: [AtomicU32; MOST],
    /// For each worker, its processor plus one; or [`NONE`] while it does not run.
    places: [AtomicU32; MOST],
}

/// A worker, as its [`Placement`] knows it.
pub(super) struct Seat {
    /// Counted from one.
    number: u32,
    /// When the worker may move.
    may_move_nanos: u64,
}

impl Placement {
    pub(super) fn new() -> Self {
        Self {
            workers: AtomicU32::new(0),
            room: OnceLock::new(),
            last: array::from_fn(|_| AtomicU32::new(NONE)),
            places: array::from_fn(|_| AtomicU32::new(NONE)),
        }
    }

    /// Returns the seat of a new worker.
    pub(super) fn seat(&self) -> Seat {
        Seat {
            number: self.workers.fetch_add(1, Relaxed) + 1,
            may_move_nanos: SHORTEST_STAY.as_nanos() as u64,
        }
    }

    /// Moves the calling worker if it shares its processor with another one, and there is a processor without a worker. The
    /// first worker never moves. Does nothing if there are more workers than processors: these wait most of the time.
    #[inline]
    pub(super) fn spread(&self, seat: &mut Seat, now_nanos: u64) {
        let room = *self.room.get_or_init(room);
        if self.workers.load(Relaxed) <= room && self.is_shared(seat, sys::current_processor()) {
            self.move_away(seat, now_nanos);
        }
    }

    /// Notes that the worker no longer runs.
    pub(super) fn leave(&self, seat: &Seat) {
        // A worker without company was not noted.
        if let Some(place) = self.place(seat.number)
            && place.load(Relaxed) != NONE
        {
            place.store(NONE, Relaxed);
        }
    }

    /// Notes that the worker runs on `processor`. Returns `true` if another one has run there since, and is not known to have
    /// gone elsewhere.
    fn is_shared(&self, seat: &Seat, processor: usize) -> bool {
        let Some(place) = self.place(seat.number) else {
            return false;
        };
        let (last, here) = (&self.last[processor % MOST], place_of(processor));
        if last.load(Relaxed) == seat.number && place.load(Relaxed) == here {
            return false;
        }
        place.store(here, Relaxed);
        let before = last.swap(seat.number, Relaxed);
        before != seat.number
            && self
                .place(before)
                .is_some_and(|place| place.load(Relaxed) == here)
    }

    #[cold]
    #[inline(never)]
    fn move_away(&self, seat: &mut Seat, now_nanos: u64) {
        if seat.number == CALLER || now_nanos < seat.may_move_nanos {
            return;
        }
        seat.may_move_nanos = now_nanos + SHORTEST_STAY.as_nanos() as u64;
        if sys::move_to_processor(|processor| self.is_free(processor)) {
            // The other worker must not take this processor.
            self.is_shared(seat, sys::current_processor());
        }
    }

    fn is_free(&self, processor: usize) -> bool {
        let here = place_of(processor);
        self.places.iter().all(|place| place.load(Relaxed) != here)
    }

    fn place(&self, number: u32) -> Option<&AtomicU32> {
        self.places.get((number as usize).wrapping_sub(1))
    }
}

/// Returns the value of a place.
fn place_of(processor: usize) -> u32 {
    processor as u32 + 1
}

/// Returns how many workers can have a processor each, or zero if workers must not move.
#[cold]
fn room() -> u32 {
    sys::movable_processors().min(MOST) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_a_processor_if_they_take_turns_on_it() {
        let placement = Placement::new();
        let [one, two] = [placement.seat(), placement.seat()];
        assert!(!placement.is_shared(&one, 1));
        assert!(placement.is_shared(&two, 1));
        assert!(!placement.is_shared(&two, 1), "no other worker ran since");
        assert!(placement.is_shared(&one, 1));
        assert!(placement.is_free(0));
        assert!(!placement.is_free(1));
    }

    #[test]
    fn a_worker_that_has_moved_or_left_shares_nothing() {
        let placement = Placement::new();
        let [one, two] = [placement.seat(), placement.seat()];
        placement.is_shared(&one, 1);
        placement.is_shared(&one, 0);
        assert!(!placement.is_shared(&two, 1), "the first worker has moved");
        assert!(placement.is_shared(&two, 0));
        placement.leave(&two);
        assert!(!placement.is_shared(&one, 0), "the second worker has left");
        assert!(placement.is_free(1));
    }

    /// Lets `mover` spread on a thread of its own, after `other` was seen on the same processor. Returns the processor and
    /// the place of `mover` afterwards.
    fn spread_from_shared(placement: &Placement, other: &Seat, mover: &mut Seat) -> (usize, u32) {
        let later = mover.may_move_nanos;
        let spread = || {
            let processor = sys::current_processor();
            placement.is_shared(mover, processor);
            placement.is_shared(other, processor);
            placement.spread(mover, later);
            let place = placement.place(mover.number).expect("there is room");
            (processor, place.load(Relaxed))
        };
        std::thread::scope(|scope| scope.spawn(spread).join()).expect("the thread must not panic")
    }

    #[test]
    fn a_started_worker_leaves_a_processor_that_it_shares() {
        if room() < 2 {
            testkit::skip!("this process must not move, or may use one processor only");
        }
        let placement = Placement::new();
        let [caller, mut started] = [placement.seat(), placement.seat()];
        // The kernel may move the thread, too. Then there is nothing to leave.
        let has_left = (0..1_000).any(|_| {
            let before = started.may_move_nanos;
            let (processor, place) = spread_from_shared(&placement, &caller, &mut started);
            started.may_move_nanos > before && place != place_of(processor)
        });
        assert!(has_left);
    }

    #[test]
    fn the_callers_thread_and_a_worker_that_has_just_moved_stay() {
        let placement = Placement::new();
        let [mut caller, mut started] = [placement.seat(), placement.seat()];
        let before = caller.may_move_nanos;
        for _ in 0..100 {
            spread_from_shared(&placement, &started, &mut caller);
        }
        assert_eq!(caller.may_move_nanos, before);
        placement.move_away(&mut started, before - 1);
        assert_eq!(started.may_move_nanos, before);
    }

    #[test]
    fn processors_with_equal_hints_are_not_confused() {
        let placement = Placement::new();
        let [one, two] = [placement.seat(), placement.seat()];
        placement.is_shared(&one, 3);
        assert!(!placement.is_shared(&two, 3 + MOST));
    }

    #[test]
    fn more_workers_than_places_are_not_noted() {
        let placement = Placement::new();
        let seats: Vec<_> = (0..=MOST).map(|_| placement.seat()).collect();
        let last = seats.last().expect("there are seats");
        placement.is_shared(&seats[0], 1);
        assert!(!placement.is_shared(last, 1));
        placement.leave(last);
        assert!(!placement.is_free(1));
    }
}
