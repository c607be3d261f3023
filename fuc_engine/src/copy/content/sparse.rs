//! Holes: those of a sparse source, between which the data is copied, and those that are left in a dest.
//!
//! ```text
//!   SEEK_DATA --data--> SEEK_HOLE --> copy the run --+
//!       ^  \                                         |
//!       |   +--none--> the dest ends with a hole      |
//!       +--------------------------------------------+
//! ```
//!
//! Each round continues behind the last one, even if the source changes during the copy. Only
//! if the end of the source has moved is the same position looked up again. If a filesystem does not
//! say where data is, the rest is read.
//!
//! The content is written to an empty file, front to back. The holes in it are those that the caller skips and, for
//! `--sparse=always`, blocks of zeros. If the content ends with a hole, the file is extended to its size at the end.
//!
//! Some servers take content only in order: the dest refuses to seek, or refuses the write behind the hole, or cannot
//! be extended. Then the holes of this file are filled with zeros.
//!
//! ```text
//!   written_to        at
//!       |    hole     |   next bytes
//!       +-------------+------------->
//!       ^             ^
//!       `- offset ----'   a seek moves it; only a write behind the hole shows that the dest accepts the hole
//! ```

use std::ops::Range;
use std::os::fd::BorrowedFd;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::{ALL, ContentCopy, ContentError, Next, OnPiece, PIECE_BYTES, Rung};
use crate::observer::Mechanism;
use crate::sys;

impl ContentCopy<'_> {
    /// Returns `true` if the source has no byte at `position`. It may have grown since it was opened.
    fn is_beyond_end(&self, position: u64) -> bool {
        let end = || sys::seek(self.source.fd(), SeekFrom::End(0));
        position >= self.source.size() && end().is_ok_and(|end| position >= end)
    }

    /// Copies the data between the holes. The caller makes the dest as long as the source.
    pub(super) fn copy_around_holes(&mut self) -> Result<Rung, ContentError> {
        let mut position = 0;
        loop {
            let Range { start, end } = match next_data(self.source.fd(), position) {
                // Its filesystem does not know where data is.
                Ok(Some(data)) if self.is_beyond_end(data.start) => {
                    return self.read_rest(position);
                }
                Ok(Some(data)) => data,
                // There was no data up to the end. The source may have grown since then.
                Ok(None) => {
                    let Ok(end) = sys::seek(self.source.fd(), SeekFrom::End(0)) else {
                        return self.read_rest(position);
                    };
                    if sys::seek(self.source.fd(), SeekFrom::Data(position)).is_ok() {
                        continue;
                    }
                    self.note_asked();
                    if self.source.reports_true_size() {
                        self.writer.skip_to(end);
                    } else {
                        self.read_extent(end, u64::MAX)?;
                    }
                    return Ok(Rung::Copied);
                }
                Err(_) if position == 0 => return Ok(Rung::NotHere),
                Err(_) => return self.read_rest(position),
            };
            if end == u64::MAX {
                return self.read_rest(start);
            }
            // As in cp, a file that is data up to its end has no holes.
            if start > 0 || end < self.source.size() {
                self.note_asked();
            }
            if !self.copy_extent(start, end)? {
                // The source became shorter. The bytes read so far are the file.
                self.is_short = true;
                return Ok(Rung::Copied);
            }
            position = end;
        }
    }

    /// Notes that the filesystem has reported holes.
    fn note_asked(&mut self) {
        self.method.holes.get_or_insert_default().asks_filesystem = true;
    }

    /// Reads data and holes alike, from `start` to the end of the source, which may have become shorter.
    fn read_rest(&mut self, start: u64) -> Result<Rung, ContentError> {
        self.is_short = true;
        self.read_extent(start, u64::MAX)?;
        Ok(Rung::Copied)
    }

    /// Copies one run of data. Returns `false` if the source ended before `end`.
    fn copy_extent(&mut self, start: u64, end: u64) -> Result<bool, ContentError> {
        if !self.lets_kernel_copy() || self.method.offload == Mechanism::Unsupported {
            return self.read_extent(start, end);
        }
        self.writer.skip_to(start);
        self.writer.seek_to_next()?;
        let mut at = start;
        while at < end {
            let piece = usize::try_from(end - at).unwrap_or(ALL).min(PIECE_BYTES);
            let mut from = at;
            // The dest's own offset, because a dest that refuses to seek has no other.
            match self.try_copy_range(Some(&mut from), piece)? {
                Some(0) => return self.read_extent(at, end),
                Some(bytes) => {
                    at += bytes as u64;
                    self.note_copied(bytes as u64);
                    self.report_moved(1)?;
                }
                None => {
                    self.method.offload = Mechanism::Unsupported;
                    return self.read_extent(at, end);
                }
            }
        }
        Ok(true)
    }
}

