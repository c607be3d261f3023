//! Which copies are compared with their sources, and when.
//!
//! Copies are collected, and compared in batches. Before that, their filesystem is written to the disk.
//! Otherwise each direct read would first write its file alone. With this step, verifying 20,000 files
//! of 4 KiB took 0.86 times as long as without it (ext4, 2 cores, 5 runs).

use crate::sched::When;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::CopyRun;
use super::tasks::{CopyTask, resume};
use crate::copy::attributes::path_only;
use crate::copy::context::Failure;
use crate::copy::decide::clear::links_at_dest;
use crate::copy::durability::FEW;
use crate::copy::facts::{DestState, Entry, StoredEntry, Symlinks};
use crate::copy::look;
use crate::copy::scratch::CopyWorker;
use crate::copy::verify::{self, Compared};
use crate::error::Refusal;
use crate::node::Side;
use crate::sys::{self, At, Stat};
use crate::walk::{self, Task, Walker};

/// Number of files that completes a batch. They take less than 200 KB of memory.
const BATCH_FILES: usize = 1024;
/// Number of bytes that completes a batch, so that a large file is compared at once.
const BATCH_BYTES: u64 = 64 << 20;
/// Files that one worker compares before another one can have the rest.
const SHARE: usize = 16;

/// Copies that are still to be compared with their sources.
#[derive(Default)]
pub(super) struct Unverified(Mutex<Batch>);

#[derive(Default)]
struct Batch {
    files: Vec<StoredEntry>,
    bytes: u64,
    /// A task is queued that compares the last batch.
    has_last_task: bool,
}

impl Unverified {
    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes a regular file to be compared, if the options say so. Compares a batch that is complete.
#[inline]
pub(super) fn add<'a>(
    run: &CopyRun<'a>,
    entry: &Entry<'_>,
    source: &Stat,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    let options = run.ctx.policy.options;
    if options.verify {
        let is_file = sys::file_type(source) == FileType::RegularFile;
        if is_file && !options.attributes_only {
            add_file(run, entry, source.st_size as u64, worker);
        }
    }
}

#[cold]
fn add_file<'a>(
    run: &CopyRun<'a>,
    entry: &Entry<'_>,
    bytes: u64,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    let file = StoredEntry::of(&Entry {
        dest_state: DestState::Unchecked,
        ..*entry
    });
    let (complete, needs_task) = {
        let mut batch = run.unverified.batch();
        batch.files.push(file);
        batch.bytes += bytes;
        let is_complete = batch.files.len() >= BATCH_FILES || batch.bytes >= BATCH_BYTES;
        let complete = is_complete.then(|| {
            batch.bytes = 0;
            std::mem::take(&mut batch.files)
        });
        let needs_task = !std::mem::replace(&mut batch.has_last_task, true);
        (complete, needs_task)
    };
    if needs_task {
        worker.push(Task::Own(CopyTask::VerifyRest), When::Idle);
    }
    if let Some(files) = complete {
        write_to_disk(run, &files);
        compare_all(run, files, worker);
    }
}

/// Queues the comparisons of the last batch, a part for each task.
pub(super) fn queue_rest<'a>(run: &CopyRun<'a>, worker: &mut Walker<'_, '_, CopyRun<'a>>) {
    let mut rest = std::mem::take(&mut *run.unverified.batch()).files;
    write_to_disk(run, &rest);
    while !rest.is_empty() {
        let part = rest.split_off(rest.len().saturating_sub(SHARE));
        worker.push(Task::Own(CopyTask::Verify(part)), When::Next);
    }
}

/// Writes files to the disk with the whole filesystem of the last one, if there are more than a few.
fn write_to_disk(run: &CopyRun<'_>, files: &[StoredEntry]) {
    let is_worth_it = files.len() > FEW && !run.ctx.report.must_stop();
    let Some(last) = files.last().filter(|_| is_worth_it) else {
        return;
    };
    let sync = |dir: BorrowedFd<'_>| {
        let dir = sys::open_directory(dir, c".", Symlinks::NoFollow)?;
        sys::sync_filesystem(dir.as_fd())
    };
    // If this fails, each file is written when it is read.
    let _ = match &last.node {
        Some(node) => walk::open_dirs(run, node).and_then(|dirs| sync(dirs.dest())),
        None => {
            let parent = run.ctx.open_dest_parent(last.operand);
            parent.and_then(|parent| sync(parent.as_fd()))
        }
    };
}

/// Compares files with their sources, and reports those that differ.
pub(super) fn compare_all<'a>(
    run: &CopyRun<'a>,
    files: Vec<StoredEntry>,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    for file in files {
        resume(run, file, worker, |entry, worker| {
            compare(run, entry, worker)
        });
    }
}

fn compare<'a>(
    run: &CopyRun<'a>,
    entry: &Entry<'_>,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) -> Result<(), Failure> {
    let ctx = &run.ctx;
    let dest = At {
        // A link that was written through has led to the file.
        symlinks: links_at_dest(ctx.dest_directory_origin(entry)),
        ..entry.dest_at()
    };
    let mut buffer = std::mem::take(&mut worker.scratch.own.uncached);
    let progress = || worker.copied_piece(&ctx.report, 0);
    let open = |at: At<'_>, way| {
        let descriptors = &ctx.descriptors;
        descriptors.making_room(|| sys::open_uncached(at, way))
    };
    let compared = verify::compare(entry.source_at(), dest, &open, &mut buffer, progress);
    worker.scratch.own.uncached = buffer;
    match compared {
        Ok(Compared::Equal | Compared::Cancelled) => Ok(()),
        Ok(Compared::Different { is_file }) => {
            if is_file {
                mark_incomplete(entry, dest);
            }
            Err(ctx.refused(entry, Refusal::Different))
        }
        Err(unreadable) => {
            let (side, operation) = (unreadable.side, unreadable.operation);
            if side == Side::Dest && unreadable.errno == Errno::IO {
                mark_incomplete(entry, dest);
            }
            let error = match side {
                Side::Source => ctx.source_error(entry, operation, unreadable.errno),
                Side::Dest => ctx.dest_error(entry, operation, unreadable.errno),
            };
            Err(Failure::preparing(error))
        }
    }
}

/// Makes a dest older than its source, so that a later run copies it again.
fn mark_incomplete(entry: &Entry<'_>, dest: At<'_>) {
    if let Ok(source) = look::at_source(entry) {
        // The difference is reported in any case.
        let _ = path_only::mark_incomplete(dest, &source);
    }
}
