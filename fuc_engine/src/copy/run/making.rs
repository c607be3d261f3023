//! Fills the dest of one entry, or links it to the copy of another name of its source. Counts and reports each copy.
//!
//! A source with several names is copied once, and the dests of its other names are linked to that copy. If several
//! engines share the run, one of them is its home, which does that.

use super::tasks::CopyTask;
use super::{CopyRun, EntryCopy, verifying};
use crate::copy::content::{Moved, PIECE_BYTES};
use crate::copy::context::Failure;
use crate::copy::decide::clear::RemovalEvent;
use crate::copy::dest::Cleared;
use crate::copy::dest::backup;
use crate::copy::dest::{OpenDest, open};
use crate::copy::facts::{DestState, Entry, FileId, StoredEntry};
use crate::copy::large::naming::Naming;
use crate::copy::look::OpenSource;
use crate::copy::make::Created;
use crate::copy::make::file::{Filled, Filling};
use crate::copy::make::hardlink::{self, Claim, FirstCopy};
use crate::copy::options::Replace;
use crate::error::{Errno, Error, Operation, Refusal};
use crate::node::Side;
use crate::observer::{BYTES_PER_WORK, Mechanism};
use crate::report::Counted;
use crate::sched::When;
use crate::sys::{self, Stat};
use crate::walk::{self, Sharer, Task, Visitor, Walker};

/// Makes a copy by `make`, or links to the copy of another name of the same source. If other engines share the copy,
/// the home of the source does that. `make` returns the id of the written file, if it knows it.
pub(super) fn make_or_link<'a, 's, 'e>(
    copy: EntryCopy<'_, 'a>,
    source: &Stat,
    worker: &mut Walker<'s, 'e, CopyRun<'a>>,
    make: impl FnOnce(&mut Walker<'s, 'e, CopyRun<'a>>) -> Result<Option<FileId>, Failure>,
) -> Result<(), Failure> {
    let EntryCopy { run, entry } = copy;
    if !run.ctx.policy.has_other_names(entry, source) {
        return make(worker).map(drop);
    }
    if let Some(home) = other_home(run, entry, source) {
        return entrust(run, entry, home, worker);
    }
    let id = FileId::of(source);
    match run.links.claim(source, entry, other_names(run, source)) {
        Claim::First => {
            let made = make(worker);
            let written = made.as_ref().ok();
            let first = written.and_then(|&written| find_copy(copy, written));
            // If the dest was another name of the source, a link to it would not be a link to a copy.
            let first = first.filter(|first| first.itself.id != id);
            queue_waiters(run.links.complete(id, first), worker);
            made.map(drop)
        }
        Claim::Waiting => Ok(()),
        Claim::OtherFile => {
            warn_of_other_file(copy);
            make(worker).map(drop)
        }
        Claim::LinkTo(first) => {
            let scratch = &mut worker.scratch.own;
            if hardlink::link(&run.ctx, entry, &first, None, scratch)? == Created::Yes {
                copied(copy, Counted::HardLink, worker);
            }
            Ok(())
        }
    }
}

/// The state of an entry whose dest is as new as its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Adopted {
    Done,
    /// The entry waits for another name of its source, and is decided about again after that.
    Waiting,
}

/// Lets other names of the source link to the dest, which is as new as the source. If another name was copied before,
/// the dest becomes a link to that copy, as in cp.
pub(super) fn adopt<'a>(
    copy: EntryCopy<'_, 'a>,
    source: &Stat,
    dest: &Stat,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) -> Result<Adopted, Failure> {
    let EntryCopy { run, entry } = copy;
    if !run.ctx.policy.has_other_names(entry, source) {
        return Ok(Adopted::Done);
    }
    match run.links.claim(source, entry, other_names(run, source)) {
        Claim::First => {
            let first = find_copy(copy, Some(FileId::of(dest)));
            queue_waiters(run.links.complete(FileId::of(source), first), worker);
        }
        Claim::Waiting => return Ok(Adopted::Waiting),
        Claim::OtherFile => warn_of_other_file(copy),
        Claim::LinkTo(first) => {
            let is_resumed = run.ctx.policy.options.rules.replace == Replace::Changed;
            if !is_resumed || first.itself.id != FileId::of(dest) {
                let cleared = Cleared::ToReplace(RemovalEvent::Reported);
                let scratch = &mut worker.scratch.own;
                let linked = hardlink::link(&run.ctx, entry, &first, Some(cleared), scratch);
                // As in cp, `-v` does not name the entry.
                linked.map_err(|failure| Failure::preparing(failure.error))?;
            }
        }
    }
    Ok(Adopted::Done)
}

/// Warns that another source has the inode number of this one.
fn warn_of_other_file(EntryCopy { run, entry }: EntryCopy<'_, '_>) {
    let path = run.ctx.path(entry, Side::Source);
    let warning = Error::refused(Refusal::SharedInodeNumber, path);
    run.ctx.warn(entry.operand, warning);
}

