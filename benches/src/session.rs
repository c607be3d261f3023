//! Runs cells: makes the tree and goes through all peers in turn, round after round, until the cell's time is up.
//! In the first round it looks at what each of them did.

use std::{
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{
    cells::{Cache, Cell, Place, Work},
    command, floor, interrupt, machine,
    peers::{Peer, Role},
    place::{self, Mount},
    progress::Progress,
    results::{CellResult, Row, Run},
    timing::Stopwatch,
    trees::{self, Count, Trees},
};

/// However little time there is.
const FEWEST_ROUNDS: usize = 2;
/// More tell nothing new.
const MOST_ROUNDS: usize = 41;
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
    /// Measures one cell for about `budget`. What can't be done here is a result too: one without rows.
    ///
    /// # Errors
    /// Only after an interrupt.
    pub(crate) fn measure(&self, cell: &Cell, budget: Duration) -> Result<CellResult> {
        let mut result = CellResult {
            name: cell.name.clone(),
            group: cell.group.name().to_owned(),
            title: cell.title.clone(),
            ..CellResult::default()
        };
        if let Err(error) = self.fill(cell, budget, &mut result) {
            interrupt::check()?;
            result.rows.clear();
            result.notes.push(format!("skipped: {error:#}"));
        }
        Ok(result)
    }

    fn fill(&self, cell: &Cell, budget: Duration, result: &mut CellResult) -> Result<()> {
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
            .and_then(|bench| bench.run(result, budget.saturating_sub(start.elapsed())));
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

    fn run(&self, result: &mut CellResult, budget: Duration) -> Result<()> {
        let start = Instant::now();
        let Count { files, dirs, bytes } = self.original;
        (result.files, result.dirs, result.bytes) = (files, dirs, bytes);
        self.first_round(result)?;
        let mut longest = start.elapsed();
        for round in 1..MOST_ROUNDS {
            if round >= FEWEST_ROUNDS && start.elapsed() + longest > budget {
                break;
            }
            let begun = Instant::now();
            self.round(round, result)?;
            // The first round took longer, since it looks at what was done.
            longest = begun.elapsed();
        }
        Ok(())
    }

    /// Runs each peer that is installed, and keeps those that did the whole work.
    fn first_round(&self, result: &mut CellResult) -> Result<()> {
        // Who is not installed is named once, on top of all tables.
        let installed = |peer: &Peer| self.stopwatch.programs.has(peer.program);
        for peer in self.cell.peers().into_iter().filter(installed) {
            match self.try_out(&peer) {
                Ok(run) => result.rows.push(row(&peer, run)),
                Err(error) => {
                    interrupt::check()?;
                    let note = format!("{} is left out: {error:#}", peer.label);
                    result.notes.push(note);
                }
            }
        }
        self.reset()?;
        self.settle()?;
        result.floor.push(self.floor()?);
        Ok(())
    }

    /// Runs every peer once, each round beginning with another one.
    fn round(&self, round: usize, result: &mut CellResult) -> Result<()> {
        let floor = result.rows.len();
        for turn in 0..=floor {
            let turn = (turn + round) % (floor + 1);
            let peer = result
                .rows
                .get(turn)
                .map_or("floor", |row| row.peer.as_str());
            self.session
                .progress
                .say(&format!("{}: round {}, {peer}", self.cell.name, round + 1));
            self.reset()?;
            self.settle()?;
            match result.rows.get_mut(turn) {
                Some(row) => {
                    let run = self.stopwatch.time(&row.command)?;
                    row.runs.push(run);
                }
                None => result.floor.push(self.floor()?),
            }
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
