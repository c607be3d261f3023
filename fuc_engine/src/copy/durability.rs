//! Writes copies to the disk before the run ends, for
//! [`CopyOp::durable`](crate::CopyOp::durable).
//!
//! ```text
//! the first FEW files and directories ──▶ fsync each when it is complete
//! more than that                      ──▶ their filesystem is pending: syncfs at the end
//! a filesystem that syncfs misses     ──▶ fsync each, however many there are
//! ```
//!
//! The entries of a directory are written with the directory.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::io::Errno;

use super::facts::{FileId, Symlinks};
use crate::sync::lock;
use crate::sys::{self, Fd, SharedFd};

/// How many files and directories are written one by one.
///
/// On an idle ext4, xfs or btrfs, one `syncfs` was at least as fast as `fsync` of one file: it took 0.3
/// to 1.0 of the time with 4 files of 4 KiB or 1 MiB, and 0.02 to 0.6 with 64 (loop devices and a
/// virtual disk, 2 cores). But it also writes what other processes have left in the cache. So a few
/// files are written alone, which costs at most 20 ms.
pub(super) const FEW: usize = 4;

/// A filesystem that copies were written to.
struct WrittenFilesystem {
    device: u32,
    /// An open file or directory on it.
    file: SharedFd,
    /// Files must be written one by one, because `syncfs` is not enough.
    needs_each: bool,
    /// Something was written that is still to be written to the disk.
    is_pending: bool,
}

#[derive(Default)]
pub(super) struct Durability {
    /// Number of files and directories that were written. Relaxed: it publishes nothing.
    written: AtomicUsize,
    filesystems: Mutex<Vec<WrittenFilesystem>>,
}

impl Durability {
    /// Notes a filesystem before something is written to it, because `syncfs` reports only later errors.
    /// `open` opens a file or a directory on it. If a directory may not be read, the first file is noted instead.
    pub(super) fn note_filesystem(
        &self,
        device: u32,
        open: impl FnOnce() -> Result<Fd, Errno>,
    ) -> Result<(), Errno> {
        let mut filesystems = lock(&self.filesystems);
        if filesystems.iter().any(|known| known.device == device) {
            return Ok(());
        }
        let file = match open() {
            Err(Errno::ACCESS) => return Ok(()),
            opened => opened?,
        };
        let needs_each = !sys::Filesystem::of(file.as_fd()).syncs_all;
        filesystems.push(WrittenFilesystem {
            device,
            file: file.into(),
            needs_each,
            is_pending: false,
        });
        Ok(())
    }

    /// Counts something that was made. Returns `true` if writing it to the disk is left to [`write_rest`](Self::write_rest).
    pub(super) fn try_leave(&self, device: u32) -> bool {
        let is_one_of_few = self.written.fetch_add(1, Ordering::Relaxed) < FEW;
        !is_one_of_few && self.try_leave_to_filesystem(device)
    }

    /// Lets [`write_rest`](Self::write_rest) write a filesystem to the disk. Returns `false` if that is not enough.
    pub(super) fn try_leave_to_filesystem(&self, device: u32) -> bool {
        let mut filesystems = lock(&self.filesystems);
        let mut known = filesystems.iter_mut();
        let found = known.find(|known| known.device == device && !known.needs_each);
        found.map(|found| found.is_pending = true).is_some()
    }

    /// Writes a complete file to the disk, or leaves that to [`write_rest`](Self::write_rest).
    pub(super) fn file_complete(&self, file: BorrowedFd<'_>) -> Result<(), Errno> {
        let stat = sys::stat_open(file)?;
        if !sys::is_regular(&stat) {
            return match sys::sync_file(file) {
                // FIFOs and most devices have nothing to be written.
                Err(Errno::INVAL | Errno::ROFS | Errno::OPNOTSUPP) => Ok(()),
                synced => synced,
            };
        }
        let device = FileId::of(&stat).device;
        self.note_filesystem(device, || sys::duplicate(file))?;
        match self.try_leave(device) {
            true => Ok(()),
            false => sys::sync_file(file),
        }
    }

    /// Writes a complete directory to the disk, or leaves that to [`write_rest`](Self::write_rest). `dir` may be
    /// a path descriptor.
    pub(super) fn directory_complete(&self, dir: BorrowedFd<'_>) -> Result<(), Errno> {
        let device = sys::stat_directory(dir)?.identity.device();
        if self.try_leave(device) {
            return Ok(());
        }
        let opened = sys::open_directory(dir, c".", Symlinks::NoFollow);
        match opened.and_then(|dir| sys::sync_directory(dir.as_fd())) {
            // The directory may not be read.
            Err(Errno::ACCESS) if self.try_leave_to_filesystem(device) => Ok(()),
            synced => synced,
        }
    }

    /// Writes the filesystems to the disk that are pending.
    pub(super) fn write_rest(&self) -> Result<(), Errno> {
        for filesystem in &*lock(&self.filesystems) {
            if filesystem.is_pending {
                sys::sync_filesystem(filesystem.file.duplicate()?.as_fd())?;
            }
        }
        Ok(())
    }
}
