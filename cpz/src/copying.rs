//! Runs a copy as the options say.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use fuc_cli::command::Outcome;
use fuc_cli::console::Console;
use fuc_cli::flags::UsageError;
use fuc_cli::reporter::Reporter;
use fuc_cli::threads;
use fuc_cli::wording::Tool;
use fuc_engine::{CopyOp, CopyOptions, Dest};

use crate::options::Options;
use crate::target;

/// Copies all operands but the dest to the dest.
pub(crate) fn execute(
    options: Options,
    mut operands: Vec<OsString>,
    console: &Console,
) -> Result<Outcome, UsageError> {
    options.check()?;
    options.kept.check_context()?;
    let dest = target::take_dest(&options, &mut operands, console)?;
    // As cp, which leaves them where the dest is one name.
    if options.strips_slashes && matches!(dest, Dest::Into(_)) {
        operands.iter_mut().for_each(strip_slashes);
    }
    let copy = CopyOp::new(engine_options(&options));
    let summary = Reporter::new(console, Tool::Copy, options.verbosity)
        .run(options.progress, |reporter| {
            copy.run(operands, &dest, reporter)
        });
    let outcome = if summary.declined > 0 {
        Outcome::Incomplete
    } else {
        Outcome::Complete
    };
    Ok(outcome.and(summary.into()))
}

/// Leaves one slash of those that are all there is.
fn strip_slashes(operand: &mut OsString) {
    let mut bytes = std::mem::take(operand).into_vec();
    while bytes.len() > 1 && bytes.ends_with(b"/") {
        bytes.pop();
    }
    *operand = OsString::from_vec(bytes);
}

fn engine_options(options: &Options) -> CopyOptions {
    let mut engine = CopyOptions::default();
    engine.recursive = options.recursive;
    engine.force = options.force;
    engine.rules = options.rules.clone();
    engine.parents = options.parents;
    engine.dereference = options.dereference();
    engine.one_file_system = options.one_file_system;
    engine.copy_contents = options.copy_contents;
    engine.as_links = options.as_links();
    engine.reflink = options.reflink;
    engine.sparse = options.sparse;
    engine.preserve = options.kept.engine();
    engine.context = options.kept.given_context.clone();
    engine.attributes_only = options.attributes_only;
    engine.threads = options
        .threads
        .or_else(|| threads::from_environment("CPZ_THREADS"));
    engine
}
