//! A large file that several engines copy together.
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
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::fs::{FileType, SeekFrom};
use rustix::io::Errno;

use super::DIVIDE_FROM;
use super::naming::{self, Naming};
use crate::copy::attributes::AttributeError;
use crate::copy::content::{
    ContentCopy, ContentError, Moved, RangeCopy, Sink, Source, Ways, extend,
};
use crate::copy::context::{Context, Failure};
use crate::copy::decide::mode::OWNER_FILE;
use crate::copy::dest::open::OpenDest;
use crate::copy::facts::{CopyDir, CopyNode, Entry, StoredEntry, Symlinks};
use crate::copy::make::file::{self, Filled, Filling};
use crate::copy::options::{Reflink, Sparse};
use crate::copy::scratch::CopyWorker;
use crate::copy::source::{OpenSource, SharedSource};
use crate::distribute::FileRange;
use crate::error::Operation;
use crate::node::Side;
use crate::observer::{CopyMethod, Mechanism};
use crate::sys::{self, At, Blocking, Inode, SharedFd, Stat, Storage};
use crate::walk::OwnRange;

/// The number of ranges of the smallest file that is divided. Ranges of larger files are as long.
///
/// So they have 64 MiB. To open the files of a range takes a thief some requests, and to copy it some hundred.
const RANGES: u64 = 16;
/// The most ranges of a file. Those of larger files are longer, because each takes memory while it is queued.
const MOST_RANGES: u64 = 1 << 12;
/// Ranges begin at multiples of this, which is at least a block of any filesystem.
const ALIGNMENT: u64 = 64 << 10;

/// Descriptors that are open while ranges are queued.
const DESCRIPTORS: usize = 2;

/// A file whose ranges are copied.
pub(in crate::copy) struct DividedFile {
    pub(in crate::copy) entry: StoredEntry,
    pub(in crate::copy) source: SharedSource,
    pub(in crate::copy) dest: DividedDest,
}

/// The dest of such a file.
pub(in crate::copy) struct DividedDest {
    fd: SharedFd,
    /// The name of the dest until it is complete.
    hidden_name: Box<CStr>,
    inode: u64,
    /// Says whether the dest has got its SELinux context.
    labelled: Result<(), AttributeError>,
    /// The first reason why a range was not copied.
    failure: OnceLock<ContentError>,
    /// The source has ended before its size.
    is_short: AtomicBool,
}

/// A range of a file that several engines may copy together.
pub(in crate::copy) struct FilePart {
    file: Arc<DividedFile>,
    content: Range<u64>,
    /// `true` if another engine was not able to copy the range.
    stays: bool,
}

/// Returns `true` if the options permit to divide a large file that may be copied at any time.
pub(in crate::copy) fn may_divide(ctx: &Context<'_>, source: &OpenSource) -> bool {
    let options = ctx.policy.options;
    source.stat.st_size as u64 >= divide_from(ctx)
        // Zeros in several ranges would have to be found together.
        && options.sparse != Sparse::Always
        && (options.divide_from.is_some() || source.storage != Storage::Native)
}

/// Returns the size from which files are divided.
fn divide_from(ctx: &Context<'_>) -> u64 {
    let asked = ctx.policy.options.divide_from;
    asked.map_or(DIVIDE_FROM, |bytes| bytes.get() as u64)
}

/// Creates the dest of a file that several engines may copy faster than one. Returns `None` if that is not possible or
/// not worth it. Some content of the source may have been read then.
pub(in crate::copy) fn try_create(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &OpenSource,
) -> Option<DividedDest> {
    if !ctx.descriptors.lend(DESCRIPTORS) {
        return None;
    }
    let dest = try_create_lent(ctx, entry, source);
    if dest.is_none() {
        ctx.descriptors.take_back(DESCRIPTORS);
    }
    dest
}

/// Does the same as [`try_create`], after descriptors were lent.
fn try_create_lent(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &OpenSource,
) -> Option<DividedDest> {
    // Other engines open it.
    let mode = ctx.policy.creation_mode(source.stat.st_mode) | OWNER_FILE;
    let (fd, hidden_name) = naming::try_create_hidden(ctx, entry, mode)?;
    let stat = sys::stat_open(&fd).ok();
    let stat = stat.filter(|_| {
        is_worth_it(ctx, source, fd.as_fd()) && may_be_written_in_any_order(source, fd.as_fd())
    });
    let Some(stat) = stat else {
        naming::remove_hidden(entry, &hidden_name, fd.as_fd());
        return None;
    };
    let dest = OpenDest::new_file(fd, Naming::AtOnce);
    Some(DividedDest {
        labelled: file::label(ctx, &dest),
        fd: dest.fd.into(),
        hidden_name,
        inode: stat.st_ino,
        failure: OnceLock::new(),
        is_short: AtomicBool::new(false),
    })
}

