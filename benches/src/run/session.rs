//! Runs cells: makes the tree, and lets the commands take turns, round after round, until the cell's time is up.
//! After the first run of each command it checks what the command did.

use std::{
    path::PathBuf,
    process, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};

use super::{
    place::{self, Mount},
    rounds::{self, Command, Lane, Limits, Overtime},
    timing::Stopwatch,
    trees::{self, Count, Trees},
};
use crate::{
    floor,
    host::{
        command, interrupt, machine,
        progress::{self, Progress},
    },
    results::{CellResult, Row, Run, Times},
    what::{
        cell::{Cache, Cell, Place, RECENTLY_REMOVED, Work},
        peers::{Peer, Role},
    },
};

/// The kernel frees some memory later. It does so in this pause, and not during the next run.
const SETTLE: Duration = Duration::from_millis(50);

/// A tree of this many files or bytes leaves work to the kernel that would disturb the next run.
const SETTLE_FILES: u64 = 1_000;
const SETTLE_BYTES: u64 = 100_000_000;

/// The environment that all cells share.
pub(super) struct Session<'a> {
    pub(super) trees: Trees<'a>,
    pub(super) progress: &'a Progress,
}

/// One cell under way.
struct Bench<'a> {
    session: &'a Session<'a>,
    cell: &'a Cell,
    stopwatch: Stopwatch<'a>,
    clock: Clock<'a>,
    original: Count,
    slow: Option<Slow<'a>>,
}

/// The filesystem of a cell, if its server is slow while a command is timed.
struct Slow<'a> {
    mount: &'a Mount,
    latency: Duration,
}

/// The time of one cell.
#[derive(Clone, Copy)]
struct Clock<'a> {
    limits: &'a Limits,
    start: Instant,
}

impl Clock<'_> {
    fn left(&self) -> Duration {
        self.limits.budget.saturating_sub(self.start.elapsed())
    }

    /// Returns `true` if the first round has only the needed commands from now on.
    fn is_cut_short(&self) -> bool {
        self.limits.overtime == Overtime::CutShort && self.left().is_zero()
    }
}

impl Session<'_> {
    /// Measures one cell. A cell that can't be measured here has a result without rows.
    ///
    /// # Errors
    /// Only after an interrupt.
    pub(super) fn measure(&self, cell: &Cell, limits: &Limits) -> Result<CellResult> {
        let mut result = CellResult::of(cell);
        let clock = Clock {
            limits,
            start: Instant::now(),
        };
        if let Err(error) = self.fill(cell, clock, &mut result) {
            interrupt::check()?;
            result.notes.push(format!("skipped: {error:#}"));
        }
        result.seconds = clock.start.elapsed().as_secs_f64();
        Ok(result)
    }

    fn fill(&self, cell: &Cell, clock: Clock<'_>, result: &mut CellResult) -> Result<()> {
        let scratch = self.trees.scratch;
        place::need_space(scratch.path(), cell.space_bytes())?;
        let mount = match cell.place {
            Place::Here => None,
            Place::New(filesystem) => Some(Mount::new(scratch, filesystem)?),
            Place::Slow { .. } => Some(Mount::serve(scratch)?),
        };
        let dir = match &mount {
            Some(mount) => mount.dir().to_owned(),
            None => scratch.subdir("work")?,
        };
        let slow = match cell.place {
            Place::Slow { latency } => mount.as_ref().map(|mount| Slow { mount, latency }),
            Place::Here | Place::New(_) => None,
        };
        if cell.cache == Cache::Cold && slow.is_none() {
            place::need_cold(&dir)?;
        }
        result.filesystem = machine::filesystem(&dir)?;
        let stopwatch = Stopwatch {
            programs: self.trees.programs,
            dir: &dir,
            export: scratch.path().join("hyperfine.json"),
        };
        let done = Bench::prepare(self, cell, stopwatch, clock)
            .and_then(|bench| Bench { slow, ..bench }.run(result));
        if mount.is_none() {
            self.trees.clear(&dir)?;
        }
        done
    }
}

