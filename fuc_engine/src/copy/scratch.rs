//! State that a worker keeps from file to file, and what the stages need of their worker.

use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;

use super::dest::backup::BackupNumbers;
use super::facts::CopyNode;
use crate::report::Report;
use crate::sys::{Fd, Stat, Storage};

/// State of one worker. All of it is a cache or a guess: losing it costs time only.
#[derive(Default)]
pub(super) struct CopyScratch {
    /// `true` if the last file was empty, so that the next one probably is, too.
    pub(super) expects_empty: bool,
    /// The filesystem that was queried last, by its device number.
    storage: Option<(u64, Storage)>,
    /// Buffer for content that is read and written.
    pub(super) buffer: Vec<u8>,
    /// Buffer for content that is read past the page cache.
    pub(super) uncached: Vec<u8>,
    pub(super) linked_to: Option<LinkedTo>,
    /// The last link got another inode number than its first name, so the next one probably
    /// will, too.
    pub(super) links_change_ids: bool,
    pub(super) backup_numbers: BackupNumbers,
}

/// The finished directory to which this worker made its last hard link. The next link
/// probably leads there too.
pub(super) struct LinkedTo {
    pub(super) node: CopyNode,
    pub(super) dir: Fd,
}

impl CopyScratch {
    /// Returns the storage of the filesystem of `file`, whose stat is given.
    #[inline]
    pub(super) fn storage(&mut self, stat: &Stat, file: BorrowedFd<'_>) -> Storage {
        self.storage_of_device(stat.st_dev, file)
    }

    /// Returns the storage of the filesystem with this device number, on which `file` is.
    #[inline]
    pub(super) fn storage_of_device(&mut self, device: u64, file: BorrowedFd<'_>) -> Storage {
        match self.storage {
            Some((known, storage)) if known == device => storage,
            _ => {
                let storage = Storage::of(file);
                self.storage = Some((device, storage));
                storage
            }
        }
    }
}

/// The part of a worker that the stages use.
pub(super) trait CopyWorker {
    fn scratch(&mut self) -> &mut CopyScratch;

    /// Accounts for a piece of a large file that was copied, and lets other workers have queued
    /// work before the next piece. Returns `Break` if the run was cancelled.
    fn copied_piece(&mut self, report: &Report<'_>, bytes: u64) -> ControlFlow<()>;

    /// Returns `true` if another engine wants a part of the content that this worker copies. To be called before
    /// [`copied_piece`](Self::copied_piece), which drops a request that queued tasks do not answer.
    fn is_asked(&self) -> bool;
}
