//! Copies a range of a file, while others may copy other ranges of it through the same descriptors.
//!
//! All positions are explicit, because the descriptors share one offset. The dest must be new: holes of the source
//! are left out.

use std::ops::{ControlFlow, Range};
use std::os::fd::BorrowedFd;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::ContentError;
use super::ladder::{PIECE_BYTES, SERVER_BUFFER_BYTES};
use super::read_ahead::ReadAhead;
use crate::sys;

/// The copy of one range.
pub(in crate::copy) struct RangeCopy<'a> {
    pub(in crate::copy) source: BorrowedFd<'a>,
    pub(in crate::copy) dest: BorrowedFd<'a>,
    /// Says whether the holes of the source stay holes.
    pub(in crate::copy) keeps_holes: bool,
    /// Called between the pieces, with the bytes moved since the last call. The copy ends if it returns `Break`.
    pub(in crate::copy) progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
}

impl RangeCopy<'_> {
    /// Copies the range, or the part of it before the end of the source. Returns the position at which the content
    /// ended.
    ///
    /// # Errors
    /// The dest holds some of the range.
    pub(in crate::copy) fn run(&mut self, range: Range<u64>) -> Result<u64, ContentError> {
        let mut buffer = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let data = match self.next_data(at) {
                Some(data) => data.start.min(range.end)..data.end.min(range.end),
                // The rest is a hole.
                None => return Ok(range.end),
            };
            at = self.read_and_write(data.clone(), &mut buffer)?;
            if at < data.end {
                return Ok(at);
            }
        }
        Ok(at)
    }

    /// Returns the next data at or after `at`, or `None` if there is none.
    fn next_data(&self, at: u64) -> Option<Range<u64>> {
        let everything = Some(at..u64::MAX);
        if !self.keeps_holes {
            return everything;
        }
        let start = match sys::seek(self.source, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return None,
            Err(_) => return everything,
        };
        match sys::seek(self.source, SeekFrom::Hole(start)) {
            Ok(end) if end > start => Some(start..end),
            // The source was changed, or its filesystem cannot tell. Reading copies data and holes alike.
            _ => everything,
        }
    }

    /// Copies data. Returns the position at which the content ended.
    fn read_and_write(
        &mut self,
        data: Range<u64>,
        buffer: &mut Vec<u8>,
    ) -> Result<u64, ContentError> {
        buffer.resize(SERVER_BUFFER_BYTES, 0);
        let mut ahead = ReadAhead::new(data.end);
        let (mut at, mut unreported) = (data.start, 0);
        while at < data.end {
            let wanted = (data.end - at).min(buffer.len() as u64) as usize;
            let source = self.source;
            let piece = &mut buffer[..wanted];
            let read = ahead.read(source, at, piece, |piece| sys::read_at(source, piece, at));
            let read = read.map_err(ContentError::Read)?;
            if read == 0 {
                break;
            }
            sys::write_all_at(self.dest, &buffer[..read], at).map_err(ContentError::Write)?;
            at += read as u64;
            unreported += read as u64;
            if unreported >= PIECE_BYTES as u64 {
                self.report(std::mem::take(&mut unreported))?;
            }
        }
        self.report(unreported)?;
        Ok(at)
    }

    fn report(&mut self, bytes: u64) -> Result<(), ContentError> {
        match (self.progress)(bytes) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(ContentError::Cancelled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    /// Copies ranges of a file of 3 MiB, of which the second MiB is a hole. Returns the copy and the ends.
    fn copy(keeps_holes: bool, ranges: &[Range<u64>]) -> (Vec<u8>, Vec<u64>) {
        let dir = tempfile::tempdir().unwrap();
        let [source, dest] = ["s", "d"].map(|name| dir.path().join(name));
        let file = File::create(&source).unwrap();
        file.write_all_at(&[1; 1 << 20], 0).unwrap();
        file.write_all_at(&[3; 1 << 20], 2 << 20).unwrap();
        let (source, written) = (File::open(source).unwrap(), File::create(&dest).unwrap());
        let mut copy = RangeCopy {
            source: source.as_fd(),
            dest: written.as_fd(),
            keeps_holes,
            progress: &mut |_| ControlFlow::Continue(()),
        };
        let ends = ranges.iter().map(|range| copy.run(range.clone()).unwrap());
        let ends = ends.collect();
        (fs::read(dest).unwrap(), ends)
    }

    #[test]
    fn ranges_in_any_order_make_a_file() {
        let whole = [[1; 1 << 20], [0; 1 << 20], [3; 1 << 20]].concat();
        for keeps_holes in [false, true] {
            let ranges = [1_500_000..u64::MAX, 0..7, 7..1_500_000];
            let (copied, ends) = copy(keeps_holes, &ranges);
            assert!(copied == whole);
            let end = if keeps_holes { u64::MAX } else { 3 << 20 };
            assert_eq!(ends, [end, 7, 1_500_000]);
        }
    }

    #[test]
    fn a_range_behind_the_end_is_short() {
        let (copied, ends) = copy(false, &[(3 << 20) - 5..(3 << 20) + 5, 4 << 20..5 << 20]);
        assert_eq!(copied.len(), 3 << 20);
        assert_eq!(ends, [3 << 20, 4 << 20]);
    }
}
