//! Sparse sources: the data between the holes is copied, and nothing else.
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

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::ContentError;
use super::ladder::{ALL, ContentCopy, PIECE_BYTES, Rung};
use crate::observer::Mechanism;
use crate::sys;

impl ContentCopy<'_> {
    /// Copies the data between the holes. The caller makes the dest as long as the source.
    pub(super) fn copy_around_holes(&mut self) -> Result<Rung, ContentError> {
        let mut position = 0;
        loop {
            let data = match sys::seek(self.source.fd, SeekFrom::Data(position)) {
                Ok(data) => data,
                // The kernel found no data up to the end. The source may have grown since then.
                Err(Errno::NXIO) => {
                    let Ok(end) = sys::seek(self.source.fd, SeekFrom::End(0)) else {
                        return self.read_rest(position);
                    };
                    if sys::seek(self.source.fd, SeekFrom::Data(position)).is_ok() {
                        continue;
                    }
                    if position == 0 {
                        self.method.seeks_holes = true;
                        self.method.finds_zeros = false;
                    }
                    self.end_at(end)?;
                    return Ok(Rung::Copied);
                }
                Err(_) if position == 0 => return Ok(Rung::NotHere),
                Err(_) => return self.read_rest(position),
            };
            let hole = match sys::seek(self.source.fd, SeekFrom::Hole(data)) {
                Ok(hole) if hole > data => hole,
                // The position was data a moment ago.
                _ => return self.read_rest(data),
            };
            self.method.seeks_holes = true;
            if !self.copy_extent(data, hole)? {
                // The source became shorter. The bytes read so far are the file.
                self.is_short = true;
                return Ok(Rung::Copied);
            }
            position = hole;
        }
    }

    /// Reads data and holes alike, from `start` to the end of the source, which may have become shorter.
    fn read_rest(&mut self, start: u64) -> Result<Rung, ContentError> {
        self.is_short = true;
        self.read_extent(start, u64::MAX)?;
        Ok(Rung::Copied)
    }

    /// Lets the dest end with a hole. Copies the data after it, which exists only on filesystems with untrue sizes.
    fn end_at(&mut self, end: u64) -> Result<(), ContentError> {
        if self.source.reports_true_size() {
            self.writer.skip_to(end);
        } else {
            self.read_extent(end, u64::MAX)?;
        }
        Ok(())
    }

    /// Copies one run of data. Returns `false` if the source ended before `end`.
    fn copy_extent(&mut self, start: u64, end: u64) -> Result<bool, ContentError> {
        if !self.ways.let_kernel_copy() || self.method.offload == Mechanism::Unsupported {
            return self.read_extent(start, end);
        }
        self.writer.skip_to(start);
        self.writer.seek_to_next(self.progress)?;
        let mut at = start;
        while at < end {
            let piece = usize::try_from(end - at).unwrap_or(ALL).min(PIECE_BYTES);
            let mut from = at;
            // The dest's own offset, because a dest that refuses to seek has no other.
            match sys::copy_range(self.source.fd, Some(&mut from), self.dest, None, piece) {
                Ok(0) => return self.read_extent(at, end),
                Ok(bytes) => {
                    self.method.offload = Mechanism::Used;
                    at += bytes as u64;
                    self.writer.note_copied(bytes as u64);
                    self.count_moved(bytes as u64);
                    self.report_from(1)?;
                }
                Err(_) => {
                    self.method.offload = Mechanism::Unsupported;
                    return self.read_extent(at, end);
                }
            }
        }
        Ok(true)
    }
}
