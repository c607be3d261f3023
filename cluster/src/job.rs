//! The course of a job, which is the same for all commands.
//!
//! ```text
//!   rank 0                                       any other rank
//!   ------                                       --------------
//!   reads the command line
//!   broadcasts the order, or that there is none  receives the order
//!   learns which ranks can keep hard links       gets ready, and learns the same
//!   leads                                        assists, or waits for the end if it is not ready
//!   prints the totals                            ends with the status of the job
//! ```

use std::panic;
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

use fuc_cli::command::Command;
use fuc_cli::console::Console;
use fuc_cli::exclude::ExcludeFilter;
use fuc_cli::invocation::Invocation;
use fuc_cli::outcome::Outcome;
use fuc_cli::progress::{self, LookAhead, Scan, Watch};
use fuc_cli::quote;
use fuc_cli::reporter::{self, Reporter};
use fuc_cli::stats::{Run, Stats};
use fuc_cli::sys;
use fuc_cli::wording;
use fuc_engine::distribute::Role;
use fuc_engine::{Counts, Summary};

use crate::division::STREAMS;
use crate::engine::Engine;
use crate::full::FullWatch;
use crate::homes::Homes;
use crate::large::PartCopier;
use crate::launch;
use crate::line::{self, Line};
use crate::message::{self, RankResult};
use crate::network::{self, World};
use crate::order::{Order, Work};
use crate::peer::Peer;
use crate::transport::{self, Local};

/// The number of failures with one reason that each rank writes.
const MOST_EQUAL: u64 = 100;

/// Says whether rank 0 has broadcast an order.
static HAS_ORDERED: AtomicBool = AtomicBool::new(false);

/// Runs this process as a rank of its job. On rank 0, `command` ends by [`lead`], if there is work. Other ranks
/// read no arguments.
#[must_use]
pub fn run<I: Copy + PartialEq, O>(command: &Command<I, O>) -> ExitCode {
    abort_on_panic();
    let universe = match network::join() {
        Ok(universe) => universe,
        Err(problem) => {
            eprintln!("{}: {problem}", command.name);
            return ExitCode::FAILURE;
        }
    };
    let world = World::of_this_job();
    if let Err(problem) = launch::check_size(world.ranks()) {
        eprintln!("{}: {problem}", command.name);
        return ExitCode::FAILURE;
    }
    let status = match world.rank() {
        0 => run_command(command, &world),
        _ => assist(world),
    };
    // This waits for the other ranks.
    drop(universe);
    status
}

/// Makes a panic of any thread end this process, so that MPI ends the other ranks.
fn abort_on_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        report(info);
        process::abort();
    }));
}

fn run_command<I: Copy + PartialEq, O>(command: &Command<I, O>, world: &World) -> ExitCode {
    // Other ranks wait for this process, so no other program may take its place.
    let invocation = Invocation::of_this_process(command.name, command.tool);
    let status = command.run_here(&invocation);
    if !HAS_ORDERED.load(Ordering::Relaxed) {
        let failed = status != ExitCode::SUCCESS;
        let _ = world.broadcast(message::encode(&Err::<Order, _>(failed)));
    }
    status
}

/// An MPI job, as rank 0 begins it.
#[derive(Debug)]
pub struct MpiJob<'a> {
    /// The work of all ranks.
    pub order: Order,
    /// The filter of the order's exclusions.
    pub filter: Option<ExcludeFilter>,
    /// The console of rank 0, which prints the output of all ranks.
    pub console: &'a Console,
    /// The means by which the user can watch the job.
    pub watch: Option<Watch>,
    /// The form of the totals at the end.
    pub stats: Stats,
    /// The number of operands that could not be read from a list. Each has been reported.
    pub unread_names: u64,
    /// The start of the job, for its totals.
    pub began: Instant,
}

