//! The memory of a server between requests: the paths of its nodes, and the open files.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use fuser::{FileHandle, INodeNo};
use rustix::io::Errno;

/// The nodes, by which the kernel names entries in its requests. Each path has one of its own, or each inode.
pub(super) struct Nodes {
    /// The path of each that was used last. None is ever removed.
    paths: HashMap<u64, PathBuf>,
    numbers: HashMap<PathBuf, u64>,
}

impl Nodes {
    pub(super) fn new(root: &Path) -> Self {
        let mut nodes = Self {
            paths: HashMap::new(),
            numbers: HashMap::new(),
        };
        nodes.set_number(root, 1);
        nodes
    }

    pub(super) fn path(&self, number: INodeNo) -> PathBuf {
        self.paths[&number.0].clone()
    }

    /// Returns the number of `path`, which gets one if it has none.
    pub(super) fn number(&mut self, path: &Path) -> INodeNo {
        let next = self.paths.len() as u64 + 1;
        let number = self.numbers.get(path).copied();
        self.set_number(path, number.unwrap_or(next))
    }

    /// Gives the entry at `path` this number.
    pub(super) fn set_number(&mut self, path: &Path, number: u64) -> INodeNo {
        self.numbers.insert(path.to_owned(), number);
        self.paths.insert(number, path.to_owned());
        INodeNo(number)
    }

    /// Gives the next entry at `path` a number of its own.
    pub(super) fn forget(&mut self, path: &Path) {
        self.numbers.remove(path);
    }

    /// Takes the numbers of `from`, and of everything below it, to `to`.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) {
        self.forget(to);
        let moved = self.numbers.extract_if(|path, _| path.starts_with(from));
        for (path, number) in moved.collect::<Vec<_>>() {
            let below = path.strip_prefix(from).expect("the path starts with it");
            // Joining an empty path would add a slash.
            let path = match below.as_os_str().is_empty() {
                true => to.to_owned(),
                false => to.join(below),
            };
            self.set_number(&path, number);
        }
    }
}

/// Open files or directories.
pub(super) struct Handles<T>(Mutex<HashMap<FileHandle, Arc<T>>>);

impl<T> Handles<T> {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    pub(super) fn set(&self, handle: FileHandle, open: T) {
        lock(&self.0).insert(handle, Arc::new(open));
    }

    pub(super) fn get(&self, handle: FileHandle) -> Result<Arc<T>, Errno> {
        lock(&self.0).get(&handle).cloned().ok_or(Errno::BADF)
    }

    pub(super) fn remove(&self, handle: FileHandle) {
        lock(&self.0).remove(&handle);
    }

    pub(super) fn any(&self, predicate: impl FnMut(&Arc<T>) -> bool) -> bool {
        lock(&self.0).values().any(predicate)
    }
}

/// Returns a number for a handle or an inode, another one each time.
pub(super) fn fresh_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Locks `mutex`. A thread that panicked must not keep the others from answering.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