impl<'a> Bench<'a> {
    fn prepare(
        session: &'a Session<'a>,
        cell: &'a Cell,
        stopwatch: Stopwatch<'a>,
        clock: Clock<'a>,
    ) -> Result<Self> {
        let tree = stopwatch.dir.join("tree");
        std::fs::create_dir(stopwatch.dir.join("empty"))?;
        session.trees.make(&cell.tree, &tree)?;
        let original = trees::count(&tree)?;
        ensure!(original.files > 0, "the tree is empty");
        Ok(Self {
            session,
            cell,
            stopwatch,
            clock,
            original,
            slow: None,
        })
    }

    /// Measures the cell; `result` gets rows only if nothing failed.
    fn run(&self, result: &mut CellResult) -> Result<()> {
        let Count { files, dirs, bytes } = self.original;
        (result.files, result.dirs, result.bytes) = (files, dirs, bytes);
        self.warm_up()?;
        let mut lanes = self.first_round(&mut result.notes)?;
        for round in 1.. {
            let mut turns = rounds::next(&lanes, round, self.clock.left(), self.clock.limits);
            if turns.is_empty() {
                break;
            }
            let first = round % turns.len();
            turns.rotate_left(first);
            for turn in turns {
                self.run_lane(&mut lanes[turn], round)?;
            }
        }
        for Lane { command, runs, .. } in &lanes {
            match (command, Times::of(runs)) {
                (Command::Peer(peer), Some(times)) => result.rows.push(Row::of(peer, times)),
                (Command::Floor, times) => result.floor = times,
                (Command::Peer(_), None) => {}
            }
        }
        Ok(())
    }

    /// Makes a copy that is not measured.
    ///
    /// A virtual machine's memory is slow when it is touched for the first time. The first copy of 1 GB took 1.5 s
    /// and all others a third of that. Without a warm-up, the first copy would be ours.
    fn warm_up(&self) -> Result<()> {
        match self.cell.work {
            Work::Copy => self.session.trees.copy(&self.tree(), &self.copy())?,
            // The tree that is removed is a new one each time, and the copy exists already.
            Work::Remove | Work::Compare => return Ok(()),
        }
        if self.cell.keeps_copies() {
            // The previous cell may have removed its trees just now.
            wait_for_inodes()?;
        }
        Ok(())
    }

    /// Moves the last copy away, if there is one. If the disk has no room for another one, removes all copies.
    fn put_copy_aside(&self) -> Result<()> {
        if !self.copy().exists() {
            return Ok(());
        }
        let aside = self.stopwatch.dir.join("copies");
        std::fs::create_dir_all(&aside)?;
        let number = std::fs::read_dir(&aside)?.count();
        std::fs::rename(self.copy(), aside.join(number.to_string()))?;
        if place::free_bytes(&aside)? < self.cell.space_bytes() {
            self.session.trees.clear(&aside)?;
            wait_for_inodes()?;
        }
        Ok(())
    }

    /// Runs each peer that is installed, and then the floor. Returns the lanes of those that did the whole work.
    fn first_round(&self, notes: &mut Vec<String>) -> Result<Vec<Lane>> {
        // A peer that is not installed is named once, above all tables.
        let installed = |peer: &Peer| self.stopwatch.programs.has(peer.program);
        let mut lanes = Vec::new();
        for peer in self.cell.peers().into_iter().filter(installed) {
            if self.cell.is_too_slow(&peer) {
                let waits = progress::show(self.cell.waits(&peer));
                notes.push(format!(
                    "{} is left out: it would take about {waits}",
                    peer.label
                ));
                continue;
            }
            if self.clock.is_cut_short() && peer.role == Role::Other {
                notes.push(format!("{} is left out: no time left", peer.label));
                continue;
            }
            let begun = Instant::now();
            match self.try_out(&peer) {
                Ok(run) => lanes.push(Lane {
                    command: Command::Peer(peer),
                    runs: vec![run],
                    cost: begun.elapsed(),
                }),
                Err(error) => {
                    interrupt::check()?;
                    notes.push(format!("{} is left out: {error:#}", peer.label));
                }
            }
        }
        if self.cell.has_floor() {
            let mut floor = Lane {
                command: Command::Floor,
                runs: Vec::new(),
                cost: Duration::ZERO,
            };
            self.run_lane(&mut floor, 0)?;
            lanes.push(floor);
        }
        Ok(lanes)
    }

