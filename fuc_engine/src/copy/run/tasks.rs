//! The tasks of a copy other than listing a directory: operands, which are begun in their order, and entries whose copies
//! come later than their listing.

use std::ops::Range;
use std::os::fd::AsFd;

use rustix::fs::FileType;

use super::{CopyRun, EntryCopy, Processed};
use crate::copy::context::{Context, Failure, Stage};
use crate::copy::dest::backup;
use crate::copy::entry::{Entry, StoredEntry};
use crate::copy::facts::{CopyDir, FileId};
use crate::copy::large::LargeFile;
use crate::copy::large::divided::FilePart;
use crate::copy::operand::{OpenParent, ancestry};
use crate::copy::parents;
use crate::error::{Error, Refusal};
use crate::node::{Place, Side};
use crate::paths;
use crate::sched::When;
use crate::sync::lock;
use crate::sys::{self, CWD, Stat};
use crate::walk::{self, Purpose, Reconsidered, Task, Walker};

/// Tasks of a copy other than listing a directory.
pub(crate) enum CopyTask {
    Operands(OperandGroup),
    Large(Box<LargeFile>),
    /// Copy a part of a file of which other workers copy other parts.
    Part(FilePart),
    /// Copy or link an entry that has waited for another name of its source.
    Waiter(StoredEntry),
    /// Compare copies with their sources.
    Verify(Vec<StoredEntry>),
    /// Compare the copies that were not compared before.
    VerifyRest,
}

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
/// dangling link waits for those before it, too.
pub(super) fn begin_operands(operands: OperandGroup, worker: &mut Walker<'_, '_, CopyRun<'_>>) {
    let left = worker.in_order(|worker| begin_portion(&operands, worker));
    if let Some((operands, when)) = left {
        worker.push(Task::Own(CopyTask::Operands(operands)), when);
    }
}

/// Begins some operands. Returns those that are left, and when they may be begun.
fn begin_portion(
    operands: &OperandGroup,
    worker: &mut Walker<'_, '_, CopyRun<'_>>,
) -> Option<(OperandGroup, When)> {
    let run = worker.job;
    let ctx = &run.ctx;
    let (portion, rest) = paths::portion(operands.range.clone());
    let when_done = |first| Some((OperandGroup::alone(first..operands.range.end), When::Done));
    for index in portion {
        if ctx.report.must_stop() {
            return None;
        }
        ctx.report.publish(&mut worker.scratch.tally);
        let give_up = |error| {
            ctx.fail(index, error);
            ctx.finish_operand(index);
        };
        let parent = match make_parents(run, index) {
            Ok(parent) => parent,
            Err(error) => {
                give_up(error);
                continue;
            }
        };
        let entry = Entry::of_operand(ctx, index, FileType::Unknown, parent.as_fd());
        let stat = match entry.stat_source() {
            Ok(stat) => stat,
            Err(errno) => {
                give_up(entry.source_stat_failure(errno).error);
                continue;
            }
        };
        let contains_target = contains_target(run, &stat);
        let is_alone = operands.is_alone && index == operands.range.start;
        if contains_target && !is_alone {
            return when_done(index);
        }
        let copy = &mut EntryCopy {
            run,
            entry: &entry,
            worker,
        };
        let begun = begin_one(copy, &stat);
        // The names of later operands are compared with the dest of a divided file, which has no name yet.
        let must_be_done = contains_target || matches!(begun, Ok(Processed::QueuedLarge));
        match begun {
            Ok(Processed::Queued | Processed::QueuedLarge) => {}
            Ok(Processed::Handled | Processed::NotCopied) => ctx.finish_operand(index),
            // An earlier operand that is not finished may still make the target of the link.
            Err(failure) if failure.stage == Stage::AtDanglingDest && index > 0 && !is_alone => {
                return when_done(index);
            }
            Err(failure) => {
                entry.report_failure(failure);
                ctx.finish_operand(index);
            }
        }
        if must_be_done && index + 1 < operands.range.end {
            return when_done(index + 1);
        }
    }
    let is_alone = false;
    rest.map(|range| (OperandGroup { range, is_alone }, When::AfterOwn))
}

