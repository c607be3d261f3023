//! The ladder: ways to move a file's content, best first.
//!
//! A clone shares all blocks at once; it is tried when it is asked for and for
//! large files. `copy_file_range` shares blocks where the filesystem can and
//! copies inside the kernel where it cannot; `read` and `write` always work, and
//! never share: so they alone serve where the options have a say in blocks. A rung that is
//! not possible between two files says so before it has moved anything, or at
//! least leaves both offsets where the next one can go on.

use std::os::fd::BorrowedFd;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::sparse::HoleMaker;
use super::{CopyOptions, Reflink, Sparse};
use crate::observer::{CopyMethod, HoleDetection, Mechanism};
use crate::sys::{self, Stat};

/// Larger ones gain nothing more; measured on tmpfs, ext4 and xfs.
const BUFFER_BYTES: usize = 128 << 10;
/// Smaller ones are not worth the question whether they can be cloned: where
/// they can, `copy_file_range` does so as well.
const WORTH_CLONING: u64 = 4 << 20;
/// Far more than any file: a result equal to the size then is the end of the file.
pub(super) const ALL: usize = 0x7fff_f000;

/// Which side refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataError {
    Read(Errno),
    Write(Errno),
    /// The kernel moved the data by itself and does not say.
    Copy(Errno),
    /// The dest was to share the source's blocks, and cannot.
    Clone(Errno),
}

/// What may be done to move content.
#[derive(Clone, Copy)]
pub(super) struct Ways {
    reflink: Reflink,
    sparse: Sparse,
}

impl Ways {
    pub(super) fn new(options: &CopyOptions) -> Self {
        Self {
            reflink: options.reflink,
            sparse: options.sparse,
        }
    }

    /// The kernel may share blocks, which keeps holes and zeros as they are.
    pub(super) fn lets_the_kernel_copy(self) -> bool {
        self.reflink != Reflink::Never && self.sparse == Sparse::Auto
    }
}

/// What was done.
pub(super) struct Moved {
    pub(super) bytes: u64,
    pub(super) method: CopyMethod,
}

impl Moved {
    pub(super) fn nothing() -> Self {
        Self {
            bytes: 0,
            method: CopyMethod::default(),
        }
    }
}

/// A rung of the ladder either went to the end, or is not possible here.
pub(super) enum Rung {
    Copied,
    NotHere,
}

/// What is known of the source.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) fd: BorrowedFd<'a>,
    pub(super) size: u64,
    has_holes: bool,
    /// The filesystem's sizes are to be believed; otherwise the end is where `read` says so.
    pub(super) is_truthful: bool,
}

impl<'a> Source<'a> {
    pub(super) fn new(fd: BorrowedFd<'a>, stat: &Stat, is_truthful: bool) -> Self {
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let allocated = u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
        Self {
            fd,
            size,
            has_holes: allocated < size,
            is_truthful,
        }
    }
}

/// Where it goes.
#[derive(Clone, Copy)]
pub(super) struct Dest<'a> {
    pub(super) fd: BorrowedFd<'a>,
    /// A regular one, which can have holes.
    pub(super) is_file: bool,
}

/// One file's content on its way.
pub(super) struct DataCopy<'a> {
    pub(super) source: Source<'a>,
    pub(super) dest: BorrowedFd<'a>,
    can_have_holes: bool,
    pub(super) ways: Ways,
    pub(super) method: CopyMethod,
    /// For holes where the source has none.
    pub(super) hole_maker: Option<HoleMaker<'a>>,
    /// Used by `read` and `write` alone; empty until then.
    buffer: &'a mut Vec<u8>,
    pub(super) copied: u64,
    /// The source ended before it should have.
    pub(super) is_short: bool,
}

impl<'a> DataCopy<'a> {
    /// Both offsets are at 0 and `dest` is empty.
    pub(super) fn new(
        source: Source<'a>,
        dest: Dest<'a>,
        ways: Ways,
        buffer: &'a mut Vec<u8>,
    ) -> Self {
        Self {
            source,
            dest: dest.fd,
            can_have_holes: dest.is_file,
            ways,
            method: CopyMethod::default(),
            hole_maker: None,
            buffer,
            copied: 0,
            is_short: false,
        }
    }

