//! Copies a range of a file, while others may copy other ranges of it through the same descriptors.
//!
//! All positions are explicit, because the descriptors share one offset. The dest must be new: holes of the source
//! are left out.

use std::ops::Range;
use std::os::fd::BorrowedFd;

use super::read_ahead::ReadAhead;
use super::sparse::next_data;
use super::{ContentError, Piece, READ_PIECE_BYTES, SERVER_BUFFER_BYTES, has_holes};
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

    /// Copies the range, or the part of it before the end of the source. `on_piece` gets the bytes moved since the last
    /// call. It returns the end of the range, which may have come nearer, or `None` if the run was cancelled. Returns the
    /// position at which the copy has ended.
    ///
    /// # Errors
    /// The dest holds some of the range.
    pub(crate) fn run(
        &mut self,
        range: Range<u64>,
        on_piece: &mut dyn FnMut(Piece) -> Option<u64>,
    ) -> Result<u64, ContentError> {
        let Range {
            start: mut at,
            mut end,
        } = range;
        while at < end {
            let data = match self.keeps_holes {
                true => next_data(self.source, at),
                false => Ok(Some(at..u64::MAX)),
            };
            let data = match data {
                Ok(Some(data)) => data,
                // The rest is a hole.
                Ok(None) => return Ok(end),
                // Reading copies data and holes alike.
                Err(_) => at..u64::MAX,
            };
            at = data.start.min(end);
            let mut ahead = ReadAhead::new(data.end.min(end));
            let (mut bytes, mut is_complete) = (0, false);
            while !is_complete {
                let read = self.move_piece(at..data.end.min(end), &mut ahead)?;
                at += read;
                bytes += read;
                is_complete = read == 0 || at == data.end.min(end);
                if bytes >= READ_PIECE_BYTES as u64 || is_complete {
                    let rest = (!is_complete).then_some(at);
                    end = on_piece(Piece { bytes, rest }).ok_or(ContentError::Cancelled)?;
                    bytes = 0;
                }
            }
            if at < data.end.min(end) {
                break;
            }
        }
        Ok(at)
    }

    /// Copies the beginning of `data`. Returns how many bytes there were.
    fn move_piece(&mut self, data: Range<u64>, ahead: &mut ReadAhead) -> Result<u64, ContentError> {
        self.buffer.resize(SERVER_BUFFER_BYTES, 0);
        let (source, at) = (self.source, data.start);
        let wanted = (data.end - at).min(self.buffer.len() as u64) as usize;
        let piece = &mut self.buffer[..wanted];
        let read = ahead.read(source, at, piece, |piece| sys::read_at(source, piece, at));
        let read = read.map_err(ContentError::Read)?;
        let written = sys::write_all_at(self.dest, &self.buffer[..read], at);
        written.map_err(ContentError::Write)?;
        Ok(read as u64)
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
            let ended = copy.run(range.clone(), &mut |_| Some(range.end));
            ended.unwrap()
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
