//! A large file of which several workers copy parts, also those of other engines.
//!
//! ```text
//!   worker that meets the file             another worker                  another engine
//!   --------------------------             --------------                  --------------
//!   creates the dest, copies from the start
//!   is asked: halves the rest -----------> copies the far half
//!   copies the near half                   is asked: halves the rest ----> opens both files, copies the far half,
//!   is asked: halves the rest -----> ..    copies the near half            and halves it if it is asked
//!
//!   the last part is copied or has come back:
//!   sets size, attributes and times, gives the dest its name
//! ```
//!
//! Each part holds an `Arc` of the file, also while another engine has it. So the worker that gets the file out of the
//! last `Arc` completes it. Another engine reports no failure: its part comes back, and fails here if it fails again.

use std::ffi::CStr;
use std::ops::{ControlFlow, Range};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::{SharedSource, may_be_divided, middle, open_directory};
use crate::copy::attributes::AttributeError;
use crate::copy::content::{
    ContentError, Moved, Next, OpenSource, Piece, RangeCopy, extend, takes_any_order,
};
use crate::copy::context::{Context, Failure};
use crate::copy::decide::mode::OWNER_FILE;
use crate::copy::dest::{Naming, OpenDest};
use crate::copy::entry::{Entry, StoredEntry};
use crate::copy::facts::{CopyDir, CopyNode, Mark, Symlinks};
use crate::copy::make::CopyWorker;
use crate::copy::make::file::{Filled, Filling};
use crate::distribute::{FileRange, Finished, Given};
use crate::error::Operation;
use crate::node::{Node, Side};
use crate::paths;
use crate::sys::{self, At, Blocking, Fd, Inode, SharedFd, Stat};
use crate::walk::OwnRange;

/// A file of which parts are copied.
pub(crate) struct DividedFile {
    pub(crate) entry: StoredEntry,
    pub(crate) source: SharedSource,
    pub(crate) dest: DividedDest,
}

/// The dest of such a file.
pub(crate) struct DividedDest {
    fd: SharedFd,
    /// The directory of the file. If that is an operand, the node stands for it only in what other engines get.
    parent: CopyNode,
    /// The name by which other engines reach the dest until it is complete.
    hidden_name: Box<CStr>,
    inode: u64,
    /// The method, and the bytes that were moved before the file was divided and not counted.
    moved: Moved,
    /// Says whether the dest has got its SELinux context.
    labelled: Result<(), AttributeError>,
    /// The first reason why a part was not copied.
    failure: OnceLock<ContentError>,
    /// The source has ended before its size.
    is_short: AtomicBool,
}

/// Fills a dest that has a hidden name. Breaks with the dest, to which descriptors are lent, and with the position of the
/// rest if other engines want a part of that.
#[cold]
pub(crate) fn fill<W: CopyWorker>(
    filling: Filling<'_>,
    worker: &mut W,
) -> ControlFlow<(DividedDest, u64), Result<Filled, Failure>> {
    let mut rest = None;
    let moved = filling.move_content(worker, |worker, piece| {
        let from = piece.rest.filter(|_| worker.is_asked());
        let next = worker.copied_piece(piece.bytes);
        if next == Next::Cancel {
            return next;
        }
        rest = from.and_then(|from| Some((try_divide(&filling, from)?, from)));
        match rest {
            Some(_) => Next::Share,
            None => Next::Piece,
        }
    });
    ControlFlow::Continue(match (moved, rest) {
        (Ok(moved), None) => filling.finish(moved),
        (Ok(moved), Some((parent, from))) => {
            let dest = DividedDest::new(filling, moved, parent);
            return ControlFlow::Break((dest, from));
        }
        (Err(error), _) => filling.abandon(error),
    })
}

