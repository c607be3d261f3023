//! The way of a large file from its listing to its end; see [`large`](crate::copy::large).

use std::ops::{ControlFlow, Range};
use std::os::fd::AsFd;

use super::tasks::{CopyTask, resume, with_entry};
use super::{CopyRun, EntryCopy, Processed};
use crate::copy::content::OpenSource;
use crate::copy::context::{Context, Failure};
use crate::copy::decide::mode::Origin;
use crate::copy::dest::{self, OpenDest};
use crate::copy::entry::{Entry, StoredEntry};
use crate::copy::facts::{CopyNode, Symlinks};
use crate::copy::large::divided::{self, DividedFile, FilePart};
use crate::copy::large::{
    LargeFile, Needs, SharedSource, has_much_content, may_be_divided, may_come_later,
};
use crate::copy::make::file::Filling;
use crate::distribute::{Given, Load, Stolen};
use crate::error::Operation;
use crate::node::{Place, Side};
use crate::sched::When;
use crate::sys::{self, Pinned, Stat};
use crate::walk::{self, Task, Walker};

/// Lends a descriptor to a large file that can be [queued](queue). Returns `false` if it must be copied at once.
#[cold]
pub(super) fn try_lend(copy: &EntryCopy<'_, '_, '_, '_>, stat: &Stat) -> bool {
    let EntryCopy { run, entry, .. } = *copy;
    !entry.is_operand()
        && may_come_later(entry, stat)
        && run.ctx.descriptors.lend(LargeFile::DESCRIPTORS)
}

/// Queues a large file as a task of its own, so that several workers can share a directory of large files.
pub(super) fn queue(
    copy: &mut EntryCopy<'_, '_, '_, '_>,
    stat: &Stat,
    source: Option<OpenSource>,
) -> Processed {
    let file = LargeFile {
        source: source.map(SharedSource::from),
        entry: StoredEntry::of(copy.entry),
        needs: Needs::of(stat),
    };
    push(Some(Box::new(file)), copy.worker);
    Processed::QueuedLarge
}

fn push(file: Option<Box<LargeFile>>, worker: &mut Walker<'_, '_, CopyRun<'_>>) {
    if let Some(file) = file {
        worker.push(Task::Own(CopyTask::Large(file)), When::Next);
    }
}

/// Copies a large file, or keeps it until another one has ended. Its dest is created, truncated or renamed only now.
pub(super) fn copy(mut file: Box<LargeFile>, worker: &mut Walker<'_, '_, CopyRun<'_>>) {
    let run = worker.job;
    let ctx = &run.ctx;
    file.needs.overwrites = is_written_in_place(ctx, &file.entry);
    let free = |entry: &StoredEntry| sys::free_bytes(dest_dir(ctx, entry)?.as_fd());
    let Some(file) = run.room.begin(file, free) else {
        return;
    };
    // There may be room for another one, too.
    push(run.room.next(), worker);
    let LargeFile {
        source,
        entry,
        needs,
    } = *file;
    if let Some(node) = &entry.place.parent {
        let directory = || ctx.place_path(&node.place, Side::Source);
        ctx.report.offer_directory(directory);
    }
    resume(entry, worker, |copy| match source {
        Some(source) => copy_content(copy, take(copy.entry, source)?).map(drop),
        None => match copy.look()? {
            ControlFlow::Continue(source) => copy.copy_looked(&source).map(drop),
            ControlFlow::Break(_) => Ok(()),
        },
    });
    ctx.descriptors.take_back(LargeFile::DESCRIPTORS);
    push(run.room.end(needs), worker);
}

/// Returns the source of a file that was queued.
fn take(entry: &Entry<'_>, source: SharedSource) -> Result<OpenSource, Failure> {
    source
        .take(&entry.ctx.descriptors)
        .map_err(|errno| Failure::making(entry.source_error(Operation::OpenSource, errno)))
}

/// Returns `true` if the dest is a file that keeps its inode.
fn is_written_in_place(ctx: &Context<'_>, entry: &StoredEntry) -> bool {
    let rules = &ctx.policy.options.rules;
    let is_new = |node: &CopyNode| node.state.origin() == Origin::Created;
    if entry.place.parent.as_ref().is_none_or(is_new)
        || rules.removes_dests()
        || rules.backup.is_some()
    {
        return false;
    }
    let dest = dest_dir(ctx, entry);
    dest.is_some_and(|dir| sys::stat(dir.as_fd(), &entry.place.name, Symlinks::Follow).is_ok())
}

