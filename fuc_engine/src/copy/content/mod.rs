//! Moves a file's content from one open file to another, by the ladder of ways to do so, best first.
//!
//! | rung | used | shares blocks |
//! |---|---|---|
//! | clone | if asked for, for large files, and if zeros become holes | always |
//! | `copy_file_range` | if the options do not restrict blocks | if the filesystem can |
//! | [`Divide`] | for large files, if the caller has helpers | never |
//! | `read` and `write` | always possible | never |
//!
//! If the source is on the filesystem of a server, `copy_file_range` is the best way as long as the server
//! copies. If the server cannot, the kernel sends it 64 KiB at a time and waits for each reply, and larger
//! writes are faster. So a large file without holes begins with a trial, which shows how the time grows
//! with the number of bytes.
//!
//! The invariant: a rung that fails leaves both offsets at the position from which the next rung can continue. Only
//! `read` and `write` decide that content cannot be moved, and which side fails: whatever error the other rungs
//! return, a filesystem may be able to do without them. But their error may say that content is lost that was moved
//! before, and then the copy fails.
//!
//! - [`sparse`]: finds the holes of a source, and leaves holes in a dest.
//! - [`read_ahead`]: lets the kernel read the source of a server ahead.
//!
//! Nothing here knows entries, paths or reports.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::options::{CopyOp, Reflink, Sparse};
use crate::observer::{CopyMethod, HoleSearch, Mechanism};
use crate::sys::{self, Fd, Stat, Storage};

mod read_ahead;
mod sparse;

pub(super) use sparse::is_zero;

use read_ahead::ReadAhead;
use sparse::SparseWriter;

/// Size of the buffer for `read` and `write`. Larger buffers were not faster on tmpfs, ext4
/// and xfs.
const BUFFER_BYTES: usize = 128 << 10;
/// The same for large files that come from the filesystem of a server, which gets larger requests then.
///
/// Copying 200 MB to a server that answers after 1 ms: 128 KiB takes 1.37 of the time.
const SERVER_BUFFER_BYTES: usize = 1 << 20;
/// Bytes that the kernel sends to a server by one request if the server cannot copy by itself.
const REQUEST_BYTES: usize = 64 << 10;
/// Number of such requests that are compared with a single one.
const REQUESTS: u32 = 4;
/// Time for one request from which the kernel probably waits for a server. A copy of as many bytes in memory
/// takes less.
///
/// Copying 200 MB within a server's filesystem, which answers after 1 ms, 0.1 ms and at once: 2.4, 1.4 and 1.0
/// of the time if the kernel copies (medians of 3 to 5, two cores). The server is that of the benchmarks.
const SLOW_REQUEST: Duration = Duration::from_micros(50);
/// Bytes of a large file that are moved by one call. Between two calls, a worker can report
/// progress and give work away. This many bytes take some milliseconds, so the additional calls
/// cost next to nothing.
pub(super) const PIECE_BYTES: usize = 8 << 20;
/// The same for content that is read and written. Servers need long for this many bytes.
const READ_PIECE_BYTES: usize = 1 << 20;
/// Pieces that the kernel copies grow up to this size while a server copies one in [`SHORT_PIECE`]: it may
/// only note that blocks are shared.
///
/// Copying 200 MB within JuiceFS takes 9 calls instead of 29, and 10 ms instead of 25.
const SERVER_PIECE_BYTES: usize = 16 * PIECE_BYTES;
const SHORT_PIECE: Duration = Duration::from_millis(10);
/// Time for a part of a piece that is read after which the run looks whether it was cancelled. A signal ends
/// a run that has not noticed it for two seconds.
const LONG_READ: Duration = Duration::from_millis(100);
/// Length passed to `copy_file_range` to copy to the end of the file: the most that one call
/// of the kernel moves.
const ALL: usize = 0x7fff_f000;
/// Size of the smallest file that begins with a trial, which shows whether a server copies. The trial copies a third of
/// it.
const TRIAL_FROM: u64 = 1 << 20;
/// Size of the smallest file for which cloning is tried even if the options do not ask for it. For smaller files the
/// extra call does not pay, because `copy_file_range` clones too if the filesystem can.
const CLONE_FROM: u64 = 4 << 20;

