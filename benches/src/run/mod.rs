//! The measurement: builds the commands, makes the places, and runs cell after cell.

use std::{path::Path, time::Instant};

use anyhow::Result;

use crate::{
    Settings,
    host::{command, interrupt, machine},
    results::Figures,
    what::cell::Cell,
};

use place::Scratch;
use programs::Programs;
use session::Session;
use trees::Trees;

pub(crate) mod place;
mod programs;
mod session;
mod timing;
pub(crate) mod trees;

/// Measures the cells, and calls `save` with the figures of each. A cell that can't be measured here is named and left
/// out.
pub(crate) fn measure(
    settings: &Settings,
    cells: Vec<Cell>,
    mut save: impl FnMut(Figures) -> Result<()>,
) -> Result<()> {
    interrupt::listen()?;
    let root = Path::new(command::repository());
    let target_dir = command::target_dir()?;
    command::build_commands(root, &target_dir)?;
    command::build(root, &target_dir, &["comparisons"], None)?;
    if cells.iter().any(Cell::is_for_ranks) {
        let cluster = root.join("cluster");
        let built = command::build(&cluster, &cluster.join("target"), &["fuc_cluster"], None);
        if let Err(error) = built {
            interrupt::check()?;
            eprintln!("rmz-mpi and cpz-mpi are left out, because MPI is missing: {error:#}");
        }
    }
    let memory = Scratch::new(&settings.dir)?;
    let disk = Scratch::new(&settings.disk())?;
    let peers = root.join("target/peers");
    let programs = Programs::link(memory.path().join("bin"), &peers)?;
    let session = Session {
        memory: &memory,
        disk: &disk,
        trees: Trees {
            programs: &programs,
            peers: peers.clone(),
        },
    };
    let (stamp, start) = (machine::stamp()?, Instant::now());
    let count = cells.len();
    for (i, mut cell) in cells.into_iter().enumerate() {
        cell.rounds = settings.rounds.unwrap_or(cell.rounds).max(1);
        let seconds = start.elapsed().as_secs();
        eprintln!("{}: {} of {count}, after {seconds} s", cell.name, i + 1);
        match session.measure(&cell) {
            Ok(rows) => save(Figures {
                cell: cell.name,
                stamp: stamp.clone(),
                rows,
            })?,
            Err(error) => {
                interrupt::check()?;
                eprintln!("{}: left out: {error:#}", cell.name);
            }
        }
    }
    memory.remove()?;
    disk.remove()
}
