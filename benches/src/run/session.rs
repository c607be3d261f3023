//! Runs a cell: makes the tree, and lets the commands take turns, round after round. In the first round it checks what
//! each command did.

use std::{fs, path::PathBuf, process::Command, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use testkit::probe::{FuseMount, LoopMount};

use super::{
    place::{self, Scratch},
    timing,
    trees::{self, Count, Trees},
};
use crate::{
    host::{command, interrupt},
    results::{FLOOR, Row, Run},
    what::{
        cell::{Cell, Place, Previous, RECENTLY_REMOVED, Table, Work},
        peers::Peer,
    },
};

/// The kernel frees some memory later. It does so in this pause, and not during the next run.
const SETTLE: Duration = Duration::from_millis(50);

/// The places and trees that all cells share.
pub(super) struct Session<'a> {
    pub(super) memory: &'a Scratch,
    pub(super) disk: &'a Scratch,
    pub(super) trees: Trees<'a>,
}

/// One cell under way.
struct Bench<'a> {
    trees: &'a Trees<'a>,
    cell: &'a Cell,
    /// The clients of the server of a slow filesystem.
    clients: Vec<FuseMount>,
    /// Another filesystem that was mounted for the cell.
    _image: Option<LoopMount>,
    /// The directory in which the commands run.
    dir: PathBuf,
    /// A file that hyperfine may write.
    export: PathBuf,
}

/// One command of a cell, and its runs so far. Without a peer, it is the floor.
struct Lane {
    peer: Option<Peer>,
    runs: Vec<Run>,
}

impl Session<'_> {
    /// Measures one cell.
    ///
    /// # Errors
    /// If it can't be measured here, and after an interrupt.
    pub(super) fn measure(&self, cell: &Cell) -> Result<Vec<Row>> {
        let scratch = match cell.place {
            Place::Disk => self.disk,
            _ => self.memory,
        };
        place::need_space(scratch.path(), cell.space_bytes())?;
        if cell.place == Place::Disk {
            place::need_cold(scratch.path())?;
        }
        let work = scratch.subdir("work")?;
        let (mut image, mut clients) = (None, Vec::new());
        let dir = match cell.place {
            Place::New(filesystem) => {
                let image = image.insert(place::mount_image(scratch, filesystem)?);
                image.path()
            }
            Place::Served {
                clients: count,
                bandwidth,
                ..
            } => {
                clients = place::serve(scratch, &work, count, bandwidth)?;
                match &clients[..] {
                    [client] => client.path(),
                    _ => &work,
                }
            }
            Place::Memory | Place::Disk => &work,
        };
        let dir = dir.to_owned();
        let bench = Bench {
            trees: &self.trees,
            cell,
            clients,
            _image: image,
            dir,
            export: scratch.path().join("hyperfine.json"),
        };
        let measured = bench.run();
        drop(bench);
        self.trees.clear(&work)?;
        measured
    }
}

