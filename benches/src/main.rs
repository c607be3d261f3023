//! The benchmark runner: measures how much faster rmz and cpz are than other commands, and on which trees.
//!
//! `cargo run --release -p benches -- full` makes trees, runs rmz, cpz and the installed peers on them in turn, and
//! writes the figures into `benches/results.jsonl` and the pages that show them. `quick` only prints figures.
//!
//! Imports point down: `out, run -> results -> what -> host`. `floor` and `guard` are commands of their own;
//! `run` starts the floor as a process of its own.
//!
//! - `run`: the rounds, the trees, the places and the clock
//! - `out`: the tables, the plot, and the pages that they are in
//! - `results`: the figures of each cell, and their file
//! - `what`: the cells, and the commands that compete in them
//! - `host`: other programs, signals, the machine
//! - `floor`: the system calls that no tool can do without, alone
//! - `guard`: fails if a small tree costs more than before

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Parser, Subcommand};

use host::{command, machine};
use out::pages::Pages;
use results::Results;
use what::cells;

mod floor;
mod guard;
mod host;
mod out;
mod results;
mod run;
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

/// Places and limits, which most subcommands share.
#[derive(clap::Args)]
struct Settings {
    /// Make trees in memory and images of filesystems in a new directory in DIR
    #[arg(long, global = true, value_name = "DIR", default_value = "/dev/shm")]
    dir: PathBuf,
    /// Make the trees of cold caches in a new directory in DIR, on a disk with ext4 [default: $TMPDIR]
    #[arg(long, global = true, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// Run each command N times
    #[arg(long, global = true, value_name = "N")]
    rounds: Option<usize>,
}

#[derive(Subcommand)]
enum Verb {
    /// Measures the most telling cells and commands in 3 minutes; prints the figures
    Quick {
        /// Measure these cells instead: names as in `list`, or parts of names
        #[arg(long, value_name = "NAME", num_args = 1..)]
        only: Vec<String>,
    },
    /// Measures all cells in half an hour; updates the figures and the pages after each of them
    Full {
        /// Measure only these: names as in `list`, or parts of names; the figures of the others stay
        #[arg(long, value_name = "NAME", num_args = 1..)]
        only: Vec<String>,
    },
    /// Prints the names of the cells
    List,
    /// Measures nothing; writes the pages again from the figures in benches/results.jsonl
    Tables,
    /// Fails if a small tree costs more system calls or instructions than before
    Guard {
        /// The commit to compare with, beside the fixed base [default: where HEAD left origin/main, or the one before HEAD]
        #[arg(long, value_name = "COMMIT")]
        base: Option<String>,
    },
    /// Makes only the necessary system calls, once; prints the seconds
    Floor {
        #[command(subcommand)]
        task: floor::Task,
    },
}

impl Settings {
    fn disk(&self) -> PathBuf {
        self.disk.clone().unwrap_or_else(std::env::temp_dir)
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

fn run(Cli { verb, settings }: &Cli) -> Result<()> {
    match verb {
        Verb::Quick { only } => run::measure(settings, cells::quick(only)?, |figures| {
            print!("{}", out::tables::commands(&figures));
            Ok(())
        }),
        Verb::Full { only } => full(settings, only),
        Verb::List => {
            for cell in cells::all() {
                println!("{:28} {}", cell.name, cell.title);
            }
            Ok(())
        }
        Verb::Tables => {
            let pages = Pages::of(command::repository());
            pages.write(&Results::read(&pages.figures())?)
        }
        Verb::Guard { base } => guard::run(&settings.dir, base.as_deref()),
        Verb::Floor { task } => {
            println!("{}", floor::run(task, machine::cores())?);
            Ok(())
        }
    }
}

/// Measures cells, and writes the figures and the pages after each of them, so that a long run can be stopped.
fn full(settings: &Settings, only: &[String]) -> Result<()> {
    let pages = Pages::of(command::repository());
    let mut results = Results::read(&pages.figures())?;
    run::measure(settings, cells::full(only)?, |figures| {
        print!("{}", out::tables::commands(&figures));
        results.put(figures);
        results.write(&pages.figures())?;
        pages.write(&results)
    })
}
