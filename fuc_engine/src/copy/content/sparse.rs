//! Makes holes out of blocks of zeros, for `--sparse=always`.
//!
//! Content is written front to back, and blocks of zeros are skipped. If the content ends with
//! a hole, the file is extended to its size at the end.

use std::os::fd::BorrowedFd;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::sys;

/// A writer to an empty regular file that skips blocks of zeros.
pub(super) struct HoleMaker<'a> {
    dest: BorrowedFd<'a>,
    block_bytes: usize,
    /// Position in the file of the next byte.
    at: u64,
    /// Position of the dest's own offset.
    written_to: u64,
}

impl<'a> HoleMaker<'a> {
    /// Limits for the block size that the filesystem reports: no filesystem allocates smaller
    /// blocks, and network filesystems report sizes that are not those of their blocks.
    const BLOCK_BYTES: std::ops::RangeInclusive<usize> = 512..=64 << 10;

    pub(super) fn new(dest: BorrowedFd<'a>) -> Result<Self, Errno> {
        let stat = sys::stat_open(dest)?;
        let block_bytes = usize::try_from(stat.st_blksize).unwrap_or(0);
        Ok(Self {
            dest,
            block_bytes: block_bytes.clamp(*Self::BLOCK_BYTES.start(), *Self::BLOCK_BYTES.end()),
            at: 0,
            written_to: 0,
        })
    }

    pub(super) fn write(&mut self, mut bytes: &[u8]) -> Result<(), Errno> {
        while !bytes.is_empty() {
            let (zeros, data) = self.next_runs(bytes);
            self.at += zeros as u64;
            if data > 0 {
                if self.written_to < self.at {
                    sys::punch_hole(self.dest, self.written_to..self.at);
                    sys::seek(self.dest, SeekFrom::Start(self.at))?;
                }
                sys::write_all(self.dest, &bytes[zeros..zeros + data])?;
                self.at += data as u64;
                self.written_to = self.at;
            }
            bytes = &bytes[zeros + data..];
        }
        Ok(())
    }

    /// Continues at position `at`, which leaves a hole.
    pub(super) fn skip_to(&mut self, at: u64) {
        self.at = at;
    }

    /// Extends the dest to the current position.
    pub(super) fn finish(self) -> Result<(), Errno> {
        if self.written_to != self.at {
            sys::set_size(self.dest, self.at)?;
            sys::punch_hole(self.dest, self.written_to..self.at);
        }
        Ok(())
    }

    /// Counts the bytes in leading blocks of zeros, and those in the other blocks that follow.
    fn next_runs(&self, bytes: &[u8]) -> (usize, usize) {
        let mut end = 0;
        let mut zeros = None;
        while end < bytes.len() {
            let at = self.at + end as u64;
            let to_boundary = self.block_bytes - (at % self.block_bytes as u64) as usize;
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
}

/// Returns `true` if all bytes are zero. Compares the slice with itself, shifted by one byte,
/// because `memcmp` is fast.
fn is_zero(bytes: &[u8]) -> bool {
    match bytes {
        [first, rest @ ..] => *first == 0 && *rest == bytes[..rest.len()],
        [] => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn runs(at: u64, bytes: &[u8]) -> (usize, usize) {
        let file = std::fs::File::open("/dev/null").unwrap();
        let maker = HoleMaker {
            dest: file.as_fd(),
            block_bytes: 4,
            at,
            written_to: 0,
        };
        maker.next_runs(bytes)
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
