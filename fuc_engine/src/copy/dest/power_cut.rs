//! Finds dests that a power cut has left with the size and the time of their source, but without their content.
//!
//! A filesystem may store size and time before the content. What is missing then is a hole, or an extent that was never
//! written, which `lseek` also reports as a hole.
//!
//! ```text
//!   changed since the kernel has started: nothing is missing             0 calls
//!   older, and without holes:             open, fadvise, lseek, close    4 calls
//!   older, with holes:                    their content is compared
//! ```
//!
//! The content decides, so a file is not copied again because a filesystem shows holes that are none, or because only
//! one of the two is sparse. If a filesystem does not know holes, nothing is found.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::copy::content::is_zero;
use crate::copy::entry::Entry;
use crate::sys::{self, At, Blocking, Stat};

/// Bytes that are compared at once.
const PIECE_BYTES: usize = 16 << 10;

/// Returns `true` if a dest that was seen as `dest` has a hole in place of content of its source.
///
/// Also returns `true` if a file cannot be opened or read: the copy then reports that.
pub(super) fn has_taken_content(entry: &Entry<'_>, at: At<'_>, dest: &Stat) -> bool {
    sys::is_regular(dest)
        && dest.st_size > 0
        && !sys::is_since_boot(sys::changed(dest))
        && lacks_content(entry, at, dest.st_size as u64).unwrap_or(true)
}

#[cold]
fn lacks_content(entry: &Entry<'_>, at: At<'_>, size: u64) -> Result<bool, Errno> {
    let descriptors = &entry.ctx.descriptors;
    let open = |at| descriptors.making_room(|| sys::open_source(at, Blocking::OnlyForLease));
    let dest = open(at)?;
    let dest = dest.as_fd();
    // Pages of an extent that was never written count as data after they were read.
    sys::drop_cache(dest, None);
    let next_hole = |from| sys::seek(dest, SeekFrom::Hole(from)).unwrap_or(size);
    let mut start = next_hole(0);
    if start >= size {
        return Ok(false);
    }
    let source = open(entry.source_at())?;
    while start < size && !entry.ctx.report.must_stop() {
        let end = sys::seek(dest, SeekFrom::Data(start)).unwrap_or(size);
        if has_more(source.as_fd(), dest, start..end.min(size))? {
            return Ok(true);
        }
        start = next_hole(end);
    }
    Ok(false)
}

/// Returns `true` if the source has content in a hole of the dest, and the dest has other content there.
fn has_more(source: BorrowedFd<'_>, dest: BorrowedFd<'_>, hole: Range<u64>) -> Result<bool, Errno> {
    let mut buffers = [const { [0; PIECE_BYTES] }; 2];
    let [content, found] = &mut buffers;
    let mut at = hole.start;
    while at < hole.end {
        at = match sys::seek(source, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => return Ok(false),
            // Its filesystem does not know holes.
            Err(_) => at,
        };
        let piece = PIECE_BYTES.min(hole.end.saturating_sub(at) as usize);
        let bytes = sys::read_at(source, &mut content[..piece], at)?;
        let content = &content[..bytes];
        if !is_zero(content) {
            let found = &mut found[..bytes];
            if sys::read_at(dest, found, at)? != bytes || found != content {
                return Ok(true);
            }
        }
        // Nothing is read at the end of the hole, or because the source has become shorter.
        if bytes == 0 {
            return Ok(false);
        }
        at += bytes as u64;
    }
    Ok(false)
}
