//! Compares rmz with GNU rm, and cpz with GNU cp, on random command lines in random trees.
//!
//! ```text
//! cargo run -p testkit --bin fuzz -- rm|cp [--cases N] [--seed S] [--dry-run]
//! ```
//!
//! `FUC_REFERENCE` names the directory of GNU's programs. Ours are those beside this program. A seed always has the same
//! cases. The first case that differs is shrunk and printed, and its tree stays. `--dry-run` compares our dry runs with our
//! real runs.
//!
//! A case is generated (`generate`), and built and run (`case`). The cases in which a deliberate difference may show are
//! left out (`deviations`), but at most two of three: rows that leave out everything hide every bug.

use std::{env, error::Error, path::PathBuf, process::ExitCode};

use proptest::test_runner::{
    Config, RngSeed, TestCaseError, TestCaseResult, TestError, TestRunner,
};
use testkit::{
    probe::{is_root, newest_gnu},
    run::{Status, as_done, difference},
    tree::Tree,
};

use crate::case::{Case, HUNG, Pair};

mod case;
mod deviations;
mod generate;

/// Most time for shrinking a case.
const MAX_SHRINKING_MS: u32 = 60_000;

fn main() -> ExitCode {
    match Fuzzer::from_arguments().and_then(|fuzzer| fuzzer.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("fuzz: {e}");
            ExitCode::FAILURE
        }
    }
}

struct Fuzzer {
    pair: Pair,
    ours: PathBuf,
    seed: u64,
    cases: u32,
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

impl Fuzzer {
    fn from_arguments() -> Result<Self, Box<dyn Error>> {
        let mut arguments = env::args().skip(1);
        let pair = match arguments.next().as_deref() {
            Some("rm") => Pair::Rm,
            Some("cp") => Pair::Cp,
            _ => return Err("the first argument must be rm or cp".into()),
        };
        let mut fuzzer = Self {
            pair,
            ours: env::current_exe()?.with_file_name(pair.ours()),
            seed: 1,
            cases: 1_000,
            against: Against::Gnu,
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or("a value is missing");
            match argument.as_str() {
                "--seed" => fuzzer.seed = value()?.parse()?,
                "--cases" => fuzzer.cases = value()?.parse()?,
                "--dry-run" => fuzzer.against = Against::RealRun,
                other => return Err(format!("unknown argument {other}").into()),
            }
        }
        Ok(fuzzer)
    }

    fn run(&self) -> Result<(), Box<dyn Error>> {
        newest_gnu(self.pair.gnu()).map_err(|skip| skip.0)?;
        if !is_root() {
            return Err("only root can make all trees".into());
        }
        let mut runner = TestRunner::new(Config {
            cases: self.cases,
            max_global_rejects: 2 * self.cases,
            max_shrink_time: MAX_SHRINKING_MS,
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(self.seed),
            ..Config::default()
        });
        let result = runner.run(&generate::case(self.pair), |case| self.test(&case));
        // It counts the cases that each row has left out.
        println!("{runner}");
        match result {
            Ok(()) => Ok(()),
            Err(TestError::Fail(difference, case)) => {
                let tree = tempfile::tempdir()?.keep();
                case.build(&Tree::at(&tree));
                println!("{difference}\n{:?}", case.parity(&self.ours));
                Err(format!("they differ in this case; its tree is {}", tree.display()).into())
            }
            Err(TestError::Abort(reason)) => Err(reason.message().into()),
        }
    }

    /// Runs both commands, and fails if they differ.
    fn test(&self, case: &Case) -> TestCaseResult {
        let parity = case.parity(&self.ours);
        let build = |tree: &Tree| case.build(tree);
        let [ours, gnu] = match self.against {
            Against::Gnu => parity.observe(build).expect("BUG: GNU's command was found"),
            Against::RealRun => {
                let [mut dry, mut real] = parity.observe_dry_run(build);
                dry.outcome.stdout = as_done(&dry.outcome.stdout);
                // A dry run does not know how content would be copied.
                let lines = real.outcome.stdout.split_inclusive(|&byte| byte == b'\n');
                let lines = lines.filter(|line| !line.starts_with(b"copy offload: "));
                real.outcome.stdout = lines.collect::<Vec<_>>().concat();
                [dry, real]
            }
        };
        // Nothing excuses a panic or a crash.
        let has_crashed = match ours.outcome.status {
            Status::Signal(_) => ours.outcome.status != HUNG,
            Status::Exit(status) => status == 101,
        };
        let (_, rows) = deviations::rows(self.pair, self.against);
        let mut rows = rows.iter();
        let row = rows.find(|(_, applies)| !has_crashed && applies(case, &gnu.outcome));
        if let Some(&(line, _)) = row {
            return Err(TestCaseError::reject(line));
        }
        match difference(&ours, &gnu) {
            same if same.is_empty() => Ok(()),
            difference => Err(TestCaseError::fail(difference)),
        }
    }
}
