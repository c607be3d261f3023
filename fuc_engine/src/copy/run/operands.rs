//! Begins the operands of a run, in their order.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::PoisonError;

use rustix::fs::FileType;

use super::tasks::{CopyTask, Operands};
use super::{CopyRun, EntryCopy, Processed};
use crate::copy::context::{Failure, Stage};
use crate::copy::facts::{Entry, FileId, Symlinks};
use crate::copy::way::OpenParent;
use crate::copy::{look, parents};
use crate::error::{Error, Refusal};
use crate::node::Place;
use crate::operand;
use crate::sched::When;
use crate::sys::{self, Identity, Stat};
use crate::walk::{Purpose, Task, Walker};

/// The operands that are left after a portion was begun.
enum Remaining {
    Nothing,
    /// They may be begun at once.
    Next(Range<u32>),
    /// They must wait until all other tasks are done.
    WhenDone(Range<u32>),
}

/// Copies operands that are not directories, and queues the directories.
///
/// If a source contains the target, its listing would include the copies of other operands. So
/// it waits for the operands before it, and the operands after it wait for it. An operand whose dest is a
/// dangling link waits for those before it, too.
pub(super) fn begin<'a>(
    run: &CopyRun<'a>,
    operands: Operands,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    let left = worker.in_order(|worker| begin_portion(run, &operands, worker));
    let task = |operands| Task::Own(CopyTask::Operands(operands));
    match left {
        Remaining::Nothing => {}
        Remaining::Next(range) => {
            let is_alone = false;
            worker.push(task(Operands { range, is_alone }), When::AfterOwn);
        }
        Remaining::WhenDone(range) => worker.push(task(Operands::alone(range)), When::Done),
    }
}

fn begin_portion<'a>(
    run: &CopyRun<'a>,
    operands: &Operands,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) -> Remaining {
    let ctx = &run.ctx;
    let (portion, rest) = operand::portion(operands.range.clone());
    for index in portion {
        if ctx.report.must_stop() {
            return Remaining::Nothing;
        }
        ctx.report.publish(&mut worker.scratch.tally);
        let parent = match make_parents(run, index) {
            Ok(parent) => parent,
            Err(error) => {
                ctx.fail(index, error);
                ctx.finish_operand(index);
                continue;
            }
        };
        let entry = ctx.operand_entry(index, parent.as_fd());
        let stat = match look::at_source(&entry) {
            Ok(stat) => stat,
            Err(errno) => {
                ctx.fail(index, ctx.source_stat_failure(&entry, errno).error);
                ctx.finish_operand(index);
                continue;
            }
        };
        let contains_target = contains_target(run, &stat);
        let is_first = index == operands.range.start;
        if contains_target && !(operands.is_alone && is_first) {
            return Remaining::WhenDone(index..operands.range.end);
        }
        match begin_one(run, &entry, &stat, worker) {
            Ok(Begun::Queued) => {}
            Ok(Begun::Finished) => ctx.finish_operand(index),
            // An earlier operand that is not finished may still make the target of the link.
            Err(failure)
                if failure.stage == Stage::AtDanglingDest
                    && index > 0
                    && !(operands.is_alone && is_first) =>
            {
                return Remaining::WhenDone(index..operands.range.end);
            }
            Err(failure) => {
                ctx.report_failure(&entry, failure);
                ctx.finish_operand(index);
            }
        }
        if contains_target && index + 1 < operands.range.end {
            return Remaining::WhenDone(index + 1..operands.range.end);
        }
    }
    rest.map_or(Remaining::Nothing, Remaining::Next)
}

/// Opens the directory that the dest of an operand is in. Makes the directories on the way to
/// it, if the options say so.
fn make_parents<'r>(run: &'r CopyRun<'_>, operand: u32) -> Result<OpenParent<'r>, Error> {
    if !run.ctx.policy.options.parents {
        return Ok(OpenParent::Target(run.ctx.target()));
    }
    let mut made = run.parents.lock().unwrap_or_else(PoisonError::into_inner);
    parents::make(&run.ctx, operand, &mut made)
}

/// Returns `true` if the source is the target or a directory above it.
fn contains_target(run: &CopyRun<'_>, source: &Stat) -> bool {
    if run.ctx.operands.len() < 2 || sys::file_type(source) != FileType::Directory {
        return false;
    }
    let Some(target) = &run.ctx.target else {
        return false;
    };
    let above = run.above_target.get_or_init(|| ancestry(target.as_fd()));
    let source = FileId::of(source);
    above.iter().any(|directory| directory.file() == source)
}

/// Says whether an operand is finished.
enum Begun {
    Finished,
    /// It is a directory, for which a task was queued.
    Queued,
}

fn begin_one<'a>(
    run: &CopyRun<'a>,
    entry: &Entry<'_>,
    source: &Stat,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) -> Result<Begun, Failure> {
    let ctx = &run.ctx;
    let is_directory = sys::file_type(source) == FileType::Directory;
    if is_directory && !ctx.policy.options.recursive {
        return Err(ctx.source_refused(entry, Refusal::NotRecursive));
    }
    if let Err(warning) = run.used.note_source(ctx, entry, source) {
        ctx.warn(entry.operand, warning);
        return Ok(Begun::Finished);
    }
    if is_directory {
        run.used.check_directory_dest(ctx, entry)?;
        let place = Place {
            parent: None,
            name: entry.source_name.into(),
            operand: entry.operand,
        };
        let purpose = Purpose::Process { pass: 0 };
        worker.push(Task::Enter { place, purpose }, When::Next);
        return Ok(Begun::Queued);
    }
    let processed = if ctx.has_rules(entry) {
        EntryCopy { run, entry }.decide(source, worker)?
    } else {
        run.used.check_dest(ctx, entry, source)?;
        EntryCopy { run, entry }.make_known(source, worker)?
    };
    if processed == Processed::Handled {
        run.used.note_dest(ctx, entry);
    }
    Ok(Begun::Finished)
}

/// Returns the identities of a directory and of those above it, as far as they can be reached.
fn ancestry(dir: BorrowedFd<'_>) -> Vec<Identity> {
    let mut found = Vec::new();
    let mut above = sys::open_path_directory(dir, c".", Symlinks::NoFollow);
    while let Ok(dir) = above {
        match sys::stat_directory(dir.as_fd()) {
            // The root is its own parent.
            Ok(stat) if found.last() != Some(&stat.identity) => found.push(stat.identity),
            _ => break,
        }
        above = sys::open_path_directory(dir.as_fd(), c"..", Symlinks::NoFollow);
    }
    found
}