    fn run_lane(&self, lane: &mut Lane, round: usize) -> Result<()> {
        let begun = Instant::now();
        let run = match lane.command {
            Command::Peer(peer) => {
                self.get_ready(peer.label, round)?;
                self.time(peer.command)?
            }
            Command::Floor => {
                self.get_ready("floor", round)?;
                self.floor()?
            }
        };
        lane.runs.push(run);
        lane.cost = begun.elapsed();
        Ok(())
    }

    /// Runs a peer, and checks that it did the whole work: doing less must not win.
    fn try_out(&self, peer: &Peer) -> Result<Run> {
        self.get_ready(peer.label, 0)?;
        let Ok(run) = self.time(peer.command) else {
            // Run the command directly once, because hyperfine does not pass on its messages.
            self.reset()?;
            self.stopwatch.try_out(peer.command)?;
            bail!("it failed once, and then no more");
        };
        match self.cell.work {
            Work::Remove => trees::need_removed(&self.tree())?,
            Work::Copy | Work::Compare => trees::need_copied(self.original, &self.copy())?,
        }
        Ok(run)
    }

    /// Runs a command once, and returns its time. The server of a slow filesystem is slow only now.
    fn time(&self, line: &str) -> Result<Run> {
        let Some(Slow { mount, latency }) = &self.slow else {
            return self.stopwatch.time(line);
        };
        mount.set_latency(*latency)?;
        let timed = self.stopwatch.time(line);
        mount.set_latency(Duration::ZERO)?;
        timed
    }

    fn get_ready(&self, name: &str, round: usize) -> Result<()> {
        let line = format!("{}: round {}, {name}", self.cell.name, round + 1);
        self.session.progress.show_message(&line);
        self.reset()?;
        self.settle()
    }

    /// Restores the state before the first run.
    fn reset(&self) -> Result<()> {
        let trees = &self.session.trees;
        match self.cell.work {
            Work::Remove => {
                trees.clear(&self.tree())?;
                trees.make(&self.cell.tree, &self.tree())
            }
            Work::Copy if self.cell.keeps_copies() => self.put_copy_aside(),
            Work::Copy => trees.clear(&self.copy()),
            // No command changes the copy, so it can be used again.
            Work::Compare if self.copy().exists() => Ok(()),
            Work::Compare => self.stopwatch.try_out("cp -rpT tree copy"),
        }
    }

    fn settle(&self) -> Result<()> {
        if self.original.files >= SETTLE_FILES || self.original.bytes >= SETTLE_BYTES {
            place::write_back(self.stopwatch.dir)?;
            thread::sleep(SETTLE);
        }
        match (self.cell.cache, &self.slow) {
            (Cache::Warm, _) => Ok(()),
            (Cache::Cold, Some(slow)) => slow.mount.forget(),
            (Cache::Cold, None) => place::drop_caches(),
        }
    }

    /// Runs the floor in a process of its own, because this one has threads and memory already.
    fn floor(&self) -> Result<Run> {
        let mut floor = process::Command::new(std::env::current_exe()?);
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
        self.stopwatch.dir.join("copy")
    }
}

/// Waits until ext4 reuses the inodes of removed files.
///
/// # Errors
/// After an interrupt.
fn wait_for_inodes() -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < RECENTLY_REMOVED {
        thread::sleep(Duration::from_millis(100));
        interrupt::check()?;
    }
    Ok(())
}
