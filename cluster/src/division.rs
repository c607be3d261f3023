//! Divides the large files of a job between the ranks, on rank 0, after the rest of the job is done. It makes no system call.
//!
//! ```text
//!   rank that met the file          any rank                 rank that met the file
//!   ----------------------          --------                 ----------------------
//!   Begin: creates a hidden file    Copy: copies a part  ..  Complete: sets the attributes, and gives the file its name
//! ```
//!
//! A rank that fails at a part gets no more parts, except of files that it has met, and another rank copies the part. If
//! the rank that met a file fails, it copies the whole file by its engine, which reports what fails then.
//!
//! If a rank dies, the files under way have hidden names. There are at most [`STREAMS`] for each rank.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::iter;
use std::ops::Range;

use fuc_engine::distribute::LargeCopy;

use crate::message::{Rank, Step, Task};

/// The number of parts that a rank copies at the same time, so that it reads one while it writes another.
const STREAMS: usize = 4;
/// The number of parts for each rank, so that all end at about the same time.
const PARTS: u64 = 16;
/// The least and the most bytes of a part.
const LEAST_BYTES: u64 = 4 << 20;
const MOST_BYTES: u64 = 256 << 20;

/// A large file that was begun.
#[derive(Debug)]
struct File {
    owner: Rank,
    copy: LargeCopy,
    /// It is unknown until the file has been created, and after a failure.
    inode: Option<u64>,
    /// The parts that no rank copies yet. The last one is the rest.
    left: Vec<Range<u64>>,
    /// The number of steps under way.
    steps: usize,
}

/// The large files of a job.
#[derive(Debug, Default)]
pub(crate) struct Division {
    waiting: VecDeque<(Rank, LargeCopy)>,
    files: BTreeMap<u64, File>,
    /// The steps under way, by their numbers, with their ranks and files.
    steps: BTreeMap<u64, (Rank, u64, Task)>,
    next_number: u64,
    /// The parts that each rank copies now.
    parts: Vec<usize>,
    failed: BTreeSet<Rank>,
    part_bytes: u64,
}

impl Division {
    /// Adds the files that a rank has met.
    pub(crate) fn add(&mut self, owner: Rank, files: Vec<LargeCopy>) {
        self.waiting
            .extend(files.into_iter().map(|copy| (owner, copy)));
    }

    /// Begins after all ranks have named their files.
    pub(crate) fn begin(&mut self, ranks: u32) {
        let bytes: u64 = self.waiting.iter().map(|(_, copy)| copy.bytes).sum();
        let part_bytes = bytes / (PARTS * u64::from(ranks));
        self.part_bytes = part_bytes
            .clamp(LEAST_BYTES, MOST_BYTES)
            .next_multiple_of(1 << 20);
        self.parts = vec![0; ranks as usize];
    }

    /// Begins no more steps, because the job is cancelled. Returns `true` if a file stays incomplete.
    pub(crate) fn cancel(&mut self) -> bool {
        let is_cut = !self.waiting.is_empty() || !self.files.is_empty();
        self.waiting.clear();
        self.files.clear();
        is_cut
    }

    /// Returns `true` if nothing is left to do.
    pub(crate) fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.files.is_empty() && self.steps.is_empty()
    }

    /// Returns the next step and the rank that must do it, if one can be begun now.
    pub(crate) fn next(&mut self) -> Option<(Rank, Step)> {
        let number = self.next_number;
        let (rank, id, task) = self.choose(number)?;
        self.next_number += 1;
        let file = self.files.get_mut(&id)?;
        file.steps += 1;
        let copy = file.copy.clone();
        self.steps.insert(number, (rank, id, task.clone()));
        let step = Step {
            number,
            copy,
            file: id,
            task,
        };
        Some((rank, step))
    }

    /// Chooses a rank, a file and a task. `number` is that of the step.
    fn choose(&mut self, number: u64) -> Option<(Rank, u64, Task)> {
        let mut files = self.files.iter();
        let is_idle = |file: &File| file.steps == 0 && file.left.is_empty();
        if let Some((&id, file)) = files.find(|(_, file)| is_idle(file)) {
            let inode = file.inode;
            return Some((file.owner, id, Task::Complete { inode }));
        }
        if self.files.len() < STREAMS * self.parts.len()
            && let Some((owner, copy)) = self.waiting.pop_front()
        {
            let file = File {
                owner,
                inode: None,
                left: iter::once(0..copy.bytes).collect(),
                copy,
                steps: 0,
            };
            self.files.insert(number, file);
            return Some((owner, number, Task::Begin));
        }
        let mut ranks: Vec<usize> = (0..self.parts.len()).collect();
        ranks.retain(|&rank| self.parts[rank] < STREAMS);
        ranks.sort_by_key(|&rank| self.parts[rank]);
        for rank in ranks {
            let may_copy =
                |file: &File| file.owner == rank as Rank || !self.failed.contains(&(rank as Rank));
            let mut files = self.files.iter_mut();
            let found = files.find_map(|(&id, file)| {
                let inode = file.inode.filter(|_| may_copy(file))?;
                let part = take_part(&mut file.left, self.part_bytes)?;
                Some((rank as Rank, id, Task::Copy { inode, part }))
            });
            if found.is_some() {
                self.parts[rank] += 1;
                return found;
            }
        }
        None
    }

    /// Notes the result of a step.
    pub(crate) fn note(&mut self, number: u64, result: Option<u64>) {
        let Some((rank, id, task)) = self.steps.remove(&number) else {
            return;
        };
        if let Task::Copy { .. } = task {
            self.parts[rank as usize] -= 1;
        }
        // After `cancel`, there is none.
        let Some(file) = self.files.get_mut(&id) else {
            return;
        };
        file.steps -= 1;
        match (task, result) {
            (Task::Complete { .. }, _) => _ = self.files.remove(&id),
            (Task::Begin, Some(inode)) => file.inode = Some(inode),
            (Task::Copy { .. }, Some(_)) => {}
            (Task::Copy { part, .. }, None) if rank != file.owner => {
                self.failed.insert(rank);
                if file.inode.is_some() {
                    file.left.insert(0, part);
                }
            }
            (Task::Begin | Task::Copy { .. }, None) => {
                file.inode = None;
                file.left.clear();
            }
        }
    }
}

