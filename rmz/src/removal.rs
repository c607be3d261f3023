//! Runs a removal with the resolved options.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::iter;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use fuc_cli::console::Console;
use fuc_cli::exclude::{ExcludeFilter, is_taken};
use fuc_cli::flags::UsageError;
use fuc_cli::invocation::Personality;
use fuc_cli::name_list::NameList;
use fuc_cli::outcome::Outcome;
use fuc_cli::progress::{LookAhead, Paced, Scan, Watch};
use fuc_cli::rate::Limiter;
use fuc_cli::reporter::Reporter;
use fuc_cli::stats::Run;
use fuc_cli::sys;
use fuc_cli::tool::Tool;
use fuc_engine::{Ask, Cause, Summary};
use rustix::io::Errno;

use crate::detach;
use rmz::options::{Mode, Options, Prompts};
use rmz::request::{OperandSource, Request};

/// With `-I`, up to this number of operands are removed without a question.
const FEW: usize = 3;

/// Removes the operands, or the files in a list.
pub(crate) fn execute(
    options: Options,
    operands: Vec<OsString>,
    console: &Console,
) -> Result<Outcome, UsageError> {
    let (stats, execution) = (options.common.stats, options.engine.execution);
    let nothing = |summary| {
        // A run without work shows its totals as any other.
        Ok(Run::beginning_now(summary, execution).end(stats, console))
    };
    let request = match Request::new(options, operands, console) {
        Ok(Some(request)) => request,
        Ok(None) => return nothing(Summary::default()),
        Err(error) => return stats.end_prevented(error, execution, console),
    };
    if request.options.prompts == Prompts::Once
        && let Some(question) = question(&request, console)
        && !console.ask(&question)
    {
        let mut summary = Summary::default();
        summary.declined = 1;
        return nothing(summary);
    }
    let Request {
        options,
        filter,
        operands,
        watch,
    } = request;
    Ok(match (options.mode, operands) {
        (Mode::Detached, OperandSource::Named(operands)) => {
            detach::detach(options, operands, watch, console)
        }
        (Mode::Reaping, OperandSource::Named(operands)) => {
            detach::reap(options, operands, watch, console)
        }
        (_, operands) => remove(options, filter, operands, watch, console),
    })
}

fn remove(
    mut options: Options,
    filter: Option<ExcludeFilter>,
    operands: OperandSource<'_>,
    watch: Option<Watch>,
    console: &Console,
) -> Outcome {
    let began = Instant::now();
    options.engine.ask = ask(&options);
    let Options { common, engine, .. } = options;
    let execution = engine.execution;
    let gives_hints = common.personality == Personality::Extended;
    let unlocks = engine.unlock;
    let cancel = sys::cancel_on_signals();
    let limiter = common.max_rate.map(|rate| Limiter::new(rate, &cancel));
    let mut removal = engine.cancelled_by(cancel);
    if let Some(limiter) = &limiter {
        removal = removal.throttled_by(limiter);
    }
    if let Some(filter) = filter.clone() {
        removal = removal.filtered_by(filter);
    }
    let advise = |cause| {
        if gives_hints && let Some(hint) = hint(cause, unlocks) {
            console.advise(hint.into());
        }
    };
    let reporter = Reporter::new(console, Tool::Remove, common.verbosity)
        .in_execution(execution)
        .passing_failures_to(&advise);
    let summary = match operands {
        OperandSource::Named(operands) => {
            let operands = || operands.iter().map(PathBuf::from);
            let count = |scan: &Arc<Scan>| {
                removal
                    .clone()
                    .filtered_by(Paced::new(filter.clone(), scan, operands().len()))
                    .cancelled_by(scan.cancel())
                    .count(operands(), scan.counts())
            };
            // A look-ahead would not keep to the rate.
            let look_ahead = limiter.is_none().then(|| Box::new(count) as LookAhead<'_>);
            let run = |reporter: &Reporter<'_>| removal.run(operands(), reporter);
            reporter.run(watch, run, look_ahead)
        }
        OperandSource::Listed(mut names) => {
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
        began,
        ..Run::beginning_now(summary, execution)
    };
    run.end(common.stats, console)
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
fn hint(cause: Cause, unlocks: bool) -> Option<&'static str> {
    let Cause::Failed(_, raw) = cause else {
        return None;
    };
    Some(match Errno::from_raw_os_error(raw) {
        Errno::ACCESS if !unlocks => {
            "hint: rmz --unlock removes what is in write-protected directories of yours"
        }
        Errno::PERM => "hint: 'chattr -R -i -a FILE', run by root, makes immutable files removable",
        Errno::ROFS => {
            "hint: 'btrfs property set SUBVOLUME ro false' makes a read-only snapshot writable"
        }
        Errno::BUSY => "hint: what is mounted or in use stays until it is unmounted",
        _ => return None,
    })
}

/// Returns the question of `-I`, if there is one. The number of files in a list is unknown, so they are always asked about.
fn question(request: &Request<'_>, console: &Console) -> Option<String> {
    let recursive = request.options.engine.recursive;
    let operands = match &request.operands {
        OperandSource::Listed(names) => {
            return Some(format!(
                "remove the files named in {}",
                names.quoted(console)
            ));
        }
        OperandSource::Named(operands) => operands.len(),
    };
    if operands == 0 || (operands <= FEW && !recursive) {
        return None;
    }
    let plural = if operands == 1 { "" } else { "s" };
    let operands = format!("{operands} argument{plural}");
    Some(match request.options.mode {
        Mode::Reaping => format!("remove the hidden directories of --detach in {operands}"),
        _ if recursive => format!("remove {operands} recursively"),
        _ => format!("remove {operands}"),
    })
}

fn ask(options: &Options) -> Ask {
    match options.prompts {
        Prompts::Always => Ask::Always,
        Prompts::WriteProtected | Prompts::Once
            if options.presumes_terminal || io::stdin().is_terminal() =>
        {
            Ask::IfWriteProtected
        }
        Prompts::Never | Prompts::WriteProtected | Prompts::Once => Ask::Never,
    }
}