fn dest_dir<'n>(ctx: &Context<'_>, entry: &'n StoredEntry) -> Option<Pinned<'n>> {
    let node = entry.place.parent.as_ref()?;
    ctx.descriptors.pin(node, Side::Dest, ctx).ok()
}

/// Fails before a dest is touched, if a large file has no room.
#[cold]
pub(super) fn check_room(
    run: &CopyRun<'_>,
    entry: &Entry<'_>,
    source: &Stat,
) -> Result<(), Failure> {
    if !has_much_content(entry, source) {
        return Ok(());
    }
    match run.room.shortage(entry, source) {
        None => Ok(()),
        Some(errno) => Err(entry.making_failure(Operation::Write, errno)),
    }
}

/// Copies the content if there is room. Other engines may copy parts of it.
#[cold]
pub(super) fn copy_content(
    copy: &mut EntryCopy<'_, '_, '_, '_>,
    source: OpenSource,
) -> Result<Processed, Failure> {
    let EntryCopy { run, entry, .. } = *copy;
    check_room(run, entry, &source.stat)?;
    if run.stealing.is_some()
        && may_be_divided(entry, &source)
        && let Some(dest) = dest::try_create_hidden(entry, &source.stat)
    {
        return copy_together(copy, source, dest);
    }
    copy.copy_content(&source)
}

/// Copies the content until other engines want a part of the rest, which is the next task. The source has no other names.
fn copy_together(
    copy: &mut EntryCopy<'_, '_, '_, '_>,
    source: OpenSource,
    dest: OpenDest<'_>,
) -> Result<Processed, Failure> {
    let EntryCopy { run, entry, .. } = *copy;
    let filling = Filling::new(entry, &source, dest);
    match divided::fill(filling, copy.worker) {
        ControlFlow::Break((dest, from)) => {
            run.room.hold(Needs::of(&source.stat));
            let part = FilePart::of_rest(entry, source, dest, from);
            let task = Task::Own(CopyTask::Part(part));
            copy.worker.push(task, When::Next);
            Ok(Processed::QueuedLarge)
        }
        ControlFlow::Continue(filled) => {
            if copy.note_filled(&source, filled)?.is_none() {
                copy.copy_content(&source)?;
            }
            Ok(Processed::Handled)
        }
    }
}

/// Copies a part of a file of this engine.
pub(super) fn copy_part(part: FilePart, worker: &mut Walker<'_, '_, CopyRun<'_>>) {
    let last = part.copy(&worker.job.ctx, worker, |worker, half| {
        walk::offer(Task::Own(CopyTask::Part(half)), worker);
    });
    finish(last, worker);
}

/// Copies a part of a file of another engine. The ticket is that of the content that was not given away.
pub(super) fn copy_stolen<'a>(
    parent: &CopyNode,
    stolen: &mut Stolen,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) -> Given {
    let whole = stolen.clone();
    let Load::Range(range) = &whole.load else {
        return Given::NotReached;
    };
    let give = |worker: &mut Walker<'_, '_, CopyRun<'a>>, half: Range<u64>| {
        let mut stolen = Box::new(whole.clone());
        stolen.ticket.start = half.start;
        stolen.ticket.end = half.end;
        walk::offer(Task::Stolen(stolen), worker);
    };
    let mut content = stolen.ticket.content();
    let given = divided::copy_for_another_engine(
        &worker.job.ctx,
        parent,
        range,
        &mut content,
        worker,
        give,
    );
    stolen.ticket.end = content.end;
    given
}

/// Completes a file of which no other part is left.
fn finish(file: Option<DividedFile>, worker: &mut Walker<'_, '_, CopyRun<'_>>) {
    let run = worker.job;
    let Some(DividedFile {
        entry,
        source,
        dest,
    }) = file
    else {
        return;
    };
    let needs = Needs::of(&source.stat);
    let Place {
        parent, operand, ..
    } = &entry.place;
    let operand = parent.is_none().then_some(*operand);
    with_entry(entry, worker, |copy| {
        let source = take(copy.entry, source)?;
        let filled = dest.finish(copy.entry, &source);
        if copy.note_filled(&source, filled)?.is_none() {
            copy.copy_content(&source)?;
        }
        if copy.entry.is_operand() {
            run.used.note(&run.ctx, copy.entry.operand, None);
        }
        Ok(())
    });
    if let Some(operand) = operand {
        run.ctx.finish_operand(operand);
    }
    run.ctx.descriptors.take_back(FilePart::DESCRIPTORS);
    push(run.room.end(needs), worker);
}
