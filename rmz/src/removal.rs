//! Runs a removal as the options say.

use std::ffi::OsString;

use fuc_cli::command::Outcome;
use fuc_cli::console::Console;
use fuc_cli::flags::Misuse;
use fuc_cli::reporter::Reporter;
use fuc_cli::threads;
use fuc_cli::wording::Tool;
use fuc_engine::{RemoveOp, RemoveOptions};

use crate::options::{Missing, Options, PreserveRoot};
use crate::separate_device;

/// Removes the operands.
pub(crate) fn execute(
    options: Options,
    mut operands: Vec<OsString>,
    console: &Console,
) -> Result<Outcome, Misuse> {
    if operands.is_empty() {
        return match options.missing {
            Missing::IsFine => Ok(Outcome::Complete),
            Missing::IsAnError => Err(Misuse::with_help("missing operand")),
        };
    }
    let mut outcome = Outcome::Complete;
    if options.preserve_root == PreserveRoot::AllRoots && options.recursive {
        outcome = separate_device::set_aside(&mut operands, console);
    }
    let reporter = Reporter::new(console, Tool::Remove, options.verbosity);
    let summary = RemoveOp::new(engine_options(&options)).run(operands, &reporter);
    Ok(outcome.and(summary.into()))
}

fn engine_options(options: &Options) -> RemoveOptions {
    let mut engine = RemoveOptions::default();
    engine.recursive = options.recursive;
    engine.ignore_missing = options.missing == Missing::IsFine;
    engine.preserve_root = options.preserve_root != PreserveRoot::No;
    engine.threads = options
        .threads
        .or_else(|| threads::from_environment("RMZ_THREADS"));
    engine
}
