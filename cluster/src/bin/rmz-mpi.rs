//! `rmz-mpi`: `rmz` on many machines. `mpirun -n 64 rmz-mpi DIRECTORY`.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use fuc_cli::command::{Command, Context, FileHint, Outcome};
use fuc_cli::config::Config;
use fuc_cli::console::Console;
use fuc_cli::exclude::taken_operands;
use fuc_cli::flags::UsageError;
use fuc_cli::memory::Allocator;
use fuc_cli::name_list;
use fuc_cli::progress::Watch;
use fuc_cli::stdin;
use fuc_cli::threads;
use fuc_cli::wording::Tool;
use fuc_cluster::flags::{self, Id, Options};
use fuc_cluster::job::{self, Job};
use fuc_cluster::order::{Order, Work};
use fuc_engine::Ask;
use rmz::flags::TABLE;
use rmz::options::{self, Mode, Prompts};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The flags that several processes cannot obey.
const REFUSED: &[rmz::flags::Id] = &[
    rmz::flags::Id::PromptAlways,
    rmz::flags::Id::PromptOnce,
    rmz::flags::Id::Interactive,
    rmz::flags::Id::Detach,
    rmz::flags::Id::Reap,
    rmz::flags::Id::Wait,
];

fn main() -> ExitCode {
    let command: Command<Id<rmz::flags::Id>, Options<options::Options>> = Command {
        name: "rmz-mpi",
        strict_name: "rm",
        version: env!("CARGO_PKG_VERSION"),
        table: flags::table(&TABLE, REFUSED),
        config: Config {
            variable: "RMZ_CONFIG",
            skipped_by: Id::Tool(rmz::flags::Id::NoConfig),
        },
        file_hint: FileHint::Shown,
        resolve: |matched, context| flags::resolve(matched, context, options::resolve),
        check: |options, console| options::check(&options.tool, console),
        execute: remove,
    };
    job::run(&command)
}

/// Removes the operands, or the files in a list, as rank 0.
fn remove(
    options: Options<options::Options>,
    mut operands: Vec<OsString>,
    console: &Console,
) -> Result<Outcome, UsageError> {
    let all_failures = options.all_failures;
    let mut options = options.tool;
    check(&options)?;
    let began = Instant::now();
    let context = Context {
        personality: options.personality,
        console,
    };
    let watch = Watch::begin(options.progress, "RMZ_PROGRESS", Tool::Remove, context)?;
    stdin::check_readers(options.list.as_ref(), &options.exclusions, None)?;
    let list = options.list.take();
    match (&list, operands.first()) {
        (Some(_), Some(extra)) => return Err(name_list::extra_operand(extra, console)),
        (None, None) if options.engine.ignore_missing => return Ok(Outcome::Complete),
        (None, None) => return Err(UsageError::with_help("missing operand")),
        _ => {}
    }
    let filter = options.exclusions.filter(console)?;
    let mut unread_names = 0;
    if let Some(list) = list {
        let mut names = list.open(console)?;
        operands.extend(&mut names);
        unread_names = names.failures();
    }
    let operands: Vec<_> = taken_operands(filter.as_ref(), operands, console)?;
    options.engine.ask = Ask::Never;
    let threads = options.engine.threads;
    options.engine.threads = threads.or_else(|| threads::from_environment("RMZ_THREADS"));
    let work = Work::Removal(Box::new(options.engine));
    let order = Order::new(work, operands, filter.as_ref(), options.verbosity, console)?;
    Ok(job::lead(Job {
        order: order.with(all_failures, options.max_rate),
        filter,
        console,
        watch,
        stats: options.stats,
        unread_names,
        began,
    }))
}

/// Refuses what several processes cannot do.
fn check(options: &options::Options) -> Result<(), UsageError> {
    let message = match options {
        _ if options.mode != Mode::Foreground => {
            "--detach or --reap is not available on several ranks"
        }
        _ if options.prompts != Prompts::Never || options.asks_once => flags::CANNOT_PROMPT,
        _ => return Ok(()),
    };
    Err(UsageError::with_help(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fuc_cli::generate::{Manual, check};
    use fuc_cli::invocation::Personality;
    use std::path::Path;

    const MANUAL: Manual = Manual {
        summary: "remove files and directories, on many machines",
        prose: include_str!("../manual.txt"),
        words: &[
            ("{name}", "rmz-mpi"),
            ("{tool}", "rmz"),
            ("{done}", "removed"),
        ],
    };

    #[test]
    fn the_manual_page_and_the_completions_are_those_of_the_table() {
        let version = env!("CARGO_PKG_VERSION");
        let table = flags::table(&TABLE, REFUSED);
        let command = table.clap_command("rmz-mpi", version, Personality::Extended);
        check(Path::new(env!("CARGO_MANIFEST_DIR")), &command, &MANUAL);
    }
}
