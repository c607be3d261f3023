//! `cpz-mpi`: `cpz` on many machines. `mpirun -n 64 cpz-mpi -a SOURCE DEST`.
#![cfg_attr(not(test), no_main)]

use std::ffi::OsString;
use std::process::ExitCode;

use cpz::flags::{Id, TABLE};
use cpz::options::{self, Options};
use cpz::request::Request;
use fuc_cli::command::Command;
use fuc_cli::common::CommonFlag;
use fuc_cli::console::Console;
use fuc_cli::flags::{Table, UsageError};
use fuc_cli::outcome::Outcome;
use fuc_cli::sys::Allocator;
use fuc_cli::tool::Tool;
use fuc_cluster::flags;
use fuc_cluster::job::{self, MpiJob};
use fuc_cluster::order::{Order, Work};
use fuc_engine::CopyOp;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Returns the table without help on the flags that several processes cannot obey.
fn table() -> Table<Id> {
    let refused = [Id::Interactive, Id::MaxDelete, Id::NoCache];
    flags::table(&TABLE, Id::Common(CommonFlag::AllFailures), &refused)
}

fuc_cli::program!(run);

fn run() -> ExitCode {
    job::run(&Command {
        name: "cpz-mpi",
        tool: Tool::Copy,
        version: env!("CARGO_PKG_VERSION"),
        table: table(),
        no_config: Id::Common(CommonFlag::NoConfig),
        resolve: options::resolve,
        common: |options| &options.common,
        execute: copy,
    })
}

/// Copies the sources among the operands, or in a list, to the dest, as rank 0.
fn copy(
    options: Options,
    operands: Vec<OsString>,
    console: &Console,
) -> Result<Outcome, UsageError> {
    let request = Request::new(options, operands, console)?;
    check(&request.options.engine)?;
    let Request {
        options,
        filter,
        sources,
        dest,
        ..
    } = request;
    let work = Work::Copy(Box::new(options.engine), dest);
    let sources = sources.iter().map(OsString::from).collect();
    let order = Order::new(work, sources, filter.as_ref(), &options.common, console)?;
    Ok(job::lead(MpiJob {
        order,
        filter,
        console,
        watch: request.watch,
        stats: options.common.stats,
        unread_names: request.unread_names,
        began: request.began,
    }))
}

/// Refuses what several processes cannot do.
fn check(options: &CopyOp<'_>) -> Result<(), UsageError> {
    let most = options.delete.map(|deletion| deletion.most);
    UsageError::of_first(&[
        (options.rules.ask, flags::CANNOT_PROMPT),
        (
            options.drops_cache,
            "cannot keep to --no-cache: ranks share large files",
        ),
        (
            most.flatten().is_some(),
            "cannot keep to --max-delete: each rank deletes on its own",
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use fuc_cli::generate::{Manual, check};
    use std::path::Path;

    const MANUAL: Manual = Manual {
        name: "cpz-mpi",
        version: env!("CARGO_PKG_VERSION"),
        summary: "copy files and directories, on many machines",
        prose: include_str!("../manual.txt"),
        words: &[("{tool}", "cpz"), ("{done}", "copied")],
    };

    #[test]
    fn the_manual_page_and_the_completions_are_those_of_the_table() {
        check(Path::new(env!("CARGO_MANIFEST_DIR")), &table(), &MANUAL);
    }
}
