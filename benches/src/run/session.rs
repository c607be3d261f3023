//! Runs cells: makes the tree and goes through the peers in turn, round after round, until the cell's time is up.
//! In the first round it looks at what each of them did.

use std::{
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};

use super::{
    place::{self, Mount},
    rounds::{self, Limits, Overtime},
    timing::Stopwatch,
    trees::{self, Count, Trees},
};
use crate::{
    floor,
    host::{command, interrupt, machine, progress::Progress},
    results::{CellResult, Row, Run},
    what::{
        cells::{Cache, Cell, Place, Work},
        peers::{Peer, Role},
    },
};

/// What the kernel frees later, it frees in this time, and not in the next run's.
const SETTLE: Duration = Duration::from_millis(50);

/// What all cells have in common.
pub(crate) struct Session<'a> {
    pub(crate) trees: Trees<'a>,
    pub(crate) progress: &'a Progress,
}

/// One cell under way.
struct Bench<'a> {
    session: &'a Session<'a>,
    cell: &'a Cell,
    stopwatch: Stopwatch<'a>,
    original: Count,
}

impl Session<'_> {
    /// Measures one cell. What can't be done here is a result too: one without rows.
    ///
    /// # Errors
    /// Only after an interrupt.
    pub(crate) fn measure(&self, cell: &Cell, limits: &Limits) -> Result<CellResult> {
        let mut result = CellResult::of(cell);
        let start = Instant::now();
        if let Err(error) = self.fill(cell, limits, &mut result) {
            interrupt::check()?;
            result.rows.clear();
            result.notes.push(format!("skipped: {error:#}"));
        }
        result.seconds = start.elapsed().as_secs_f64();
        Ok(result)
    }

    fn fill(&self, cell: &Cell, limits: &Limits, result: &mut CellResult) -> Result<()> {
        let start = Instant::now();
        let scratch = self.trees.scratch;
        place::need_space(scratch.path(), cell.space_bytes())?;
        let mount = match cell.place {
            Place::Here => None,
            Place::New(filesystem) => Some(Mount::new(scratch, filesystem)?),
        };
        let dir = match &mount {
            Some(mount) => mount.dir().to_owned(),
            None => scratch.subdir("work")?,
        };
        if cell.cache == Cache::Cold {
            place::need_cold(&dir)?;
        }
        result.filesystem = machine::filesystem(&dir)?;
        let export = scratch.path().join("hyperfine.json");
        let stopwatch = Stopwatch {
            programs: self.trees.programs,
            dir: &dir,
            export,
        };
        let done = Bench::prepare(self, cell, stopwatch)
            .and_then(|bench| bench.run(result, (limits, start)));
        if mount.is_none() {
            self.trees.clear(&dir)?;
        }
        done
    }
}

impl<'a> Bench<'a> {
    fn prepare(session: &'a Session<'a>, cell: &'a Cell, stopwatch: Stopwatch<'a>) -> Result<Self> {
        let tree = stopwatch.dir.join("tree");
        std::fs::create_dir(stopwatch.dir.join("empty"))?;
        session.trees.make(&cell.tree, &tree)?;
        let original = trees::count(&tree)?;
        ensure!(original.files > 0, "the tree is empty");
        Ok(Self {
            session,
            cell,
            stopwatch,
            original,
        })
    }

    fn run(&self, result: &mut CellResult, (limits, start): (&Limits, Instant)) -> Result<()> {
        let Count { files, dirs, bytes } = self.original;
        (result.files, result.dirs, result.bytes) = (files, dirs, bytes);
        self.warm_up()?;
        let left = || limits.budget.saturating_sub(start.elapsed());
        let mut costs = self.first_round(result, (limits, start))?;
        for round in 1.. {
            let mut turns = rounds::next(result, &costs, (round, left()), limits);
            if turns.is_empty() {
                break;
            }
            let first = round % turns.len();
            turns.rotate_left(first);
            for turn in turns {
                let begun = Instant::now();
                self.turn(turn, (round, result))?;
                costs[turn] = begun.elapsed();
            }
        }
        Ok(())
    }

    /// Makes a copy that nobody measures. A virtual machine's memory costs twice as much when it is touched for the
    /// first time: the first copy of 1 GB took 1.5 s, all others a third of that, and the first one is ours.
    fn warm_up(&self) -> Result<()> {
        match self.cell.work {
            Work::Copy => self.session.trees.copy(&self.tree(), &self.copy()),
            // The tree that is removed is a new one each time, and the copy is there.
            Work::Remove | Work::Compare => Ok(()),
        }
    }