/// Returns the next data of a file at or after `at`, or `None` if there is none. The data ends at [`u64::MAX`] if its end
/// is unknown, because the file was changed or its filesystem does not say.
fn next_data(file: BorrowedFd<'_>, at: u64) -> Result<Option<Range<u64>>, Errno> {
    let start = match sys::seek(file, SeekFrom::Data(at)) {
        Err(Errno::NXIO) => return Ok(None),
        start => start?,
    };
    Ok(Some(match sys::seek(file, SeekFrom::Hole(start)) {
        Ok(end) if end > start => start..end,
        _ => start..u64::MAX,
    }))
}

/// A writer to an empty file.
pub(super) struct SparseWriter<'a> {
    dest: BorrowedFd<'a>,
    /// Called between pieces of the content, also of zeros in a hole that is filled.
    pub(super) on_piece: OnPiece<'a>,
    /// Size of the blocks that become holes if they are zero.
    zero_block_bytes: Option<usize>,
    /// Position in the file of the next byte.
    at: u64,
    /// Position of the dest's own offset.
    offset: u64,
    /// End of the content that is in the file. What follows up to `at` is a hole.
    written_to: u64,
    /// Content was written by this writer, so that blocks may have been allocated in advance.
    may_have_blocks: bool,
    /// The dest gets no holes, or has refused one.
    fills_holes: bool,
}

impl<'a> SparseWriter<'a> {
    /// Limits for the block size that the filesystem reports: no filesystem allocates smaller
    /// blocks, and network filesystems report sizes that are not those of their blocks.
    const BLOCK_BYTES: std::ops::RangeInclusive<usize> = 512..=64 << 10;

    pub(super) fn new(dest: BorrowedFd<'a>, fills_holes: bool, on_piece: OnPiece<'a>) -> Self {
        Self {
            dest,
            on_piece,
            zero_block_bytes: None,
            at: 0,
            offset: 0,
            written_to: 0,
            may_have_blocks: false,
            fills_holes,
        }
    }

    /// Makes holes of blocks of zeros from now on.
    pub(super) fn find_zeros(&mut self) -> Result<(), Errno> {
        let bytes = usize::try_from(sys::stat_open(self.dest)?.st_blksize).unwrap_or(0);
        let (least, most) = Self::BLOCK_BYTES.into_inner();
        self.zero_block_bytes = Some(bytes.clamp(least, most));
        Ok(())
    }

    pub(super) fn makes_holes(&self) -> bool {
        !self.fills_holes
    }

    pub(super) fn finds_zeros(&self) -> bool {
        self.zero_block_bytes.is_some()
    }

    /// Returns the position in the file of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.at
    }

    /// Continues at position `at`, which leaves a hole.
    pub(super) fn skip_to(&mut self, at: u64) {
        self.at = at;
    }

    /// Notes bytes that the kernel has copied to the dest's own offset, which must be at the next byte.
    pub(super) fn note_copied(&mut self, bytes: u64) {
        self.at += bytes;
        self.offset = self.at;
        self.written_to = self.at;
    }

    pub(super) fn write(&mut self, mut bytes: &[u8]) -> Result<(), ContentError> {
        while !bytes.is_empty() {
            let (zeros, data) = match self.zero_block_bytes {
                Some(block_bytes) => next_runs(self.at, block_bytes, bytes),
                None => (0, bytes.len()),
            };
            self.at += zeros as u64;
            if data > 0 {
                self.write_data(&bytes[zeros..zeros + data])?;
            }
            bytes = &bytes[zeros + data..];
        }
        Ok(())
    }

    fn write_data(&mut self, bytes: &[u8]) -> Result<(), ContentError> {
        self.seek_to_next()?;
        match sys::write_all(self.dest, bytes) {
            Err(errno) if self.written_to < self.at && !is_full(errno) => {
                self.fill_refused_hole(errno)?;
                sys::write_all(self.dest, bytes)
            }
            written => written,
        }
        .map_err(ContentError::Write)?;
        self.note_copied(bytes.len() as u64);
        self.may_have_blocks = true;
        Ok(())
    }

    /// Moves the dest's own offset to the next byte.
    fn seek_to_next(&mut self) -> Result<(), ContentError> {
        if self.offset == self.at {
            return Ok(());
        }
        let is_behind_hole = self.written_to < self.at;
        if is_behind_hole && self.fills_holes {
            return self.fill_hole();
        }
        self.punch_hole()?;
        match sys::seek(self.dest, SeekFrom::Start(self.at)) {
            Ok(offset) => self.offset = offset,
            // Zeros do not help if the filesystem has no such position.
            Err(Errno::INVAL) if is_behind_hole && self.is_too_far() => {
                return Err(ContentError::Write(Errno::FBIG));
            }
            Err(errno) if is_behind_hole => return self.fill_refused_hole(errno),
            Err(errno) => return Err(ContentError::Write(errno)),
        }
        Ok(())
    }

    /// Returns `true` if the next byte is beyond the largest file that the dest's filesystem can store.
    fn is_too_far(&self) -> bool {
        sys::set_size(self.dest, self.at) == Err(Errno::FBIG)
    }

    /// Deallocates the blocks of the hole, because an earlier `write` may have allocated some of them in advance. Copies
    /// made by the kernel allocate none.
    fn punch_hole(&self) -> Result<(), ContentError> {
        match self.may_have_blocks {
            true => sys::punch_hole(self.dest, self.written_to..self.at),
            false => Ok(()),
        }
        .map_err(ContentError::Write)
    }

    /// Fills a hole after a call was refused, unless its error says that content is lost.
    #[cold]
    fn fill_refused_hole(&mut self, errno: Errno) -> Result<(), ContentError> {
        sys::check_content(self.dest, errno).map_err(ContentError::Write)?;
        self.fill_hole()
    }

    /// Writes zeros up to the next byte, because the dest does not accept the hole.
    #[cold]
    fn fill_hole(&mut self) -> Result<(), ContentError> {
        static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
        self.fills_holes = true;
        if self.offset != self.written_to {
            let start = SeekFrom::Start(self.written_to);
            self.offset = sys::seek(self.dest, start).map_err(ContentError::Write)?;
        }
        while self.written_to < self.at {
            let left = self.at - self.written_to;
            let zeros = &ZEROS[..left.min(ZEROS.len() as u64) as usize];
            sys::write_all(self.dest, zeros).map_err(ContentError::Write)?;
            self.written_to += zeros.len() as u64;
            self.offset = self.written_to;
            if (self.on_piece)(0) == Next::Cancel {
                return Err(ContentError::Cancelled);
            }
        }
        Ok(())
    }

    /// Extends the dest to the current position. Truncates it if that is before the end.
    pub(super) fn end_content(&mut self) -> Result<(), ContentError> {
        if self.written_to == self.at {
            return Ok(());
        }
        let is_behind_hole = self.written_to < self.at;
        if is_behind_hole && self.fills_holes {
            return self.fill_hole();
        }
        let resized = match is_behind_hole {
            true => extend(self.dest, self.at),
            false => sys::set_size(self.dest, self.at),
        };
        match resized {
            Ok(()) => self.punch_hole(),
            Err(errno) if is_behind_hole && !is_full(errno) => self.fill_refused_hole(errno),
            Err(errno) => Err(ContentError::Write(errno)),
        }
    }
}

