//! Large files that several engines copy together.
//!
//! ```text
//!   the engine that meets the file              any engine
//!   ------------------------------              ----------
//!   creates the dest under a hidden name
//!   queues a task for each range
//!   its workers copy ranges           <------>  a thief gets ranges, opens both files, and copies them;
//!                                               it may give them to other thieves
//!   the last range is copied or has come back:
//!   sets size, attributes and times, gives the dest its name
//! ```
//!
//! Each range holds an `Arc` of the file, also while another engine has it. So the worker that gets the file out of the
//! last `Arc` completes it. A thief reports no failure: its range comes back, and fails here if it fails again.

use std::ffi::CStr;
use std::ops::{ControlFlow, Range};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::fs::{FileType, SeekFrom};

use super::CopyRun;
use super::part::{DividedFile, FilePart};
use super::postponed::with_entry;
use super::tasks::CopyTask;
use crate::copy::attributes::AttributeError;
use crate::copy::content::{
    ContentCopy, ContentError, Moved, RangeCopy, Sink, Source, Ways, extend,
};
use crate::copy::context::{Context, Failure};
use crate::copy::dest::hidden::{self, Hidden};
use crate::copy::dest::open::OpenDest;
use crate::copy::facts::{Entry, FileId, Symlinks};
use crate::copy::make::file::{self, Filled};
use crate::copy::naming::Naming;
use crate::copy::node::CopyNode;
use crate::copy::options::{Reflink, Sparse};
use crate::copy::room;
use crate::copy::scratch::CopyWorker;
use crate::copy::source::OpenSource;
use crate::copy::stored::StoredEntry;
use crate::distribute::{FileRange, Finished, Given};
use crate::error::Operation;
use crate::observer::{CopyMethod, HoleDetection, Mechanism};
use crate::sched::When;
use crate::sys::{self, At, Blocking, Stat, Storage};
use crate::walk::{self, OpenDirs, Task, Walker};

/// Size from which a file is divided, unless the options name another one.
pub(super) const DIVIDE_FROM: u64 = 1 << 30;
/// The number of ranges of the smallest file that is divided. Ranges of larger files are as long.
///
/// So they have 64 MiB. To open the files of a range takes a thief some requests, and to copy it some hundred.
const RANGES: u64 = 16;
/// The most ranges of a file. Those of larger files are longer, because each takes memory while it is queued.
const MOST_RANGES: u64 = 1 << 12;
/// Ranges begin at multiples of this, which is at least a block of any filesystem.
const ALIGNMENT: u64 = 64 << 10;

/// Queues the ranges of a file, if several engines may copy it faster. Otherwise copies it.
#[cold]
pub(super) fn divide<'a>(
    run: &CopyRun<'a>,
    entry: &Entry<'_>,
    source: OpenSource,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) -> Result<Option<FileId>, Failure> {
    let ctx = &run.ctx;
    if !ctx.descriptors.lend(DividedFile::DESCRIPTORS) {
        return run.copy_from_start(entry, &source, Naming::WhenComplete, worker);
    }
    let hidden = hidden::try_create(ctx, entry, &source.stat);
    let checked = hidden.and_then(|hidden| check(run, entry, &source, hidden));
    let Some((hidden, dest_stat)) = checked else {
        ctx.descriptors.take_back(DividedFile::DESCRIPTORS);
        return run.copy_from_start(entry, &source, Naming::WhenComplete, worker);
    };
    let bytes = room::bytes_on_disk(&source.stat);
    run.room.hold(bytes);
    run.crowd.begin_divided();
    let size = source.stat.st_size as u64;
    let file = Arc::new(DividedFile {
        entry: StoredEntry::of(entry),
        labelled: file::label(ctx, &hidden.dest),
        keeps_holes: keeps_holes(run, &source.stat),
        source: source.into(),
        dest: hidden.dest.fd.into(),
        hidden_name: hidden.name,
        dest_inode: dest_stat.st_ino,
        bytes,
        failure: OnceLock::new(),
        is_short: AtomicBool::new(false),
    });
    // The worker begins with the first range. Thieves get the last ones.
    for content in ranges(size, divide_from(run)).rev() {
        let part = FilePart {
            file: Arc::clone(&file),
            content,
            stays: false,
        };
        worker.push(Task::Own(CopyTask::Part(part)), When::Next);
    }
    Ok(None)
}

