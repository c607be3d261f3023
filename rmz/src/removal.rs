//! Runs a removal with the resolved options.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::iter;
use std::path::PathBuf;
use std::time::Instant;

use fuc_cli::command::{Context, Outcome};
use fuc_cli::console::Console;
use fuc_cli::exclude::{ExcludeFilter, is_taken, taken_operands};
use fuc_cli::flags::UsageError;
use fuc_cli::interrupt;
use fuc_cli::invocation::Personality;
use fuc_cli::name_list::{self, ListFile, NameList};
use fuc_cli::progress::{LookAhead, Watch};
use fuc_cli::rate::Limiter;
use fuc_cli::reporter::Reporter;
use fuc_cli::stats::Run;
use fuc_cli::stdin;
use fuc_cli::threads;
use fuc_cli::wording::Tool;
use fuc_engine::{Answer, Ask, Cause, Summary};
use rustix::io::Errno;

use crate::detach;
use rmz::options::{Mode, Options, Prompts};

/// With `-I`, up to this number of operands are removed without a question.
const FEW: usize = 3;

/// Removes the operands, or the files in a list.
pub(crate) fn execute(
    options: Options,
    operands: Vec<OsString>,
    console: &Console,
) -> Result<Outcome, UsageError> {
    let (stats, execution) = (options.stats, options.engine.execution);
    begin(options, operands, console)
        .or_else(|error| stats.end_prevented(error, execution, console))
}

fn begin(
    mut options: Options,
    operands: Vec<OsString>,
    console: &Console,
) -> Result<Outcome, UsageError> {
    let threads = options.engine.threads;
    options.engine.threads = threads.or_else(|| threads::from_environment("RMZ_THREADS"));
    let personality = options.personality;
    let context = Context {
        personality,
        console,
    };
    let watch = Watch::begin(options.progress, "RMZ_PROGRESS", Tool::Remove, context)?;
    let asks = options.asks_once || options.prompts != Prompts::Never;
    let prompts = asks.then_some("-i or -I");
    stdin::check_readers(options.list.as_ref(), &options.exclusions, prompts)?;
    if let Some(list) = options.list.take() {
        return remove_listed(list, options, &operands, watch, console);
    }
    if operands.is_empty() {
        return if options.engine.ignore_missing {
            Ok(nothing(&options, Summary::default(), console))
        } else {
            Err(UsageError::with_help("missing operand"))
        };
    }
    let filter = options.exclusions.filter(console)?;
    let operands: Vec<_> = taken_operands(filter.as_ref(), operands, console)?;
    let asks_once = options.asks_once && !operands.is_empty();
    if asks_once
        && (options.engine.recursive || operands.len() > FEW)
        && console.ask(&question(&options, operands.len())) == Answer::No
    {
        return Ok(declined(&options, console));
    }
    Ok(match options.mode {
        Mode::Foreground => remove(options, filter, Operands::Named(operands), watch, console),
        Mode::Detached => detach::detach(options, operands, watch, console),
        Mode::Reaping => detach::reap(options, operands, watch, console),
    })
}

/// Ends a run whose question of `-I` was declined.
fn declined(options: &Options, console: &Console) -> Outcome {
    let mut summary = Summary::default();
    summary.declined = 1;
    nothing(options, summary, console)
}

/// Ends a run without work, which shows its totals as any other.
fn nothing(options: &Options, summary: Summary, console: &Console) -> Outcome {
    let run = Run::beginning_now(&summary, options.engine.execution);
    options.stats.show(&run, console);
    Outcome::Complete
}

/// Removes the files in a list. Their number is unknown, so `-I` always asks.
fn remove_listed(
    list: ListFile,
    options: Options,
    operands: &[OsString],
    watch: Option<Watch>,
    console: &Console,
) -> Result<Outcome, UsageError> {
    if let Some(extra) = operands.first() {
        return Err(name_list::extra_operand(extra, console));
    }
    let question = format!("remove the files named in {}", list.quoted(console));
    let filter = options.exclusions.filter(console)?;
    let names = list.open(console)?;
    if options.asks_once && console.ask(&question) == Answer::No {
        return Ok(declined(&options, console));
    }
    let operands = Operands::Listed(names);
    Ok(remove(options, filter, operands, watch, console))
}