/// Lends descriptors to the content behind `from`, if other engines may have a part of it. Returns the directory of the
/// file.
#[cold]
fn try_divide(filling: &Filling<'_>, from: u64) -> Option<CopyNode> {
    let Filling {
        entry,
        source,
        dest,
        ..
    } = filling;
    let size = source.stat.st_size as u64;
    let may_divide = middle(from..size).is_some()
        && may_be_divided(entry, source)
        && takes_any_order(dest.fd.as_fd(), size);
    if !may_divide {
        return None;
    }
    let parent = parent_of(entry).ok()?;
    entry
        .ctx
        .descriptors
        .lend(FilePart::DESCRIPTORS)
        .then_some(parent)
}

/// Returns the directory of a file.
fn parent_of(entry: &Entry<'_>) -> Result<CopyNode, Errno> {
    if let Some(node) = entry.node {
        return Ok(Arc::clone(node));
    }
    let identity = |side| Ok(sys::stat_directory(open_directory(entry, side)?.as_fd())?.identity);
    let directories = CopyDir::new(identity(Side::Source)?, identity(Side::Dest)?);
    Ok(Node::new(
        entry.place(),
        Mark::borrowed(0),
        directories,
        None,
    ))
}

/// A part of a file. The last one has no end, because the source may grow.
pub(crate) struct FilePart {
    file: Arc<DividedFile>,
    content: Range<u64>,
    /// The result if another engine has had the part.
    given: Option<Given>,
}

impl FilePart {
    /// Descriptors that are open while parts of a file are queued.
    pub(crate) const DESCRIPTORS: usize = 2;

    /// Makes a part of the rest of a file.
    pub(crate) fn of_rest(
        entry: &Entry<'_>,
        source: OpenSource,
        dest: DividedDest,
        from: u64,
    ) -> Self {
        Self {
            file: Arc::new(DividedFile {
                entry: StoredEntry::of(entry),
                source: source.into(),
                dest,
            }),
            content: from..u64::MAX,
            given: None,
        }
    }

    /// Returns another part of the file. `given` is the result if another engine has had it.
    pub(crate) fn with_content(&self, content: Range<u64>, given: Option<Given>) -> Self {
        let file = Arc::clone(&self.file);
        Self {
            file,
            content,
            given,
        }
    }

    /// Returns the range, if another engine may copy it.
    pub(crate) fn for_another_engine(&self) -> Option<OwnRange<'_, CopyDir>> {
        let DividedFile {
            entry,
            source,
            dest,
        } = &*self.file;
        let parent = &dest.parent;
        if self.given.is_some() {
            return None;
        }
        Some(OwnRange {
            parent,
            file: FileRange {
                // That of an operand is the end of its path.
                source_name: (&*paths::name_of(entry.place.name.to_bytes())).into(),
                source_inode: source.stat.st_ino,
                dest_name: (&*paths::name_of(dest.hidden_name.to_bytes())).into(),
                dest_inode: dest.inode,
                is_operand: entry.place.parent.is_none(),
            },
            content: self.content.clone(),
        })
    }

    /// Copies the part, unless another engine has. Gives halves of it to other workers by `give`. Returns the file if no
    /// other part of it is left.
    pub(crate) fn copy<W: CopyWorker>(
        self,
        ctx: &Context<'_>,
        worker: &mut W,
        give: impl Fn(&mut W, Self),
    ) -> Option<DividedFile> {
        let dest = &self.file.dest;
        let is_copied = matches!(
            self.given,
            Some(Given::Finished(Finished { kept: false, .. }))
        );
        // Only the first failure is reported.
        if !is_copied && dest.failure.get().is_none() {
            let mut content = self.content.clone();
            let give_half = |worker: &mut W, half| give(worker, self.with_content(half, None));
            match self.copy_content(ctx, &mut content, worker, give_half) {
                // Relaxed: the `Arc` publishes it to the worker that completes the file.
                Ok(is_short) => _ = dest.is_short.fetch_or(is_short, Ordering::Relaxed),
                Err(error) => _ = dest.failure.set(error),
            }
        }
        Arc::into_inner(self.file)
    }

    fn copy_content<W: CopyWorker>(
        &self,
        ctx: &Context<'_>,
        content: &mut Range<u64>,
        worker: &mut W,
        give: impl Fn(&mut W, Range<u64>),
    ) -> Result<bool, ContentError> {
        if ctx.report.must_stop() {
            return Err(ContentError::Cancelled);
        }
        let DividedFile { source, dest, .. } = &*self.file;
        let from = source.fd().map_err(ContentError::Read)?;
        let to = dest.fd.borrow().map_err(ContentError::Write)?;
        let options = ctx.policy.options;
        let copy = RangeCopy::new(from.as_fd(), to.as_fd(), &source.stat, options);
        copy_and_halve(copy, &source.stat, content, worker, give)
    }
}

