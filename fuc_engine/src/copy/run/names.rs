//! Copies a source with several names once, and links the dests of its other names to that copy.

use super::tasks::CopyTask;
use super::{CopyRun, EntryCopy, making, sharing};
use crate::copy::context::Failure;
use crate::copy::facts::{FileId, StoredEntry};
use crate::copy::make::hardlink::{self, Claim, FirstCopy};
use crate::error::{Error, Operation, Refusal};
use crate::node::Side;
use crate::report::Counted;
use crate::sched::When;
use crate::sys::Stat;
use crate::walk::{Task, Walker};

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
    if let Some(home) = sharing::other_home(run, entry, source) {
        return sharing::entrust(run, entry, home, worker);
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
            let path = run.ctx.path(entry, Side::Source);
            let warning = Error::refused(Refusal::SharedInodeNumber, path);
            run.ctx.warn(entry.operand, warning);
            make(worker).map(drop)
        }
        Claim::LinkTo(first) => {
            hardlink::link(&run.ctx, entry, &first, &mut worker.scratch.own)?;
            making::copied(copy, Counted::HardLink, worker);
            Ok(())
        }
    }
}

/// Lets other names of the source link to the dest, which is as new as the source.
pub(super) fn adopt<'a>(
    copy: EntryCopy<'_, 'a>,
    source: &Stat,
    dest: &Stat,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    let EntryCopy { run, entry } = copy;
    if run.ctx.policy.has_other_names(entry, source)
        && run.links.adopt(source, other_names(run, source))
    {
        let first = find_copy(copy, Some(FileId::of(dest)));
        queue_waiters(run.links.complete(FileId::of(source), first), worker);
    }
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
