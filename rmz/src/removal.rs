//! Runs a removal as the options say.

use std::ffi::OsString;
use std::io::{self, IsTerminal};

use fuc_cli::command::Outcome;
use fuc_cli::console::Console;
use fuc_cli::flags::UsageError;
use fuc_cli::reporter::Reporter;
use fuc_cli::threads;
use fuc_cli::wording::Tool;
use fuc_engine::{Answer, Ask, RemoveOp, RemoveOptions};

use crate::options::{Missing, Options, Prompts};

/// So many operands are removed without a question under `-I`.
const FEW: usize = 3;

/// Removes the operands.
pub(crate) fn execute(
    options: Options,
    operands: Vec<OsString>,
    console: &Console,
) -> Result<Outcome, UsageError> {
    if operands.is_empty() {
        return match options.missing {
            Missing::IsFine => Ok(Outcome::Complete),
            Missing::IsAnError => Err(UsageError::with_help("missing operand")),
        };
    }
    if options.asks_once
        && (options.recursive || operands.len() > FEW)
        && ask_once(&options, operands.len(), console) == Answer::No
    {
        return Ok(Outcome::Complete);
    }
    let removal = RemoveOp::new(engine_options(&options));
    let summary = Reporter::new(console, Tool::Remove, options.verbosity)
        .run(options.progress, |reporter| removal.run(operands, reporter));
    Ok(summary.into())
}

fn ask_once(options: &Options, operands: usize, console: &Console) -> Answer {
    let plural = if operands == 1 { "" } else { "s" };
    let recursively = if options.recursive {
        " recursively"
    } else {
        ""
    };
    let question = format!("remove {operands} argument{plural}{recursively}");
    console.ask(question.as_bytes())
}

fn engine_options(options: &Options) -> RemoveOptions {
    let mut engine = RemoveOptions::default();
    engine.recursive = options.recursive;
    engine.empty_directories = options.empty_directories;
    engine.one_file_system = options.one_file_system;
    engine.ignore_missing = options.missing == Missing::IsFine;
    engine.preserve_root = options.preserve_root;
    engine.preserve_mount_points = options.preserve_mount_points;
    engine.ask = match options.prompts {
        Prompts::Always => Ask::Always,
        Prompts::WriteProtected if options.presumes_terminal || io::stdin().is_terminal() => {
            Ask::IfWriteProtected
        }
        Prompts::Never | Prompts::WriteProtected => Ask::Never,
    };
    engine.threads = options
        .threads
        .or_else(|| threads::from_environment("RMZ_THREADS"));
    engine
}
