//! The benchmark runner: measures how much faster rmz and cpz are than other commands, and on which trees.
//!
//! `cargo run --release -p benches -- quick` makes trees, runs rmz, cpz and the installed peers on them, and writes
//! the figures into `Benchmarks.md`. Peers that are missing are named and left out.
//!
//! Imports point down: `runs -> out, run -> results -> what -> host`. `floor`, `serve` and `guard` are commands of
//! their own; `run` starts the floor and the server as processes of their own.
//!
//! - `runs`: the kinds of runs
//! - `run`: the order and number of runs, the trees, and the clock
//! - `out`: tables, plots, and the page that sums them up
//! - `results`: the rows of all tables
//! - `what`: the cells, and the commands that compete in them
//! - `host`: other programs, signals, the machine, the progress bar
//! - `floor`: the system calls that no tool can do without, alone
//! - `serve`: a filesystem whose server answers late
//! - `guard`: fails if a small tree costs more than before

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Result;
use clap::{Parser, Subcommand};

use host::{command, machine};
use what::steady::Load;

mod floor;
mod guard;
mod host;
mod out;
mod results;
mod run;
mod runs;
mod serve;
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

/// Options that all subcommands share: places and limits.
#[derive(clap::Args)]
struct Settings {
    /// Make the trees in a new directory in DIR, which is removed at the end [default: $TMPDIR]
    #[arg(long, global = true, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The directory into which benches/setup.sh has installed the peers [default: target/peers]
    #[arg(long, global = true, value_name = "DIR")]
    peers: Option<PathBuf>,
    /// A node_modules whose copies are copied and removed [default: target/peers/npm/node_modules]
    #[arg(long, global = true, value_name = "DIR")]
    node_modules: Option<PathBuf>,
    /// Run each command at most N times, to see that everything works; for `steady`, N times [default there: 20]
    #[arg(long, global = true, value_name = "N")]
    rounds: Option<usize>,
    /// The document that gets the tables [default: Benchmarks.md]
    #[arg(long, global = true, value_name = "FILE")]
    document: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Verb {
    /// Measures the most telling cells in less than 5 minutes; updates Benchmarks.md
    Quick,
    /// Measures all cells in about 80 minutes; updates Benchmarks.md after each of them
    Full {
        /// Measure only these: names of cells as in `list`, parts of names, or remove, copy, real, update, filesystems, slow, large
        #[arg(long, value_name = "NAME", num_args = 1..)]
        only: Vec<String>,
        /// Measure only cells without figures
        #[arg(long)]
        missing: bool,
    },
    /// Measures how much the runs of the default number of threads differ; updates Benchmarks.md
    Steady {
        /// Measure only on these filesystems: tmpfs, ext4, xfs, btrfs
        #[arg(long, value_name = "FS", num_args = 1..)]
        only: Vec<String>,
        /// Keep one core busy during the measurement; the figures have rows of their own
        #[arg(long)]
        busy: bool,
    },
    /// Measures fuc_engine and other libraries in about 15 minutes; updates fuc_engine/README.md
    Libraries,
    /// Measures some cells; prints the tables
    Cell {
        /// Names as for `full --only`
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Prints the names of the cells
    List,
    /// Measures nothing; writes Benchmarks.md again from the figures in benches/results
    Tables,
    /// Fails if a small tree costs more system calls or instructions than before
    Guard(guard::Options),
    /// Mounts a filesystem in memory that answers late; ends when it is unmounted, or with Ctrl-C
    Serve(serve::Options),
    /// Makes only the necessary system calls, once; prints JSON
    Floor {
        #[command(subcommand)]
        task: floor::Task,
        /// Number of threads [default: one per core]
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
        Verb::Steady { only, busy } => {
            let load = if *busy { Load::BusyCore } else { Load::Idle };
            runs::steady(&cli.settings, only, load)
        }
        Verb::Libraries => runs::libraries(&cli.settings),
        Verb::Cell { names } => runs::some(&cli.settings, names),
        Verb::Serve(options) => serve::run(options),
        Verb::Guard(options) => guard::run(&cli.settings, options),
    }
}