/// Takes a part of so many bytes from the first range that is left.
fn take_part(left: &mut Vec<Range<u64>>, bytes: u64) -> Option<Range<u64>> {
    let first = left.first_mut()?;
    let part = first.start..first.end.min(first.start + bytes);
    first.start = part.end;
    if first.is_empty() {
        left.remove(0);
    }
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(bytes: u64) -> LargeCopy {
        LargeCopy {
            source: "s".into(),
            dest: "d".into(),
            names_below: 0,
            inode: 1,
            directories: [2, 3],
            bytes,
            mode: 0o600,
        }
    }

    /// Divides files of these sizes, each of which rank 1 has met, between 4 ranks. `work` returns the result of a step.
    fn divide(sizes: &[u64], mut work: impl FnMut(Rank, &Step) -> Option<u64>) {
        let mut division = Division::default();
        division.add(1, sizes.iter().copied().map(copy).collect());
        division.begin(4);
        let mut under_way = VecDeque::new();
        loop {
            while let Some(step) = division.next() {
                under_way.push_back(step);
            }
            let of_rank = |rank| {
                let is_part = |(by, step): &&(Rank, Step)| {
                    *by == rank && matches!(step.task, Task::Copy { .. })
                };
                under_way.iter().filter(is_part).count()
            };
            assert!((0..4).all(|rank| of_rank(rank) <= STREAMS));
            let Some((rank, step)) = under_way.pop_front() else {
                break;
            };
            let result = work(rank, &step);
            division.note(step.number, result);
        }
        assert!(division.is_over());
    }

    /// Adds a part to those of its file.
    fn add(copied: &mut BTreeMap<u64, BTreeMap<u64, u64>>, step: &Step) {
        if let Task::Copy { part, .. } = &step.task {
            let parts = copied.entry(step.file).or_default();
            assert_eq!(parts.insert(part.start, part.end), None);
        }
    }

    /// Returns the end of parts that follow each other from the start.
    fn end(parts: &BTreeMap<u64, u64>) -> u64 {
        parts.iter().fold(0, |end, (&start, &next)| {
            assert_eq!(start, end);
            next
        })
    }

    #[test]
    fn all_ranks_copy_parts_and_the_rank_that_met_a_file_completes_it() {
        let sizes = [200 << 20, (64 << 20) + 1, 7];
        let (mut copied, mut complete) = (BTreeMap::new(), Vec::new());
        let mut ranks = BTreeSet::new();
        divide(&sizes, |rank, step| {
            match step.task {
                Task::Copy { inode, .. } => {
                    assert_eq!(inode, 100 + step.file);
                    ranks.insert(rank);
                }
                _ => assert_eq!(rank, 1),
            }
            add(&mut copied, step);
            if let Task::Complete { inode } = step.task {
                assert_eq!(inode, Some(100 + step.file));
                assert_eq!(end(&copied[&step.file]), step.copy.bytes);
                complete.push(step.copy.bytes);
            }
            Some(100 + step.file)
        });
        complete.sort();
        assert_eq!(complete, [7, (64 << 20) + 1, 200 << 20]);
        assert_eq!(ranks, [0, 1, 2, 3].into());
    }

    #[test]
    fn another_rank_copies_the_part_that_a_rank_has_failed_at() {
        let mut copied = BTreeMap::new();
        let mut failures = 0;
        divide(&[500 << 20], |rank, step| {
            if rank == 2 {
                failures += 1;
                return None;
            }
            add(&mut copied, step);
            assert_ne!(step.task, Task::Complete { inode: None });
            Some(7)
        });
        assert!((1..=STREAMS).contains(&failures), "{failures}");
        let ends: Vec<_> = copied.values().map(end).collect();
        assert_eq!(ends, [500 << 20]);
    }

    #[test]
    fn a_file_is_copied_as_a_whole_if_the_rank_that_met_it_fails() {
        for fails_at_begin in [true, false] {
            let mut whole = 0;
            divide(&[500 << 20, 100 << 20], |rank, step| {
                whole += usize::from(step.task == Task::Complete { inode: None });
                let fails = (step.task == Task::Begin) == fails_at_begin && rank == 1;
                (!fails).then_some(7)
            });
            assert_eq!(whole, 2);
        }
    }

    #[test]
    fn a_cancelled_division_is_over_when_no_rank_copies_a_part() {
        let mut division = Division::default();
        division.add(0, vec![copy(100 << 20), copy(100 << 20)]);
        division.begin(2);
        let steps: Vec<_> = iter::from_fn(|| division.next()).collect();
        assert_eq!(steps.len(), 2);
        division.note(steps[0].1.number, Some(5));
        let (_, part) = division.next().unwrap();
        assert!(division.cancel());
        assert!(division.next().is_none() && !division.is_over());
        division.note(part.number, None);
        division.note(steps[1].1.number, Some(6));
        assert!(division.is_over());
    }
}
