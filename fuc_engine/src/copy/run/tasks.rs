//! The tasks of a copy other than listing a directory: operands, which are begun in their order, and entries whose copies
//! come later than their listing.

use std::ops::{ControlFlow, Range};
use std::os::fd::AsFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::{CopyRun, CopyTask, EntryCopy, Processed};
use crate::copy::collisions;
use crate::copy::context::Failure;
use crate::copy::entry::{Entry, StoredEntry};
use crate::copy::facts::{CopyDir, FileId, Symlinks};
use crate::copy::operand::{OpenParent, ancestry};
use crate::copy::parents;
use crate::error::{Error, Refusal};
use crate::node::Place;
use crate::paths;
use crate::sched::When;
use crate::sync::lock;
use crate::sys::{self, Stat};
use crate::walk::{self, Purpose, Task, Walker};

/// Operands to begin, in order.
pub(crate) struct OperandGroup {
    range: Range<u32>,
    /// `true` if no other task is queued or running.
    is_alone: bool,
}

impl OperandGroup {
    /// Returns a task that must be pushed when no other task is queued or running.
    pub(super) fn alone(range: Range<u32>) -> Self {
        Self {
            range,
            is_alone: true,
        }
    }
}

/// Copies operands that are not directories, and queues the directories.
///
/// If a source contains the target, its listing would include the copies of other operands. So
/// it waits for the operands before it, and the operands after it wait for it. An operand whose dest is a
/// link to nothing waits for those before it, too.
pub(super) fn begin_operands(operands: OperandGroup, worker: &mut Walker<'_, '_, CopyRun<'_>>) {
    if let Some(operands) = begin_portion(operands, worker) {
        worker.push(Task::Own(CopyTask::Operands(operands)), When::AfterOwn);
    }
}

/// Begins some operands. Returns those that may be begun next. If others must wait until all of these are done, leaves them to
/// [`CopyRun::run`].
fn begin_portion(
    operands: OperandGroup,
    worker: &mut Walker<'_, '_, CopyRun<'_>>,
) -> Option<OperandGroup> {
    let OperandGroup {
        range,
        mut is_alone,
    } = operands;
    let (portion, rest) = paths::portion(range.clone());
    for index in portion {
        if worker.job.ctx.report.must_stop() {
            return None;
        }
        match begin_operand(index, is_alone, worker) {
            ControlFlow::Continue(is_done) => is_alone &= is_done,
            ControlFlow::Break(first) => {
                *lock(&worker.job.later) = Some(first..range.end);
                return None;
            }
        }
    }
    let is_alone = false;
    rest.map(|range| OperandGroup { range, is_alone })
}

/// Begins one operand, unless it must wait. `is_alone` says that no other task is queued or running. Returns `true` if the
/// operand is done. Breaks with the next operand if that waits for those before it.
fn begin_operand(
    index: u32,
    is_alone: bool,
    worker: &mut Walker<'_, '_, CopyRun<'_>>,
) -> ControlFlow<u32, bool> {
    let run = worker.job;
    let ctx = &run.ctx;
    ctx.report.publish(&mut worker.scratch.tally);
    let give_up = |error| {
        ctx.fail(index, error);
        ctx.finish_operand(index);
        ControlFlow::Continue(true)
    };
    let parent = match make_parents(run, index) {
        Ok(parent) => parent,
        Err(error) => return give_up(error),
    };
    let entry = Entry::of_operand(ctx, index, FileType::Unknown, parent.as_fd());
    let stat = match entry.stat_source() {
        Ok(stat) => stat,
        Err(errno) => return give_up(entry.source_stat_failure(errno).error),
    };
    let contains_target = contains_target(run, &stat);
    if !is_alone && (contains_target || leads_to_nothing(&entry)) {
        return ControlFlow::Break(index);
    }
    let entry = &entry;
    let begun = begin_alone(&mut EntryCopy { run, entry, worker }, &stat);
    match begun {
        Ok(Processed::Queued) if contains_target => return ControlFlow::Break(index + 1),
        Ok(Processed::Queued | Processed::QueuedLarge) => return ControlFlow::Continue(false),
        Ok(Processed::Handled | Processed::NotCopied) => {}
        Err(failure) => entry.report_failure(failure),
    }
    ctx.finish_operand(index);
    ControlFlow::Continue(true)
}

