//! Finds out whether an existing dest has the content of its source already.
//!
//! On some filesystems a file has several inode numbers: one for each path, for each spelling of its name, or for a
//! directory and its mirror. Emptying the dest would empty the source then. So if both have the same size and nearly the
//! same time, and one is not on a native filesystem, both are read before the dest is emptied. A dest that has the
//! content is not written to. If it turns out to be the source, it is refused: another time of the dest is that of the
//! source, too. If the two cannot be compared, the copy fails and the dest stays.
//!
//! A filesystem may show the time of a file by one of its names, and remember an older one by another name. So a dest
//! that seems to be another file is only unlinked, which leaves the source its name.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use crate::copy::attributes;
use crate::copy::content::OpenSource;
use crate::copy::context::{Context, Failure};
use crate::copy::facts::{Entry, FileId, FileTime, Symlinks};
use crate::error::{Operation, Refusal};
use crate::sys::{self, At, Blocking, Fd, Inode, Stat, Storage};

/// Largest difference of two times of one file, which one of its filesystems rounds. FAT stores even seconds.
const ROUNDED_SECONDS: u64 = 2;
/// Bytes that are read by one call from each side. As many as for a copy.
const READ_BYTES: usize = 128 << 10;

/// Says how alike an existing dest and its source are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    Different,
    /// It has the content, and is another file or seems to be one.
    Equal,
    /// It has the content. Whether it is the source is unknown.
    Unclear,
}

/// A dest that is created, or opened and emptied.
#[derive(Clone, Copy)]
pub(super) struct Opening<'c, 'o> {
    pub(super) ctx: &'c Context<'c>,
    pub(super) entry: &'o Entry<'o>,
    pub(super) source: &'o OpenSource,
}

impl Opening<'_, '_> {
    /// Compares an open dest, which was seen as `present`, with its source.
    ///
    /// # Errors
    /// If the dest is the source, or if that cannot be found out.
    #[inline]
    pub(super) fn likeness(
        self,
        dest: BorrowedFd<'_>,
        present: &Stat,
    ) -> Result<Likeness, Failure> {
        let Self { ctx, source, .. } = self;
        let device = FileId::of(present).device;
        let is_native = source.storage == Storage::Native && ctx.writers.is_native(device, dest);
        if is_native || !sys::is_regular(&source.stat) {
            return Ok(Likeness::Different);
        }
        match ctx.changes.are_visible() {
            true => self.compare(dest, present),
            false => Ok(Likeness::Different),
        }
    }

    #[cold]
    fn compare(self, dest: BorrowedFd<'_>, present: &Stat) -> Result<Likeness, Failure> {
        let Self { ctx, entry, source } = self;
        let unread = |errno| Failure::making(ctx.source_error(entry, Operation::Read, errno));
        let dest_unread = |errno| ctx.making_failure(entry, Operation::Read, errno);
        // One of the two names may have been changed since the other one was looked at.
        let (bytes, modified) = sys::size_and_time(source.fd()).map_err(unread)?;
        let (dest_bytes, dest_modified) = sys::size_and_time(dest).map_err(dest_unread)?;
        if bytes != dest_bytes || !is_near(modified, dest_modified) {
            return Ok(Likeness::Different);
        }
        let readable = match self.open_to_read(dest, present) {
            Ok(readable) => readable,
            // A user that may read the source may also read it under its other name.
            Err(Errno::ACCESS) => return Ok(Likeness::Different),
            Err(errno) => return Err(dest_unread(errno)),
        };
        let mut buffers = [vec![0; READ_BYTES], vec![0; READ_BYTES]];
        let mut at = 0;
        loop {
            if ctx.report.must_stop() {
                return Err(unread(Errno::INTR));
            }
            let [from, to] = &mut buffers;
            let bytes = sys::read_at(source.fd(), from, at).map_err(unread)?;
            let found = read_full(readable.as_fd(), &mut to[..bytes.max(1)], at);
            if found.map_err(dest_unread)? != bytes || from[..bytes] != to[..bytes] {
                return Ok(Likeness::Different);
            }
            if bytes == 0 {
                break;
            }
            at += bytes as u64;
        }
        let inode = Inode::Opened(dest);
        let marked = attributes::mark_incomplete(&inode, &source.stat);
        let now = |file| sys::size_and_time(file).ok().map(|(_, time)| time);
        let (source_now, dest_now) = (now(source.fd()), now(dest));
        let mark = dest_now.filter(|time| marked.is_ok() && *time != dest_modified);
        // Another process may have changed the source, too, but not to this time.
        let is_mark = |time| time != modified && mark.is_some_and(|mark| is_near(mark, time));
        if source_now.is_some_and(is_mark) {
            // Set them by the name that was changed, because an overlay copies a file up if it is changed by another name.
            let _ = inode.set_times(&source.stat);
            // The dest may have the coarser times.
            if now(source.fd()) != Some(modified) {
                let _ = Inode::Opened(source.fd()).set_times(&source.stat);
            }
            return Err(ctx.refused(entry, Refusal::SameFile));
        }
        let keeps_times = ctx.policy.options.preserve.timestamps;
        if keeps_times || inode.touch().is_err() {
            // A copy gets its times in the end.
            let _ = inode.set_times(present);
        }
        Ok(match (mark, source_now) {
            (Some(_), Some(_)) => Likeness::Equal,
            _ => Likeness::Unclear,
        })
    }

