//! Compares rmz with GNU rm, and cpz with GNU cp, on random command lines in random trees.
//!
//! ```text
//! cargo run -p testkit --bin fuzz -- rm|cp [--cases N] [--seed S] [--first I] [--keep-going] [--dry-run]
//! ```
//!
//! `FUC_REFERENCE` names the directory of GNU's programs. Ours are those beside this program. Case I of seed S is
//! always the same. A case that differs is shrunk, and printed as a script that runs with either command. With
//! `--keep-going`, each kind of difference is reported once. `--dry-run` compares our dry runs with our real runs.
//!
//! A case is generated (`generate`), turned into steps (`plan`), run (`run`), and compared (`difference`). The cases in
//! which a deliberate difference may show are left out (`deviations`).

use std::{env, error::Error, process::ExitCode};

use crate::{case::Pair, fuzzer::Fuzzer};

mod case;
mod deviations;
mod difference;
mod flags;
mod fuzzer;
mod generate;
mod plan;
mod run;
mod script;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let result = Plan::from_arguments().and_then(|plan| Fuzzer::new(plan)?.run());
    match result {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("fuzz: {e}");
            ExitCode::from(2)
        }
    }
}

/// The options of the command line.
struct Plan {
    pair: Pair,
    seed: u64,
    first: u64,
    cases: u64,
    keeps_going: bool,
    against: Against,
}

/// The run that ours is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Against {
    /// The run of GNU's command.
    Gnu,
    /// Our own run. It is compared with a dry run, which must change nothing.
    RealRun,
}

impl Plan {
    fn from_arguments() -> Outcome<Self> {
        let mut arguments = env::args().skip(1);
        let pair = match arguments.next().as_deref() {
            Some("rm") => Pair::Rm,
            Some("cp") => Pair::Cp,
            _ => return Err("the first argument must be rm or cp".into()),
        };
        let mut plan = Self {
            pair,
            seed: 1,
            first: 0,
            cases: 1_000,
            keeps_going: false,
            against: Against::Gnu,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or("a value is missing");
            match argument.as_str() {
                "--seed" => plan.seed = value()?.parse()?,
                "--first" => plan.first = value()?.parse()?,
                "--cases" => plan.cases = value()?.parse()?,
                "--dry-run" => plan.against = Against::RealRun,
                "--keep-going" => plan.keeps_going = true,
                other => return Err(format!("unknown argument {other}").into()),
            }
        }
        Ok(plan)
    }
}