impl Bench<'_> {
    fn run(&self) -> Result<Vec<Row>> {
        fs::create_dir(self.dir.join("empty"))?;
        self.trees.make(&self.cell.tree, &self.tree())?;
        let original = trees::count(&self.tree())?;
        self.warm_up()?;
        let mut lanes = self.lanes();
        for round in 0..self.cell.rounds {
            let first = round % lanes.len();
            lanes.rotate_left(first);
            let mut going = Vec::new();
            for mut lane in lanes {
                let check = (round == 0).then_some(original);
                match self.run_lane(&mut lane, check) {
                    Ok(()) => going.push(lane),
                    Err(error) => {
                        interrupt::check()?;
                        eprintln!(
                            "{}: {} is left out: {error:#}",
                            self.cell.name,
                            lane.label()
                        );
                    }
                }
            }
            lanes = going;
            ensure!(!lanes.is_empty(), "no command did the work");
        }
        let row = |lane: Lane| Row::of(lane.label(), &lane.runs);
        Ok(lanes.into_iter().filter_map(row).collect())
    }

    /// Returns the installed peers, and the floor if it means something.
    ///
    /// On a slow filesystem its threads would only wait, and libraries are compared with ours.
    fn lanes(&self) -> Vec<Lane> {
        let is_installed = |peer: &Peer| self.trees.programs.has(peer.program);
        let peers = self.cell.peers.iter().copied().filter(is_installed);
        let has_floor = self.cell.place.latency().is_none() && self.cell.table != Table::Libraries;
        let lane = |peer| Lane {
            peer,
            runs: Vec::new(),
        };
        peers
            .map(Some)
            .chain(has_floor.then_some(None))
            .map(lane)
            .collect()
    }

    /// Makes a copy that is not measured.
    ///
    /// A virtual machine's memory is slow when it is touched for the first time. The first copy of 1 GB took 1.5 s
    /// and all others a third of that. Without a warm-up, the first copy would be ours.
    fn warm_up(&self) -> Result<()> {
        if self.cell.work == Work::Remove {
            return Ok(());
        }
        self.trees.copy(&self.tree(), &self.copy())?;
        if self.cell.previous == Previous::Kept {
            // The previous cell may have removed its trees just now.
            wait_for_inodes()?;
        }
        Ok(())
    }

    /// Runs a command once. In the first round, checks against the original that it did the whole work: doing less must
    /// not win.
    fn run_lane(&self, lane: &mut Lane, check: Option<Count>) -> Result<()> {
        self.reset()?;
        self.settle()?;
        if self.cell.previous == Previous::RemovedLast {
            self.trees.clear(&self.copy())?;
        }
        let run = match &lane.peer {
            Some(peer) => self.time(peer.command)?,
            None => self.floor()?,
        };
        lane.runs.push(run);
        match (check, self.cell.work) {
            (None, _) => Ok(()),
            (Some(_), Work::Remove) => trees::need_removed(&self.tree()),
            (Some(original), Work::Copy) => trees::need_copied(original, &self.copy()),
        }
    }

    /// Runs a command, and returns its times. The server of a slow filesystem is slow only now.
    fn time(&self, line: &str) -> Result<Run> {
        let set_latency = |latency| {
            for client in &self.clients {
                client.set_latency(latency);
            }
        };
        let mut hyperfine = self.trees.programs.command("hyperfine")?;
        hyperfine.current_dir(&self.dir);
        set_latency(self.cell.place.latency().unwrap_or_default());
        let timed = timing::time(hyperfine, &self.export, line);
        set_latency(Duration::ZERO);
        timed
    }

    /// Restores the state before the first run.
    fn reset(&self) -> Result<()> {
        match (self.cell.work, self.cell.previous) {
            (Work::Remove, _) => {
                self.trees.clear(&self.tree())?;
                self.trees.make(&self.cell.tree, &self.tree())
            }
            (Work::Copy, Previous::Removed) => self.trees.clear(&self.copy()),
            (Work::Copy, Previous::Kept) if self.copy().exists() => {
                let aside = self.dir.join("copies");
                fs::create_dir_all(&aside)?;
                let number = fs::read_dir(&aside)?.count();
                Ok(fs::rename(self.copy(), aside.join(number.to_string()))?)
            }
            (Work::Copy, Previous::Kept | Previous::RemovedLast) => Ok(()),
        }
    }

    /// Writes dirty pages back, so that no run pays for the one before, and empties the caches that must be cold.
    fn settle(&self) -> Result<()> {
        place::write_back(&self.dir)?;
        thread::sleep(SETTLE);
        match self.cell.place {
            Place::Disk => place::drop_caches(),
            Place::Served { .. } => self.clients.iter().try_for_each(place::forget),
            Place::Memory | Place::New(_) => Ok(()),
        }
    }

    /// Runs the floor in a process of its own, because this one has threads and memory already.
    fn floor(&self) -> Result<Run> {
        let mut floor = Command::new(std::env::current_exe()?);
        floor.current_dir(&self.dir).arg("floor");
        match self.cell.work {
            Work::Remove => floor.args(["remove", "tree"]),
            Work::Copy => floor.args(["copy", "tree", "copy"]),
        };
        let printed = command::run(&mut floor)?;
        Ok(Run {
            seconds: printed.parse().context("not what the floor prints")?,
            processor: None,
        })
    }

    fn tree(&self) -> PathBuf {
        self.dir.join("tree")
    }

    fn copy(&self) -> PathBuf {
        self.dir.join("copy")
    }
}

impl Lane {
    fn label(&self) -> &'static str {
        self.peer.map_or(FLOOR, |peer| peer.label)
    }
}

/// Waits until ext4 reuses the inodes of removed files.
///
/// # Errors
/// After an interrupt.
fn wait_for_inodes() -> Result<()> {
    for _ in 0..RECENTLY_REMOVED.as_secs() {
        thread::sleep(Duration::from_secs(1));
        interrupt::check()?;
    }
    Ok(())
}
