//! Runs a removal with the resolved options.

use std::ffi::OsString;
use std::io::{self, IsTerminal};

use fuc_cli::command::Outcome;
use fuc_cli::console::Console;
use fuc_cli::flags::UsageError;
use fuc_cli::interrupt;
use fuc_cli::reporter::Reporter;
use fuc_cli::threads;
use fuc_cli::wording::Tool;
use fuc_engine::{Answer, Ask, RemoveOp, RemoveOptions};

use crate::options::{Options, Prompts};

/// With `-I`, up to this number of operands are removed without a question.
const FEW: usize = 3;

/// Removes the operands.
pub(crate) fn execute(
    mut options: Options,
    operands: Vec<OsString>,
    console: &Console,
) -> Result<Outcome, UsageError> {
    if operands.is_empty() {
        return if options.engine.ignore_missing {
            Ok(Outcome::Complete)
        } else {
            Err(UsageError::with_help("missing operand"))
        };
    }
    if options.asks_once
        && (options.engine.recursive || operands.len() > FEW)
        && ask_once(&options.engine, operands.len(), console) == Answer::No
    {
        return Ok(Outcome::Complete);
    }
    options.engine.ask = ask(&options);
    let threads = options.engine.threads;
    options.engine.threads = threads.or_else(|| threads::from_environment("RMZ_THREADS"));
    let cancel = interrupt::cancel_on_signals();
    let execution = options.engine.execution;
    let removal = RemoveOp::with_options(options.engine).cancelled_by(&cancel);
    let summary = Reporter::new(console, Tool::Remove, options.verbosity)
        .in_execution(execution)
        .run(options.progress, |reporter| removal.run(operands, reporter));
    Ok(Outcome::of(summary, Tool::Remove, execution))
}

fn ask_once(options: &RemoveOptions, operands: usize, console: &Console) -> Answer {
    let plural = if operands == 1 { "" } else { "s" };
    let recursively = if options.recursive {
        " recursively"
    } else {
        ""
    };
    let question = format!("remove {operands} argument{plural}{recursively}");
    console.ask(question.as_bytes())
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
