//! `rmz-mpi`: `rmz` on many machines. `mpirun -n 64 rmz-mpi DIRECTORY`.
#![cfg_attr(not(test), no_main)]

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use fuc_cli::command::Command;
use fuc_cli::common::CommonFlag;
use fuc_cli::console::Console;
use fuc_cli::exclude::taken_operands;
use fuc_cli::flags::{Table, UsageError};
use fuc_cli::outcome::Outcome;
use fuc_cli::sys::Allocator;
use fuc_cli::tool::Tool;
use fuc_cluster::flags;
use fuc_cluster::job::{self, MpiJob};
use fuc_cluster::order::{Order, Work};
use fuc_engine::Ask;
use rmz::flags::{Id, TABLE};
use rmz::options::{self, Mode, Options, Prompts};
use rmz::request::{OperandSource, Request};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Returns the table without help on the flags that several processes cannot obey.
fn table() -> Table<Id> {
    let refused = [
        Id::PromptAlways,
        Id::PromptOnce,
        Id::Interactive,
        Id::Detach,
        Id::Reap,
        Id::Wait,
    ];
    flags::table(&TABLE, Id::Common(CommonFlag::AllFailures), &refused)
}

fuc_cli::program!(run);

fn run() -> ExitCode {
    job::run(&Command {
        name: "rmz-mpi",
        tool: Tool::Remove,
        version: env!("CARGO_PKG_VERSION"),
        table: table(),
        no_config: Id::Common(CommonFlag::NoConfig),
        resolve: options::resolve,
        common: |options| &options.common,
        execute: remove,
    })
}

/// Removes the operands, or the files in a list, as rank 0.
fn remove(
    options: Options,
    operands: Vec<OsString>,
    console: &Console,
) -> Result<Outcome, UsageError> {
    check(&options)?;
    let began = Instant::now();
    let Some(request) = Request::new(options, operands, console)? else {
        return Ok(Outcome::Complete);
    };
    let Request {
        mut options,
        filter,
        operands,
        watch,
    } = request;
    let mut unread_names = 0;
    let operands = match operands {
        OperandSource::Named(operands) => operands,
        OperandSource::Listed(mut names) => {
            let names_taken = taken_operands(filter.as_ref(), &mut names, console)?;
            unread_names = names.failures();
            names_taken
        }
    };
    options.engine.ask = Ask::Never;
    let work = Work::Removal(Box::new(options.engine));
    Ok(job::lead(MpiJob {
        order: Order::new(work, operands, filter.as_ref(), &options.common, console)?,
        filter,
        console,
        watch,
        stats: options.common.stats,
        unread_names,
        began,
    }))
}

/// Refuses what several processes cannot do.
fn check(options: &Options) -> Result<(), UsageError> {
    let message = match options {
        _ if options.mode != Mode::Foreground => {
            "--detach or --reap is not available on several ranks"
        }
        _ if options.prompts != Prompts::Never => flags::CANNOT_PROMPT,
        _ => return Ok(()),
    };
    Err(UsageError::with_help(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fuc_cli::generate::{Manual, check};
    use std::path::Path;

    const MANUAL: Manual = Manual {
        name: "rmz-mpi",
        version: env!("CARGO_PKG_VERSION"),
        summary: "remove files and directories, on many machines",
        prose: include_str!("../manual.txt"),
        words: &[("{tool}", "rmz"), ("{done}", "removed")],
    };

    #[test]
    fn the_manual_page_and_the_completions_are_those_of_the_table() {
        check(Path::new(env!("CARGO_MANIFEST_DIR")), &table(), &MANUAL);
    }
}
