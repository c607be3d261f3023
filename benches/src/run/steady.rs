//! Measures how much the runs of the default number of threads differ, next to fixed numbers and GNU's command.
//!
//! All commands take turns to copy a tree and to remove the copy. Nothing is written back and no cache is dropped
//! after the start, so that each run comes directly after a large copy or removal. Only hyperfine starts in between.

use std::{path::PathBuf, time::Instant};

use anyhow::{Context as _, Result};

use super::{
    busy::BusyCore,
    place::{self, Mount},
    session::Session,
    timing::Stopwatch,
    trees::{self, Count},
};
use crate::{
    host::{interrupt, machine},
    results::{CellResult, Row, Run, Times, median},
    what::{
        cell::Cell,
        peers::{Peer, Role},
        steady::{Alternation, Load},
    },
};

/// The rounds in which each fixed number takes part.
const TRIAL_ROUNDS: usize = 4;
/// A fixed number is clearly slow if its median is more than this many times the best median.
const SLOW: f64 = 1.5;

/// Measures a copy and a removal. If they can't be measured here, their results have no rows.
///
/// # Errors
/// Only after an interrupt.
pub(super) fn measure(
    session: &Session<'_>,
    alternation: &Alternation,
    rounds: usize,
) -> Result<[CellResult; 2]> {
    let start = Instant::now();
    let mut results = [&alternation.copy, &alternation.remove].map(CellResult::of);
    if let Err(error) = fill(session, alternation, rounds, &mut results) {
        interrupt::check()?;
        for result in &mut results {
            result.notes.push(format!("skipped: {error:#}"));
        }
    }
    for result in &mut results {
        result.seconds = start.elapsed().as_secs_f64() / 2.0;
    }
    Ok(results)
}

fn fill(
    session: &Session<'_>,
    alternation: &Alternation,
    rounds: usize,
    results: &mut [CellResult; 2],
) -> Result<()> {
    let trees = &session.trees;
    let Alternation { copy, remove, .. } = alternation;
    place::need_space(trees.scratch.path(), copy.space_bytes())?;
    let mount = Mount::new(trees.scratch, alternation.filesystem)?;
    let filesystem = machine::filesystem(mount.dir())?;
    trees.make(&copy.tree, &mount.dir().join("tree"))?;
    let original = trees::count(&mount.dir().join("tree"))?;
    let mut bench = Bench {
        session,
        stopwatch: Stopwatch {
            programs: trees.programs,
            dir: mount.dir(),
            export: trees.scratch.path().join("hyperfine.json"),
        },
        copies: Lanes::of(copy),
        removals: Lanes::of(remove),
    };
    let busy = match alternation.load {
        Load::Idle => None,
        Load::BusyCore => Some(BusyCore::start()?),
    };
    bench.try_out(original)?;
    for round in 0..rounds {
        bench.run_round(&copy.name, round)?;
    }
    drop(busy);
    for (result, lanes) in results.iter_mut().zip([bench.copies, bench.removals]) {
        let Count { files, dirs, bytes } = original;
        (result.files, result.dirs, result.bytes) = (files, dirs, bytes);
        result.filesystem.clone_from(&filesystem);
        result.rows = lanes.rows();
    }
    Ok(())
}

/// One alternation under way.
struct Bench<'a> {
    session: &'a Session<'a>,
    stopwatch: Stopwatch<'a>,
    copies: Lanes,
    removals: Lanes,
}

impl Bench<'_> {
    /// Runs each command once, and checks that it does the whole work. These runs are not counted.
    fn try_out(&self, original: Count) -> Result<()> {
        for (copy, removal) in self.copies.running.iter().zip(&self.removals.running) {
            self.stopwatch.try_out(copy.peer.command)?;
            let checked = trees::need_copied(original, &self.copy());
            checked.with_context(|| copy.peer.command)?;
            self.stopwatch.try_out(removal.peer.command)?;
            let checked = trees::need_removed(&self.copy());
            checked.with_context(|| removal.peer.command)?;
        }
        Ok(())
    }

    /// Runs each command that has not stopped.
    ///
    /// If the copies are fewer than the removals, or more, the default does the rest of the work, not measured.
    fn run_round(&mut self, name: &str, round: usize) -> Result<()> {
        if round == TRIAL_ROUNDS {
            self.copies.stop_slow();
            self.removals.stop_slow();
        }
        let line = format!("{name}: round {}", round + 1);
        self.session.progress.show_message(&line);
        let trees = &self.session.trees;
        let count = self.copies.running.len().max(self.removals.running.len());
        for turn in turns(count, round) {
            match self.copies.running.get_mut(turn.copy) {
                Some(lane) => lane.run(&self.stopwatch)?,
                None => trees.copy(&self.stopwatch.dir.join("tree"), &self.copy())?,
            }
            match self.removals.running.get_mut(turn.removal) {
                Some(lane) => lane.run(&self.stopwatch)?,
                None => trees.clear(&self.copy())?,
            }
        }
        Ok(())
    }

    fn copy(&self) -> PathBuf {
        self.stopwatch.dir.join("copy")
    }
}