/// Says how a copy goes on after a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Piece,
    /// The run was cancelled.
    Cancel,
}

/// Called between the pieces of a large file, with the bytes moved since the last call.
pub(super) type OnPiece<'p> = &'p mut dyn FnMut(u64) -> Next;

/// The reason why content could not be moved, by the side that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentError {
    Read(Errno),
    Write(Errno),
    /// Sharing blocks was required and failed.
    Clone(Errno),
    /// The run was cancelled.
    Cancelled,
}

/// The result of a copy of content, and how it was moved, perhaps until an error.
pub(super) struct Moved {
    /// Bytes moved since the last piece, holes not counted.
    pub(super) bytes: Result<u64, ContentError>,
    pub(super) method: CopyMethod,
}

impl Moved {
    /// Returns the result for so many bytes that were not moved by this process.
    pub(super) fn bytes(bytes: u64) -> Self {
        Self {
            bytes: Ok(bytes),
            method: CopyMethod::default(),
        }
    }
}

/// Says whether a rung copied to the end, or is not possible between these two files.
enum Rung {
    Copied,
    NotHere,
}

/// A source that is open.
pub(super) struct OpenSource<'s> {
    pub(super) fd: Fd,
    /// Stat of the source when it was opened.
    pub(super) stat: &'s Stat,
    /// Says where the content is, if the source is a regular file.
    pub(super) storage: Storage,
}

impl OpenSource<'_> {
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn is_known_empty(&self) -> bool {
        self.reports_true_size() && self.stat.st_size == 0
    }

    /// Prepares to copy the content of a regular file once more.
    pub(super) fn rewind(&self) -> Result<(), Errno> {
        sys::seek(self.fd(), SeekFrom::Start(0)).map(drop)
    }

    fn size(&self) -> u64 {
        self.stat.st_size as u64
    }

    /// Returns `true` if the size is true. Otherwise only `read` finds the end.
    fn reports_true_size(&self) -> bool {
        self.storage.reports_true_size()
    }

    /// Returns `true` if the file is large and a server stores it. On other filesystems `read` and `write`
    /// are never faster than the kernel.
    fn is_worth_a_trial(&self) -> bool {
        self.size() >= TRIAL_FROM && self.storage == Storage::Server
    }
}

/// Returns `true` if a file may have holes.
pub(super) fn has_holes(stat: &Stat) -> bool {
    let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
    // As in cp, a last block that is incomplete does not count. A small file can be stored
    // without blocks.
    blocks < stat.st_size as u64 / 512
}

/// Lets helpers of the caller copy parts of a file.
pub(super) trait Divide {
    /// Copies a range, as long as `goes_on` returns `true`. Returns `false` if something is missing.
    fn divide(&self, range: Range<u64>, goes_on: &mut dyn FnMut() -> bool) -> bool;
}

/// The file that content goes to.
#[derive(Clone, Copy)]
pub(super) struct Sink<'a> {
    pub(super) fd: BorrowedFd<'a>,
    /// `true` for a regular file, which can have holes.
    pub(super) is_file: bool,
    /// It was not truncated, and gets no holes. What is behind the new content is removed last.
    pub(super) keeps_content: bool,
    /// `None` if this engine copies all of the content.
    pub(super) divide: Option<&'a dyn Divide>,
}

/// One copy of content.
pub(super) struct ContentCopy<'a> {
    source: &'a OpenSource<'a>,
    dest: Sink<'a>,
    options: &'a CopyOp<'a>,
    method: CopyMethod,
    writer: SparseWriter<'a>,
    /// The buffer of `read` and `write`, which may be empty until they need it.
    buffer: &'a mut Vec<u8>,
    /// `None` if the source is small, or if no server stores it.
    read_ahead: Option<ReadAhead>,
    /// Bytes moved since the last call of `on_piece`.
    unreported: u64,
    /// `true` if the source ended before its size.
    is_short: bool,
}

