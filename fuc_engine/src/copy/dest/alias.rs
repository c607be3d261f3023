//! Finds out whether an existing dest has the content of its source already.
//!
//! On some filesystems a file has several inode numbers: one for each path, for each spelling of its name, or for a
//! directory and its mirror. Emptying the dest would empty the source then. So if both have the same size and time, and
//! one is not on a native filesystem, both are read before anything is lost. A dest that has the content is not written
//! to. If it turns out to be the source, it is refused.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::copy::attributes;
use crate::copy::context::{Context, Failure};
use crate::copy::facts::{Entry, Symlinks};
use crate::copy::make::file::OpenSource;
use crate::error::{Operation, Refusal};
use crate::sys::{self, Blocking, Inode, Stat, Storage};

/// Largest difference of two times of one file, which one of its filesystems rounds. FAT stores even seconds.
const ROUNDED_SECONDS: u64 = 2;
/// Bytes that are read by one call from each side.
const READ_BYTES: usize = 128 << 10;

/// Returns `true` if an open dest, which was seen as `present`, has the content of its source.
///
/// # Errors
/// If the dest is the source, or if the source cannot be read.
#[inline]
pub(super) fn has_content_of(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &OpenSource,
    dest: BorrowedFd<'_>,
    present: &Stat,
) -> Result<bool, Failure> {
    let is_native = source.storage == Storage::Native && ctx.is_on_native(present, dest);
    if is_native || sys::file_type(&source.stat) != FileType::RegularFile {
        return Ok(false);
    }
    compare(ctx, entry, source, dest, present)
}

#[cold]
fn compare(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &OpenSource,
    dest: BorrowedFd<'_>,
    present: &Stat,
) -> Result<bool, Failure> {
    // One of the two names may have been changed since the other one was looked at.
    let looks = (sys::size_and_time(source.fd()), sys::size_and_time(dest));
    let (Ok((bytes, modified)), Ok((dest_bytes, dest_modified))) = looks else {
        return Ok(false);
    };
    let seconds = modified.seconds.abs_diff(dest_modified.seconds);
    if bytes != dest_bytes || seconds > ROUNDED_SECONDS {
        return Ok(false);
    }
    let failed = |errno| Failure::making(ctx.source_error(entry, Operation::Read, errno));
    if !read_both(ctx, entry, source, dest).map_err(failed)? {
        return Ok(false);
    }
    let inode = Inode::Opened(dest);
    // If no time can be set, both names are left as they are.
    let is_marked = attributes::mark_incomplete(&inode, &source.stat).is_ok();
    let is_unchanged = |(_, time)| time == modified;
    if is_marked && !sys::size_and_time(source.fd()).is_ok_and(is_unchanged) {
        // The source has the finer times. Without the right to set them, the dest's do.
        if Inode::Opened(source.fd()).set_times(&source.stat).is_err() {
            let _ = inode.set_times(present);
        }
        return Err(ctx.refused(entry, Refusal::SameFile));
    }
    if !ctx.policy.options.preserve.timestamps {
        let _ = inode.touch();
    }
    Ok(true)
}

/// Reads source and dest, and compares them. Fails if the source cannot be read.
fn read_both(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &OpenSource,
    dest: BorrowedFd<'_>,
) -> Result<bool, Errno> {
    let opened = ctx.descriptors.making_room(|| {
        sys::reopen(dest, sys::Access::Read).or_else(|_| {
            let (dir, name) = (entry.dest_dir, entry.dest_name);
            sys::open_source(dir, name, Symlinks::Follow, Blocking::OnlyForLease)
        })
    });
    // Whoever may read the source may read it under its other name, too.
    let Ok(dest) = opened else {
        return Ok(false);
    };
    let mut buffers = [vec![0; READ_BYTES], vec![0; READ_BYTES]];
    let mut at = 0;
    while !ctx.report.must_stop() {
        let [from, to] = &mut buffers;
        let bytes = sys::read_at(source.fd(), from, at)?;
        let found = read_full(dest.as_fd(), &mut to[..bytes.max(1)], at);
        if found.ok() != Some(bytes) || from[..bytes] != to[..bytes] {
            return Ok(false);
        }
        if bytes == 0 {
            return Ok(true);
        }
        at += bytes as u64;
    }
    Ok(false)
}

/// Reads until the buffer is full or the file ends. Returns the number of bytes.
fn read_full(file: BorrowedFd<'_>, buffer: &mut [u8], at: u64) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < buffer.len() {
        match sys::read_at(file, &mut buffer[filled..], at + filled as u64)? {
            0 => break,
            bytes => filled += bytes,
        }
    }
    Ok(filled)
}