/// The places of a copy and of the removal after it, among the commands of their kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Turn {
    copy: usize,
    removal: usize,
}

/// Returns the turns of a round, which has `count` of them. Each round begins with another command.
///
/// In `count` rounds, each command removes the copy of each other one, because the tree that a command makes may affect
/// the time of its removal.
fn turns(count: usize, round: usize) -> impl Iterator<Item = Turn> {
    (0..count).map(move |turn| Turn {
        copy: (turn + round) % count,
        removal: (turn + 2 * round) % count,
    })
}

/// The commands that do one kind of work.
struct Lanes {
    running: Vec<Lane>,
    /// Fixed numbers of threads that were clearly slow.
    stopped: Vec<Lane>,
}

/// One command, and its runs so far.
struct Lane {
    peer: Peer,
    runs: Vec<Run>,
}

impl Lane {
    fn run(&mut self, stopwatch: &Stopwatch<'_>) -> Result<()> {
        self.runs.push(stopwatch.time(self.peer.command)?);
        Ok(())
    }

    fn median_seconds(&self) -> f64 {
        median(self.runs.iter().map(|run| run.seconds)).unwrap_or(f64::INFINITY)
    }
}

impl Lanes {
    fn of(cell: &Cell) -> Self {
        let lane = |peer| Lane {
            peer,
            runs: Vec::new(),
        };
        Self {
            running: cell.peers().into_iter().map(lane).collect(),
            stopped: Vec::new(),
        }
    }

    /// Stops the fixed numbers of threads that are clearly slow.
    fn stop_slow(&mut self) {
        let is_fixed = |lane: &Lane| lane.peer.role == Role::Fixed;
        let fixed = self.running.iter().filter(|lane| is_fixed(lane));
        let best = fixed
            .map(Lane::median_seconds)
            .fold(f64::INFINITY, f64::min);
        let is_slow = |lane: &mut Lane| is_fixed(lane) && lane.median_seconds() > SLOW * best;
        self.stopped.extend(self.running.extract_if(.., is_slow));
    }

    fn rows(self) -> Vec<Row> {
        let lanes = self.running.into_iter().chain(self.stopped);
        let row = |lane: Lane| Some(Row::of(&lane.peer, Times::of(&lane.runs)?));
        lanes.filter_map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::{
        results::tests::runs,
        what::{cell::Work, steady},
    };

    #[test]
    fn each_command_copies_and_removes_once_in_a_round() {
        for round in 0..20 {
            let all: Vec<_> = turns(5, round).collect();
            let copies: HashSet<_> = all.iter().map(|turn| turn.copy).collect();
            let removals: HashSet<_> = all.iter().map(|turn| turn.removal).collect();
            assert_eq!(
                (all.len(), copies.len(), removals.len()),
                (5, 5, 5),
                "round {round}"
            );
        }
    }

    #[test]
    fn each_command_removes_the_copy_of_each_other_one() {
        for count in 1..7 {
            let pairs: HashSet<_> = (0..count).flat_map(|round| turns(count, round)).collect();
            assert_eq!(pairs.len(), count * count, "{count} commands");
        }
    }

    /// Returns the lanes of a removal, after runs that took these seconds in the order of the peers.
    fn lanes(seconds: [f64; 6]) -> Lanes {
        let all = steady::all();
        assert_eq!(all[0].remove.work, Work::Remove);
        let mut lanes = Lanes::of(&all[0].remove);
        assert_eq!(lanes.running.len(), seconds.len());
        for (lane, seconds) in lanes.running.iter_mut().zip(seconds) {
            lane.runs = runs(&[seconds]);
        }
        lanes
    }

    fn labels(lanes: &[Lane]) -> Vec<&str> {
        lanes.iter().map(|lane| lane.peer.label).collect()
    }

    #[test]
    fn only_fixed_numbers_stop_if_they_are_clearly_slower_than_the_best_one() {
        // In order: the default, GNU's command, then 1, 2, 4 and 8 threads.
        let mut lanes = lanes([0.5, 9.0, 1.6, 1.0, 1.5, 1.51]);
        lanes.stop_slow();
        assert_eq!(
            labels(&lanes.running),
            ["rmz", "rm -r", "rmz --threads=2", "rmz --threads=4"]
        );
        assert_eq!(
            labels(&lanes.stopped),
            ["rmz --threads=1", "rmz --threads=8"]
        );
        assert_eq!(lanes.rows().len(), 6);
    }
}
