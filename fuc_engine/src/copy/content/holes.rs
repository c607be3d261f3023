//! Sparse sources: the data between the holes is copied, and nothing else.
//!
//! ```text
//!   SEEK_DATA --data--> SEEK_HOLE --> copy the run --+
//!       ^  \                                         |
//!       |   +--none--> extend the dest to the size    |
//!       +--------------------------------------------+
//! ```
//!
//! Each round continues behind the last one, even if the source changes during the copy. Only
//! if the end of the source has moved is the same position looked up again.

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::ladder::{ALL, ContentCopy, ContentError, PIECE_BYTES, Rung, is_not_here};
use crate::observer::{HoleDetection, Mechanism};
use crate::sys;

impl ContentCopy<'_> {
    /// Copies the data between the holes, and makes the dest as long as the source.
    pub(super) fn copy_around_holes(&mut self) -> Result<Rung, ContentError> {
        let mut position = 0;
        loop {
            let data = match sys::seek(self.source.fd, SeekFrom::Data(position)) {
                Ok(data) => data,
                // The kernel found no data up to the end. The source may have grown since then.
                Err(Errno::NXIO) => {
                    let end = sys::seek(self.source.fd, SeekFrom::End(0));
                    let end = end.map_err(ContentError::Read)?;
                    if sys::seek(self.source.fd, SeekFrom::Data(position)).is_ok() {
                        continue;
                    }
                    if position == 0 {
                        self.method.holes = HoleDetection::Seek;
                    }
                    self.end_at(end)?;
                    self.punch_hole(position..end);
                    self.copy_behind(end)?;
                    return Ok(Rung::Copied);
                }
                Err(Errno::INVAL | Errno::OPNOTSUPP) if position == 0 => return Ok(Rung::NotHere),
                Err(errno) => return Err(ContentError::Read(errno)),
            };
            let hole = match sys::seek(self.source.fd, SeekFrom::Hole(data)) {
                Ok(hole) => hole,
                // The source has become shorter.
                Err(Errno::NXIO) => continue,
                Err(errno) => return Err(ContentError::Read(errno)),
            };
            if hole <= data {
                // The position was data a moment ago. Reading copies data and holes alike.
                self.read_extent(data, u64::MAX)?;
                return Ok(Rung::Copied);
            }
            self.punch_hole(position..data);
            self.method.holes = match self.hole_maker {
                Some(_) => HoleDetection::SeekAndZeros,
                None => HoleDetection::Seek,
            };
            if !self.copy_extent(data, hole)? {
                // The source became shorter. The bytes read so far are the file.
                self.is_short = true;
                return Ok(Rung::Copied);
            }
            position = hole;
        }
    }

    /// Deallocates the blocks of a hole, because an earlier `write` may have allocated some of them
    /// in advance. Copies made by the kernel allocate none.
    fn punch_hole(&self, range: std::ops::Range<u64>) {
        if self.hole_maker.is_none() && self.method.offload != Mechanism::Used {
            sys::punch_hole(self.dest, range);
        }
    }

    /// Extends the dest to the size of the source, which may end with a hole.
    fn end_at(&mut self, end: u64) -> Result<(), ContentError> {
        match &mut self.hole_maker {
            Some(maker) => maker.skip_to(end),
            None => sys::set_size(self.dest, end).map_err(ContentError::Write)?,
        }
        Ok(())
    }

    /// Copies the data after `end`, which exists only on filesystems with untrue sizes.
    fn copy_behind(&mut self, end: u64) -> Result<(), ContentError> {
        if !self.source.reports_true_size() {
            self.read_extent(end, u64::MAX)?;
        }
        Ok(())
    }

    /// Copies one run of data. Returns `false` if the source ended before `end`.
    fn copy_extent(&mut self, start: u64, end: u64) -> Result<bool, ContentError> {
        if !self.ways.let_kernel_copy() {
            return self.read_extent(start, end);
        }
        let mut at = start;
        while at < end {
            let piece = usize::try_from(end - at).unwrap_or(ALL).min(PIECE_BYTES);
            let (mut from, mut to) = (at, at);
            match sys::copy_range(
                self.source.fd,
                Some(&mut from),
                self.dest,
                Some(&mut to),
                piece,
            ) {
                Ok(bytes) if bytes > 0 => {
                    self.method.offload = Mechanism::Used;
                    at += bytes as u64;
                    self.count_moved(bytes as u64);
                    self.report_from(1)?;
                }
                // The data is gone, or the call cannot copy it. Reading shows which.
                Ok(_) => return self.read_extent(at, end),
                Err(errno) if is_not_here(errno) => {
                    self.method.offload = Mechanism::Unsupported;
                    return self.read_extent(at, end);
                }
                Err(errno) => return Err(ContentError::Copy(errno)),
            }
        }
        Ok(true)
    }
}