/// Copies a part. As long as others want work, gives them the far half of what is left of it by `give`, so that
/// `content` ends earlier. `source` is the stat of the source when it was opened. Returns `true` if the source has ended
/// before its size.
fn copy_and_halve<W: CopyWorker>(
    mut copy: RangeCopy<'_>,
    source: &Stat,
    content: &mut Range<u64>,
    worker: &mut W,
    give: impl Fn(&mut W, Range<u64>),
) -> Result<bool, ContentError> {
    let size = source.st_size as u64;
    let halve = |worker: &mut W, rest: Range<u64>| match middle(rest.start..rest.end.min(size)) {
        Some(middle) => {
            give(worker, middle..rest.end);
            middle
        }
        None => rest.end,
    };
    if worker.is_asked() {
        content.end = halve(worker, content.clone());
    }
    let ended = copy.run(content.clone(), &mut |piece: Piece| {
        let rest = piece.rest.filter(|_| worker.is_asked());
        if worker.copied_piece(piece.bytes) == Next::Cancel {
            return None;
        }
        if let Some(at) = rest {
            content.end = halve(worker, at..content.end);
        }
        Some(content.end)
    })?;
    Ok(ended < content.end.min(size))
}

/// Copies a part of a file that another engine has divided. Gives halves of it to other workers by `give`, so that
/// `content` ends earlier.
pub(crate) fn copy_for_another_engine<W: CopyWorker>(
    ctx: &Context<'_>,
    parent: &CopyNode,
    range: &FileRange,
    content: &mut Range<u64>,
    worker: &mut W,
    give: impl Fn(&mut W, Range<u64>),
) -> Given {
    let Ok((source, dest, stat)) = open_for_another_engine(ctx, parent, range) else {
        return Given::NotReached;
    };
    let copy = RangeCopy::new(source.as_fd(), dest.as_fd(), &stat, ctx.policy.options);
    let is_short = copy_and_halve(copy, &stat, content, worker, give);
    let synced = match &ctx.durability {
        Some(durability) => durability.file_complete(dest.as_fd()),
        None => Ok(()),
    };
    let closed = sys::close_checked(dest);
    match (is_short, synced.and(closed)) {
        (Ok(false), Ok(())) => Given::Finished(Finished::DONE),
        // The other engine finds out whether the source has become shorter, or why the copy fails.
        _ => Given::Finished(Finished::NOT_DONE),
    }
}

/// Opens the source and the dest of a file that another engine has divided.
///
/// Neither name is followed if it is a link, unless the options say so, and both must lead to the files that the other
/// engine has open.
fn open_for_another_engine(
    ctx: &Context<'_>,
    parent: &CopyNode,
    range: &FileRange,
) -> Result<(Fd, Fd, Stat), Errno> {
    let descriptors = &ctx.descriptors;
    let source_dir = descriptors.pin(parent, Side::Source, ctx)?;
    let dest_dir = descriptors.pin(parent, Side::Dest, ctx)?;
    let source = At {
        dir: source_dir.as_fd(),
        name: &range.source_name,
        symlinks: match range.is_operand {
            true => ctx.policy.symlinks_of_operands(),
            false => ctx.policy.symlinks_of_entries,
        },
    };
    let source = descriptors.making_room(|| sys::open_source(source, Blocking::OnlyForLease))?;
    let at = At {
        dir: dest_dir.as_fd(),
        name: &range.dest_name,
        symlinks: Symlinks::NoFollow,
    };
    let dest = descriptors.making_room(|| sys::open_existing(at, Blocking::OnlyForLease))?;
    let is_file = |stat: &Stat, inode| sys::is_regular(stat) && stat.st_ino == inode;
    let source_stat = sys::stat_open(&source)?;
    let dest_stat = sys::stat_open(&dest)?;
    let directory = sys::stat(dest_dir.as_fd(), c".", Symlinks::NoFollow)?;
    let is_expected = is_file(&source_stat, range.source_inode)
        && is_file(&dest_stat, range.dest_inode)
        && dest_stat.st_dev == directory.st_dev;
    match is_expected {
        true => Ok((source, dest, source_stat)),
        false => Err(Errno::STALE),
    }
}