impl<'a> ContentCopy<'a> {
    /// Prepares a copy. Both offsets must be 0, and `dest` must be empty unless it keeps its content.
    pub(super) fn new(
        source: &'a OpenSource<'a>,
        dest: Sink<'a>,
        options: &'a CopyOp<'a>,
        buffer: &'a mut Vec<u8>,
        on_piece: OnPiece<'a>,
    ) -> Self {
        let makes_holes = dest.is_file && options.sparse != Sparse::Never;
        Self {
            source,
            dest,
            options,
            method: CopyMethod::default(),
            writer: SparseWriter::new(dest.fd, !makes_holes, on_piece),
            buffer,
            read_ahead: None,
            unreported: 0,
            is_short: false,
        }
    }

    /// Copies to the end of the source.
    ///
    /// # Errors
    /// `dest` holds the bytes already written.
    pub(super) fn copy_to_end(mut self) -> Moved {
        let moved = self.move_all();
        Moved {
            bytes: moved.map(|()| self.unreported),
            method: self.method,
        }
    }

    fn move_all(&mut self) -> Result<(), ContentError> {
        if let Rung::Copied = self.try_clone()? {
            return Ok(());
        }
        self.method.holes = Some(HoleSearch::default());
        if self.options.sparse == Sparse::Always && self.dest.is_file {
            self.find_zeros()?;
        }
        self.try_rungs()?;
        self.writer.end_content()?;
        self.cut_at_end()?;
        if self.dest.keeps_content {
            self.cut_old_content()?;
        }
        Ok(())
    }

    /// Returns `true` if the kernel may move content by itself.
    fn lets_kernel_copy(&self) -> bool {
        // Only a file can get holes.
        let options = self.options;
        options.lets_kernel_copy() || options.may_share_blocks() && !self.dest.is_file
    }

    /// Leaves holes in the dest where the source has blocks of zeros.
    fn find_zeros(&mut self) -> Result<(), ContentError> {
        self.writer.find_zeros().map_err(ContentError::Write)
    }

    /// Tries the rungs below cloning.
    fn try_rungs(&mut self) -> Result<(), ContentError> {
        // A filesystem that is wrong about holes is not asked if none are made.
        if has_holes(self.source.stat)
            && (self.writer.makes_holes() || self.options.reports_methods)
        {
            if let Rung::Copied = self.try_dividing()? {
                return Ok(());
            }
            if let Rung::Copied = self.copy_around_holes()? {
                return Ok(());
            }
            // As in cp, if the filesystem does not say where they are.
            if self.writer.makes_holes() {
                self.find_zeros()?;
            }
        } else if (self.source.size() > 0 || self.options.reports_methods)
            && self.lets_kernel_copy()
            && !(self.source.is_worth_a_trial() && self.kernel_waits_for_requests()?)
            && matches!(self.copy_in_kernel()?, Rung::Copied)
            || matches!(self.try_dividing()?, Rung::Copied)
        {
            return Ok(());
        }
        if self.source.is_worth_a_trial() {
            self.read_ahead = Some(ReadAhead::new(self.source.size()));
        }
        self.read_and_write(u64::MAX)?;
        self.is_short = self.writer.position() < self.source.size();
        Ok(())
    }

