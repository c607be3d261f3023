//! Moves the content of open files.

use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use rustix::fs::{self, Advice, FallocateFlags, OFlags, SeekFrom};
use rustix::io::Errno;

use super::calls::retry_on_intr;

pub(crate) fn set_size(file: BorrowedFd<'_>, bytes: u64) -> Result<(), Errno> {
    retry_on_intr(|| fs::ftruncate(file, bytes))
}

/// Makes a hole of a range. On a filesystem that cannot do this, the blocks stay.
///
/// Some filesystems, such as xfs, allocate blocks after written data in advance.
///
/// # Errors
/// As [`check_content`].
pub(crate) fn punch_hole(file: BorrowedFd<'_>, range: Range<u64>) -> Result<(), Errno> {
    if range.is_empty() {
        return Ok(());
    }
    let bytes = range.end - range.start;
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    retry_on_intr(|| fs::fallocate(file, flags, range.start, bytes))
        .or_else(|errno| check_content(file, errno))
}

/// Writes the content and the attributes of a file to the disk.
pub(crate) fn sync_file(file: BorrowedFd<'_>) -> Result<(), Errno> {
    retry_on_intr(|| fs::fsync(file))
}

/// Writes the entries and the attributes of a directory to the disk. Some network filesystems cannot
/// do that, because their server has done it before.
pub(crate) fn sync_directory(dir: BorrowedFd<'_>) -> Result<(), Errno> {
    match sync_file(dir) {
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(()),
        synced => synced,
    }
}

/// Writes everything on the filesystem of an open file to the disk. Reports errors since the file was
/// opened.
pub(crate) fn sync_filesystem(file: BorrowedFd<'_>) -> Result<(), Errno> {
    retry_on_intr(|| fs::syncfs(file))
}

pub(crate) fn seek(file: BorrowedFd<'_>, to: SeekFrom) -> Result<u64, Errno> {
    retry_on_intr(|| fs::seek(file, to))
}

/// Asks the kernel to read a part of a file into the page cache. Returns at once. If the kernel cannot do that, a later
/// read is slower.
pub(crate) fn read_ahead(file: BorrowedFd<'_>, start: u64, bytes: u64) {
    let _ = fs::fadvise(file, start, NonZeroU64::new(bytes), Advice::WillNeed);
}

/// Drops a part of a file from the page cache, from the start. The kernel keeps what is not written to the disk yet, and
/// what other processes have mapped.
pub(crate) fn drop_cache(file: BorrowedFd<'_>, bytes: Option<NonZeroU64>) {
    let _ = fs::fadvise(file, 0, bytes, Advice::DontNeed);
}

/// Says how much of a file is on the disk when a call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteBack {
    /// The content that an earlier call has begun to write. This call begins to write the rest.
    UpToLast,
    /// All of its content. Only [`sync_file`] lets it survive a power cut.
    All,
}

const WAIT_FOR_ALL: libc::c_uint = libc::SYNC_FILE_RANGE_WAIT_BEFORE
    | libc::SYNC_FILE_RANGE_WRITE
    | libc::SYNC_FILE_RANGE_WAIT_AFTER;

/// Writes content of a file to the disk. Does nothing if the kernel cannot do that for this file.
///
/// # Errors
/// If the kernel could not write it.
pub(crate) fn write_back(file: BorrowedFd<'_>, extent: WriteBack) -> Result<(), Errno> {
    let flags = match extent {
        WriteBack::UpToLast => libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE,
        WriteBack::All => WAIT_FOR_ALL,
    };
    match super::calls::sync_file_range(file, flags) {
        Err(errno @ (Errno::IO | Errno::NOSPC | Errno::DQUOT)) => Err(errno),
        _ => Ok(()),
    }
}

/// Finds out whether a call on a written file has failed because content is lost, if that call could be done without.
/// `errno` is its error.
///
/// The kernel writes content later. If that fails, some filesystems let the next call fail that waits for it, whatever
/// the call does, and then forget the failure.
///
/// # Errors
/// If content is lost. The kernel reports that only once for each descriptor.
#[cold]
pub(crate) fn check_content(file: BorrowedFd<'_>, errno: Errno) -> Result<(), Errno> {
    let is_about_call = matches!(
        errno,
        Errno::PERM
            | Errno::ACCESS
            | Errno::ROFS
            | Errno::INVAL
            | Errno::OPNOTSUPP
            | Errno::NOSYS
            | Errno::XDEV
            | Errno::NODATA
    );
    if is_about_call {
        return Ok(());
    }
    match super::calls::sync_file_range(file, WAIT_FOR_ALL) {
        // It is not a regular file, or a sandbox does not know the call.
        Err(Errno::SPIPE | Errno::NOSYS) => Ok(()),
        // A server may have answered any error to the write.
        checked => checked,
    }
}

/// Makes `dest` share all blocks of `source`.
pub(crate) fn clone_file(source: BorrowedFd<'_>, dest: BorrowedFd<'_>) -> Result<(), Errno> {
    retry_on_intr(|| fs::ioctl_ficlone(dest, source))
}

/// Copies up to `bytes` bytes inside the kernel to the offset of `dest` and returns how many; 0 at the end of the source.
/// Returns `None` if the kernel cannot.
///
/// # Errors
/// As [`check_content`].
pub(crate) fn try_copy_range(
    source: BorrowedFd<'_>,
    mut source_offset: Option<&mut u64>,
    dest: BorrowedFd<'_>,
    bytes: usize,
) -> Result<Option<usize>, Errno> {
    let copied = retry_on_intr(|| {
        let offset = source_offset.as_deref_mut();
        fs::copy_file_range(source, offset, dest, None, bytes)
    });
    match copied {
        Ok(bytes) => Ok(Some(bytes)),
        Err(errno) => check_content(dest, errno).map(|()| None),
    }
}

/// Makes reads and writes wait, for a file that was opened without waiting.
pub(crate) fn clear_nonblock(file: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = fs::fcntl_getfl(file)?;
    fs::fcntl_setfl(file, flags - OFlags::NONBLOCK)
}

/// Reads a file by `call`, and waits for its content. Some FUSE servers do not wait if the file was opened without waiting.
#[inline]
fn read_waiting(
    file: BorrowedFd<'_>,
    mut call: impl FnMut() -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    match retry_on_intr(&mut call) {
        Err(Errno::AGAIN) => {
            clear_nonblock(file)?;
            retry_on_intr(call)
        }
        read => read,
    }
}

pub(crate) fn read(file: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    read_waiting(file, || rustix::io::read(file, &mut *buffer))
}

/// Reads from a position, and does not use the offset of the file.
pub(crate) fn read_at(file: BorrowedFd<'_>, buffer: &mut [u8], at: u64) -> Result<usize, Errno> {
    read_waiting(file, || rustix::io::pread(file, &mut *buffer, at))
}

pub(crate) fn write_all(file: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match retry_on_intr(|| rustix::io::write(file, bytes))? {
            0 => return Err(Errno::NOSPC),
            written => bytes = &bytes[written..],
        }
    }
    Ok(())
}

/// Writes at a position, and does not use the offset of the file.
pub(crate) fn write_all_at(
    file: BorrowedFd<'_>,
    mut bytes: &[u8],
    mut at: u64,
) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match retry_on_intr(|| rustix::io::pwrite(file, bytes, at))? {
            0 => return Err(Errno::NOSPC),
            written => {
                bytes = &bytes[written..];
                at += written as u64;
            }
        }
    }
    Ok(())
}
