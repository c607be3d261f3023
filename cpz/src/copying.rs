//! Runs a copy with the resolved options.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use fuc_cli::command::Outcome;
use fuc_cli::console::Console;
use fuc_cli::flags::UsageError;
use fuc_cli::interrupt;
use fuc_cli::reporter::Reporter;
use fuc_cli::threads;
use fuc_cli::wording::Tool;
use fuc_engine::{CopyOp, Dest, Execution};

use crate::options::Options;
use crate::target;

/// Copies the sources among the operands to the dest.
pub(crate) fn execute(
    mut options: Options,
    mut operands: Vec<OsString>,
    console: &Console,
) -> Result<Outcome, UsageError> {
    options.finish(console.charset())?;
    options.preserve.check_context()?;
    let dest = target::take_dest(&options, &mut operands, console)?;
    // As in cp, trailing slashes stay if the dest is an exact path.
    if options.strips_slashes && matches!(dest, Dest::Into(_)) {
        operands.iter_mut().for_each(strip_slashes);
    }
    let threads = options.engine.threads;
    options.engine.threads = threads.or_else(|| threads::from_environment("CPZ_THREADS"));
    let cancel = interrupt::cancel_on_signals();
    let copy = CopyOp::with_options(options.engine).cancelled_by(&cancel);
    let summary = Reporter::new(console, Tool::Copy, options.verbosity)
        .run(options.progress, |reporter| {
            copy.run(operands, &dest, reporter)
        });
    Ok(match Outcome::of(summary, Tool::Copy, Execution::Real) {
        Outcome::Complete if summary.declined > 0 => Outcome::Incomplete,
        outcome => outcome,
    })
}

/// Removes trailing slashes, but keeps one if there is nothing else.
fn strip_slashes(operand: &mut OsString) {
    let mut bytes = std::mem::take(operand).into_vec();
    while bytes.len() > 1 && bytes.ends_with(b"/") {
        bytes.pop();
    }
    *operand = OsString::from_vec(bytes);
}
