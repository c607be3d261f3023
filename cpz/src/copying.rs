//! Runs a copy with the resolved options.

use std::ffi::OsString;
use std::sync::Arc;

use fuc_cli::console::Console;
use fuc_cli::exclude::ExcludeFilter;
use fuc_cli::flags::UsageError;
use fuc_cli::outcome::Outcome;
use fuc_cli::progress::{LookAhead, Paced, Scan};
use fuc_cli::rate::Limiter;
use fuc_cli::reporter::Reporter;
use fuc_cli::stats::Run;
use fuc_cli::sys;
use fuc_cli::tool::Tool;
use fuc_engine::Summary;

use cpz::options::Options;
use cpz::request::Request;

/// Copies the sources among the operands, or in a list, to the dest.
pub(crate) fn execute(
    options: Options,
    operands: Vec<OsString>,
    console: &Console,
) -> Result<Outcome, UsageError> {
    let (stats, execution) = (options.common.stats, options.engine.execution);
    match Request::new(options, operands, console) {
        Ok(request) => Ok(copy(request, console)),
        Err(error) => stats.end_prevented(error, execution, console),
    }
}

fn copy(request: Request, console: &Console) -> Outcome {
    let misplaced = request.misplaced_mirror();
    let Request {
        options,
        filter,
        sources,
        dest,
        ..
    } = request;
    let cancel = sys::cancel_on_signals();
    let execution = options.engine.execution;
    let limiter = options
        .common
        .max_rate
        .map(|rate| Limiter::new(rate, &cancel));
    let mut copy = (options.engine.clone())
        .cancelled_by(cancel)
        .private_tables(sys::private_tables());
    if let Some(filter) = filter.clone() {
        copy = copy.filtered_by(filter);
    }
    if let Some(limiter) = &limiter {
        copy = copy.throttled_by(limiter);
    }
    // A look-ahead would not keep to the rate.
    let look_ahead = limiter.is_none().then(|| {
        let count = |scan: &Arc<Scan>| {
            copy.clone()
                .filtered_by(Paced::new(filter.clone(), scan, sources.iter().count()))
                .cancelled_by(scan.cancel())
                .count(sources.iter(), scan.counts())
        };
        Box::new(count) as LookAhead<'_>
    });
    let mut summary = Reporter::new(console, Tool::Copy, options.common.verbosity)
        .in_execution(execution)
        .run(
            request.watch,
            |reporter| copy.run(sources.iter(), &dest, reporter),
            look_ahead,
        );
    if summary.cancelled
        && let Some(command) = options.command_to_resume(&dest, console)
    {
        console.advise([b"to go on: ", &command[..]].concat());
    }
    if let Some(copy) = misplaced
        && summary.is_complete()
        && summary.deleted == 0
    {
        let copy = console.quoted(copy);
        let line = format!("hint: the mirror is {copy}; with -T, it is the destination itself");
        console.advise(line.into());
    }
    summary.failures += request.unread_names;
    report_rest(&mut summary, filter.as_ref(), console);
    let run = Run {
        began: request.began,
        ..Run::beginning_now(summary, execution)
    };
    match run.end(options.common.stats, console) {
        Outcome::Complete if summary.declined > 0 => Outcome::Incomplete,
        outcome => outcome,
    }
}

/// Reports the files of patterns that could not be read, which are failures, and the entries that a limit has kept.
fn report_rest(summary: &mut Summary, filter: Option<&ExcludeFilter>, console: &Console) {
    let unread = filter.map(|filter| filter.take_unread(console.charset()));
    for line in unread.into_iter().flatten() {
        console.error(line);
        summary.failures += 1;
    }
    if summary.not_deleted > 0 {
        let line = format!(
            "entries not deleted because of --max-delete: {}",
            summary.not_deleted
        );
        console.error(line);
    }
}