/// Returns `true` if the dest is a link to nothing. An operand that is not finished may still make its target.
fn leads_to_nothing(entry: &Entry<'_>) -> bool {
    let is_link = |dest: &Stat| sys::file_type(dest) == FileType::Symlink;
    entry
        .stat_dest(Symlinks::NoFollow)
        .is_ok_and(|dest| is_link(&dest))
        && entry.stat_dest(Symlinks::Follow).err() == Some(Errno::NOENT)
}

/// Opens the directory that the dest of an operand is in. Makes the directories on the way to
/// it, if the options say so.
fn make_parents<'r>(run: &'r CopyRun<'_>, operand: u32) -> Result<OpenParent<'r>, Error> {
    if !run.ctx.policy.options.parents {
        return Ok(OpenParent::Target(run.ctx.target()));
    }
    let mut made = lock(&run.parents);
    parents::make_missing(&run.ctx, operand, &mut made)
}

/// Returns `true` if the source is the target or a directory above it.
fn contains_target(run: &CopyRun<'_>, source: &Stat) -> bool {
    if run.ctx.operands.len() < 2 || !sys::is_directory(source) {
        return false;
    }
    let Some(target) = &run.ctx.target else {
        return false;
    };
    let above = run.above_target.get_or_init(|| ancestry(target.as_fd()));
    let source = FileId::of(source);
    above.iter().any(|directory| directory.file() == source)
}

fn begin_alone(copy: &mut EntryCopy<'_, '_, '_, '_>, source: &Stat) -> Result<Processed, Failure> {
    let entry = copy.entry;
    let ctx = entry.ctx;
    let is_directory = sys::is_directory(source);
    if is_directory && !ctx.policy.options.recursive {
        return Err(entry.source_refused(Refusal::NotRecursive));
    }
    if let Err(warning) = collisions::note_source(entry, source) {
        ctx.report.warn(entry.operand, warning);
        return Ok(Processed::NotCopied);
    }
    if is_directory {
        collisions::check_directory_dest(entry)?;
        let place = entry.place();
        let purpose = Purpose::Process { pass: 0 };
        copy.worker
            .push(Task::Enter { place, purpose }, When::AfterOwn);
        return Ok(Processed::Queued);
    }
    let processed = copy.copy_looked(source)?;
    if processed == Processed::Handled {
        collisions::note_used(ctx, entry.operand, None);
    }
    Ok(processed)
}

/// Ends a directory below an operand that was not entered, with `error` unless nothing needs to be copied. If it is of another
/// type, copies it: the filesystem may have listed the wrong type, or another process has replaced the directory.
#[cold]
pub(super) fn end_unentered(
    place: Place<CopyDir>,
    error: Option<Error>,
    worker: &mut Walker<'_, '_, CopyRun<'_>>,
) {
    let kind = FileType::Directory;
    resume(StoredEntry { place, kind }, worker, |copy| {
        let is_other = |source: Stat| !sys::is_directory(&source);
        match (copy.entry.stat_source().is_ok_and(is_other), error) {
            (true, _) => copy.look_and_copy().map(drop),
            (false, Some(error)) => Err(Failure::preparing(error)),
            (false, None) => Ok(()),
        }
    });
}

/// Opens the directories of a stored entry, and processes it by `process`, unless the run was cancelled. Reports its failure.
pub(super) fn resume<'a, 's, 'e>(
    stored: StoredEntry,
    worker: &mut Walker<'s, 'e, CopyRun<'a>>,
    process: impl FnOnce(&mut EntryCopy<'_, 's, 'e, 'a>) -> Result<(), Failure>,
) {
    let run = worker.job;
    let StoredEntry { place, kind } = stored;
    let reached = Entry::reach(&run.ctx, &place, kind, |entry| {
        let worker = &mut *worker;
        if !run.ctx.report.must_stop()
            && let Err(failure) = process(&mut EntryCopy { run, entry, worker })
        {
            entry.report_failure(failure);
        }
    });
    if let Err(error) = reached {
        run.ctx.fail(place.operand, error);
    }
    walk::leave(place.parent, worker);
}