/// The names to remove.
enum Operands<'a> {
    Named(Vec<OsString>),
    Listed(NameList<'a>),
}

fn remove(
    mut options: Options,
    filter: Option<ExcludeFilter>,
    operands: Operands<'_>,
    watch: Option<Watch>,
    console: &Console,
) -> Outcome {
    let began = Instant::now();
    options.engine.ask = ask(&options);
    let cancel = interrupt::cancel_on_signals();
    let execution = options.engine.execution;
    let removal_unlocks = options.engine.unlock;
    let limiter = options.max_rate.map(|rate| Limiter::new(rate, &cancel));
    let mut removal = options.engine.cancelled_by(cancel);
    if let Some(limiter) = &limiter {
        removal = removal.throttled_by(limiter);
    }
    if let Some(filter) = filter.clone() {
        removal = removal.filtered_by(filter);
    }
    let reporter = Reporter::new(console, Tool::Remove, options.verbosity).in_execution(execution);
    let gives_hints = options.personality == Personality::Extended && !removal_unlocks;
    let advise = |cause| {
        if let Some(hint) = hint(cause).filter(|_| gives_hints) {
            console.advise(hint.into());
        }
    };
    let reporter = reporter.passing_failures_to(&advise);
    let summary = match operands {
        Operands::Named(operands) => {
            let operands = || operands.iter().map(PathBuf::from);
            let look_ahead = |cancel, counts: &_| {
                let look_ahead = removal.clone().cancelled_by(cancel);
                look_ahead.count(operands(), counts)
            };
            let run = |reporter: &Reporter<'_>| removal.run(operands(), reporter);
            // A look-ahead would not keep to the rate.
            let look_ahead = limiter
                .is_none()
                .then(|| Box::new(look_ahead) as LookAhead<'_>);
            reporter.run(watch, run, look_ahead)
        }
        Operands::Listed(mut names) => {
            let run = |reporter: &Reporter<'_>| {
                let next = || taken_name(&mut names, filter.as_ref(), console);
                removal.run(iter::from_fn(next), reporter)
            };
            // A list can be read only once, so nothing looks ahead.
            let mut summary = reporter.run(watch, run, None);
            summary.failures += names.failures();
            summary
        }
    };
    let run = Run {
        summary: &summary,
        execution,
        began,
        shares: &[],
    };
    options.stats.show(&run, console);
    Outcome::of(summary, Tool::Remove, execution)
}

/// Returns the next operand in a list. Those that the filter must not decide about are reported and left out.
fn taken_name(
    names: &mut NameList<'_>,
    filter: Option<&ExcludeFilter>,
    console: &Console,
) -> Option<PathBuf> {
    loop {
        let name = names.next()?;
        match is_taken(filter, &name, console) {
            Ok(true) => return Some(name.into()),
            Ok(false) => {}
            Err(error) => names.refuse(&error),
        }
    }
}

/// Returns what a user may do about a failure.
fn hint(cause: Cause) -> Option<&'static str> {
    let Cause::Failed(_, errno) = cause else {
        return None;
    };
    Some(match Errno::from_raw_os_error(errno.raw_os_error()) {
        Errno::ACCESS => {
            "hint: rmz --unlock removes what is in write-protected directories of yours"
        }
        Errno::PERM => "hint: rmz --unlock, run by root, removes immutable files",
        Errno::ROFS => "hint: rmz --unlock removes read-only btrfs snapshots",
        Errno::BUSY => "hint: what is mounted or in use stays until it is unmounted",
        _ => return None,
    })
}

/// Returns the question of `-I`.
fn question(options: &Options, operands: usize) -> String {
    let plural = if operands == 1 { "" } else { "s" };
    match options.mode {
        Mode::Reaping => {
            format!("remove the hidden directories of --detach in {operands} argument{plural}")
        }
        Mode::Foreground | Mode::Detached if options.engine.recursive => {
            format!("remove {operands} argument{plural} recursively")
        }
        Mode::Foreground | Mode::Detached => format!("remove {operands} argument{plural}"),
    }
}

fn ask(options: &Options) -> Ask {
    match options.prompts {
        Prompts::Always => Ask::Always,
        Prompts::WriteProtected if options.presumes_terminal || io::stdin().is_terminal() => {
            Ask::IfWriteProtected
        }
        Prompts::Never | Prompts::WriteProtected => Ask::Never,
    }
}