    /// Lets helpers of the caller copy what is left to a dest that has its whole size. What they copy is counted by them.
    fn try_dividing(&mut self) -> Result<Rung, ContentError> {
        let Some(divide) = self.dest.divide else {
            return Ok(Rung::NotHere);
        };
        let rest = self.writer.position()..self.source.size();
        let mut next = Next::Piece;
        let mut goes_on = || {
            next = (self.writer.on_piece)(0);
            next == Next::Piece
        };
        let is_copied = sparse::extend(self.dest.fd, rest.end).is_ok()
            && divide.divide(rest.clone(), &mut goes_on);
        if next == Next::Cancel {
            return Err(ContentError::Cancelled);
        }
        if is_copied {
            self.writer.note_copied(rest.end - rest.start);
            return Ok(Rung::Copied);
        }
        sys::set_size(self.dest.fd, rest.start).map_err(ContentError::Write)?;
        Ok(Rung::NotHere)
    }

    /// Truncates the dest to the source's present size if the source became shorter: the kernel may
    /// have returned zeros after its new end.
    fn cut_at_end(&self) -> Result<(), ContentError> {
        if !(self.is_short && self.source.reports_true_size() && self.dest.is_file) {
            return Ok(());
        }
        let end = sys::seek(self.source.fd(), SeekFrom::End(0)).map_err(ContentError::Read)?;
        if end < self.writer.position() {
            sys::set_size(self.dest.fd, end).map_err(ContentError::Write)?;
        }
        Ok(())
    }

    /// Removes what is left of the old content of the dest. It gets a new time of modification even if nothing was written.
    ///
    /// If the source has grown, so has perhaps the dest, and nothing is removed.
    #[cold]
    fn cut_old_content(&self) -> Result<(), ContentError> {
        let position = self.writer.position();
        let end = sys::seek(self.source.fd(), SeekFrom::End(0)).map_err(ContentError::Read)?;
        if end > position {
            return Ok(());
        }
        let has_size =
            || sys::stat_open(self.dest.fd).is_ok_and(|stat| stat.st_size as u64 == position);
        match sys::set_size(self.dest.fd, position) {
            Err(errno) if !has_size() => Err(ContentError::Write(errno)),
            _ => Ok(()),
        }
    }

    /// Lets the dest share all blocks of the source.
    fn try_clone(&mut self) -> Result<Rung, ContentError> {
        let options = self.options;
        let is_asked_for = options.reflink == Reflink::Always;
        let is_large = self.source.reports_true_size() && self.source.size() >= CLONE_FROM;
        // The kernel shares blocks of smaller files by itself, if it may copy them.
        let is_left_to_kernel = !is_large && !options.reports_methods && options.lets_kernel_copy();
        if !is_asked_for && (is_left_to_kernel || !options.may_share_blocks()) {
            return Ok(Rung::NotHere);
        }
        match sys::clone_file(self.source.fd(), self.dest.fd) {
            Ok(()) => {
                self.unreported = self.source.size();
                self.method.reflink = Mechanism::Used;
                Ok(Rung::Copied)
            }
            Err(errno) => {
                self.method.reflink = Mechanism::Unsupported;
                match is_asked_for {
                    true => Err(ContentError::Clone(errno)),
                    false => Ok(Rung::NotHere),
                }
            }
        }
    }

    /// Lets the kernel copy some pieces. Returns `true` if it waits for a server after each 64 KiB.
    #[cold]
    fn kernel_waits_for_requests(&mut self) -> Result<bool, ContentError> {
        // The first call also waits for the first bytes of the source.
        let mut times = [Duration::ZERO; 3];
        for (time, requests) in times.iter_mut().zip([1, 1, REQUESTS as usize]) {
            match self.time_in_kernel(REQUEST_BYTES * requests)? {
                Some(taken) => *time = taken,
                None => return Ok(false),
            }
        }
        let [_, one, several] = times;
        // If the server copies, the time hardly grows with the number of bytes.
        Ok(one >= SLOW_REQUEST && several >= one * REQUESTS / 2)
    }

    /// Copies `bytes` by `copy_file_range` and returns how long it took. Returns `None` if fewer were copied.
    fn time_in_kernel(&mut self, bytes: usize) -> Result<Option<Duration>, ContentError> {
        let started = Instant::now();
        let copied = self.try_copy_range(None, bytes)?.unwrap_or(0);
        let time = started.elapsed();
        if copied > 0 {
            self.note_copied(copied as u64);
        }
        Ok((copied == bytes).then_some(time))
    }