/// Extends a file to `end` by a hole. If that is refused, writes a zero at the end.
pub(super) fn extend(file: BorrowedFd<'_>, end: u64) -> Result<(), Errno> {
    let has_size = || sys::stat_open(file).is_ok_and(|stat| stat.st_size as u64 == end);
    // Some servers return success and extend nothing.
    match sys::set_size(file, end) {
        Ok(()) if has_size() => return Ok(()),
        Ok(()) => {}
        Err(errno) => sys::check_content(file, errno)?,
    }
    sys::write_all_at(file, &[0], end - 1)
}

/// Returns `true` if a dest has no room, so that zeros would not fit either.
fn is_full(errno: Errno) -> bool {
    matches!(errno, Errno::NOSPC | Errno::DQUOT | Errno::FBIG)
}

/// Counts the bytes in leading blocks of zeros, and those in the other blocks that follow. The first byte is at `start`
/// in the file.
fn next_runs(start: u64, block_bytes: usize, bytes: &[u8]) -> (usize, usize) {
    let mut end = 0;
    let mut zeros = None;
    while end < bytes.len() {
        let at = start + end as u64;
        let to_boundary = block_bytes - (at % block_bytes as u64) as usize;
        let block_end = bytes.len().min(end + to_boundary);
        match (is_zero(&bytes[end..block_end]), zeros) {
            (true, Some(zeros)) => return (zeros, end - zeros),
            (false, None) => zeros = Some(end),
            (true, None) | (false, Some(_)) => {}
        }
        end = block_end;
    }
    let zeros = zeros.unwrap_or(end);
    (zeros, end - zeros)
}

/// Returns `true` if all bytes are zero. Compares the slice with itself, shifted by one byte,
/// because `memcmp` is fast.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    match bytes {
        [first, rest @ ..] => *first == 0 && *rest == bytes[..rest.len()],
        [] => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(at: u64, bytes: &[u8]) -> (usize, usize) {
        next_runs(at, 4, bytes)
    }

    #[test]
    fn blocks_of_zeros_come_first() {
        assert_eq!(runs(0, b"\0\0\0\0\0\0\0\0ab"), (8, 2));
        assert_eq!(runs(0, b"abc\0\0\0\0\0d"), (0, 4));
        assert_eq!(runs(0, b"\0\0\0\0"), (4, 0));
        assert_eq!(runs(0, b"\0a\0\0b"), (0, 5));
    }

    #[test]
    fn blocks_are_those_of_the_file() {
        assert_eq!(runs(2, b"\0\0a"), (2, 1));
        assert_eq!(runs(3, b"a\0\0\0\0b"), (0, 1));
        assert_eq!(runs(4, b"\0\0\0"), (3, 0));
    }
}