/// Returns `true` if neither the filesystem nor its server copies the file by itself.
fn is_worth_it(ctx: &Context<'_>, source: &OpenSource, dest: BorrowedFd<'_>) -> bool {
    let options = ctx.policy.options;
    let may_clone = options.reflink == Reflink::Auto && options.sparse == Sparse::Auto;
    if may_clone && sys::clone_file(source.fd(), dest).is_ok() {
        return false;
    }
    if options.divide_from.is_some() {
        return true;
    }
    let content = Source::new(source.fd(), &source.stat, source.storage);
    let sink = Sink {
        fd: dest,
        is_file: true,
    };
    let (mut buffer, mut progress) = (Vec::new(), |_| ControlFlow::Continue(()));
    let ways = Ways::new(options);
    let copy = ContentCopy::new(content, sink, ways, &mut buffer, &mut progress);
    copy.may_be_faster_divided(Storage::of(dest))
}

/// Returns `true` if content may be written behind the end of the dest, which some servers refuse. Writes the last byte
/// to find out.
fn may_be_written_in_any_order(source: &OpenSource, dest: BorrowedFd<'_>) -> bool {
    let last = (source.stat.st_size as u64).saturating_sub(1);
    Storage::of(dest) == Storage::Native || sys::write_all_at(dest, &[0], last).is_ok()
}

