//! Divides a large file between the ranks, on the rank that has begun it, its owner.
//!
//! ```text
//!   owner's engine                      owner's main thread              any rank
//!   --------------                      -------------------              --------
//!   creates a hidden file
//!   Line::divide: waits for all parts
//!     part ────────────────────────▶    Copy ─────────────────────────▶  copies the part, and closes the file
//!     note ◀────────────────────────         ◀─────────────────────────  Copied
//!   sets the attributes, and gives the file its name
//! ```
//!
//! A rank that fails at a part gets no more parts of the file, and another rank copies the part. If all have failed, the
//! owner's engine copies the whole file, and reports what fails then.
//!
//! If a rank dies, the files under way have hidden names. There is at most one for each thread.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender};

use crate::message::{Answer, Rank};

/// The number of parts that a rank copies at the same time, so that it reads one while it writes another.
pub(crate) const STREAMS: usize = 4;
/// The number of parts for each rank, so that all end at about the same time.
const PARTS: u64 = 16;
/// The least and the most bytes of a part.
const LEAST_BYTES: u64 = 4 << 20;
const MOST_BYTES: u64 = 256 << 20;

/// A file that is divided.
#[derive(Debug)]
pub(crate) struct Division {
    owner: usize,
    part_bytes: u64,
    /// The ranges that no rank copies yet. Parts are taken from the last one.
    left: Vec<Range<u64>>,
    /// The number of parts that each rank copies now.
    under_way: Vec<usize>,
    failed: Vec<bool>,
}

impl Division {
    /// Divides a range of a file that `owner` has begun.
    pub(crate) fn new(owner: Rank, ranks: u32, range: Range<u64>) -> Self {
        let part_bytes = (range.end - range.start) / (PARTS * u64::from(ranks));
        Self {
            owner: owner as usize,
            part_bytes: part_bytes.clamp(LEAST_BYTES, MOST_BYTES),
            left: vec![range],
            under_way: vec![0; ranks as usize],
            failed: vec![false; ranks as usize],
        }
    }

    /// Returns the next part that can be begun now, and the rank that must copy it.
    pub(crate) fn next(&mut self) -> Option<(Rank, Range<u64>)> {
        let ranks = self.under_way.len();
        let from_owner = (0..ranks).map(|distance| (self.owner + distance) % ranks);
        let free = from_owner.filter(|&rank| self.under_way[rank] < STREAMS && !self.failed[rank]);
        let rank = free.min_by_key(|&rank| self.under_way[rank])?;
        let rest = self.left.pop()?;
        let end = rest.end.min(rest.start + self.part_bytes);
        if end < rest.end {
            self.left.push(end..rest.end);
        }
        self.under_way[rank] += 1;
        Some((rank as Rank, rest.start..end))
    }

    /// Notes that a rank has copied a part, or has failed at it.
    pub(crate) fn note(&mut self, rank: Rank, answer: Answer) {
        self.under_way[rank as usize] -= 1;
        if !answer.is_copied {
            self.failed[rank as usize] = true;
            self.left.push(answer.range);
        }
    }

    /// Returns `true` if ranks copy parts now.
    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way.iter().any(|&parts| parts > 0)
    }

    /// Returns `true` if all parts are copied.
    pub(crate) fn is_complete(&self) -> bool {
        self.left.is_empty() && !self.is_under_way()
    }
}

/// The files that a rank has divided, by their numbers, with the ways of answers to their workers.
#[derive(Debug, Default)]
pub(crate) struct Divisions(Mutex<BTreeMap<u64, Sender<(Rank, Answer)>>>);

impl Divisions {
    fn workers(&self) -> MutexGuard<'_, BTreeMap<u64, Sender<(Rank, Answer)>>> {
        // No change is left half done by a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a number for a file, and its answers.
    pub(crate) fn begin(&self) -> (u64, Receiver<(Rank, Answer)>) {
        let (send, answers) = crossbeam_channel::unbounded();
        let mut workers = self.workers();
        let file = workers.last_key_value().map_or(0, |(last, _)| last + 1);
        workers.insert(file, send);
        (file, answers)
    }

    /// Passes the answer of a rank on. It is dropped if the file has ended.
    pub(crate) fn pass_on(&self, rank: Rank, answer: Answer) {
        if let Some(worker) = self.workers().get(&answer.file) {
            let _ = worker.send((rank, answer));
        }
    }

    pub(crate) fn end(&self, file: u64) {
        self.workers().remove(&file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeSet, VecDeque};

    /// Divides a file of so many bytes, which rank 1 has begun, between 4 ranks. `copies` says whether a rank copies a part.
    /// Returns the parts, and whether the file is complete.
    fn divide(
        bytes: u64,
        mut copies: impl FnMut(Rank, &Range<u64>) -> bool,
    ) -> (BTreeMap<u64, u64>, bool) {
        let mut division = Division::new(1, 4, 0..bytes);
        let (mut under_way, mut parts) = (VecDeque::new(), BTreeMap::new());
        loop {
            while let Some((rank, range)) = division.next() {
                under_way.push_back((rank, range));
                let of_rank = under_way.iter().filter(|(by, _)| *by == rank);
                assert!(of_rank.count() <= STREAMS);
            }
            let Some((rank, range)) = under_way.pop_front() else {
                return (parts, division.is_complete());
            };
            assert!(!division.is_complete());
            let is_copied = copies(rank, &range);
            if is_copied {
                assert_eq!(parts.insert(range.start, range.end), None);
            }
            division.note(
                rank,
                Answer {
                    file: 7,
                    range,
                    is_copied,
                },
            );
        }
    }

    /// Asserts that parts follow each other from the start to the end.
    fn assert_whole(parts: &BTreeMap<u64, u64>, bytes: u64) {
        let end = parts.iter().fold(0, |end, (&start, &next)| {
            assert_eq!(start, end);
            next
        });
        assert_eq!(end, bytes);
    }

    #[test]
    fn all_ranks_copy_parts() {
        for bytes in [200 << 20, (64 << 20) + 1, 7] {
            let mut ranks = BTreeSet::new();
            let (parts, is_complete) = divide(bytes, |rank, _| {
                ranks.insert(rank);
                true
            });
            assert!(is_complete);
            assert_whole(&parts, bytes);
            let expected: BTreeSet<_> = if bytes == 7 {
                [1].into()
            } else {
                (0..4).collect()
            };
            assert_eq!(ranks, expected);
        }
    }

    #[test]
    fn other_ranks_copy_the_parts_that_a_rank_has_failed_at() {
        let mut failures = 0;
        let (parts, is_complete) = divide(500 << 20, |rank, _| {
            failures += usize::from(rank == 1);
            rank != 1
        });
        assert!((1..=STREAMS).contains(&failures), "{failures}");
        assert!(is_complete);
        assert_whole(&parts, 500 << 20);
    }

    #[test]
    fn a_file_that_no_rank_can_copy_stays_incomplete() {
        let (parts, is_complete) = divide(500 << 20, |_, _| false);
        assert!(parts.is_empty() && !is_complete);
    }

    #[test]
    fn answers_go_to_the_worker_of_their_file() {
        let divisions = Divisions::default();
        let [first, second] = [(); 2].map(|()| divisions.begin());
        assert_ne!(first.0, second.0);
        let answer = |file| Answer {
            file,
            range: 1..2,
            is_copied: true,
        };
        divisions.pass_on(3, answer(second.0));
        assert_eq!(second.1.try_recv(), Ok((3, answer(second.0))));
        assert!(first.1.is_empty());
        divisions.end(second.0);
        divisions.pass_on(3, answer(second.0));
    }
}
