//! `rmz-mpi`: `rmz` on many machines. `mpirun -n 64 rmz-mpi DIRECTORY`.
//!
//! ```text
//!   rank 0                                       any other rank
//!   ------                                       --------------
//!   reads the command line
//!   broadcasts the order, or that there is none  receives the order
//!   leads                                        assists
//!   prints the totals                            ends with the status of the job
//! ```

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use fuc_cli::command::{self, Command, FileHint, Outcome};
use fuc_cli::config::Config;
use fuc_cli::console::Console;
use fuc_cli::exclude::ExcludeFilter;
use fuc_cli::flags::UsageError;
use fuc_cli::interrupt;
use fuc_cli::locale::Charset;
use fuc_cli::memory::Allocator;
use fuc_cli::quote;
use fuc_cli::reporter::{Reporter, Verbosity};
use fuc_cli::stats::Run;
use fuc_cli::threads;
use fuc_cli::wording::{self, Diagnostic, Tool};
use fuc_cluster::line::{self, Line, Socket};
use fuc_cluster::message::{Report, Text};
use fuc_cluster::network::World;
use fuc_cluster::order::Order;
use fuc_cluster::peer::Peer;
use fuc_cluster::relay::Relay;
use fuc_cluster::transport;
use fuc_engine::{Cancel, Execution, RemoveOp, RemoveOptions, Summary};
use mpi::Threading;
use rmz::flags::{Id, TABLE};
use rmz::options::{self, Mode, Options, Prompts};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Says whether rank 0 has broadcast an order.
static HAS_ORDERED: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    let Some((universe, provided)) = mpi::initialize_with_threading(Threading::Funneled) else {
        eprintln!("rmz-mpi: MPI cannot be initialized");
        return ExitCode::FAILURE;
    };
    if provided < Threading::Funneled {
        eprintln!("rmz-mpi: this MPI does not support programs with threads");
        return ExitCode::FAILURE;
    }
    let world = World::of_this_job();
    let status = match world.rank() {
        0 => lead(&world),
        _ => assist(world),
    };
    // This waits for the other ranks.
    drop(universe);
    status
}

fn lead(world: &World) -> ExitCode {
    let command: Command<Id, Options> = Command {
        name: "rmz-mpi",
        strict_name: "rm",
        version: env!("CARGO_PKG_VERSION"),
        table: TABLE,
        config: Config {
            variable: "RMZ_CONFIG",
            skipped_by: Id::NoConfig,
        },
        file_hint: FileHint::Shown,
        resolve: options::resolve,
        execute: remove,
    };
    let status = command.run();
    if !HAS_ORDERED.load(Ordering::Relaxed) {
        let status_byte = u8::from(status != ExitCode::SUCCESS);
        let _ = world.broadcast(vec![status_byte]);
    }
    status
}

/// Removes the operands, as rank 0.
fn remove(
    mut options: Options,
    mut operands: Vec<OsString>,
    console: &Console,
) -> Result<Outcome, UsageError> {
    check(&options)?;
    if operands.is_empty() {
        return match options.engine.ignore_missing {
            true => Ok(Outcome::Complete),
            false => Err(UsageError::with_help("missing operand")),
        };
    }
    let exclusions = options.exclusions.without_files(console)?;
    let filter = exclusions.filter(console)?;
    if let Some(filter) = &filter {
        operands.retain(|operand| !filter.excludes_operand(operand));
    }
    let order = Order {
        program: console.program().to_vec(),
        directory: working_directory()?,
        operands,
        patterns: exclusions.patterns().map(Into::into).collect(),
        ignore_missing: options.engine.ignore_missing,
        one_file_system: options.engine.one_file_system,
        threads: options.engine.threads,
        is_verbose: options.verbosity != Verbosity::Quiet,
    };
    let began = Instant::now();
    options.engine.ask = fuc_engine::Ask::Never;
    options.engine.threads = threads_of(&order);
    let world = World::of_this_job();
    HAS_ORDERED.store(true, Ordering::Relaxed);
    let mut bytes = vec![ORDER];
    bytes.extend(order.encode());
    let _ = world.broadcast(bytes);

    let removal = removal(options.engine, filter);
    let reporter = Reporter::new(console, Tool::Remove, options.verbosity);
    let run = |cancel: &Cancel, line: &Line| {
        let removal = removal.clone().cancelled_by(cancel);
        removal.lead(&order.operands, &reporter, line)
    };
    let print = |text: Text| match text {
        Text::Lines(lines) => console.print(&[&lines]),
        Text::Failure(line) => console.error(&Diagnostic::from(line)),
    };
    let (line, socket) = line::connect(world.rank());
    let peer = take_part(world, line, &socket, run, &print, |summary| Report {
        summary,
        ..Report::default()
    });
    let total = peer.total();
    let run = Run {
        summary: &total.summary,
        tool: Tool::Remove,
        execution: Execution::Real,
        began,
    };
    options.stats.show(&run, console);
    Ok(match total.failed {
        true => Outcome::Incomplete,
        false => Outcome::of(total.summary, Tool::Remove, Execution::Real),
    })
}

