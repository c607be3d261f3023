//! Copies whose turn comes later: large files, and entries that waited.

use super::CopyRun;
use super::tasks::LargeFile;
use crate::copy::dest::backup;
use crate::copy::facts::{DestState, Entry};
use crate::copy::hardlinks::Waiter;
use crate::error::Operation;
use crate::node::Side;
use crate::sys::CWD;
use crate::walk::{self, OpenDirs, Walker};

/// Copies the content of a file whose dest is open.
pub(super) fn copy_large<'a>(
    run: &CopyRun<'a>,
    file: LargeFile,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    let LargeFile {
        source,
        dest,
        node,
        name,
        backup,
    } = file;
    let dest_state = DestState::Vacant {
        backup: backup.as_deref(),
    };
    let entry = Entry {
        dest_state,
        // Both files are open, so only the paths are needed.
        ..Entry::listed(&node, CWD, CWD, &name)
    };
    if let Err(failure) = run.fill(&entry, &source, dest, worker) {
        run.ctx.report_failure(&entry, failure);
        backup::restore_in(&run.ctx, &node, &entry);
    }
    drop(source);
    run.ctx.descriptors.take_back(LargeFile::DESCRIPTORS);
    walk::leave(run, Some(node), worker);
}

/// Copies or links an entry that has waited.
pub(super) fn copy_waiter<'a>(
    run: &CopyRun<'a>,
    waiter: Waiter,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    let (ctx, name) = (&run.ctx, &waiter.name);
    match &name.node {
        None => resume(run, &waiter.resume(ctx.operand(name.operand)), worker),
        Some(node) => match walk::open_dirs(run, node) {
            Ok(dirs) => {
                let entry = Entry::listed(node, dirs.source(), dirs.dest(), &name.name);
                resume(run, &waiter.resume(entry), worker);
            }
            Err(errno) => {
                let error = ctx.place_error(&node.place, Side::Dest, Operation::Stat, errno);
                ctx.report.failed(error);
                // Only the paths are needed.
                let entry = waiter.resume(Entry::listed(node, CWD, CWD, &name.name));
                backup::restore_in(ctx, node, &entry);
            }
        },
    }
    walk::leave(run, waiter.name.node, worker);
}

fn resume<'a>(run: &CopyRun<'a>, entry: &Entry<'_>, worker: &mut Walker<'_, '_, CopyRun<'a>>) {
    if let Err(failure) = run.look_and_make(entry, worker) {
        run.ctx.report_failure(entry, failure);
        backup::restore(&run.ctx, entry);
    }
}