/// Does a job with all ranks, as rank 0.
pub fn lead(job: MpiJob<'_>) -> Outcome {
    let MpiJob {
        order,
        filter,
        console,
        watch,
        stats,
        unread_names,
        began,
    } = job;
    let world = World::of_this_job();
    if order.threads().is_none()
        && let Some(warning) = launch::binding_warning()
    {
        console.error(warning);
    }
    HAS_ORDERED.store(true, Ordering::Relaxed);
    let _ = world.broadcast(message::encode(&Ok::<_, bool>(&order)));
    let homes = Homes::of_job(&order.links, &world.gather(true));

    let (line, socket) = line::connect(world.rank(), world.ranks(), homes);
    let cancel = sys::cancel_on_signals();
    let pace = order.max_rate.map(|rate| line.pace(rate, &cancel));
    let engine = Engine::new(&order, filter.as_ref(), &cancel, pace.as_ref());
    let counts = watch.as_ref().map(|watch| Arc::clone(watch.counts()));
    let counts = counts.unwrap_or_default();
    let local = Local {
        socket: &socket,
        cancel: &cancel,
        counts: &counts,
        pace: pace.as_ref(),
        console,
    };
    let mut total = RankResult::default();
    let mut shares = Vec::new();
    let lead = |reporter: &Reporter<'_>| {
        let run = |line: &Line| engine.run(Role::Leader, reporter, line);
        let result = |mut summary: Summary| {
            summary.failures += unread_names;
            rank_result(summary, filter.as_ref(), reporter, console)
        };
        let mut peer = Peer::new(world.rank(), world.ranks());
        if let Some(rate) = order.max_rate {
            peer.limit_rate(rate.per_second());
        }
        let peer = take_part(world, peer, line, &local, &order, run, result);
        total = peer.total;
        shares = peer.shares;
        total.summary
    };
    let execution = order.execution();
    let full = FullWatch::new(console, &cancel, &counts);
    let note = |cause| full.note(cause);
    let reporter = reporter(&order, console, &counts)
        .in_execution(execution)
        .passing_failures_to(&note);
    // A look-ahead would not keep to the rate.
    let look_ahead = order.max_rate.is_none().then(|| {
        let count = |scan: &Arc<Scan>| {
            let engine = Engine::new(&order, filter.as_ref(), &scan.cancel(), None);
            engine.count(scan.counts())
        };
        Box::new(count) as LookAhead<'_>
    });
    let mut summary = reporter.run(watch, lead, look_ahead);

    reporter::report_surplus(&total.surplus, console);
    for line in &total.unread_patterns {
        console.error(line);
    }
    summary.failures += total.unread_patterns.len() as u64;
    let run = Run {
        summary,
        execution,
        began,
        shares: &shares,
    };
    match run.end(stats, console) {
        Outcome::Complete if total.failed => Outcome::Incomplete,
        outcome => outcome,
    }
}

