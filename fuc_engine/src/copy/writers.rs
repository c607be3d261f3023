//! The dests that are being written, so that no two workers write one of them at once.

use std::collections::hash_map::Entry;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::facts::{CopyNode, FileId, Mark};
use crate::hashing::HashMap;
use crate::sync::lock;

#[derive(Default)]
pub(super) struct Writers {
    files: Mutex<Files>,
    file_done: Condvar,
    /// The dests to which several directories may be copied, by their parents.
    directories: Mutex<HashMap<usize, HashMap<FileId, Queue>>>,
}

#[derive(Default)]
struct Files {
    /// At most one file and one name for each worker.
    written: Vec<Written>,
    /// Number of workers that wait. If there are none, waking them would be a system call for nothing.
    waiters: usize,
}

/// The directories that are copied to one dest.
#[derive(Default)]
struct Queue {
    /// First the one that is copied there, then those that wait until it is complete.
    directories: Vec<CopyNode>,
    /// The queue is remembered until the parent is complete, because another directory may begin later.
    stays: bool,
}

/// A dest to which several directories of one parent may be copied.
#[derive(Clone, Copy)]
pub(super) struct SharedDest {
    /// The [address](crate::node::Node::address) of the parent.
    pub(super) parent: usize,
    pub(super) dest: FileId,
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
        let mut files = lock(&self.writers.files);
        files.written.retain(|&file| file != self.file);
        let is_awaited = files.waiters > 0;
        drop(files);
        if is_awaited {
            self.writers.file_done.notify_all();
        }
    }
}

impl Writers {
    /// Waits until no other worker writes the file. A worker first waits for a name, then for a file, and no more until it
    /// has written the file, so this ends.
    pub(super) fn begin_writing(&self, file: Written) -> Writing<'_> {
        let mut files = lock(&self.files);
        while files.written.contains(&file) {
            files.waiters += 1;
            let woken = self.file_done.wait(files);
            files = woken.unwrap_or_else(PoisonError::into_inner);
            files.waiters -= 1;
        }
        files.written.push(file);
        drop(files);
        Writing {
            writers: self,
            file,
        }
    }

    /// Returns `node` if its entries can be copied to `dest`. If another directory is being copied there,
    /// [`end_directory`](Self::end_directory) returns the node later. `stays` says that a directory that begins after this one
    /// has ended may lead there, too.
    pub(super) fn begin_directory(
        &self,
        dest: SharedDest,
        node: CopyNode,
        stays: bool,
    ) -> Option<CopyNode> {
        let mut directories = lock(&self.directories);
        let siblings = directories.entry(dest.parent).or_default();
        let queue = match siblings.entry(dest.dest) {
            Entry::Vacant(free) => free.insert(Queue::default()),
            Entry::Occupied(queue) => {
                // The entries of another directory were copied to the dest before.
                node.state.marks.clear(Mark::CREATED);
                queue.into_mut()
            }
        };
        queue.stays |= stays;
        queue.directories.push(node.clone());
        (queue.directories.len() == 1).then_some(node)
    }

    /// Notes that a directory is complete. Returns one that has waited for it.
    pub(super) fn end_directory(&self, dest: SharedDest, node: &CopyNode) -> Option<CopyNode> {
        let mut directories = lock(&self.directories);
        let siblings = directories.get_mut(&dest.parent)?;
        let queue = siblings.get_mut(&dest.dest)?;
        if !Arc::ptr_eq(queue.directories.first()?, node) {
            return None;
        }
        // The last one takes the first place.
        queue.directories.swap_remove(0);
        let next = queue.directories.first().cloned();
        if next.is_none() && !queue.stays {
            siblings.remove(&dest.dest);
        }
        next
    }

    /// Forgets the dests in a directory that is complete.
    pub(super) fn forget_in(&self, parent: &CopyNode) {
        lock(&self.directories).remove(&parent.address());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    #[test]
    fn a_file_is_written_by_one_worker_at_a_time() {
        let id = |inode| Written::File(FileId { device: 0, inode });
        let (writers, is_done) = (Writers::default(), AtomicBool::new(false));
        let first = writers.begin_writing(id(1));
        let other = writers.begin_writing(id(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let _second = writers.begin_writing(id(1));
                assert!(is_done.load(Ordering::Relaxed));
            });
            drop(other);
            thread::yield_now();
            is_done.store(true, Ordering::Relaxed);
            drop(first);
        });
        assert!(lock(&writers.files).written.is_empty());
    }
}
