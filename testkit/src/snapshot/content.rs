//! The content of a file: its bytes if it is small, else a hash. The hash skips holes and blocks of zeros, so
//! that a sparse file of a terabyte takes no time.

use std::{
    hash::{DefaultHasher, Hasher as _},
    os::fd::BorrowedFd,
};

use rustix::{
    fs::{SeekFrom, seek},
    io::{Errno, pread},
};

/// Largest size of a file whose bytes are kept and shown.
const KEPT_BYTES: u64 = 4096;
/// Size of the blocks that the hash skips if they are all zeros.
const BLOCK_BYTES: usize = 4096;
const CHUNK_BYTES: usize = 16 * BLOCK_BYTES;

/// Describes the content of a file: its bytes, or their hash.
pub(super) fn content(file: BorrowedFd<'_>) -> Result<String, Errno> {
    let mut chunk = vec![0; CHUNK_BYTES];
    // Files in /proc report false sizes, so read up to the end to find out whether a file is small.
    let filled = fill(file, &mut chunk, 0)?;
    if filled as u64 <= KEPT_BYTES {
        return Ok(format!("\"{}\"", chunk[..filled].escape_ascii()));
    }
    let mut hasher = DefaultHasher::new();
    let mut offset = 0;
    loop {
        offset = match seek(file, SeekFrom::Data(offset)) {
            // The start of the data depends on the filesystem's block size. Chunk boundaries must not.
            Ok(data) => offset.max(data - data % CHUNK_BYTES as u64),
            Err(Errno::NXIO) => break,
            // This filesystem cannot seek to data, so read everything.
            Err(_) => offset,
        };
        let filled = fill(file, &mut chunk, offset)?;
        if filled == 0 {
            break;
        }
        hash_blocks(&mut hasher, &chunk[..filled], offset);
        offset += filled as u64;
    }
    Ok(format!("hash {:016x}", hasher.finish()))
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

/// Reads until `buffer` is full or the file ends. Returns the number of bytes read.
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