/// Assists rank 0. Returns the status of the job.
fn assist(world: World) -> ExitCode {
    // Rank 0 sends its order, or `true` if it has failed without one.
    let order = match message::decode::<Result<Order, bool>>(&world.broadcast(Vec::new())) {
        Some(Ok(order)) => order,
        Some(Err(false)) => return ExitCode::SUCCESS,
        // In the second case, the ranks run different versions of this program.
        Some(Err(true)) | None => return ExitCode::FAILURE,
    };
    sys::raise_descriptor_limit();
    progress::ignore_requests();
    let prepared = prepare(&order);
    // No rank begins before all have come to the gathering, so a signal during the job ends none.
    let cancel = sys::cancel_on_signals();
    let can_keep_links = prepared.is_ok() && order.links.can_be_kept_here();
    let homes = Homes::of_job(&order.links, &world.gather(can_keep_links));

    let (line, socket) = line::connect(world.rank(), world.ranks(), homes);
    let console = line.console(&order.surroundings);
    if let Err(problem) = &prepared {
        console.error(problem);
    }
    let counts = Arc::default();
    let pace = order.max_rate.map(|rate| line.pace(rate, &cancel));
    let full = FullWatch::new(&console, &cancel, &counts);
    let note = |cause| full.note(cause);
    let reporter = reporter(&order, &console, &counts).passing_failures_to(&note);
    let run = |line: &Line| match &prepared {
        Ok(filter) => {
            let engine = Engine::new(&order, filter.as_ref(), &cancel, pace.as_ref());
            engine.run(Role::Assistant, &reporter, line)
        }
        Err(_) => {
            line.wait_for_end();
            Summary::default()
        }
    };
    let result = |summary| {
        // Rank 0 reports output that it cannot write.
        let _ = console.finish();
        let filter = prepared.as_ref().ok().and_then(Option::as_ref);
        RankResult {
            failed: prepared.is_err(),
            ..rank_result(summary, filter, &reporter, &console)
        }
    };
    let local = Local {
        socket: &socket,
        cancel: &cancel,
        counts: &counts,
        pace: pace.as_ref(),
        console: &console,
    };
    let peer = Peer::new(world.rank(), world.ranks());
    let peer = take_part(world, peer, line, &local, &order, run, result);
    match peer.outcome {
        Some(false) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Enters the surroundings of rank 0, and makes the filter. Fails with a diagnostic if this rank cannot take part.
fn prepare(order: &Order) -> Result<Option<ExcludeFilter>, Vec<u8>> {
    let surroundings = &order.surroundings;
    surroundings.enter().map_err(|error| {
        let directory = quote::always(&surroundings.directory, surroundings.charset);
        let reason = wording::errno_text(&error);
        format!("a rank cannot enter the working directory of rank 0, {directory}: {reason}")
            .into_bytes()
    })?;
    let console = Console::new(surroundings.program.clone(), surroundings.charset);
    // Rank 0 has made the same filter.
    order
        .exclusions
        .filter(&console)
        .map_err(|error| error.message)
}

/// Returns the reporter of a rank.
fn reporter<'a>(order: &Order, console: &'a Console, counts: &Arc<Counts>) -> Reporter<'a> {
    let reporter = Reporter::new(console, order.tool(), order.verbosity).counting(counts);
    match order.all_failures {
        true => reporter,
        false => reporter.writing_equal_failures(MOST_EQUAL),
    }
}

/// Returns the result of this rank, after the last output of its engine.
fn rank_result(
    summary: Summary,
    filter: Option<&ExcludeFilter>,
    reporter: &Reporter<'_>,
    console: &Console,
) -> RankResult {
    let unread = filter.map(|filter| filter.take_unread(console.charset()));
    RankResult {
        summary,
        unread_patterns: unread.into_iter().flatten().collect(),
        surplus: reporter.surplus(),
        ..RankResult::default()
    }
}

/// Runs the engine on a thread of its own, and copies parts of large files on others. Serves them and the other ranks until
/// the job is over.
fn take_part(
    mut world: World,
    peer: Peer,
    line: Line,
    local: &Local<'_>,
    order: &Order,
    run: impl FnOnce(&Line) -> Summary + Send,
    result: impl FnOnce(Summary) -> RankResult,
) -> Peer {
    let copier = match &order.work {
        Work::Copy(options, _) if world.ranks() > 1 => Some(PartCopier {
            options,
            cancel: local.cancel,
            counts: local.counts,
            pace: local.pace,
        }),
        _ => None,
    };
    let (parts, outgoing) = (&local.socket.parts, line.outgoing());
    thread::scope(|scope| {
        let copiers = copier.iter().flat_map(|copier| [copier; STREAMS]);
        let outgoing = &outgoing;
        let copiers = copiers.map(|copier| scope.spawn(|| copier.serve(&parts.1, outgoing)));
        let copiers: Vec<_> = copiers.collect();
        let engine = scope.spawn(|| {
            // The line closes when the engine has ended.
            let line = line;
            run(&line)
        });
        let finish = || {
            let mut summary = engine.join().expect("BUG: a panic ends the process");
            for _ in &copiers {
                let _ = parts.0.send(None);
            }
            let bytes = copiers.into_iter().flat_map(ScopedJoinHandle::join);
            summary.bytes += bytes.sum::<u64>();
            result(summary)
        };
        transport::serve(peer, &mut world, local, finish)
    })
}