    fn try_copy_range(
        &self,
        source_offset: Option<&mut u64>,
        bytes: usize,
    ) -> Result<Option<usize>, ContentError> {
        sys::try_copy_range(self.source.fd(), source_offset, self.dest.fd, bytes)
            .map_err(ContentError::Write)
    }

    fn copy_in_kernel(&mut self) -> Result<Rung, ContentError> {
        // Ask for more than there is: then a short result shows that the end was reached.
        let (mut piece, least) = match self.source.size() > 2 * PIECE_BYTES as u64 {
            true => (PIECE_BYTES, 1),
            false => (ALL, PIECE_BYTES),
        };
        loop {
            let started = self.source.is_worth_a_trial().then(Instant::now);
            match self.try_copy_range(None, piece)? {
                Some(0) => {
                    let is_end = self.writer.position() >= self.source.size();
                    return Ok(match is_end && self.source.reports_true_size() {
                        true => Rung::Copied,
                        // The source became shorter, or the filesystem fails without an error.
                        false => Rung::NotHere,
                    });
                }
                Some(bytes) => {
                    self.note_copied(bytes as u64);
                    // A short result is the end.
                    let is_all = self.writer.position() == self.source.size() && bytes < piece;
                    if is_all && self.source.reports_true_size() {
                        return Ok(Rung::Copied);
                    }
                    self.report_moved(least)?;
                    if piece < SERVER_PIECE_BYTES
                        && started.is_some_and(|started| started.elapsed() < SHORT_PIECE)
                    {
                        piece *= 2;
                    }
                }
                None => {
                    self.method.offload = Mechanism::Unsupported;
                    return Ok(Rung::NotHere);
                }
            }
        }
    }

    /// Copies the bytes from `start` to `end` by reading them. Returns `false` if the source
    /// ended before.
    fn read_extent(&mut self, start: u64, end: u64) -> Result<bool, ContentError> {
        sys::seek(self.source.fd(), SeekFrom::Start(start)).map_err(ContentError::Read)?;
        self.writer.skip_to(start);
        Ok(self.read_and_write(end - start)? == end - start)
    }

    /// Notes bytes that the kernel has copied.
    fn note_copied(&mut self, bytes: u64) {
        self.method.offload = Mechanism::Used;
        self.writer.note_copied(bytes);
        self.unreported += bytes;
    }

    /// Reports the bytes that were moved since the last report, if there are at least `least`.
    fn report_moved(&mut self, least: usize) -> Result<(), ContentError> {
        if self.unreported < least as u64 {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.unreported);
        match (self.writer.on_piece)(bytes) {
            Next::Piece => Ok(()),
            Next::Cancel => Err(ContentError::Cancelled),
        }
    }

