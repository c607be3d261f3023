//! Runs a copy as the options say.

use std::ffi::OsString;

use fuc_cli::command::Outcome;
use fuc_cli::console::Console;
use fuc_cli::flags::Misuse;
use fuc_cli::reporter::Reporter;
use fuc_cli::threads;
use fuc_cli::wording::Tool;
use fuc_engine::{CopyOp, CopyOptions};

use crate::options::Options;
use crate::target;

/// Copies all operands but the dest to the dest.
pub(crate) fn execute(
    options: Options,
    mut operands: Vec<OsString>,
    console: &Console,
) -> Result<Outcome, Misuse> {
    options.check()?;
    let dest = target::take_dest(&options, &mut operands, console)?;
    let reporter = Reporter::new(console, Tool::Copy, options.verbosity);
    let summary = CopyOp::new(engine_options(&options)).run(operands, &dest, &reporter);
    Ok(summary.into())
}

fn engine_options(options: &Options) -> CopyOptions {
    let mut engine = CopyOptions::default();
    engine.recursive = options.recursive;
    engine.force = options.force;
    engine.dereference = options.dereference();
    engine.one_file_system = options.one_file_system;
    engine.copy_contents = options.copy_contents;
    engine.as_links = options.as_links();
    engine.reflink = options.reflink;
    engine.sparse = options.sparse;
    engine.threads = options
        .threads
        .or_else(|| threads::from_environment("CPZ_THREADS"));
    engine
}
