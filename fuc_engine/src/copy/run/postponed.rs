//! Copies whose turn comes later: large files, and entries that waited for another name of their
//! source.

use crate::sched::When;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::FileType;

use super::CopyRun;
use super::tasks::{CopyTask, LargeFile};
use crate::copy::context::{Context, Failure};
use crate::copy::decide::mode::Origin;
use crate::copy::dest::backup;
use crate::copy::facts::{Entry, Symlinks};
use crate::copy::node::CopyDir;
use crate::copy::stored::StoredEntry;
use crate::error::{Error, Operation};
use crate::node::{Place, Side};
use crate::sys::{self, CWD};
use crate::walk::{self, OpenDirs, Reconsidered, Task, Walker};

/// Large files whose dests exist and are written in place, one after the other.
///
/// A write makes the dest look new, so after SIGKILL a later `cp -u` keeps it. Only one of them may be
/// incomplete then, as with cp.
#[derive(Default)]
pub(super) struct Overwrites(Mutex<Lane>);

#[derive(Default)]
struct Lane {
    is_busy: bool,
    waiting: VecDeque<Box<LargeFile>>,
}

impl Overwrites {
    fn lane(&self) -> MutexGuard<'_, Lane> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the file if no other is being written. Otherwise keeps it for the worker that is writing.
    fn enter(&self, file: Box<LargeFile>) -> Option<Box<LargeFile>> {
        let mut lane = self.lane();
        if lane.is_busy {
            lane.waiting.push_back(file);
            return None;
        }
        lane.is_busy = true;
        Some(file)
    }

    /// Returns the next file that waits, after one was written.
    fn next(&self) -> Option<Box<LargeFile>> {
        let mut lane = self.lane();
        let next = lane.waiting.pop_front();
        lane.is_busy = next.is_some();
        next
    }
}

/// Large files that wait until a file that several engines copy together is complete, because there may be no room
/// for both.
///
/// A task for such a file would run in a loop if this engine had no other work.
#[derive(Default)]
pub(super) struct Crowd(Mutex<Crowded>);

#[derive(Default)]
struct Crowded {
    /// How many files are being copied together.
    divided: usize,
    waiting: VecDeque<Box<LargeFile>>,
}

impl Crowd {
    fn crowded(&self) -> MutexGuard<'_, Crowded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that several engines begin to copy a file.
    pub(super) fn begin_divided(&self) {
        self.crowded().divided += 1;
    }

    /// Notes that such a file is complete. Returns the files that have waited.
    pub(super) fn end_divided(&self) -> VecDeque<Box<LargeFile>> {
        let mut crowded = self.crowded();
        crowded.divided -= 1;
        std::mem::take(&mut crowded.waiting)
    }

    /// Keeps the file until a divided one is complete. Returns it if there is none.
    fn wait(&self, file: Box<LargeFile>) -> Option<Box<LargeFile>> {
        let mut crowded = self.crowded();
        if crowded.divided == 0 {
            return Some(file);
        }
        crowded.waiting.push_back(file);
        None
    }
}

/// Copies a large file. Its dest is created, truncated or renamed only now.
pub(super) fn copy_large<'a>(
    run: &CopyRun<'a>,
    file: Box<LargeFile>,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    if !is_written_in_place(run, &file.entry) {
        return copy_when_possible(run, file, worker);
    }
    let mut file = run.overwrites.enter(file);
    while let Some(entered) = file {
        copy_when_possible(run, entered, worker);
        file = run.overwrites.next();
    }
}

/// Returns `true` if the dest is a file that keeps its inode.
fn is_written_in_place(run: &CopyRun<'_>, entry: &StoredEntry) -> bool {
    let (ctx, rules) = (&run.ctx, &run.ctx.policy.options.rules);
    let Some(node) = &entry.node else {
        return false;
    };
    if node.state.origin() == Origin::Created || rules.remove_first || rules.backup.is_some() {
        return false;
    }
    let dest = ctx.descriptors.pin(node, Side::Dest, ctx);
    dest.is_ok_and(|dir| sys::stat(dir.as_fd(), &entry.name, Symlinks::Follow).is_ok())
}

/// Copies a large file, or keeps it until no other is being written.
fn copy_when_possible<'a>(
    run: &CopyRun<'a>,
    file: Box<LargeFile>,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    let Some(_reservation) = run
        .room
        .reserve(file.bytes, || free_bytes(run, &file.entry))
    else {
        if let Some(file) = run.crowd.wait(file) {
            worker.push(Task::Own(CopyTask::Large(file)), When::Idle);
        }
        return;
    };
    let LargeFile { source, entry, .. } = *file;
    if let Some(node) = &entry.node {
        let directory = || run.ctx.place_path(&node.place, Side::Source);
        run.ctx.report.offer_directory(directory);
    }
    resume(run, entry, worker, |entry, worker| match source {
        Some(source) => {
            let source = source.take(&run.ctx, entry)?;
            run.copy_content(entry, source, worker).map(drop)
        }
        None => match run.look(entry, worker)? {
            ControlFlow::Continue(source) => run.copy_by_rules(entry, &source, worker).map(drop),
            ControlFlow::Break(_) => Ok(()),
        },
    });
    run.ctx.descriptors.take_back(LargeFile::DESCRIPTORS);
}