    /// Copies up to `limit` bytes from the current offsets, and returns how many there were.
    fn read_and_write(&mut self, limit: u64) -> Result<u64, ContentError> {
        let buffer_bytes = match self.source.is_worth_a_trial() {
            true => SERVER_BUFFER_BYTES,
            false => BUFFER_BYTES,
        };
        if self.buffer.len() < buffer_bytes {
            self.buffer.resize(buffer_bytes, 0);
        }
        let finds_zeros = self.writer.finds_zeros();
        self.method.holes.get_or_insert_default().finds_zeros |= finds_zeros;
        if finds_zeros || !self.lets_kernel_copy() {
            self.method.offload = Mechanism::Avoided;
        }
        let mut done = 0;
        while done < limit {
            let wanted = usize::try_from(limit - done)
                .unwrap_or(ALL)
                .min(buffer_bytes);
            let begin = Instant::now();
            let (source, piece) = (self.source.fd(), &mut self.buffer[..wanted]);
            let read = match &mut self.read_ahead {
                None => sys::read(source, piece),
                Some(ahead) => {
                    let at = self.writer.position();
                    ahead.read(source, at, piece, |piece| sys::read(source, piece))
                }
            };
            let read = read.map_err(ContentError::Read)?;
            if read == 0 {
                break;
            }
            self.writer.write(&self.buffer[..read])?;
            done += read as u64;
            self.unreported += read as u64;
            let least = match begin.elapsed() < LONG_READ {
                true => READ_PIECE_BYTES,
                false => 1,
            };
            self.report_moved(least)?;
        }
        // Only few files need a large buffer.
        if self.buffer.len() > BUFFER_BYTES {
            *self.buffer = Vec::new();
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    /// Copies a file of `size` bytes, and returns what was reported between its pieces.
    fn reported(size: usize, storage: Storage) -> Vec<u64> {
        reported_by(size, storage, |copy| copy.copy_to_end().bytes.unwrap())
    }

    /// Does the same by `copy`, which returns the bytes that it did not report.
    fn reported_by(
        size: usize,
        storage: Storage,
        copy: impl FnOnce(ContentCopy<'_>) -> u64,
    ) -> Vec<u64> {
        let dir = tempfile::tempdir().unwrap();
        let [source, dest] = ["s", "d"].map(|name| dir.path().join(name));
        std::fs::write(&source, vec![1; size]).unwrap();
        let written = File::create(&dest).unwrap();
        let fd: Fd = std::os::fd::OwnedFd::from(File::open(source).unwrap()).into();
        let stat = &sys::stat_open(&fd).unwrap();
        let from = OpenSource { fd, stat, storage };
        let to = Sink {
            fd: written.as_fd(),
            is_file: true,
            keeps_content: false,
            divide: None,
        };
        let options = CopyOp {
            // A filesystem that can clone would do so.
            reflink: if size > PIECE_BYTES {
                Reflink::Never
            } else {
                Reflink::Auto
            },
            ..CopyOp::default()
        };
        let mut reported = Vec::new();
        let mut on_piece = |bytes| {
            reported.push(bytes);
            Next::Piece
        };
        let mut buffer = Vec::new();
        let rest = copy(ContentCopy::new(
            &from,
            to,
            &options,
            &mut buffer,
            &mut on_piece,
        ));
        assert_eq!(rest + reported.iter().sum::<u64>(), size as u64);
        assert!(std::fs::read(dest).unwrap() == vec![1; size]);
        reported
    }

    #[test]
    fn a_small_file_is_copied_without_a_pause() {
        for storage in [Storage::Native, Storage::Server, Storage::Other] {
            assert_eq!(reported(1024, storage), [0; 0], "{storage:?}");
        }
    }

    #[test]
    fn a_large_file_is_reported_in_pieces() {
        for storage in [Storage::Native, Storage::Server, Storage::Other] {
            // A slow read is reported at once, and beside other processes some are slow, but not each time.
            let is_in_pieces = |_| {
                let reported = reported(5 * PIECE_BYTES, storage);
                assert!(reported.len() >= 4, "{storage:?}: {reported:?}");
                let mut pieces = reported.iter();
                pieces.all(|&bytes| bytes >= READ_PIECE_BYTES as u64)
            };
            assert!((0..50).any(is_in_pieces), "{storage:?}");
        }
    }

    #[test]
    fn pieces_grow_if_a_server_copies_them_at_once() {
        let in_kernel = |storage| {
            reported_by(5 * PIECE_BYTES, storage, |mut copy| {
                assert!(copy.copy_in_kernel().is_ok());
                copy.unreported
            })
        };
        let pieces = [1, 2, 2].map(|pieces| pieces * PIECE_BYTES as u64);
        // Beside other processes, a piece may take long.
        assert!((0..50).any(|_| in_kernel(Storage::Server) == pieces));
        assert_eq!(in_kernel(Storage::Native), [PIECE_BYTES as u64; 5]);
    }
}
