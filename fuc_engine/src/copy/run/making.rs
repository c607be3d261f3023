//! Makes the copy of one entry, then counts and reports it.

use std::ops::ControlFlow;

use super::pipeline::{EntryCopy, Processed};
use super::{CopyRun, large, names, verifying};
use crate::copy::content::{Moved, PIECE_BYTES};
use crate::copy::context::Failure;
use crate::copy::dest::{backup, open};
use crate::copy::facts::FileId;
use crate::copy::large::TASK_FROM;
use crate::copy::large::naming::Naming;
use crate::copy::look;
use crate::copy::make::file::{Filled, Filling};
use crate::copy::make::{self, Created};
use crate::copy::options::LinkKind;
use crate::copy::source::OpenSource;
use crate::error::{Errno, Operation};
use crate::observer::{BYTES_PER_WORK, Mechanism};
use crate::report::Counted;
use crate::sys::{self, Stat};
use crate::walk::Walker;

/// Copies a symbolic link. Looks at it only if it may have other names and `source` was not seen.
pub(super) fn symlink<'a>(
    copy: EntryCopy<'_, 'a>,
    source: Option<&Stat>,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) -> Result<Processed, Failure> {
    let EntryCopy { run, entry } = copy;
    let ctx = &run.ctx;
    let mut processed = Processed::Handled;
    let mut make = |worker: &mut Walker<'_, '_, CopyRun<'a>>| {
        match make::copy_symlink(ctx, entry)? {
            Created::Yes => copied(copy, Counted::Symlink, worker),
            Created::AlreadyThere => processed = Processed::NotCopied,
        }
        Ok(None)
    };
    if !ctx.policy.options.preserve.links {
        make(worker).map(|_: Option<FileId>| ())?;
        return Ok(processed);
    }
    let source = match source {
        Some(source) => *source,
        None => look::at_source(entry).map_err(|errno| ctx.source_stat_failure(entry, errno))?,
    };
    names::make_or_link(copy, &source, worker, &mut make)?;
    Ok(processed)
}

/// Makes a link instead of a copy.
pub(super) fn link<'a>(
    copy: EntryCopy<'_, 'a>,
    kind: LinkKind,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) -> Result<Processed, Failure> {
    let counted = match kind {
        LinkKind::Hard => Counted::HardLink,
        LinkKind::Symbolic => Counted::Symlink,
    };
    Ok(match make::make_link(&copy.run.ctx, copy.entry, kind)? {
        Created::Yes => {
            copied(copy, counted, worker);
            Processed::Handled
        }
        Created::AlreadyThere => Processed::NotCopied,
    })
}

/// Copies the content of a source that is open, or queues that as a task.
// If it is not inlined, the call copies the stat of the source. That takes 40 more instructions for each file with
// data. The guard's case `cpz-files-with-data` counts them.
#[inline(always)]
pub(super) fn opened_file<'a>(
    copy: EntryCopy<'_, 'a>,
    source: OpenSource,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) -> Result<Processed, Failure> {
    worker.scratch.own.expects_empty = source.is_known_empty();
    let EntryCopy { run, entry } = copy;
    if run.ctx.policy.has_other_names(entry, &source.stat) {
        let stat = source.stat;
        names::make_or_link(copy, &stat, worker, |worker| match is_large(&source) {
            true => large::copy_content(copy, source, worker),
            false => fill(copy, &source, Naming::WhenComplete, worker),
        })?;
        return Ok(Processed::Handled);
    }
    if !is_large(&source) {
        fill(copy, &source, Naming::WhenComplete, worker)?;
        return Ok(Processed::Handled);
    }
    let stat = source.stat;
    match large::try_queue(copy, &stat, Some(source), worker) {
        ControlFlow::Continue(Some(source)) => {
            large::copy_content(copy, source, worker)?;
            Ok(Processed::Handled)
        }
        _ => Ok(Processed::QueuedLarge),
    }
}

fn is_large(source: &OpenSource) -> bool {
    source.stat.st_size as u64 >= TASK_FROM
}

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
    filled: Result<Filled, Failure>,
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