    /// Copies from here to the end of the source; returns the bytes copied, holes not counted.
    ///
    /// `pause` is called between the pieces of a large file, with the size of the last one.
    ///
    /// # Errors
    /// `dest` holds the bytes already written.
    pub(super) fn run(mut self, pause: &mut dyn FnMut(u64)) -> Result<Moved, DataError> {
        self.method.offload = match self.ways.lets_the_kernel_copy() {
            true => Mechanism::NotNeeded,
            false => Mechanism::Avoided,
        };
        if let Rung::NotHere = self.try_clone()? {
            if self.ways.sparse == Sparse::Always && self.can_have_holes {
                let maker = HoleMaker::new(self.dest).map_err(DataError::Write)?;
                self.hole_maker = Some(maker);
                self.method.holes = HoleDetection::Zeros;
            }
            self.climb_down(pause)?;
            if let Some(maker) = self.hole_maker.take() {
                maker.finish().map_err(DataError::Write)?;
            }
            self.cut_at_end()?;
        }
        Ok(Moved {
            bytes: self.copied,
            method: self.method,
        })
    }

    /// Tries the rungs below cloning.
    fn climb_down(&mut self, pause: &mut dyn FnMut(u64)) -> Result<(), DataError> {
        let looks_for_holes = self.source.has_holes && self.can_have_holes;
        if looks_for_holes
            && self.ways.sparse != Sparse::Never
            && matches!(self.copy_around_holes(pause)?, Rung::Copied)
        {
            return Ok(());
        }
        if self.source.size > 0
            && self.ways.lets_the_kernel_copy()
            && matches!(self.copy_in_kernel(pause)?, Rung::Copied)
        {
            return Ok(());
        }
        self.read_and_write(u64::MAX, pause)?;
        self.is_short = self.copied < self.source.size;
        Ok(())
    }

    /// A source that was truncated meanwhile may have been read as zeros behind its
    /// new end. None of these stay.
    fn cut_at_end(&self) -> Result<(), DataError> {
        if !(self.is_short && self.source.is_truthful && self.can_have_holes) {
            return Ok(());
        }
        let end = sys::seek(self.source.fd, SeekFrom::End(0)).map_err(DataError::Read)?;
        let written = sys::seek(self.dest, SeekFrom::End(0)).map_err(DataError::Write)?;
        if end < written {
            sys::set_size(self.dest, end).map_err(DataError::Write)?;
        }
        Ok(())
    }

    /// Lets the dest share all blocks of the source.
    fn try_clone(&mut self) -> Result<Rung, DataError> {
        let is_asked_for = self.ways.reflink == Reflink::Always;
        let is_worth_it = self.ways.lets_the_kernel_copy()
            && self.source.is_truthful
            && self.source.size >= WORTH_CLONING;
        self.method.reflink = match self.ways.lets_the_kernel_copy() {
            // `copy_file_range` may do it without telling.
            true => Mechanism::Unknown,
            false => Mechanism::Avoided,
        };
        if !is_asked_for && !is_worth_it {
            return Ok(Rung::NotHere);
        }
        match sys::clone_file(self.source.fd, self.dest) {
            Ok(()) => {
                self.copied = self.source.size;
                self.method.reflink = Mechanism::Used;
                Ok(Rung::Copied)
            }
            Err(errno) if is_asked_for => Err(DataError::Clone(errno)),
            Err(_) => {
                self.method.reflink = Mechanism::Unsupported;
                Ok(Rung::NotHere)
            }
        }
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
                    self.method.offload = Mechanism::Used;
                    self.copied += bytes as u64;
                    // Less than was asked for: that was the end.
                    let is_all = self.copied == self.source.size && bytes < piece;
                    if is_all && self.source.is_truthful {
                        return Ok(Rung::Copied);
                    }
                    pause(bytes as u64);
                }
                Err(errno) if is_not_here(errno) => {
                    self.method.offload = Mechanism::Unsupported;
                    return Ok(Rung::NotHere);
                }
                Err(errno) => return Err(DataError::Copy(errno)),
            }
        }
    }

    pub(super) fn read_extent(
        &mut self,
        start: u64,
        end: u64,
        pause: &mut dyn FnMut(u64),
    ) -> Result<bool, DataError> {
        sys::seek(self.source.fd, SeekFrom::Start(start)).map_err(DataError::Read)?;
        match &mut self.hole_maker {
            Some(maker) => maker.skip_to(start),
            None => {
                sys::seek(self.dest, SeekFrom::Start(start)).map_err(DataError::Write)?;
            }
        }
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
            let bytes = &self.buffer[..read];
            match &mut self.hole_maker {
                Some(maker) => maker.write(bytes),
                None => sys::write_all(self.dest, bytes),
            }
            .map_err(DataError::Write)?;
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
pub(super) fn is_not_here(errno: Errno) -> bool {
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
