//! Runs a removal with the resolved options.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Instant;

use fuc_cli::command::Outcome;
use fuc_cli::console::Console;
use fuc_cli::exclude::ExcludeFilter;
use fuc_cli::flags::UsageError;
use fuc_cli::interrupt;
use fuc_cli::name_list::{self, ListFile, NameList};
use fuc_cli::progress::Progress;
use fuc_cli::reporter::Reporter;
use fuc_cli::threads;
use fuc_cli::wording::Tool;
use fuc_engine::{Answer, Ask, RemoveOp, RemoveOptions};

use crate::detach;
use crate::options::{Mode, Options, Prompts};

/// With `-I`, up to this number of operands are removed without a question.
const FEW: usize = 3;

/// Removes the operands, or the files in a list.
pub(crate) fn execute(
    mut options: Options,
    operands: Vec<OsString>,
    console: &Console,
) -> Result<Outcome, UsageError> {
    let threads = options.engine.threads;
    options.engine.threads = threads.or_else(|| threads::from_environment("RMZ_THREADS"));
    options.progress = Progress::chosen(
        options.progress,
        "RMZ_PROGRESS",
        options.personality,
        console.charset(),
    )?;
    if let Some(list) = options.list.take() {
        return remove_listed(list, options, &operands, console);
    }
    if operands.is_empty() {
        return if options.engine.ignore_missing {
            Ok(Outcome::Complete)
        } else {
            Err(UsageError::with_help("missing operand"))
        };
    }
    let filter = options.exclusions.filter(console)?;
    if options.asks_once
        && (options.engine.recursive || operands.len() > FEW)
        && console.ask(question(&options.engine, operands.len()).as_bytes()) == Answer::No
    {
        return Ok(Outcome::Complete);
    }
    Ok(match options.mode {
        Mode::Foreground => remove(options, filter, Operands::Named(operands), console),
        Mode::Detached => detach::detach(options, operands, console),
        Mode::Reaping => detach::reap(options, operands, console),
    })
}

/// Removes the files in a list. Their number is unknown, so `-I` always asks.
fn remove_listed(
    list: ListFile,
    options: Options,
    operands: &[OsString],
    console: &Console,
) -> Result<Outcome, UsageError> {
    if let Some(extra) = operands.first() {
        return Err(name_list::extra_operand(extra, console));
    }
    if list.is_stdin() && (options.asks_once || options.prompts != Prompts::Never) {
        let message = "--files0-from=- cannot be combined with -i or -I: stdin holds no answers";
        return Err(UsageError::with_help(message));
    }
    let question = [b"remove the files named in ", &*list.quoted(console)].concat();
    let filter = options.exclusions.filter(console)?;
    let names = list.open(console)?;
    if options.asks_once && console.ask(&question) == Answer::No {
        return Ok(Outcome::Complete);
    }
    Ok(remove(options, filter, Operands::Listed(names), console))
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
    console: &Console,
) -> Outcome {
    let began = Instant::now();
    options.engine.ask = ask(&options);
    let cancel = interrupt::cancel_on_signals();
    let execution = options.engine.execution;
    let mut removal = RemoveOp::with_options(options.engine).cancelled_by(&cancel);
    if let Some(filter) = filter {
        removal = removal.filtered_by(filter);
    }
    let reporter = Reporter::new(console, Tool::Remove, options.verbosity).in_execution(execution);
    let summary = match operands {
        Operands::Named(operands) => reporter.run(
            options.progress,
            |reporter| removal.run(&operands, reporter),
            |cancel, counts| {
                let look_ahead = removal.clone().cancelled_by(&cancel);
                look_ahead.count(&operands, counts)
            },
        ),
        Operands::Listed(mut names) => {
            let run = |reporter: &Reporter<'_>| {
                removal.run_all(names.by_ref().map(PathBuf::from), reporter)
            };
            // A list can be read only once.
            let look_ahead = |_, _: &_| false;
            let mut summary = reporter.run(options.progress, run, look_ahead);
            summary.failures += names.failures();
            summary
        }
    };
    options.stats.show(&summary, Tool::Remove, began, console);
    Outcome::of(summary, Tool::Remove, execution)
}

/// Returns the question of `-I`.
fn question(options: &RemoveOptions, operands: usize) -> String {
    let plural = if operands == 1 { "" } else { "s" };
    let recursively = if options.recursive {
        " recursively"
    } else {
        ""
    };
    format!("remove {operands} argument{plural}{recursively}")
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