/// Returns the ranges of a file. The last one has no end, because the source may grow.
fn ranges(size: u64, divide_from: u64) -> impl DoubleEndedIterator<Item = Range<u64>> {
    let length = (divide_from / RANGES).max(size / MOST_RANGES);
    let length = length.max(1).next_multiple_of(ALIGNMENT);
    let count = size.div_ceil(length).max(1);
    (0..count).map(move |number| {
        let start = number * length;
        let is_last = number + 1 == count;
        start..if is_last { u64::MAX } else { start + length }
    })
}

/// Returns the size from which files are divided.
fn divide_from(run: &CopyRun<'_>) -> u64 {
    let asked = run.ctx.policy.options.divide_from;
    asked.map_or(DIVIDE_FROM, |bytes| bytes.get() as u64)
}

/// Returns `true` if the rules and the options permit to divide a large file.
#[cold]
pub(super) fn may_divide(run: &CopyRun<'_>, entry: &Entry<'_>, source: &OpenSource) -> bool {
    let (ctx, options) = (&run.ctx, run.ctx.policy.options);
    let stat = &source.stat;
    run.stealing.is_some()
        && stat.st_size as u64 >= divide_from(run)
        && sys::file_type(stat) == FileType::RegularFile
        // A thief reaches files from the directory that they are in.
        && !entry.is_operand()
        && ctx.plan.is_none()
        && !options.attributes_only
        && !options.rules.ask
        && options.reflink != Reflink::Always
        // Zeros in several ranges would have to be found together.
        && options.sparse != Sparse::Always
        // Other names of the source wait until the copy is complete, so it is made at once.
        && !ctx.policy.has_other_names(entry, stat)
        && (options.divide_from.is_some() || source.storage != Storage::Native)
}

/// Returns the new dest and its stat, if it is possible and worth it to divide the file. Otherwise removes the dest.
fn check(
    run: &CopyRun<'_>,
    entry: &Entry<'_>,
    source: &OpenSource,
    hidden: Hidden,
) -> Option<(Hidden, Stat)> {
    let stat = sys::stat_open(&hidden.dest.fd).ok();
    let is_possible = |_: &Stat| {
        is_worth_it(run, source, &hidden.dest) && may_be_written_in_any_order(source, &hidden.dest)
    };
    match stat.filter(is_possible) {
        Some(stat) => Some((hidden, stat)),
        None => {
            hidden::remove(entry, &hidden.name, hidden.dest.fd.as_fd());
            None
        }
    }
}

/// Returns `true` if neither the filesystem nor its server copies the file by itself.
fn is_worth_it(run: &CopyRun<'_>, source: &OpenSource, dest: &OpenDest<'_>) -> bool {
    let options = run.ctx.policy.options;
    let (from, to) = (source.fd(), dest.fd.as_fd());
    let may_clone = options.reflink == Reflink::Auto && options.sparse == Sparse::Auto;
    if may_clone && sys::clone_file(from, to).is_ok() {
        return false;
    }
    if options.divide_from.is_some() {
        return true;
    }
    let content = Source::new(from, &source.stat, source.storage);
    let sink = Sink {
        fd: to,
        is_file: dest.is_file,
    };
    let (mut buffer, mut progress) = (Vec::new(), |_| ControlFlow::Continue(()));
    let ways = Ways::new(options);
    let copy = ContentCopy::new(content, sink, ways, &mut buffer, &mut progress);
    copy.may_be_faster_divided(Storage::of(to))
}

/// Returns `true` if content may be written behind the end of the dest, which some servers refuse. Writes the last byte
/// to find out.
fn may_be_written_in_any_order(source: &OpenSource, dest: &OpenDest) -> bool {
    let last = (source.stat.st_size as u64).saturating_sub(1);
    let dest = dest.fd.as_fd();
    Storage::of(dest) == Storage::Native || sys::write_all_at(dest, &[0], last).is_ok()
}

/// Returns `true` if the source has holes that the dest gets, too.
fn keeps_holes(run: &CopyRun<'_>, source: &Stat) -> bool {
    Source::has_holes(source) && run.ctx.policy.options.sparse != Sparse::Never
}

/// Copies a range of a file that this engine has divided.
pub(super) fn copy_part<'a>(
    run: &CopyRun<'a>,
    part: FilePart,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    let FilePart { file, content, .. } = part;
    if file.failure.get().is_none() {
        let copied = match run.ctx.report.must_stop() {
            true => Err(ContentError::Cancelled),
            false => copy_range(run, &file, content.clone(), worker),
        };
        match copied {
            Ok(end) => note_end(&file, &content, end),
            // Only the first failure is reported.
            Err(error) => drop(file.failure.set(error)),
        }
    }
    finish_part(run, file, worker);
}