/// Opens the directory that the dest of an operand is in. Makes the directories on the way to
/// it, if the options say so.
fn make_parents<'r>(run: &'r CopyRun<'_>, operand: u32) -> Result<OpenParent<'r>, Error> {
    if !run.ctx.policy.options.parents {
        return Ok(OpenParent::Target(run.ctx.target()));
    }
    let mut made = lock(&run.parents);
    parents::make(&run.ctx, operand, &mut made)
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

fn begin_one(copy: &mut EntryCopy<'_, '_, '_, '_>, source: &Stat) -> Result<Processed, Failure> {
    let EntryCopy { run, entry, .. } = *copy;
    let ctx = entry.ctx;
    let is_directory = sys::is_directory(source);
    if is_directory && !ctx.policy.options.recursive {
        return Err(entry.source_refused(Refusal::NotRecursive));
    }
    if let Err(warning) = run.used.note_source(entry, source) {
        ctx.warn(entry.operand, warning);
        return Ok(Processed::NotCopied);
    }
    if is_directory {
        run.used.check_directory_dest(entry)?;
        let place = entry.place();
        let purpose = Purpose::Process { pass: 0 };
        copy.worker.push(Task::Enter { place, purpose }, When::Next);
        return Ok(Processed::Queued);
    }
    let processed = if entry.has_rules() {
        copy.decide(source)?
    } else {
        run.used.check_dest(entry, source)?;
        copy.make(source)?
    };
    if processed == Processed::Handled {
        run.used.note(ctx, entry.operand, None);
    }
    Ok(processed)
}

/// Copies or links an entry that has waited. If the rules have left its dest, they are applied again, because there may be
/// no copy to link to.
pub(super) fn copy_waiter(waiter: StoredEntry, worker: &mut Walker<'_, '_, CopyRun<'_>>) {
    resume(waiter, worker, |copy| copy.look_and_copy().map(drop));
}

/// Returns the type of a source below an operand that was listed as a directory, if it is not a directory. The filesystem
/// may have listed the wrong type, or another process has replaced the directory.
#[cold]
pub(super) fn other_type(ctx: &Context<'_>, place: &Place<CopyDir>) -> Option<FileType> {
    place.parent.as_ref()?;
    let look = |entry: &Entry<'_>| entry.stat_source().ok();
    let stat = Entry::reach(ctx, place, FileType::Directory, look);
    let kind = sys::file_type(&stat.ok()??);
    (kind != FileType::Directory).then_some(kind)
}

/// Copies a source that was queued as a directory, but is of another type.
#[cold]
pub(super) fn copy_of_other_type(
    place: Place<CopyDir>,
    kind: FileType,
    worker: &mut Walker<'_, '_, CopyRun<'_>>,
) {
    let stored = StoredEntry::of_place(place, kind);
    resume(stored, worker, |copy| {
        let Entry {
            source_dir: dir,
            source_name: name,
            node,
            ..
        } = *copy.entry;
        let reconsider = |node| walk::reconsider(node, dir, name, kind, copy.worker);
        match node.map(reconsider) {
            Some(Reconsidered::Process) => copy.listed(kind).map(drop),
            _ => Ok(()),
        }
    });
}

/// Opens the directories of a stored entry, and processes it by `process`. Reports its failure. If the
/// run was cancelled, only restores its backup.
pub(super) fn resume<'a, 's, 'e>(
    stored: StoredEntry,
    worker: &mut Walker<'s, 'e, CopyRun<'a>>,
    process: impl FnOnce(&mut EntryCopy<'_, 's, 'e, 'a>) -> Result<(), Failure>,
) {
    with_entry(stored, worker, |copy| {
        if copy.entry.ctx.report.must_stop() {
            backup::restore(copy.entry);
            return Ok(());
        }
        process(copy)
    });
}

/// Does the same as [`resume`], and calls `process` even if the run was cancelled.
pub(super) fn with_entry<'a, 's, 'e>(
    stored: StoredEntry,
    worker: &mut Walker<'s, 'e, CopyRun<'a>>,
    process: impl FnOnce(&mut EntryCopy<'_, 's, 'e, 'a>) -> Result<(), Failure>,
) {
    let run = worker.job;
    let ctx = &run.ctx;
    let StoredEntry { place, kind, .. } = &stored;
    let reached = Entry::reach(ctx, place, *kind, |entry| {
        let entry = &stored.restore(*entry);
        let worker = &mut *worker;
        if let Err(failure) = process(&mut EntryCopy { run, entry, worker }) {
            entry.report_failure(failure);
            backup::restore(entry);
        }
    });
    if let Err(error) = reached {
        ctx.fail(place.operand, error);
        if let Some(node) = &place.parent {
            // The directories could not be opened, and only the paths are needed.
            let listed = sys::Listed::new(&place.name, *kind);
            let entry = stored.restore(Entry::listed(ctx, node, [CWD; 2], listed));
            let dir = ctx.descriptors.pin(node, Side::Dest, ctx);
            let dir = dir.as_ref().map(AsFd::as_fd).map_err(|&errno| errno);
            backup::restore_in(&entry, dir);
        }
    }
    walk::leave(stored.place.parent, worker);
}