    /// Opens a dest, which is open to write to it or only held, to read it.
    pub(super) fn open_to_read(self, dest: BorrowedFd<'_>, present: &Stat) -> Result<Fd, Errno> {
        let Self { ctx, entry, .. } = self;
        let by_name = || {
            let at = At {
                symlinks: Symlinks::Follow,
                ..entry.dest_at()
            };
            let opened = sys::open_source(at, Blocking::OnlyForLease)?;
            match FileId::of(&sys::stat_open(&opened)?) == FileId::of(present) {
                true => Ok(opened),
                false => Err(Errno::STALE),
            }
        };
        ctx.descriptors
            .making_room(|| match sys::reopen(dest, sys::Access::Read) {
                // /proc is missing.
                Err(Errno::NOENT | Errno::NOTDIR) => by_name(),
                opened => opened,
            })
    }
}

/// Compares the file that is at the dest, which is about to be unlinked, with its source. It may be the only name of the
/// source.
///
/// # Errors
/// As [`Opening::likeness`].
#[cold]
pub(super) fn likeness_of(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &Stat,
) -> Result<Likeness, Failure> {
    let open = |at| {
        let opened = || sys::open_source(at, Blocking::OnlyForLease);
        let fd = ctx.descriptors.making_room(opened)?;
        let stat = sys::stat_open(&fd)?;
        Ok((fd, stat))
    };
    let looked_at = sys::stat(entry.dest_dir, entry.dest_name, Symlinks::NoFollow);
    let may_be_alias = |dest: &Stat| {
        let device = FileId::of(dest).device;
        sys::is_regular(dest)
            && dest.st_size == source.st_size
            && FileId::of(dest) != FileId::of(source)
            && (device != FileId::of(source).device
                || !ctx.writers.is_native(device, entry.dest_dir))
    };
    if !sys::is_regular(source) || !looked_at.is_ok_and(|dest| may_be_alias(&dest)) {
        return Ok(Likeness::Different);
    }
    let opened: Result<_, Errno> =
        open(entry.source_at()).and_then(|source| Ok((source, open(entry.dest_at())?)));
    let Ok(((fd, stat), (dest, present))) = opened else {
        return Ok(Likeness::Different);
    };
    let storage = Storage::of(fd.as_fd());
    let source = OpenSource { fd, stat, storage };
    let source = &source;
    Opening { ctx, entry, source }.likeness(dest.as_fd(), &present)
}

/// Returns `true` if two times may be one that a filesystem has rounded.
fn is_near(a: FileTime, b: FileTime) -> bool {
    a.seconds.abs_diff(b.seconds) <= ROUNDED_SECONDS
}

/// Reads until the buffer is full or the file ends. Returns the number of bytes.
fn read_full(file: BorrowedFd<'_>, buffer: &mut [u8], at: u64) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < buffer.len() {
        match sys::read_at(file, &mut buffer[filled..], at + filled as u64)? {
            0 => break,
            bytes => filled += bytes,
        }
    }
    Ok(filled)
}