fn copy_range<'a>(
    run: &CopyRun<'a>,
    file: &DividedFile,
    content: Range<u64>,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) -> Result<u64, ContentError> {
    let source = file.source.fd().map_err(ContentError::Read)?;
    let dest = file.dest.borrow().map_err(ContentError::Write)?;
    let mut copy = RangeCopy {
        source: source.as_fd(),
        dest: dest.as_fd(),
        keeps_holes: file.keeps_holes,
        progress: &mut |bytes| worker.copied_piece(&run.ctx.report, bytes),
    };
    copy.run(content)
}

/// Notes the position at which the content of a range has ended.
fn note_end(file: &DividedFile, content: &Range<u64>, end: u64) {
    if end < content.end.min(file.source.stat.st_size as u64) {
        // Relaxed: the `Arc` publishes it to the worker that completes the file.
        file.is_short.store(true, Ordering::Relaxed);
    }
}

/// Goes on with a range that comes back from another engine.
pub(super) fn take_back<'a>(
    run: &CopyRun<'a>,
    part: FilePart,
    given: Given,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    match given {
        Given::Finished(Finished { kept: false, .. }) => finish_part(run, part.file, worker),
        Given::Finished(_) | Given::NotReached => {
            let part = FilePart {
                stays: true,
                ..part
            };
            worker.push(Task::Own(CopyTask::Part(part)), When::Next);
        }
    }
}

/// Completes the file if no other range of it is left.
fn finish_part<'a>(
    run: &CopyRun<'a>,
    file: Arc<DividedFile>,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) {
    if let Some(file) = Arc::into_inner(file) {
        finish(run, file, worker);
    }
}

fn finish<'a>(run: &CopyRun<'a>, file: DividedFile, worker: &mut Walker<'_, '_, CopyRun<'a>>) {
    let DividedFile {
        entry,
        source,
        dest,
        hidden_name: name,
        labelled,
        keeps_holes,
        bytes,
        failure,
        is_short,
        ..
    } = file;
    let ctx = &run.ctx;
    with_entry(run, entry, worker, |entry, worker| {
        let source = source.take(ctx, entry)?;
        let dest = ctx.descriptors.take(dest);
        let dest = dest.map_err(|errno| ctx.making_failure(entry, Operation::CreateFile, errno))?;
        let dest = OpenDest::new_file(dest, Naming::AtOnce);
        let hidden = Hidden { dest, name };
        let settled = match failure.into_inner() {
            None if ctx.report.must_stop() => Err(ContentError::Cancelled),
            None => settle_size(&source, &hidden.dest, is_short.into_inner()),
            Some(error) => Err(error),
        };
        let filled = match settled {
            Ok(()) => complete(ctx, entry, &source, hidden, labelled, keeps_holes),
            Err(error) => give_up(ctx, entry, &source, &hidden, error),
        };
        let written = None;
        run.note_filled(entry, &source, filled, written, worker)
            .map(drop)
    });
    ctx.descriptors.take_back(DividedFile::DESCRIPTORS);
    run.room.release(bytes);
    for file in run.crowd.end_divided() {
        worker.push(Task::Own(CopyTask::Large(file)), When::Next);
    }
}

/// Removes the dest of a cancelled copy. Leaves the content that was moved before an error at the dest, as cp does.
fn give_up(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &OpenSource,
    Hidden { dest, name }: &Hidden,
    error: ContentError,
) -> Result<Filled, Failure> {
    let given_up = file::content_not_moved(ctx, entry, dest, &source.stat, error);
    if error == ContentError::Cancelled {
        hidden::remove(entry, name, dest.fd.as_fd());
        ctx.report.discarded();
    } else {
        // If one of these fails, the error to report is still that of moving the content.
        let _ = hidden::restrict(ctx, dest.fd.as_fd(), &source.stat);
        let _ = hidden::show(entry, name, dest.fd.as_fd());
    }
    given_up
}

/// Extends the dest if the source ends with a hole. Truncates it if the source has become shorter.
fn settle_size(
    source: &OpenSource,
    dest: &OpenDest<'_>,
    is_short: bool,
) -> Result<(), ContentError> {
    let end = sys::seek(source.fd(), SeekFrom::End(0)).map_err(ContentError::Read)?;
    let written = sys::stat_open(&dest.fd)
        .map_err(ContentError::Write)?
        .st_size as u64;
    let least = end.min(source.stat.st_size as u64);
    let right = match is_short {
        true => written.min(end),
        false => written.max(least),
    };
    let dest = dest.fd.as_fd();
    let settled = match right {
        _ if right > written => extend(dest, right),
        _ if right < written => sys::set_size(dest, right),
        _ => Ok(()),
    };
    settled.map_err(ContentError::Write)
}

