//! The tasks of a copy other than listing a directory, and entries whose copies come later than their listing.

use std::ops::Range;
use std::os::fd::AsFd;

use rustix::fs::FileType;

use super::{CopyRun, EntryCopy};
use crate::copy::context::{Context, Failure};
use crate::copy::dest::backup;
use crate::copy::facts::{CopyDir, Entry, StoredEntry};
use crate::copy::large::divided::FilePart;
use crate::copy::large::room::LargeFile;
use crate::error::{Error, Operation};
use crate::node::{Place, Side};
use crate::sys::{self, CWD};
use crate::walk::{self, OpenDirs, OwnRange, OwnTask, Reconsidered, Walker};

/// Tasks of a copy other than listing a directory.
pub(in crate::copy) enum CopyTask {
    Operands(Operands),
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

impl OwnTask<CopyDir> for CopyTask {
    fn range(&self) -> Option<OwnRange<'_, CopyDir>> {
        match self {
            Self::Part(part) => part.for_another_engine(),
            _ => None,
        }
    }

    fn with_content(&self, content: Range<u64>) -> Option<Self> {
        match self {
            Self::Part(part) => Some(Self::Part(part.with_content(content))),
            _ => None,
        }
    }
}

/// Operands to begin, in order.
pub(in crate::copy) struct Operands {
    pub(super) range: Range<u32>,
    /// `true` if no other task is queued or running.
    pub(super) is_alone: bool,
}

impl Operands {
    /// Returns a task that must be pushed when no other task is queued or running.
    pub(super) fn alone(range: Range<u32>) -> Self {
        Self {
            range,
            is_alone: true,
        }
    }
}

/// Copies or links an entry that has waited.
pub(super) fn copy_waiter<'a>(
    run: &CopyRun<'a>,
    waiter: StoredEntry,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    resume(run, waiter, worker, |entry, worker| {
        EntryCopy { run, entry }.look_and_make(worker).map(drop)
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
            Some(Reconsidered::Process) => EntryCopy { run, entry }.listed(kind, worker).map(drop),
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
