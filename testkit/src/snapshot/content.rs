//! What is in a file: itself if it is small, else a hash in which a hole and zeros are the same, so that
//! a sparse file of a terabyte takes no time.

use std::{
    fmt,
    hash::{DefaultHasher, Hasher as _},
    os::fd::BorrowedFd,
};

use rustix::{
    fs::{SeekFrom, seek},
    io::{Errno, pread},
};

/// Files up to this size are kept and can be shown.
const KEPT_BYTES: u64 = 4096;
/// The unit in which zeros are left out of the hash.
const BLOCK_BYTES: usize = 4096;
const CHUNK_BYTES: usize = 16 * BLOCK_BYTES;

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    Hash(u64),
    Unreadable(Errno),
}

impl Content {
    pub(super) fn of(file: Result<BorrowedFd<'_>, Errno>) -> Self {
        file.and_then(Self::read).unwrap_or_else(Self::Unreadable)
    }

    fn read(file: BorrowedFd<'_>) -> Result<Self, Errno> {
        let mut chunk = vec![0; CHUNK_BYTES];
        // Sizes lie in /proc, so whether a file is small is seen from its end.
        let filled = fill(file, &mut chunk, 0)?;
        if filled as u64 <= KEPT_BYTES {
            chunk.truncate(filled);
            return Ok(Self::Bytes(chunk));
        }
        let mut hasher = DefaultHasher::new();
        let mut offset = 0;
        loop {
            offset = match seek(file, SeekFrom::Data(offset)) {
                // Where data begins depends on the filesystem's blocks; where we look must not.
                Ok(data) => offset.max(data - data % CHUNK_BYTES as u64),
                Err(Errno::NXIO) => break,
                // No such question here: everything is data.
                Err(_) => offset,
            };
            let filled = fill(file, &mut chunk, offset)?;
            if filled == 0 {
                break;
            }
            hash_blocks(&mut hasher, &chunk[..filled], offset);
            offset += filled as u64;
        }
        Ok(Self::Hash(hasher.finish()))
    }
}

fn hash_blocks(hasher: &mut DefaultHasher, chunk: &[u8], mut offset: u64) {
    for block in chunk.chunks(BLOCK_BYTES) {
        if block.iter().any(|&byte| byte != 0) {
            hasher.write_u64(offset);
            hasher.write(block);
        }
        offset += block.len() as u64;
    }
}

/// Reads until `buffer` is full or the file ends; returns the bytes read.
fn fill(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < buffer.len() {
        match pread(file, &mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Hash(hash) => write!(f, "hash {hash:016x}"),
            Self::Unreadable(errno) => write!(f, "unreadable ({errno})"),
        }
    }
}