fn complete(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &OpenSource,
    hidden: Hidden,
    labelled: Result<(), AttributeError>,
    keeps_holes: bool,
) -> Result<Filled, Failure> {
    let Hidden { dest, name } = hidden;
    let restricted = hidden::restrict(ctx, dest.fd.as_fd(), &source.stat);
    let restricted = restricted.map_err(|errno| AttributeError {
        operation: Operation::KeepMode,
        errno,
    });
    let moved = Moved {
        // All bytes were counted when they were moved.
        bytes: 0,
        method: CopyMethod {
            offload: Mechanism::Avoided,
            holes: match keeps_holes {
                true => HoleDetection::Seek,
                false => HoleDetection::default(),
            },
            ..CopyMethod::default()
        },
    };
    // Before it has its name, the dest can only fail to be written to the disk.
    let second = ctx.durability.as_ref();
    let second = second.and_then(|_| sys::duplicate(dest.fd.as_fd()).ok());
    let show = |dest: &OpenDest| hidden::show(entry, &name, dest.fd.as_fd());
    let labelled = labelled.and(restricted);
    let completed = file::complete(ctx, entry, source, dest, moved, labelled, show);
    if let (Err(_), Some(dest)) = (&completed, second) {
        // It was marked as incomplete.
        let _ = hidden::show(entry, &name, dest.as_fd());
    }
    completed
}

/// Copies a range of a file that another engine has divided. Returns `None` if that is not possible here.
///
/// Neither name is followed if it is a link, unless the options say so, and both must lead to the files that the other
/// engine has open.
pub(super) fn copy_for_another_engine<'a>(
    run: &CopyRun<'a>,
    parent: &CopyNode,
    name: &CStr,
    range: &FileRange,
    worker: &mut Walker<'_, '_, CopyRun<'a>>,
) -> Option<()> {
    let ctx = &run.ctx;
    let dirs = walk::open_dirs(run, parent).ok()?;
    let symlinks = ctx.policy.symlinks_of_entries;
    let source = ctx
        .descriptors
        .making_room(|| sys::open_source(dirs.source(), name, symlinks, Blocking::OnlyForLease));
    let source = source.ok()?;
    let at = At {
        dir: dirs.dest(),
        name: &range.dest_name,
        symlinks: Symlinks::NoFollow,
    };
    let dest = ctx
        .descriptors
        .making_room(|| sys::open_existing(at, Blocking::OnlyForLease));
    let dest = dest.ok()?;
    let is_file =
        |stat: &Stat, inode| sys::file_type(stat) == FileType::RegularFile && stat.st_ino == inode;
    let source_stat = sys::stat_open(&source).ok()?;
    let dest_stat = sys::stat_open(&dest).ok()?;
    let directory = sys::stat(dirs.dest(), c".", Symlinks::NoFollow).ok()?;
    let is_expected = is_file(&source_stat, range.source_inode)
        && is_file(&dest_stat, range.dest_inode)
        && dest_stat.st_dev == directory.st_dev;
    if !is_expected {
        return None;
    }
    let mut copy = RangeCopy {
        source: source.as_fd(),
        dest: dest.as_fd(),
        keeps_holes: keeps_holes(run, &source_stat),
        progress: &mut |bytes| worker.copied_piece(&ctx.report, bytes),
    };
    let end = copy.run(range.content.clone()).ok()?;
    // The other engine finds out whether the source has become shorter.
    let is_short = end < range.content.end.min(source_stat.st_size as u64);
    if is_short {
        return None;
    }
    if let Some(durability) = &ctx.durability {
        durability.file_complete(dest.as_fd()).ok()?;
    }
    sys::close_checked(dest).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_a_file_without_gaps() {
        for (size, from, count, length) in [
            (DIVIDE_FROM, DIVIDE_FROM, 16, 64 << 20),
            (DIVIDE_FROM + 1, DIVIDE_FROM, 17, 64 << 20),
            (1 << 40, DIVIDE_FROM, 1 << 12, 1 << 28),
            (1, 1, 1, ALIGNMENT),
            (1 << 20, 1, 16, ALIGNMENT),
        ] {
            let all: Vec<_> = ranges(size, from).collect();
            assert_eq!(all.len(), count, "{size} bytes");
            assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert_eq!((all[0].start, all[count - 1].end), (0, u64::MAX));
            assert!(count == 1 || all[0].end == length);
            assert!(all[count - 1].start < size);
        }
    }
}