impl DividedDest {
    fn new(filling: Filling<'_>, moved: Moved, parent: CopyNode) -> Self {
        let Filling {
            entry,
            source,
            dest,
            labelled,
            ..
        } = filling;
        // If one of these fails, other engines cannot open it, and give their parts back.
        let granted = change_owner_mode(entry.ctx, &dest, &source.stat, |mode, extra| mode | extra);
        let failure = granted.err();
        let inode = sys::stat_open(&dest.fd).map_or(0, |stat| stat.st_ino);
        Self {
            hidden_name: dest.hidden_name().unwrap_or_default().into(),
            fd: dest.fd.into(),
            parent,
            inode,
            moved,
            labelled,
            failure: failure.map_or_else(OnceLock::new, OnceLock::from),
            is_short: AtomicBool::new(false),
        }
    }

    /// Completes the dest after all parts were copied. Removes it if the copy was cancelled. After an error, leaves the
    /// content that was moved before, as cp does.
    pub(crate) fn finish(self, entry: &Entry<'_>, source: &OpenSource) -> Result<Filled, Failure> {
        let ctx = entry.ctx;
        let fd = ctx.descriptors.take_over(self.fd);
        let fd = fd.map_err(|errno| entry.making_failure(Operation::CreateFile, errno))?;
        let dest = OpenDest::beside(fd, Naming::Hidden, self.hidden_name);
        let settled = match self.failure.into_inner() {
            None if ctx.report.must_stop() => Err(ContentError::Cancelled),
            None => settle_size(source, dest.fd.as_fd(), self.is_short.into_inner()),
            Some(error) => Err(error),
        };
        let restricted = change_owner_mode(ctx, &dest, &source.stat, |mode, extra| mode & !extra);
        let settled = settled.and(restricted.map(drop));
        let filling = Filling {
            entry,
            source,
            dest,
            labelled: self.labelled.and(restricted.unwrap_or(Ok(()))),
        };
        match settled {
            Ok(()) => filling.finish(self.moved),
            Err(error) => filling.abandon(error),
        }
    }
}

/// Changes the permissions of the owner that only other engines need to open the dest. Returns whether that was possible.
///
/// # Errors
/// If content of the dest is lost.
fn change_owner_mode(
    ctx: &Context<'_>,
    dest: &OpenDest<'_>,
    source: &Stat,
    change: impl FnOnce(u32, u32) -> u32,
) -> Result<Result<(), AttributeError>, ContentError> {
    let extra = OWNER_FILE & !ctx.policy.creation_mode(source.st_mode);
    if extra == 0 {
        return Ok(Ok(()));
    }
    let set = sys::stat_open(&dest.fd).and_then(|stat| {
        let mode = change(stat.st_mode & 0o7777, extra);
        Inode::Opened(dest.fd.as_fd()).set_mode(mode)
    });
    let Err(errno) = set else {
        return Ok(Ok(()));
    };
    sys::check_content(dest.fd.as_fd(), errno).map_err(ContentError::Write)?;
    let operation = Operation::KeepMode;
    Ok(Err(AttributeError { operation, errno }))
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
