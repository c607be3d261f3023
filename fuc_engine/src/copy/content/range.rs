//! Copies a range of a file, while others may copy other ranges of it through the same descriptors.
//!
//! All positions are explicit, because the descriptors share one offset. The dest must be new: holes of the source
//! are left out.

use std::ops::Range;
use std::os::fd::BorrowedFd;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::read_ahead::ReadAhead;
use super::{
    ContentError, Next, Piece, Progress, READ_PIECE_BYTES, SERVER_BUFFER_BYTES, has_holes,
};
use crate::copy::options::{CopyOp, Sparse};
use crate::sys::{self, Stat};

/// The copy of ranges of a file, one after the other.
pub(crate) struct RangeCopy<'a> {
    source: BorrowedFd<'a>,
    dest: BorrowedFd<'a>,
    /// Says whether the holes of the source stay holes.
    keeps_holes: bool,
    /// The memory that content passes through. It is empty at first.
    buffer: Vec<u8>,
}

/// The position at which a copy of a range has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeEnd {
    /// It is the end of the range, or that of the source before.
    Content(u64),
    /// Other workers want a part of the rest.
    Shared(u64),
}

impl<'a> RangeCopy<'a> {
    pub(crate) fn new(
        source: BorrowedFd<'a>,
        dest: BorrowedFd<'a>,
        stat: &Stat,
        options: &CopyOp<'_>,
    ) -> Self {
        Self {
            source,
            dest,
            keeps_holes: has_holes(stat) && options.sparse != Sparse::Never,
            buffer: Vec::new(),
        }
    }

    /// Copies the range, or the part of it before the end of the source. `progress` gets the bytes moved since the last
    /// call.
    ///
    /// # Errors
    /// The dest holds some of the range.
    pub(crate) fn run(
        &mut self,
        range: Range<u64>,
        progress: Progress<'_>,
    ) -> Result<RangeEnd, ContentError> {
        let mut at = range.start;
        while at < range.end {
            let data = match self.next_data(at) {
                Some(data) => data.start.min(range.end)..data.end.min(range.end),
                // The rest is a hole.
                None => return Ok(RangeEnd::Content(range.end)),
            };
            match self.read_and_write(data.clone(), progress)? {
                RangeEnd::Content(end) if end == data.end => at = end,
                ended => return Ok(ended),
            }
        }
        Ok(RangeEnd::Content(at))
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

    fn read_and_write(
        &mut self,
        data: Range<u64>,
        progress: Progress<'_>,
    ) -> Result<RangeEnd, ContentError> {
        self.buffer.resize(SERVER_BUFFER_BYTES, 0);
        let mut ahead = ReadAhead::new(data.end);
        let (mut at, mut bytes) = (data.start, 0);
        let mut is_complete = false;
        while !is_complete {
            let wanted = (data.end - at).min(self.buffer.len() as u64) as usize;
            let source = self.source;
            let piece = &mut self.buffer[..wanted];
            let read = ahead.read(source, at, piece, |piece| sys::read_at(source, piece, at));
            let read = read.map_err(ContentError::Read)?;
            let written = sys::write_all_at(self.dest, &self.buffer[..read], at);
            written.map_err(ContentError::Write)?;
            at += read as u64;
            bytes += read as u64;
            is_complete = read == 0 || at == data.end;
            if bytes < READ_PIECE_BYTES as u64 && !is_complete {
                continue;
            }
            let rest = (!is_complete).then_some(at);
            match progress(Piece { bytes, rest }) {
                Next::Piece => bytes = 0,
                Next::Share => return Ok(RangeEnd::Shared(at)),
                Next::Cancel => return Err(ContentError::Cancelled),
            }
        }
        Ok(RangeEnd::Content(at))
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
            buffer: Vec::new(),
        };
        let ends = ranges.iter().map(|range| {
            let ended = copy.run(range.clone(), &mut |_| Next::Piece);
            match ended.unwrap() {
                RangeEnd::Content(end) => end,
                RangeEnd::Shared(_) => unreachable!("no other worker wants a part"),
            }
        });
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
