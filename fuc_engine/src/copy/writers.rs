//! The dests that are being written, so that no two workers write one of them at once.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use super::facts::FileId;
use crate::hashing::HashSet;
use crate::sync::lock;
use crate::sys::Storage;

#[derive(Default)]
pub(super) struct Writers {
    /// At most one file and one name for each worker.
    files: Mutex<Vec<Written>>,
    file_done: Condvar,
    /// Directories that are being filled, and the operand whose entries go there.
    directories: Mutex<HashSet<(FileId, u32)>>,
    /// The filesystem that was queried last: its device number, and whether it is a native one.
    native: AtomicU64,
}

/// A file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    File(FileId),
    /// The hash of a name and its directory, if inode numbers say nothing.
    Name(u64),
}

/// A file that no other worker writes until this is dropped.
pub(super) struct Writing<'w> {
    writers: &'w Writers,
    file: Written,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        lock(&self.writers.files).retain(|&file| file != self.file);
        self.writers.file_done.notify_all();
    }
}

impl Writers {
    /// Waits until no other worker writes the file. A worker first waits for a name, then for a file, and no more until it
    /// has written the file, so this ends.
    pub(super) fn begin(&self, file: Written) -> Writing<'_> {
        let mut files = lock(&self.files);
        while files.contains(&file) {
            let woken = self.file_done.wait(files);
            files = woken.unwrap_or_else(PoisonError::into_inner);
        }
        files.push(file);
        drop(files);
        Writing {
            writers: self,
            file,
        }
    }

    /// Notes that entries of an operand are copied to a directory. Returns `false` if those of another source directory
    /// are being copied there.
    pub(super) fn begin_directory(&self, dest: FileId, operand: u32) -> bool {
        lock(&self.directories).insert((dest, operand))
    }

    /// Notes that a directory is complete.
    pub(super) fn end_directory(&self, dest: FileId, operand: u32) {
        lock(&self.directories).remove(&(dest, operand));
    }

    /// Returns `true` if a native filesystem has this device number. `file` is on it.
    pub(super) fn is_native(&self, device: u32, file: BorrowedFd<'_>) -> bool {
        const NATIVE: u64 = 1 << 32;
        const KNOWN: u64 = 1 << 33;
        // Relaxed: the number is complete by itself.
        let last = self.native.load(Ordering::Relaxed);
        if last & !NATIVE == KNOWN | u64::from(device) {
            return last & NATIVE != 0;
        }
        let is_native = Storage::of(file) == Storage::Native;
        let native = if is_native { NATIVE } else { 0 };
        let known = KNOWN | native | u64::from(device);
        self.native.store(known, Ordering::Relaxed);
        is_native
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    #[test]
    fn a_file_is_written_by_one_worker_at_a_time() {
        let id = |inode| Written::File(FileId { device: 0, inode });
        let (writers, is_done) = (Writers::default(), AtomicBool::new(false));
        let first = writers.begin(id(1));
        let other = writers.begin(id(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let _second = writers.begin(id(1));
                assert!(is_done.load(Ordering::Relaxed));
            });
            drop(other);
            thread::yield_now();
            is_done.store(true, Ordering::Relaxed);
            drop(first);
        });
        assert!(lock(&writers.files).is_empty());
    }
}
