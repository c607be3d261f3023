//! The ladder: ways to move a file's content, best first.
//!
//! `copy_file_range` shares extents where the filesystem can and copies inside
//! the kernel where it cannot; `read` and `write` always work. A rung that is
//! not possible between two files says so before it has moved anything, or at
//! least leaves both offsets where the next one can go on.

use std::os::fd::BorrowedFd;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::sys::{self, Stat};

/// Larger ones gain nothing more; measured on tmpfs, ext4 and xfs.
const BUFFER_BYTES: usize = 128 << 10;
/// Far more than any file: a result equal to the size then is the end of the file.
const ALL: usize = 0x7fff_f000;

/// Which side refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataError {
    Read(Errno),
    Write(Errno),
    /// The kernel moved the data by itself and does not say.
    Copy(Errno),
}

/// A rung of the ladder either went to the end, or is not possible here.
enum Rung {
    Copied,
    NotHere,
}

/// What is known of the source.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) fd: BorrowedFd<'a>,
    pub(super) size: u64,
    pub(super) has_holes: bool,
    /// The filesystem's sizes are to be believed; otherwise the end is where `read` says so.
    pub(super) is_truthful: bool,
}

impl<'a> Source<'a> {
    /// `keeps_holes`: the dest is a file that can have some.
    pub(super) fn new(
        fd: BorrowedFd<'a>,
        stat: &Stat,
        is_truthful: bool,
        keeps_holes: bool,
    ) -> Self {
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let allocated = u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
        Self {
            fd,
            size,
            has_holes: keeps_holes && is_truthful && allocated < size,
            is_truthful,
        }
    }
}

/// One file's content on its way.
pub(super) struct DataCopy<'a> {
    source: Source<'a>,
    dest: BorrowedFd<'a>,
    /// Used by `read` and `write` alone; empty until then.
    buffer: &'a mut Vec<u8>,
    copied: u64,
}

impl<'a> DataCopy<'a> {
    /// Both offsets are at 0 and `dest` is empty.
    pub(super) fn new(source: Source<'a>, dest: BorrowedFd<'a>, buffer: &'a mut Vec<u8>) -> Self {
        Self {
            source,
            dest,
            buffer,
            copied: 0,
        }
    }

    /// Copies from here to the end of the source; returns the bytes copied, holes not counted.
    ///
    /// `pause` is called between the pieces of a large file, with the size of the last one.
    ///
    /// # Errors
    /// `dest` holds the bytes already written.
    pub(super) fn run(mut self, pause: &mut dyn FnMut(u64)) -> Result<u64, DataError> {
        if self.source.has_holes && matches!(self.copy_around_holes(pause)?, Rung::Copied) {
            return Ok(self.copied);
        }
        if self.source.size > 0 && matches!(self.copy_in_kernel(pause)?, Rung::Copied) {
            return Ok(self.copied);
        }
        self.read_and_write(u64::MAX, pause)?;
        Ok(self.copied)
    }

    fn copy_in_kernel(&mut self, pause: &mut dyn FnMut(u64)) -> Result<Rung, DataError> {
        // Asking for more than there is tells that the end was reached.
        let piece = if self.source.size > 2 * sys::PIECE as u64 {
            sys::PIECE
        } else {
            ALL
        };
        loop {
            match sys::copy_range(self.source.fd, None, self.dest, None, piece) {
                // Shorter than it was, or a filesystem that cannot do it and does not say so.
                Ok(0) if self.copied < self.source.size => return Ok(Rung::NotHere),
                Ok(0) if self.source.is_truthful => return Ok(Rung::Copied),
                Ok(0) => return Ok(Rung::NotHere),
                Ok(bytes) => {
                    self.copied += bytes as u64;
                    // Less than was asked for: that was the end.
                    let is_all = self.copied == self.source.size && bytes < piece;
                    if is_all && self.source.is_truthful {
                        return Ok(Rung::Copied);
                    }
                    pause(bytes as u64);
                }
                Err(errno) if is_not_here(errno) => return Ok(Rung::NotHere),
                Err(errno) => return Err(DataError::Copy(errno)),
            }
        }
    }

    /// Copies the data between the holes, and makes the dest as long as the source.
    fn copy_around_holes(&mut self, pause: &mut dyn FnMut(u64)) -> Result<Rung, DataError> {
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
                    sys::set_size(self.dest, end).map_err(DataError::Write)?;
                    return Ok(Rung::Copied);
                }
                Err(Errno::INVAL) if position == 0 => return Ok(Rung::NotHere),
                Err(errno) => return Err(DataError::Read(errno)),
            };
            let hole = sys::seek(self.source.fd, SeekFrom::Hole(data)).map_err(DataError::Read)?;
            if hole <= data {
                return Err(DataError::Read(Errno::IO));
            }
            if !self.copy_extent(data, hole, pause)? {
                // It has become shorter: what was read is the file.
                return Ok(Rung::Copied);
            }
            position = hole;
        }
    }

    /// Copies one run of data; `false` if the source ended before `end`.
    fn copy_extent(
        &mut self,
        start: u64,
        end: u64,
        pause: &mut dyn FnMut(u64),
    ) -> Result<bool, DataError> {
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
                    at += bytes as u64;
                    self.copied += bytes as u64;
                    pause(bytes as u64);
                }
                // Nothing there any more, or not possible: reading tells which.
                Ok(_) => return self.read_extent(at, end, pause),
                Err(errno) if is_not_here(errno) => return self.read_extent(at, end, pause),
                Err(errno) => return Err(DataError::Copy(errno)),
            }
        }
        Ok(true)
    }

    fn read_extent(
        &mut self,
        start: u64,
        end: u64,
        pause: &mut dyn FnMut(u64),
    ) -> Result<bool, DataError> {
        sys::seek(self.source.fd, SeekFrom::Start(start)).map_err(DataError::Read)?;
        sys::seek(self.dest, SeekFrom::Start(start)).map_err(DataError::Write)?;
        Ok(self.read_and_write(end - start, pause)? == end - start)
    }

    /// Copies up to `limit` bytes from the current offsets; returns how many there were.
    fn read_and_write(&mut self, limit: u64, pause: &mut dyn FnMut(u64)) -> Result<u64, DataError> {
        self.buffer.resize(BUFFER_BYTES, 0);
        let (mut done, mut since_pause) = (0, 0);
        while done < limit {
            let wanted = usize::try_from(limit - done)
                .unwrap_or(ALL)
                .min(BUFFER_BYTES);
            let read =
                sys::read(self.source.fd, &mut self.buffer[..wanted]).map_err(DataError::Read)?;
            if read == 0 {
                break;
            }
            sys::write_all(self.dest, &self.buffer[..read]).map_err(DataError::Write)?;
            done += read as u64;
            self.copied += read as u64;
            since_pause += read as u64;
            if since_pause >= sys::PIECE as u64 {
                pause(std::mem::take(&mut since_pause));
            }
        }
        Ok(done)
    }
}

/// What `copy_file_range` says of files, or of kernels, for which it is not made.
fn is_not_here(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOSYS
            | Errno::XDEV
            | Errno::INVAL
            | Errno::OPNOTSUPP
            | Errno::PERM
            | Errno::ACCESS
            | Errno::BADF
            | Errno::TXTBSY
            | Errno::NOTTY
            | Errno::NOENT
    )
}
