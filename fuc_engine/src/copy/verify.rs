//! Compares a copy with its source, for [`CopyOptions::verify`](crate::CopyOptions::verify).
//!
//! Both files are read again, past the page cache if that is possible, and their hashes are compared.

use std::ops::ControlFlow;
use std::os::fd::AsFd;

use rustix::fs::{FileType, SeekFrom};
use rustix::io::Errno;
use twox_hash::XxHash3_128;

use crate::error::Operation;
use crate::node::Side;
use crate::sys::{self, At, Fd, Uncached};

/// Bytes that are read by one call.
const READ_BYTES: usize = 1 << 20;
/// The largest alignment of the buffer that a block device requires.
const ALIGNMENT: usize = 4096;

/// The result of comparing two files.
pub(super) enum Compared {
    Equal,
    Different {
        /// The dest is a regular file.
        is_file: bool,
    },
    /// The run was cancelled.
    Cancelled,
}

/// The reason why two files could not be compared.
pub(super) struct Unreadable {
    pub(super) side: Side,
    pub(super) operation: Operation,
    pub(super) errno: Errno,
}

/// A file that is read to its end.
enum Content {
    Hash(u128),
    /// It is a directory, a FIFO or a device.
    NotAFile,
    Cancelled,
}

/// Opens a file in one of the ways to read it past the page cache.
pub(super) type Open<'o> = &'o dyn Fn(At<'_>, Uncached) -> Result<Fd, Errno>;

/// Compares the content of two files, which `open` opens. Calls `progress` after each megabyte.
pub(super) fn compare(
    source: At<'_>,
    dest: At<'_>,
    open: Open<'_>,
    buffer: &mut Vec<u8>,
    mut progress: impl FnMut() -> ControlFlow<()>,
) -> Result<Compared, Unreadable> {
    let unreadable = |side, operation| {
        move |errno| Unreadable {
            side,
            operation,
            errno,
        }
    };
    let mut content = |at, side, opening| {
        let reader = Reader::open(at, open).map_err(unreadable(side, opening))?;
        let content = read(reader, buffer, &mut progress);
        content.map_err(unreadable(side, Operation::Read))
    };
    let source = content(source, Side::Source, Operation::OpenSource)?;
    let dest = content(dest, Side::Dest, Operation::Read)?;
    Ok(match (source, dest) {
        (Content::Cancelled, _) | (_, Content::Cancelled) => Compared::Cancelled,
        (Content::Hash(source), Content::Hash(dest)) if source == dest => Compared::Equal,
        (_, dest) => Compared::Different {
            is_file: !matches!(dest, Content::NotAFile),
        },
    })
}

fn read(
    mut reader: Reader<'_>,
    buffer: &mut Vec<u8>,
    mut progress: impl FnMut() -> ControlFlow<()>,
) -> Result<Content, Errno> {
    if sys::file_type(&sys::stat_open(&reader.file)?) != FileType::RegularFile {
        return Ok(Content::NotAFile);
    }
    buffer.resize(READ_BYTES + ALIGNMENT, 0);
    let start = buffer.as_ptr().align_offset(ALIGNMENT);
    let buffer = &mut buffer[start..start + READ_BYTES];
    let mut hash = XxHash3_128::new();
    loop {
        match reader.read(buffer)? {
            0 => return Ok(Content::Hash(hash.finish_128())),
            bytes => hash.write(&buffer[..bytes]),
        }
        if progress().is_break() {
            return Ok(Content::Cancelled);
        }
    }
}

/// Reads a file past the page cache.
struct Reader<'a> {
    at: At<'a>,
    open: Open<'a>,
    file: Fd,
    way: Uncached,
    /// Number of bytes that were read.
    position: u64,
}

impl<'a> Reader<'a> {
    fn open(at: At<'a>, open: Open<'a>) -> Result<Self, Errno> {
        let (file, way) = match open(at, Uncached::Direct) {
            Ok(file) => (file, Uncached::Direct),
            Err(_) => (open(at, Uncached::Dropped)?, Uncached::Dropped),
        };
        Ok(Self {
            at,
            open,
            file,
            way,
            position: 0,
        })
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mut read = sys::read(self.file.as_fd(), buffer);
        // The filesystem cannot read this part directly, or its server cannot read any. A disk that is bad is reported.
        if self.way == Uncached::Direct && read.is_err_and(|errno| errno != Errno::IO) {
            // A change of the open file's flags would not reach a server.
            self.way = Uncached::Dropped;
            self.file = (self.open)(self.at, self.way)?;
            sys::seek(self.file.as_fd(), SeekFrom::Start(self.position))?;
            read = sys::read(self.file.as_fd(), buffer);
        }
        let bytes = read?;
        self.position += bytes as u64;
        Ok(bytes)
    }
}
