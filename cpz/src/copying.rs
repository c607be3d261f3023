//! Runs a copy with the resolved options.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Instant;

use fuc_cli::command::Outcome;
use fuc_cli::console::Console;
use fuc_cli::exclude::{ExcludeFilter, GitignoreFiles};
use fuc_cli::flags::UsageError;
use fuc_cli::interrupt;
use fuc_cli::name_list::NameList;
use fuc_cli::progress::Progress;
use fuc_cli::reporter::Reporter;
use fuc_cli::threads;
use fuc_cli::wording::Tool;
use fuc_engine::{CopyOp, Dest};

use crate::options::Options;
use crate::target;

/// Copies the sources among the operands, or in a list, to the dest.
pub(crate) fn execute(
    mut options: Options,
    mut operands: Vec<OsString>,
    console: &Console,
) -> Result<Outcome, UsageError> {
    options.finish(console.charset())?;
    options.preserve.check_context()?;
    options.progress = Progress::chosen(
        options.progress,
        "CPZ_PROGRESS",
        options.personality,
        console.charset(),
    )?;
    let Some(list) = options.list.take() else {
        let dest = target::take_dest(&options, &mut operands, console)?;
        let filter = options.exclusions.filter(console)?;
        let operands = operands.into_iter();
        return Ok(copy(options, filter, operands, |_| 0, &dest, console));
    };
    let dest = target::dest_of_list(&options, &operands, console)?;
    if list.is_stdin() && options.engine.rules.ask {
        let message = "--files0-from=- cannot be combined with -i: stdin holds no answers";
        return Err(UsageError::with_help(message));
    }
    let filter = options.exclusions.filter(console)?;
    let names = list.open(console)?;
    let failures = NameList::failures;
    Ok(copy(options, filter, names, failures, &dest, console))
}

/// Copies the sources. `failures` returns the number of those that could not be read.
fn copy<I: Iterator<Item = OsString>>(
    mut options: Options,
    filter: Option<ExcludeFilter>,
    mut sources: I,
    failures: impl FnOnce(&I) -> u64,
    dest: &Dest,
    console: &Console,
) -> Outcome {
    let began = Instant::now();
    // As in cp, trailing slashes stay if the dest is an exact path.
    let strips_slashes = options.strips_slashes && matches!(dest, Dest::Into(_));
    let operands = sources.by_ref().map(|source| match strips_slashes {
        true => without_slashes(source),
        false => source,
    });
    let operands: Vec<_> = operands.collect();
    let threads = options.engine.threads;
    options.engine.threads = threads.or_else(|| threads::from_environment("CPZ_THREADS"));
    let cancel = interrupt::cancel_on_signals();
    let execution = options.engine.execution;
    let mut copy = CopyOp::with_options(options.engine).cancelled_by(&cancel);
    if let Some(filter) = filter.clone() {
        copy = copy.filtered_by(filter);
    }
    let mut summary = Reporter::new(console, Tool::Copy, options.verbosity)
        .in_execution(execution)
        .run(
            options.progress,
            |reporter| copy.run(&operands, dest, reporter),
            |cancel, counts| {
                let look_ahead = copy.clone().cancelled_by(&cancel);
                look_ahead.count(&operands, counts)
            },
        );
    summary.failures += failures(&sources);
    options.stats.show(&summary, Tool::Copy, began, console);
    let gitignore_files = filter.map(|filter| filter.report_unread(console));
    match Outcome::of(summary, Tool::Copy, execution) {
        Outcome::Complete if gitignore_files == Some(GitignoreFiles::Unread) => Outcome::Incomplete,
        Outcome::Complete if summary.declined > 0 => Outcome::Incomplete,
        outcome => outcome,
    }
}

/// Removes trailing slashes, but keeps one if there is nothing else.
fn without_slashes(operand: OsString) -> OsString {
    let mut bytes = operand.into_vec();
    while bytes.len() > 1 && bytes.ends_with(b"/") {
        bytes.pop();
    }
    OsString::from_vec(bytes)
}
