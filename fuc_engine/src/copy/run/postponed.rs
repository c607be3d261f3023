//! Copies whose turn comes later: large files, and entries that waited for another name of their
//! source.

use std::os::fd::AsFd;

use super::CopyRun;
use super::tasks::{CopyTask, LargeFile};
use crate::copy::context::Failure;
use crate::copy::dest::backup;
use crate::copy::facts::Entry;
use crate::copy::look;
use crate::copy::stored::StoredEntry;
use crate::error::{Error, Operation};
use crate::node::Side;
use crate::sys::{self, CWD};
use crate::walk::{self, OpenDirs, Task, Walker};

/// Copies a large file, or queues it again until no other is being written. Its dest is created,
/// truncated or renamed only now.
pub(super) fn copy_large<'a>(
    run: &CopyRun<'a>,
    file: Box<LargeFile>,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    let Some(_reservation) = run
        .room
        .reserve(file.bytes, || free_bytes(run, &file.entry))
    else {
        worker.push_when_idle(Task::Own(CopyTask::Large(file)));
        return;
    };
    let LargeFile { source, entry, .. } = *file;
    resume(run, entry, worker, |entry, worker| match source {
        Some(source) => run.copy_content(entry, source, worker).map(drop),
        None => {
            let source = look::at_source(entry)
                .map_err(|errno| run.ctx.source_stat_failure(entry, errno))?;
            run.copy_by_rules(entry, &source, worker).map(drop)
        }
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

/// Opens the directories of a stored entry, and processes it by `process`. Reports its failure. If the
/// run was cancelled, only restores its backup.
pub(super) fn resume<'a, 's, 'e>(
    run: &CopyRun<'a>,
    stored: StoredEntry,
    worker: &mut Walker<'s, 'e, CopyRun<'a>>,
    process: impl FnOnce(&Entry<'_>, &mut Walker<'s, 'e, CopyRun<'a>>) -> Result<(), Failure>,
) {
    let ctx = &run.ctx;
    let process_or_report = |entry: &Entry<'_>| {
        if ctx.report.must_stop() {
            return backup::restore(ctx, entry);
        }
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
                let error = Error::failed(Operation::Stat, path, errno);
                ctx.fail(stored.operand, error);
            }
        },
        Some(node) => match walk::open_dirs(run, node) {
            Ok(dirs) => {
                let entry = Entry::listed(node, dirs.source(), dirs.dest(), &stored.name);
                process_or_report(&stored.restore(entry));
            }
            Err(errno) => {
                let error = ctx.place_error(&node.place, Side::Dest, Operation::Stat, errno);
                ctx.fail(stored.operand, error);
                // The directories could not be opened, and only the paths are needed.
                let entry = stored.restore(Entry::listed(node, CWD, CWD, &stored.name));
                backup::restore_in(ctx, node, &entry);
            }
        },
    }
    walk::leave(run, stored.node, worker);
}