    /// Runs each peer that is installed, and keeps those that did the whole work. Returns what each turn took.
    fn first_round(
        &self,
        result: &mut CellResult,
        (limits, start): (&Limits, Instant),
    ) -> Result<Vec<Duration>> {
        // Who is not installed is named once, on top of all tables.
        let installed = |peer: &Peer| self.stopwatch.programs.has(peer.program);
        let mut costs = Vec::new();
        for peer in self.cell.peers().into_iter().filter(installed) {
            let late = limits.overtime == Overtime::CutShort && start.elapsed() >= limits.budget;
            if late && peer.role == Role::Other {
                let note = format!("{} is left out: no time left", peer.label);
                result.notes.push(note);
                continue;
            }
            let begun = Instant::now();
            match self.try_out(&peer) {
                Ok(run) => {
                    result.rows.push(row(&peer, run));
                    costs.push(begun.elapsed());
                }
                Err(error) => {
                    interrupt::check()?;
                    let note = format!("{} is left out: {error:#}", peer.label);
                    result.notes.push(note);
                }
            }
        }
        let begun = Instant::now();
        self.turn(result.rows.len(), (0, result))?;
        costs.push(begun.elapsed());
        Ok(costs)
    }

    /// Runs one peer, or the floor, whose turn comes behind the last peer's.
    fn turn(&self, turn: usize, (round, result): (usize, &mut CellResult)) -> Result<()> {
        let row = result.rows.get_mut(turn);
        let peer = row.as_ref().map_or("floor", |row| row.peer.as_str());
        self.session
            .progress
            .say(&format!("{}: round {}, {peer}", self.cell.name, round + 1));
        self.reset()?;
        self.settle()?;
        match row {
            Some(row) => row.runs.push(self.stopwatch.time(&row.command)?),
            None => result.floor.push(self.floor()?),
        }
        Ok(())
    }

    /// Runs a peer, and looks at what it did: nobody wins by doing less.
    fn try_out(&self, peer: &Peer) -> Result<Run> {
        self.session
            .progress
            .say(&format!("{}: round 1, {}", self.cell.name, peer.label));
        self.reset()?;
        self.settle()?;
        let Ok(run) = self.stopwatch.time(peer.command) else {
            // hyperfine keeps what the command complained of to itself.
            self.reset()?;
            self.stopwatch.try_out(peer.command)?;
            bail!("it failed once, and then no more");
        };
        match self.cell.work {
            Work::Remove => {
                let left = trees::count(&self.tree())?;
                // rsync empties the directory but keeps it.
                ensure!(
                    left.files == 0 && left.dirs <= 1,
                    "it left {} files and {} directories",
                    left.files,
                    left.dirs
                );
            }
            Work::Copy | Work::Compare => {
                let made = trees::count(&self.copy())?;
                ensure!(
                    made == self.original,
                    "the copy has {made:?}, the tree {:?}",
                    self.original
                );
            }
        }
        Ok(run)
    }

    /// Makes things as they were before the first run.
    fn reset(&self) -> Result<()> {
        let trees = &self.session.trees;
        match self.cell.work {
            Work::Remove => {
                trees.clear(&self.tree())?;
                trees.make(&self.cell.tree, &self.tree())
            }
            Work::Copy => trees.clear(&self.copy()),
            // Nobody has anything to do to it, so it lasts.
            Work::Compare if self.copy().exists() => Ok(()),
            Work::Compare => self.stopwatch.try_out("cp -rpT tree copy"),
        }
    }

    fn settle(&self) -> Result<()> {
        if self.original.files >= 1000 {
            place::write_back(self.stopwatch.dir)?;
            thread::sleep(SETTLE);
        }
        if self.cell.cache == Cache::Cold {
            place::drop_caches()?;
        }
        Ok(())
    }

    /// In a process of its own: ours has threads and memory already.
    fn floor(&self) -> Result<Run> {
        let mut floor = Command::new(std::env::current_exe()?);
        floor.current_dir(self.stopwatch.dir).arg("floor");
        match self.cell.work {
            Work::Remove => floor.args(["remove", "tree"]),
            Work::Copy => floor.args(["copy", "tree", "copy"]),
            Work::Compare => floor.args(["compare", "tree", "copy"]),
        };
        let printed = command::run(&mut floor)?;
        let figures: floor::Figures =
            serde_json::from_str(&printed).context("not what the floor prints")?;
        if figures.files as u64 != self.original.files {
            bail!(
                "the floor found {} files of {}",
                figures.files,
                self.original.files
            );
        }
        Ok(Run {
            seconds: figures.seconds,
            cpu_seconds: figures.cpu_seconds,
            peak_bytes: None,
        })
    }

    fn tree(&self) -> PathBuf {
        self.stopwatch.dir.join("tree")
    }

    fn copy(&self) -> PathBuf {
        Path::new(self.stopwatch.dir).join("copy")
    }
}

fn row(peer: &Peer, first: Run) -> Row {
    Row {
        peer: peer.label.to_owned(),
        ours: peer.role == Role::Ours,
        reference: peer.role == Role::Reference,
        command: peer.command.to_owned(),
        runs: vec![first],
    }
}