/// Divides a file into parts, each of which must be copied. Returns them in the order in which a worker queues them: it
/// begins with the first range, and thieves get the last ones.
pub(in crate::copy) fn parts(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: OpenSource,
    dest: DividedDest,
) -> Vec<FilePart> {
    let ranges = ranges(source.stat.st_size as u64, divide_from(ctx));
    let file = Arc::new(DividedFile {
        entry: StoredEntry::of(entry),
        source: source.into(),
        dest,
    });
    let part = |content| FilePart {
        file: Arc::clone(&file),
        content,
        stays: false,
    };
    ranges.rev().map(part).collect()
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

impl FilePart {
    /// Returns the range, if another engine may copy it.
    pub(in crate::copy) fn for_another_engine(&self) -> Option<OwnRange<'_, CopyDir>> {
        let DividedFile {
            entry,
            source,
            dest,
        } = &*self.file;
        let parent = entry.node.as_ref().filter(|_| !self.stays)?;
        Some(OwnRange {
            parent,
            name: &entry.name,
            source_inode: source.stat.st_ino,
            dest_name: &dest.hidden_name,
            dest_inode: dest.inode,
            content: self.content.clone(),
        })
    }

    /// Returns the part for this engine, because another one was not able to copy it.
    pub(in crate::copy) fn kept_here(self) -> Self {
        Self {
            stays: true,
            ..self
        }
    }

    /// Copies the range. Returns the file if no other part of it is left.
    pub(in crate::copy) fn copy(
        self,
        ctx: &Context<'_>,
        worker: &mut impl CopyWorker,
    ) -> Option<DividedFile> {
        let dest = &self.file.dest;
        // Only the first failure is reported.
        if dest.failure.get().is_none()
            && let Err(error) = self.copy_range(ctx, worker)
        {
            let _ = dest.failure.set(error);
        }
        self.done()
    }

    fn copy_range(
        &self,
        ctx: &Context<'_>,
        worker: &mut impl CopyWorker,
    ) -> Result<(), ContentError> {
        if ctx.report.must_stop() {
            return Err(ContentError::Cancelled);
        }
        let DividedFile { source, dest, .. } = &*self.file;
        let from = source.fd().map_err(ContentError::Read)?;
        let to = dest.fd.borrow().map_err(ContentError::Write)?;
        let (files, range) = ([from.as_fd(), to.as_fd()], self.content.clone());
        if copy_range(ctx, files, &source.stat, range, worker)? {
            // Relaxed: the `Arc` publishes it to the worker that completes the file.
            dest.is_short.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Notes that the range was copied. Returns the file if no other part of it is left.
    pub(in crate::copy) fn done(self) -> Option<DividedFile> {
        Arc::into_inner(self.file)
    }
}

/// Copies a range between the source and the dest, in this order. Returns `true` if the source has ended before its size.
fn copy_range(
    ctx: &Context<'_>,
    [source, dest]: [BorrowedFd<'_>; 2],
    stat: &Stat,
    range: Range<u64>,
    worker: &mut impl CopyWorker,
) -> Result<bool, ContentError> {
    let mut copy = RangeCopy {
        source,
        dest,
        keeps_holes: keeps_holes(ctx, stat),
        progress: &mut |bytes| worker.copied_piece(&ctx.report, bytes),
    };
    let end = copy.run(range.clone())?;
    Ok(end < range.end.min(stat.st_size as u64))
}

/// Returns `true` if the source has holes that the dest gets, too.
fn keeps_holes(ctx: &Context<'_>, source: &Stat) -> bool {
    Source::has_holes(source) && ctx.policy.options.sparse != Sparse::Never
}

/// Copies a range of a file that another engine has divided. Fails if that is not possible here.
///
/// Neither name is followed if it is a link, unless the options say so, and both must lead to the files that the other
/// engine has open.
pub(in crate::copy) fn copy_for_another_engine(
    ctx: &Context<'_>,
    parent: &CopyNode,
    name: &CStr,
    range: &FileRange,
    worker: &mut impl CopyWorker,
) -> Result<(), Errno> {
    let descriptors = &ctx.descriptors;
    let source_dir = descriptors.pin(parent, Side::Source, ctx)?;
    let dest_dir = descriptors.pin(parent, Side::Dest, ctx)?;
    let symlinks = ctx.policy.symlinks_of_entries;
    let source = descriptors.making_room(|| {
        sys::open_source(source_dir.as_fd(), name, symlinks, Blocking::OnlyForLease)
    })?;
    let at = At {
        dir: dest_dir.as_fd(),
        name: &range.dest_name,
        symlinks: Symlinks::NoFollow,
    };
    let dest = descriptors.making_room(|| sys::open_existing(at, Blocking::OnlyForLease))?;
    let is_file =
        |stat: &Stat, inode| sys::file_type(stat) == FileType::RegularFile && stat.st_ino == inode;
    let source_stat = sys::stat_open(&source)?;
    let dest_stat = sys::stat_open(&dest)?;
    let directory = sys::stat(dest_dir.as_fd(), c".", Symlinks::NoFollow)?;
    let is_expected = is_file(&source_stat, range.source_inode)
        && is_file(&dest_stat, range.dest_inode)
        && dest_stat.st_dev == directory.st_dev;
    if !is_expected {
        return Err(Errno::STALE);
    }
    let (files, content) = ([source.as_fd(), dest.as_fd()], range.content.clone());
    match copy_range(ctx, files, &source_stat, content, worker) {
        Ok(false) => {}
        // The other engine finds out whether the source has become shorter, or why the copy fails.
        Ok(true) | Err(_) => return Err(Errno::IO),
    }
    if let Some(durability) = &ctx.durability {
        durability.file_complete(dest.as_fd())?;
    }
    sys::close_checked(dest)
}

/// Takes back the descriptors of a file that was copied.
pub(in crate::copy) fn take_back(ctx: &Context<'_>) {
    ctx.descriptors.take_back(DESCRIPTORS);
}

impl DividedDest {
    /// Completes the dest after all parts were copied. Removes it if the copy was cancelled. After an error, leaves the
    /// content that was moved before, as cp does.
    pub(in crate::copy) fn finish(
        self,
        ctx: &Context<'_>,
        entry: &Entry<'_>,
        source: &OpenSource,
    ) -> Result<Filled, Failure> {
        let fd = ctx.descriptors.take(self.fd);
        let fd = fd.map_err(|errno| ctx.making_failure(entry, Operation::CreateFile, errno))?;
        let dest = OpenDest::hidden(fd, self.hidden_name);
        let settled = match self.failure.into_inner() {
            None if ctx.report.must_stop() => Err(ContentError::Cancelled),
            None => settle_size(source, dest.fd.as_fd(), self.is_short.into_inner()),
            Some(error) => Err(error),
        };
        let restricted = restrict(ctx, dest.fd.as_fd(), &source.stat);
        let filling = Filling {
            ctx,
            entry,
            source,
            dest,
        };
        if let Err(error) = settled {
            return filling.abandon(error);
        }
        let moved = Moved {
            // All bytes were counted when they were moved.
            bytes: 0,
            method: CopyMethod {
                offload: Mechanism::Avoided,
                seeks_holes: keeps_holes(ctx, &source.stat),
                ..CopyMethod::default()
            },
        };
        let labelled = self.labelled.and(restricted);
        filling.finish(moved, labelled)
    }
}

/// Takes back the permissions that only other engines needed.
fn restrict(ctx: &Context<'_>, dest: BorrowedFd<'_>, source: &Stat) -> Result<(), AttributeError> {
    let extra = OWNER_FILE & !ctx.policy.creation_mode(source.st_mode);
    if extra == 0 {
        return Ok(());
    }
    let stat = sys::stat_open(dest);
    let set = stat.and_then(|stat| Inode::Opened(dest).set_mode(stat.st_mode & 0o7777 & !extra));
    set.map_err(|errno| AttributeError {
        operation: Operation::KeepMode,
        errno,
    })
}

/// Extends the dest if the source ends with a hole. Truncates it if the source has become shorter.
fn settle_size(
    source: &OpenSource,
    dest: BorrowedFd<'_>,
    is_short: bool,
) -> Result<(), ContentError> {
    let end = sys::seek(source.fd(), SeekFrom::End(0)).map_err(ContentError::Read)?;
    let stat = sys::stat_open(dest).map_err(ContentError::Write)?;
    let written = stat.st_size as u64;
    let right = match is_short {
        true => written.min(end),
        false => written.max(end.min(source.stat.st_size as u64)),
    };
    let settled = match right {
        _ if right > written => extend(dest, right),
        _ if right < written => sys::set_size(dest, right),
        _ => Ok(()),
    };
    settled.map_err(ContentError::Write)
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
