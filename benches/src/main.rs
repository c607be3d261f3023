//! The benchmark runner: faster than what, on what, by how much.
//!
//! `cargo run --release -p benches -- quick` makes trees, runs rmz, cpz and whatever peers are installed on them,
//! and writes the figures into `Benchmarks.md`. Peers that are missing are named and left out.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Result;
use clap::{Parser, Subcommand};

use host::{command, machine};

mod floor;
mod guard;
mod host;
mod out;
mod results;
mod run;
mod runs;
mod what;

/// Measures rmz and cpz against their peers
#[derive(Parser)]
#[command(name = "benches")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    settings: Settings,
}

/// Where things are.
#[derive(clap::Args)]
struct Settings {
    /// Where to make the trees, in a new directory that is removed at the end [default: $TMPDIR]
    #[arg(long, global = true, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Where benches/setup.sh has put the peers [default: target/peers]
    #[arg(long, global = true, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// A node_modules to copy and remove copies of [default: target/peers/npm/node_modules]
    #[arg(long, global = true, value_name = "DIR")]
    node_modules: Option<PathBuf>,
    /// Runs each command no more often than that, to see that all works
    #[arg(long, global = true, value_name = "N")]
    rounds: Option<usize>,
    /// The document that gets the tables [default: Benchmarks.md]
    #[arg(long, global = true, value_name = "FILE")]
    document: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Verb {
    /// The most telling cells, in less than 5 minutes; writes Benchmarks.md
    Quick,
    /// All cells; says beforehand how long that takes; writes Benchmarks.md after each
    Full {
        /// Only these: names of cells as in `list`, parts of names, or remove, copy, real, update, filesystems
        #[arg(long, value_name = "NAME", num_args = 1..)]
        only: Vec<String>,
        /// Only those that Benchmarks.md has no figures of
        #[arg(long)]
        missing: bool,
    },
    /// Some cells; prints the tables
    Cell {
        /// As for `full --only`
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Names the cells
    List,
    /// Measures nothing; writes Benchmarks.md again from the figures in benches/results
    Tables,
    /// Fails if a small tree costs more system calls or instructions than it did
    Guard(guard::Options),
    /// The system calls alone, once; prints JSON
    Floor {
        #[command(subcommand)]
        task: floor::Task,
        /// How many threads [default: one per core]
        #[arg(long, global = true)]
        threads: Option<usize>,
    },
}

impl Settings {
    fn peers(&self) -> PathBuf {
        self.peers
            .clone()
            .unwrap_or_else(|| Path::new(command::repository()).join("target/peers"))
    }

    fn node_modules(&self) -> PathBuf {
        self.node_modules
            .clone()
            .unwrap_or_else(|| self.peers().join("npm/node_modules"))
    }

    fn document(&self) -> PathBuf {
        self.document
            .clone()
            .unwrap_or_else(|| Path::new(command::repository()).join("Benchmarks.md"))
    }
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("benches: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    match &cli.verb {
        Verb::List => {
            runs::list();
            Ok(())
        }
        Verb::Tables => runs::tables(&cli.settings),
        Verb::Floor { task, threads } => {
            let figures = floor::run(task, threads.unwrap_or_else(machine::cores))?;
            println!("{}", serde_json::to_string(&figures)?);
            Ok(())
        }
        Verb::Quick => runs::quick(&cli.settings),
        Verb::Full { only, missing } => runs::full(&cli.settings, only, *missing),
        Verb::Cell { names } => runs::some(&cli.settings, names),
        Verb::Guard(options) => guard::run(&cli.settings, options),
    }
}