/// Returns the free bytes on the filesystem of the dest, if they are known.
fn free_bytes(run: &CopyRun<'_>, entry: &StoredEntry) -> Option<u64> {
    let dest = run
        .ctx
        .descriptors
        .pin(entry.node.as_ref()?, Side::Dest, &run.ctx);
    sys::free_bytes(dest.ok()?.as_fd())
}

/// Copies or links an entry that has waited.
pub(super) fn copy_waiter<'a>(
    run: &CopyRun<'a>,
    waiter: StoredEntry,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    resume(run, waiter, worker, |entry, worker| {
        run.look_and_make(entry, worker).map(drop)
    });
}

/// Returns the type of a source below an operand that was listed as a directory, if it is not a directory. The filesystem
/// may have listed the wrong type, or another process has replaced the directory.
#[cold]
pub(super) fn other_type(ctx: &Context<'_>, place: &Place<CopyDir>) -> Option<FileType> {
    place.parent.as_ref()?;
    let symlinks = ctx.symlinks_at(place);
    let stat = ctx.at(place, Side::Source, |dir, name| {
        sys::stat(dir, name, symlinks)
    });
    let kind = sys::file_type(&stat.ok()?);
    (kind != FileType::Directory).then_some(kind)
}

/// Copies a source that was queued as a directory, but is of another type.
#[cold]
pub(super) fn copy_of_other_type<'a>(
    run: &CopyRun<'a>,
    place: Place<CopyDir>,
    kind: FileType,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    let symlinks = run.ctx.symlinks_at(&place);
    let stored = StoredEntry::of_place(place, kind, symlinks);
    resume(run, stored, worker, |entry, worker| {
        let (dir, name) = (entry.source_dir, entry.source_name);
        let reconsidered = entry
            .node
            .map(|node| walk::reconsider(run, node, dir, name, kind, worker));
        match reconsidered {
            Some(Reconsidered::Process) => run.process_listed(entry, kind, worker).map(drop),
            _ => Ok(()),
        }
    });
}

/// Opens the directories of a stored entry, and processes it by `process`. Reports its failure. If the
/// run was cancelled, only restores its backup.
pub(super) fn resume<'a, 's, 'e>(
    run: &CopyRun<'a>,
    stored: StoredEntry,
    worker: &mut Walker<'s, 'e, CopyRun<'a>>,
    process: impl FnOnce(&Entry<'_>, &mut Walker<'s, 'e, CopyRun<'a>>) -> Result<(), Failure>,
) {
    with_entry(run, stored, worker, |entry, worker| {
        if run.ctx.report.must_stop() {
            backup::restore(&run.ctx, entry);
            return Ok(());
        }
        process(entry, worker)
    });
}

/// Does the same as [`resume`], and calls `process` even if the run was cancelled.
pub(super) fn with_entry<'a, 's, 'e>(
    run: &CopyRun<'a>,
    stored: StoredEntry,
    worker: &mut Walker<'s, 'e, CopyRun<'a>>,
    process: impl FnOnce(&Entry<'_>, &mut Walker<'s, 'e, CopyRun<'a>>) -> Result<(), Failure>,
) {
    let ctx = &run.ctx;
    let process_or_report = |entry: &Entry<'_>| {
        if let Err(failure) = process(entry, worker) {
            ctx.report_failure(entry, failure);
            backup::restore(ctx, entry);
        }
    };
    match &stored.node {
        None => match ctx.open_dest_parent(stored.operand) {
            Ok(parent) => {
                let entry = ctx.operand_entry(stored.operand, parent.as_fd());
                process_or_report(&stored.restore(entry));
            }
            Err(errno) => {
                let path = ctx.operand_path(stored.operand, Side::Dest).to_path_buf();
                let error = Error::failed(Operation::Stat, path, errno).at_dest();
                ctx.fail(stored.operand, error);
            }
        },
        Some(node) => match walk::open_dirs(run, node) {
            Ok(dirs) => {
                let entry = Entry::listed(node, dirs.source(), dirs.dest(), stored.listed());
                process_or_report(&stored.restore(entry));
            }
            Err(errno) => {
                let error = ctx.place_error(&node.place, Side::Dest, Operation::Stat, errno);
                ctx.fail(stored.operand, error);
                // The directories could not be opened, and only the paths are needed.
                let entry = stored.restore(Entry::listed(node, CWD, CWD, stored.listed()));
                backup::restore_in(ctx, node, &entry);
            }
        },
    }
    walk::leave(run, stored.node, worker);
}
