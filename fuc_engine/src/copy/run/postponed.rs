//! Copies whose turn comes later: large files, and entries that waited for another name of their
//! source.

use super::CopyRun;
use super::tasks::LargeFile;
use crate::copy::context::Failure;
use crate::copy::dest::backup;
use crate::copy::facts::Entry;
use crate::copy::look;
use crate::copy::stored::StoredEntry;
use crate::error::Operation;
use crate::node::Side;
use crate::sys::CWD;
use crate::walk::{self, OpenDirs, Walker};

/// Copies a large file. Its dest is created, or truncated, only now.
pub(super) fn copy_large<'a>(
    run: &CopyRun<'a>,
    file: LargeFile,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    let LargeFile { source, entry } = file;
    resume(run, entry, worker, |entry, worker| {
        run.copy_content(entry, source, worker).map(drop)
    });
    run.ctx.descriptors.take_back(LargeFile::DESCRIPTORS);
}

/// Applies the rules about the dest of a large file, and copies it.
pub(super) fn copy_large_by_rules<'a>(
    run: &CopyRun<'a>,
    entry: StoredEntry,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    resume(run, entry, worker, |entry, worker| {
        let source = look::at_source(entry).map_err(|errno| run.ctx.source_unseen(entry, errno))?;
        run.copy_by_rules(entry, &source, worker).map(drop)
    });
    run.ctx.descriptors.take_back(LargeFile::DESCRIPTORS);
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

/// Opens the directories of a stored entry, and copies it by `copy`. Reports its failure.
fn resume<'a, 's, 'e>(
    run: &CopyRun<'a>,
    stored: StoredEntry,
    worker: &mut Walker<'s, 'e, CopyRun<'a>>,
    copy: impl FnOnce(&Entry<'_>, &mut Walker<'s, 'e, CopyRun<'a>>) -> Result<(), Failure>,
) {
    let ctx = &run.ctx;
    let copy_or_report = |entry: &Entry<'_>| {
        if let Err(failure) = copy(entry, worker) {
            ctx.report_failure(entry, failure);
            backup::restore(ctx, entry);
        }
    };
    match &stored.node {
        None => copy_or_report(&stored.restore(ctx.operand(stored.operand))),
        Some(node) => match walk::open_dirs(run, node) {
            Ok(dirs) => {
                let entry = Entry::listed(node, dirs.source(), dirs.dest(), &stored.name);
                copy_or_report(&stored.restore(entry));
            }
            Err(errno) => {
                let error = ctx.place_error(&node.place, Side::Dest, Operation::Stat, errno);
                ctx.report.failed(error);
                // Only the paths are needed.
                let entry = stored.restore(Entry::listed(node, CWD, CWD, &stored.name));
                backup::restore_in(ctx, node, &entry);
            }
        },
    }
    walk::leave(run, stored.node, worker);
}
