//! Runs a copy with the resolved options.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::time::Instant;

use fuc_cli::command::{Context, Outcome};
use fuc_cli::console::Console;
use fuc_cli::exclude::ExcludeFilter;
use fuc_cli::flags::UsageError;
use fuc_cli::interrupt;
use fuc_cli::progress::Watch;
use fuc_cli::reporter::Reporter;
use fuc_cli::stats::Run;
use fuc_cli::stdin;
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
    let personality = options.personality;
    let context = Context {
        personality,
        console,
    };
    let watch = Watch::begin(options.progress, "CPZ_PROGRESS", Tool::Copy, context)?;
    let began = Instant::now();
    let prompts = options.engine.rules.ask.then_some("-i");
    stdin::check_readers(options.list.as_ref(), &options.exclusions, prompts)?;
    let Some(list) = options.list.take() else {
        let dest = target::take_dest(&options, &mut operands, console)?;
        let filter = options.exclusions.filter(console)?;
        let sources = Sources {
            names: operands,
            unread: 0,
            began,
        };
        return Ok(copy(options, filter, sources, &dest, watch, console));
    };
    let dest = target::dest_of_list(&options, &operands, console)?;
    let filter = options.exclusions.filter(console)?;
    let mut names = list.open(console)?;
    let sources = Sources {
        names: names.by_ref().collect(),
        unread: names.failures(),
        began,
    };
    Ok(copy(options, filter, sources, &dest, watch, console))
}

/// The files to copy.
struct Sources {
    names: Vec<OsString>,
    /// The number of names in a list that could not be read, which has been reported.
    unread: u64,
    /// The time before the first name was read.
    began: Instant,
}

fn copy(
    mut options: Options,
    filter: Option<ExcludeFilter>,
    sources: Sources,
    dest: &Dest,
    watch: Option<Watch>,
    console: &Console,
) -> Outcome {
    // As in cp, trailing slashes stay if the dest is an exact path.
    let strips_slashes = options.strips_slashes && matches!(dest, Dest::Into(_));
    let is_excluded = |source: &OsString| {
        let filter = filter.as_ref();
        filter.is_some_and(|filter| filter.excludes_operand(source))
    };
    let sources_taken = sources
        .names
        .into_iter()
        .filter(|source| !is_excluded(source));
    let operands = sources_taken.map(|source| match strips_slashes {
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
        copy = copy.filtered_by(Arc::new(filter));
    }
    let mut summary = Reporter::new(console, Tool::Copy, options.verbosity)
        .in_execution(execution)
        .run(
            watch,
            |reporter| copy.run(&operands, dest, reporter),
            Some(Box::new(|cancel, counts| {
                let look_ahead = copy.clone().cancelled_by(&cancel);
                look_ahead.count(&operands, counts)
            })),
        );
    let unread_patterns = filter.map_or(0, |filter| filter.report_unread(console));
    summary.failures += sources.unread + unread_patterns;
    let run = Run {
        summary: &summary,
        tool: Tool::Copy,
        execution,
        began: sources.began,
    };
    options.stats.show(&run, console);
    match Outcome::of(summary, Tool::Copy, execution) {
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