/// Finds the copy that was made. If that fails, it is reported, and other names of the
/// source are not linked to the copy.
fn find_copy(copy: EntryCopy<'_, '_>, written: Option<FileId>) -> Option<FirstCopy> {
    let EntryCopy { run, entry } = copy;
    let found = hardlink::find_copy(&run.ctx, entry, written);
    found
        .inspect_err(|&errno| {
            let error = run.ctx.dest_error(entry, Operation::Stat, errno);
            run.ctx.fail(entry.operand, error);
        })
        .ok()
}

/// Returns how many other names of the source will be met at most, or `None` if that is unknown.
fn other_names(run: &CopyRun<'_>, source: &Stat) -> Option<u64> {
    // The type of the field depends on the architecture.
    #[allow(clippy::unnecessary_cast)]
    run.meets_names_once
        .then(|| (source.st_nlink as u64).saturating_sub(1))
}

fn queue_waiters<'a>(waiters: Vec<StoredEntry>, worker: &mut Walker<'_, '_, CopyRun<'a>>) {
    for waiter in waiters {
        worker.push(Task::Own(CopyTask::Waiter(waiter)), When::Next);
    }
}

/// Returns the engine that is the home of a source, if the source may have other names and its home is another
/// engine.
pub(super) fn other_home(run: &CopyRun<'_>, entry: &Entry<'_>, source: &Stat) -> Option<u32> {
    let sharer = run.sharer()?;
    if !run.ctx.policy.has_other_names(entry, source) {
        return None;
    }
    let exchange = sharer.stealing().exchange();
    let home = exchange.home(source.st_ino);
    (home != exchange.engine()).then_some(home)
}

/// Gives an entry to its home, before anything is done about its dest.
///
/// # Errors
/// The entry is an operand. Or another process has replaced the source since the rules were applied to the dest,
/// or since another engine has found this one to be the home.
#[cold]
pub(super) fn entrust<'a>(
    run: &CopyRun<'a>,
    entry: &Entry<'_>,
    home: u32,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) -> Result<(), Failure> {
    let Some(node) = entry.node else {
        return Err(run.ctx.refused(entry, Refusal::HomeNotReached));
    };
    let is_home = run.stealing().is_home_of(node);
    if is_home || !matches!(entry.dest_state, DestState::Unchecked) {
        return Err(run.ctx.source_refused(entry, Refusal::SourceReplaced));
    }
    let listed = sys::Entry::new(entry.source_name, entry.kind);
    walk::entrust(run, node, listed, home, worker);
    Ok(())
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
    let dest = open::open(&copy.run.ctx, copy.entry, source, naming)?;
    fill_open(copy, source, dest, worker)
}

/// Copies the content to a dest that is open.
#[inline(always)]
pub(super) fn fill_open<'a>(
    copy: EntryCopy<'_, 'a>,
    source: &OpenSource,
    dest: OpenDest<'_>,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) -> Result<Option<FileId>, Failure> {
    let EntryCopy { run, entry } = copy;
    let ctx = &run.ctx;
    let mut written = None;
    if ctx.policy.has_other_names(entry, &source.stat) {
        let id = || sys::stat_open(&dest.fd).map(|stat| Some(FileId::of(&stat)));
        written = ctx
            .changes
            .really(id)
            .map_err(|errno| ctx.making_failure(entry, Operation::Stat, errno))?;
    }
    worker.is_awaited = dest.writing.is_some();
    let filling = Filling {
        ctx,
        entry,
        source,
        dest,
    };
    let filled = filling.fill(worker);
    worker.is_awaited = false;
    note_filled(copy, source, filled, written, worker)
}

/// Copies a file whose content may have been read before.
#[cold]
fn fill_again<'a>(
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
        Filled::Complete {
            moved: Moved { bytes, method },
            is_file,
            attributes,
        } => {
            if is_file {
                verifying::add(run, entry, &source.stat, worker);
            }
            attributes?;
            count(Counted::File, bytes, worker);
            run.ctx.report.throttle_bytes(bytes);
            if method.reflink == Mechanism::Used {
                worker.scratch.tally.summary.reflinked_bytes += bytes;
            }
            run.ctx.emit_copied(entry, Some(method));
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
    copy.run.ctx.emit_copied(copy.entry, None);
}

#[inline]
pub(super) fn count(counted: Counted, bytes: u64, worker: &mut Walker<'_, '_, CopyRun<'_>>) {
    worker.scratch.tally.count(counted);
    worker.scratch.tally.summary.bytes += bytes;
    worker.scratch.had_content = bytes > 0;
    worker.count(1 + bytes.min(PIECE_BYTES as u64) / BYTES_PER_WORK);
}
