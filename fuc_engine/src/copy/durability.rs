//! Writes copies to the disk before the run ends, for
//! [`CopyOptions::durable`](crate::CopyOptions::durable).
//!
//! ```text
//! the first FEW files and directories ──▶ fsync each when it is complete
//! more than that                      ──▶ syncfs at the end, once for each filesystem
//! a filesystem that syncfs misses     ──▶ fsync each, however many there are
//! ```
//!
//! The entries of a directory are written with the directory.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::facts::Symlinks;
use crate::sys;

/// How many files and directories are written one by one.
///
/// On an idle ext4, xfs or btrfs, one `syncfs` was at least as fast as `fsync` of one file: it took 0.3
/// to 1.0 of the time with 4 files of 4 KiB or 1 MiB, and 0.02 to 0.6 with 64 (loop devices and a
/// virtual disk, 2 cores). But it also writes what other processes have left in the cache. So a few
/// files are written alone, which costs at most 20 ms.
const FEW: usize = 4;

/// A filesystem that copies were written to.
struct Filesystem {
    device: u32,
    /// An open file or directory on it.
    file: OwnedFd,
}

#[derive(Default)]
pub(super) struct Durability {
    /// Files and directories that were written, or more than [`FEW`].
    written: AtomicUsize,
    /// `true` if `syncfs` does not write everything to the disk.
    needs_each: AtomicBool,
    filesystems: Mutex<Vec<Filesystem>>,
}

impl Durability {
    // Relaxed: the numbers publish nothing, and workers have ended before the end of the run.

    fn filesystems(&self) -> MutexGuard<'_, Vec<Filesystem>> {
        self.filesystems
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a filesystem before something is written to it, because `syncfs` reports only later errors.
    /// `open` opens a file or a directory on it.
    pub(super) fn note_filesystem(
        &self,
        device: u32,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
    ) -> Result<(), Errno> {
        let mut filesystems = self.filesystems();
        if filesystems.iter().any(|known| known.device == device) {
            return Ok(());
        }
        let file = open()?;
        if !sys::syncfs_is_enough(file.as_fd()) {
            self.needs_each.store(true, Ordering::Relaxed);
        }
        filesystems.push(Filesystem { device, file });
        Ok(())
    }

    fn must_write_now(&self) -> bool {
        self.written.fetch_add(1, Ordering::Relaxed) < FEW
            || self.needs_each.load(Ordering::Relaxed)
    }

    /// Returns `true` if what was written is still to be written with its whole filesystem.
    fn needs_filesystems(&self) -> bool {
        self.written.load(Ordering::Relaxed) > FEW && !self.needs_each.load(Ordering::Relaxed)
    }

    /// Writes a complete file to the disk, or leaves that to [`finish`](Self::finish).
    pub(super) fn file_complete(&self, file: BorrowedFd<'_>) -> Result<(), Errno> {
        if self.must_write_now() {
            sys::sync_file(file)
        } else {
            Ok(())
        }
    }

    /// Writes a complete directory to the disk, or leaves that to [`finish`](Self::finish). `dir` may be
    /// a path descriptor.
    pub(super) fn directory_complete(&self, dir: BorrowedFd<'_>) -> Result<(), Errno> {
        if !self.must_write_now() {
            return Ok(());
        }
        let opened = sys::open_directory(dir, c".", Symlinks::NoFollow);
        match opened.and_then(|dir| sys::sync_directory(dir.as_fd())) {
            // The directory may not be read.
            Err(Errno::ACCESS) if !self.needs_each.load(Ordering::Relaxed) => {
                self.written.store(FEW + 1, Ordering::Relaxed);
                Ok(())
            }
            synced => synced,
        }
    }

    /// Writes the filesystems to the disk, if that was left to the end. Otherwise calls `sync_parents`,
    /// which writes the directories that contain the dests of the operands.
    pub(super) fn finish(
        &self,
        sync_parents: impl FnOnce(&Self) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        if !self.needs_filesystems() {
            sync_parents(self)?;
        }
        // A directory that may not be read was left to its filesystem just now.
        if self.needs_filesystems() {
            for filesystem in &*self.filesystems() {
                sys::sync_filesystem(filesystem.file.as_fd())?;
            }
        }
        Ok(())
    }
}