/// The first byte of a broadcast that holds an order. Another one is the status of a job without an order.
const ORDER: u8 = 2;

/// Refuses what several processes cannot do.
fn check(options: &Options) -> Result<(), UsageError> {
    let excluded = match options {
        Options { list: Some(_), .. } => "--files0-from",
        Options {
            progress: Some(_), ..
        } => "--progress",
        _ if options.engine.execution == Execution::DryRun => "--dry-run",
        _ if options.mode != Mode::Foreground => "--detach or --reap",
        _ if options.prompts != Prompts::Never || options.asks_once => {
            let message = "cannot prompt: other ranks have no terminal";
            return Err(UsageError::with_help(message));
        }
        _ => return Ok(()),
    };
    let message = format!("{excluded} is not available on several ranks");
    Err(UsageError::with_help(message))
}

fn working_directory() -> Result<std::path::PathBuf, UsageError> {
    std::env::current_dir().map_err(|error| {
        let reason = wording::errno_text(&error);
        UsageError::plain(format!("cannot find the working directory: {reason}"))
    })
}

/// Assists rank 0. Returns the status of the job.
fn assist(world: World) -> ExitCode {
    let received = world.broadcast(Vec::new());
    let order = match received.split_first() {
        Some((&ORDER, order)) => Order::decode(order),
        Some((0, _)) => return ExitCode::SUCCESS,
        _ => return ExitCode::FAILURE,
    };
    let order = order.expect("the ranks run different versions of this program");
    command::prepare_work();
    let (line, socket) = line::connect(world.rank());
    let relay = line.relay(Charset::from_environment(), order.verbosity());
    let filter = prepare(&order, &relay);
    let run = |cancel: &Cancel, line: &Line| match &filter {
        Ok(filter) => {
            let mut options = order.options();
            options.threads = threads_of(&order);
            let removal = removal(options, filter.clone()).cancelled_by(cancel);
            removal.assist(&order.operands, &relay, line)
        }
        Err(NotReady) => {
            line.wait_for_end();
            Summary::default()
        }
    };
    let print = |_| unreachable!("BUG: output was sent to another rank than 0");
    let peer = take_part(world, line, &socket, run, &print, |summary| {
        relay.flush();
        Report {
            summary,
            failed: filter.is_err(),
            ..Report::default()
        }
    });
    match peer.outcome() {
        Some(false) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// This rank cannot take part, and has reported the reason.
#[derive(Debug)]
struct NotReady;

/// Makes the filter, and enters the working directory of rank 0.
fn prepare(order: &Order, relay: &Relay) -> Result<Option<ExcludeFilter>, NotReady> {
    let charset = Charset::from_environment();
    if let Err(error) = std::env::set_current_dir(&order.directory) {
        let directory = quote::always(order.directory.as_os_str().as_encoded_bytes(), charset);
        let reason = format!(": {}", wording::errno_text(&error));
        let problem = b"a rank cannot enter the working directory of rank 0, ";
        relay.fail([problem, &directory[..], reason.as_bytes()].concat());
        return Err(NotReady);
    }
    let console = Console::new(order.program.clone(), charset);
    // Rank 0 has made the same filter.
    order.exclusions().filter(&console).map_err(|error| {
        relay.fail(error.message);
        NotReady
    })
}

fn threads_of(order: &Order) -> Option<std::num::NonZeroUsize> {
    order
        .threads
        .or_else(|| threads::from_environment("RMZ_THREADS"))
}

fn removal(options: RemoveOptions, filter: Option<ExcludeFilter>) -> RemoveOp {
    let removal = RemoveOp::with_options(options);
    match filter {
        Some(filter) => removal.filtered_by(Arc::new(filter)),
        None => removal,
    }
}

/// Runs the engine on a thread of its own, and serves it and the other ranks until the job is over.
fn take_part(
    mut world: World,
    line: Line,
    socket: &Socket,
    run: impl FnOnce(&Cancel, &Line) -> Summary + Send,
    print: &dyn Fn(Text),
    report: impl FnOnce(Summary) -> Report,
) -> Peer {
    let cancel = interrupt::cancel_on_signals();
    let peer = Peer::new(world.rank(), world.ranks());
    thread::scope(|scope| {
        let engine = scope.spawn(|| {
            // The line closes when the engine has ended.
            let line = line;
            run(&cancel, &line)
        });
        let finish = || report(engine.join().expect("BUG: a panic ends the process"));
        transport::serve(peer, &mut world, socket, &cancel, print, finish)
    })
}
