//! Compares rmz with GNU rm, and cpz with GNU cp, on random command lines in random trees.
//!
//! ```text
//! cargo run -p testkit --bin fuzz -- rm|cp [--cases N] [--seed S] [--first I] [--keep-going] [--row TEXT]
//! ```
//!
//! `FUC_REFERENCE` names the directory of GNU's programs, see `testkit/gnu-reference.sh`. Ours are those beside this
//! program. Case I of seed S is always the same. A case that differs is shrunk, and printed as a script that runs with
//! either command. `--keep-going` goes on after that, and reports each kind of difference once.
//! `--row` prints what a deliberate difference explains: the facts of the row whose line contains the text.
//!
//! A case is generated (`generate`), turned into steps (`plan`), run (`run`), and compared (`difference`). Deliberate
//! differences are listed in `deviations`, which explains each single fact (`fact`) of a difference.

use std::{env, error::Error, process::ExitCode};

use crate::{case::Pair, fuzzer::Fuzzer};

mod case;
mod deviations;
mod difference;
mod fact;
mod flags;
mod fuzzer;
mod generate;
mod launch;
mod places;
mod plan;
mod quoting;
mod run;
mod script;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    if arguments
        .next()
        .is_some_and(|first| first == launch::LAUNCH)
    {
        return launch::launch(arguments);
    }
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
    at_difference: AtDifference,
    against: Against,
    /// A text in the line of a deliberate difference whose facts are printed.
    row: Option<String>,
}

/// The run that ours is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Against {
    /// The run of GNU's command.
    Gnu,
    /// Our own run. It is compared with a dry run, which must change nothing.
    RealRun,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtDifference {
    Stop,
    KeepGoing,
}

impl Plan {
    fn from_arguments() -> Outcome<Self> {
        let mut arguments = env::args().skip(1);
        let pair = arguments.next().as_deref().and_then(Pair::of);
        let mut plan = Self {
            pair: pair.ok_or("the first argument must be rm or cp")?,
            seed: 1,
            first: 0,
            cases: 1_000,
            at_difference: AtDifference::Stop,
            against: Against::Gnu,
            row: None,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or("a value is missing");
            match argument.as_str() {
                "--seed" => plan.seed = value()?.parse()?,
                "--first" => plan.first = value()?.parse()?,
                "--cases" => plan.cases = value()?.parse()?,
                "--row" => plan.row = Some(value()?),
                "--dry-run" => plan.against = Against::RealRun,
                "--keep-going" => plan.at_difference = AtDifference::KeepGoing,
                other => return Err(format!("unknown argument {other}").into()),
            }
        }
        Ok(plan)
    }
}
