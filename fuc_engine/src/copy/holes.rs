//! Content with holes in it: what lies between them is copied, and nothing else.
//!
//! ```text
//!   SEEK_DATA --data--> SEEK_HOLE --> copy the run --+
//!       ^  \                                         |
//!       |   +--none--> the dest is made as long      |
//!       +--------------------------------------------+
//! ```
//!
//! Each round goes on behind the last, whatever becomes of the source meanwhile;
//! only where the end has moved again is the same place asked about once more.

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::data::{ALL, DataCopy, DataError, Rung, is_not_here};
use crate::observer::{HoleDetection, Mechanism};
use crate::sys;

impl DataCopy<'_> {
    /// Copies the data between the holes, and makes the dest as long as the source.
    pub(super) fn copy_around_holes(
        &mut self,
        pause: &mut dyn FnMut(u64),
    ) -> Result<Rung, DataError> {
        let mut position = 0;
        loop {
            let data = match sys::seek(self.source.fd, SeekFrom::Data(position)) {
                Ok(data) => data,
                // No data from here to the end: unless it has grown meanwhile, it ends there.
                Err(Errno::NXIO) => {
                    let end = sys::seek(self.source.fd, SeekFrom::End(0));
                    let end = end.map_err(DataError::Read)?;
                    if sys::seek(self.source.fd, SeekFrom::Data(position)).is_ok() {
                        continue;
                    }
                    self.end_at(end)?;
                    self.punch_hole(position..end);
                    self.copy_what_lies_behind(end, pause)?;
                    return Ok(Rung::Copied);
                }
                Err(Errno::INVAL | Errno::OPNOTSUPP) if position == 0 => return Ok(Rung::NotHere),
                Err(errno) => return Err(DataError::Read(errno)),
            };
            let hole = match sys::seek(self.source.fd, SeekFrom::Hole(data)) {
                Ok(hole) => hole,
                // It has become shorter since.
                Err(Errno::NXIO) => continue,
                Err(errno) => return Err(DataError::Read(errno)),
            };
            if hole <= data {
                // It was data a moment ago; reading needs to know neither, and gets on.
                self.read_extent(data, u64::MAX, pause)?;
                return Ok(Rung::Copied);
            }
            self.punch_hole(position..data);
            self.method.holes = match self.hole_maker {
                Some(_) => HoleDetection::SeekAndZeros,
                None => HoleDetection::Seek,
            };
            if !self.copy_extent(data, hole, pause)? {
                // It has become shorter: what was read is the file.
                self.is_short = true;
                return Ok(Rung::Copied);
            }
            position = hole;
        }
    }

    /// What `write` leaves allocated behind it is no part of the hole that follows;
    /// the kernel's own copies leave nothing.
    fn punch_hole(&self, range: std::ops::Range<u64>) {
        if self.hole_maker.is_none() && self.method.offload != Mechanism::Used {
            sys::punch_hole(self.dest, range);
        }
    }

    /// Makes the dest as long as the source, which ends with a hole or with what was copied last.
    fn end_at(&mut self, end: u64) -> Result<(), DataError> {
        match &mut self.hole_maker {
            Some(maker) => maker.skip_to(end),
            None => sys::set_size(self.dest, end).map_err(DataError::Write)?,
        }
        Ok(())
    }

    /// Where sizes are not to be believed, there may be more after the end.
    fn copy_what_lies_behind(
        &mut self,
        end: u64,
        pause: &mut dyn FnMut(u64),
    ) -> Result<(), DataError> {
        if !self.source.is_truthful {
            self.read_extent(end, u64::MAX, pause)?;
        }
        Ok(())
    }

    /// Copies one run of data; `false` if the source ended before `end`.
    fn copy_extent(
        &mut self,
        start: u64,
        end: u64,
        pause: &mut dyn FnMut(u64),
    ) -> Result<bool, DataError> {
        if !self.ways.lets_the_kernel_copy() {
            return self.read_extent(start, end, pause);
        }
        let mut at = start;
        while at < end {
            let piece = usize::try_from(end - at).unwrap_or(ALL).min(sys::PIECE);
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
                    self.copied += bytes as u64;
                    pause(bytes as u64);
                }
                // Nothing there any more, or not possible: reading tells which.
                Ok(_) => return self.read_extent(at, end, pause),
                Err(errno) if is_not_here(errno) => {
                    self.method.offload = Mechanism::Unsupported;
                    return self.read_extent(at, end, pause);
                }
                Err(errno) => return Err(DataError::Copy(errno)),
            }
        }
        Ok(true)
    }
}
