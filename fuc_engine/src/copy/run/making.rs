//! Fills the dest of one entry, and counts and reports each copy.

use super::tasks::CopyTask;
use super::{CopyRun, EntryCopy, verifying};
use crate::copy::content::{Moved, PIECE_BYTES};
use crate::copy::context::Failure;
use crate::copy::dest::{backup, open};
use crate::copy::facts::FileId;
use crate::copy::large::divided::FilePart;
use crate::copy::large::naming::Naming;
use crate::copy::large::room::Needs;
use crate::copy::make::file::{Filled, Filling};
use crate::copy::source::OpenSource;
use crate::error::{Errno, Operation};
use crate::observer::{BYTES_PER_WORK, Mechanism};
use crate::report::Counted;
use crate::sched::When;
use crate::sys;
use crate::walk::{Task, Walker};

/// Opens the dest and copies the content. Returns the file that was written, if further names of its source may link to
/// it.
#[inline(always)]
pub(super) fn fill<'a>(
    copy: EntryCopy<'_, 'a>,
    source: &OpenSource,
    naming: Naming,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) -> Result<Option<FileId>, Failure> {
    let EntryCopy { run, entry } = copy;
    let ctx = &run.ctx;
    let dest = open::open(ctx, entry, source, naming)?;
    let mut written = None;
    if ctx.policy.has_other_names(entry, &source.stat) {
        let id = || sys::stat_open(&dest.fd).map(|stat| Some(FileId::of(&stat)));
        written = ctx
            .changes
            .really(id)
            .map_err(|errno| ctx.making_failure(entry, Operation::Stat, errno))?;
    }
    let filling = Filling {
        ctx,
        entry,
        source,
        dest,
    };
    let filled = filling.fill(worker);
    note_filled(copy, source, filled, written, worker)
}

/// Copies a file whose content may have been read before.
#[cold]
pub(super) fn fill_again<'a>(
    copy: EntryCopy<'_, 'a>,
    source: &OpenSource,
    naming: Naming,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) -> Result<Option<FileId>, Failure> {
    source.rewind().map_err(|errno| {
        let operation = Operation::Read;
        Failure::making(copy.run.ctx.source_error(copy.entry, operation, errno))
    })?;
    fill(copy, source, naming, worker)
}

/// Counts and reports a dest that was filled. Copies the file again if its dest could not be given its name. Returns
/// the file that was written, if further names of its source may link to it: `written`, or another one.
#[inline(always)]
pub(super) fn note_filled<'a>(
    copy: EntryCopy<'_, 'a>,
    source: &OpenSource,
    filled: Result<Filled<'_>, Failure>,
    written: Option<FileId>,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) -> Result<Option<FileId>, Failure> {
    let EntryCopy { run, entry } = copy;
    if let Err(failure) = &filled {
        let errno = failure.error.errno();
        run.room.note_failure(entry, errno.map(Errno::kernel));
    }
    match filled? {
        Filled::Complete(completed) => {
            if completed.is_file {
                verifying::add(run, entry, &source.stat, worker);
            }
            completed.attributes?;
            let Moved { bytes, method } = completed.moved;
            count(Counted::File, bytes, worker);
            if method.reflink == Mechanism::Used {
                worker.scratch.tally.count_reflinked(bytes);
            }
            run.ctx.emit_content_copied(entry, method);
        }
        Filled::Nameless => return fill_again(copy, source, Naming::AtOnce, worker),
        Filled::Cancelled => backup::restore(&run.ctx, entry),
        Filled::Shared(unfinished) => {
            // Its content is the next task, of which others get a part.
            run.room.hold(Needs::of(&source.stat));
            let rest = FilePart::of_rest(&run.ctx, entry, *unfinished);
            worker.push(Task::Own(CopyTask::Part(rest)), When::Next);
        }
    }
    Ok(written)
}

/// Counts and reports a copy without content.
pub(super) fn copied<'a>(
    copy: EntryCopy<'_, 'a>,
    counted: Counted,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    count(counted, 0, worker);
    copy.run.ctx.emit_copied(copy.entry);
}

#[inline]
pub(super) fn count(counted: Counted, bytes: u64, worker: &mut Walker<'_, '_, CopyRun<'_>>) {
    worker.scratch.tally.count(counted);
    worker.scratch.tally.count_bytes(bytes);
    worker.scratch.had_content = bytes > 0;
    worker.count(1 + bytes.min(PIECE_BYTES as u64) / BYTES_PER_WORK);
}
