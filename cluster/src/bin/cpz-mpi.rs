//! `cpz-mpi`: `cpz` on many machines. `mpirun -n 64 cpz-mpi -a SOURCE DEST`.

use std::ffi::OsString;
use std::process::ExitCode;

use cpz::flags::TABLE;
use cpz::options;
use cpz::request::Request;
use fuc_cli::command::{Command, FileHint, Outcome};
use fuc_cli::config::Config;
use fuc_cli::console::Console;
use fuc_cli::flags::UsageError;
use fuc_cli::memory::Allocator;
use fuc_cluster::flags::{self, Id, Options};
use fuc_cluster::job::{self, Job};
use fuc_cluster::order::{Order, Work};
use fuc_engine::CopyOp;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    let command: Command<Id<cpz::flags::Id>, Options<options::Options>> = Command {
        name: "cpz-mpi",
        strict_name: "cp",
        version: env!("CARGO_PKG_VERSION"),
        table: flags::table(&TABLE, &[cpz::flags::Id::Interactive]),
        config: Config {
            variable: "CPZ_CONFIG",
            skipped_by: Id::Tool(cpz::flags::Id::NoConfig),
        },
        file_hint: FileHint::Omitted,
        resolve: |matched, context| flags::resolve(matched, context, options::resolve),
        check: |options, console| options::check(&options.tool, console),
        execute: copy,
    };
    job::run(&command)
}

/// Copies the sources among the operands, or in a list, to the dest, as rank 0.
fn copy(
    options: Options<options::Options>,
    operands: Vec<OsString>,
    console: &Console,
) -> Result<Outcome, UsageError> {
    let Options { tool, job: flags } = options;
    let request = Request::new(tool, operands, console)?;
    check(&request.options.engine)?;
    let Request {
        options,
        filter,
        sources,
        dest,
        ..
    } = request;
    let work = Work::Copy(Box::new(options.engine), dest);
    let order = Order::new(work, sources, filter.as_ref(), options.verbosity, console)?;
    Ok(job::lead(Job {
        order: order.with(flags),
        filter,
        console,
        watch: request.watch,
        stats: options.stats,
        unread_names: request.unread_names,
        began: request.began,
    }))
}

/// Refuses what several processes cannot do.
fn check(options: &CopyOp<'_>) -> Result<(), UsageError> {
    match options.rules.ask {
        true => Err(UsageError::with_help(flags::CANNOT_PROMPT)),
        false => Ok(()),
    }
}
