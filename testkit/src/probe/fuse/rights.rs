//! The rights to change directories, of a server that gives those to each directory to one client at a time.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use super::tables::lock;

/// The rights to change the directories of one server, each of which one client has.
#[derive(Debug)]
pub struct Rights {
    /// The time that it takes to give rights to another client.
    moving: Duration,
    moves: AtomicU64,
    holders: Mutex<HashMap<PathBuf, u64>>,
}

impl Rights {
    /// Makes rights that take so long to go from one client to another. All changes wait for them.
    #[must_use]
    pub fn moving_in(moving: Duration) -> Arc<Self> {
        Arc::new(Self {
            moving,
            moves: AtomicU64::new(0),
            holders: Mutex::default(),
        })
    }

    /// Returns how often rights have gone from one client to another.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.moves.load(Ordering::Relaxed)
    }

    /// Gives the rights to a directory to a client.
    pub(super) fn take(&self, dir: &Path, client: u64) {
        let mut holders = lock(&self.holders);
        let before = holders.insert(dir.to_owned(), client);
        if before.is_some_and(|before| before != client) {
            self.moves.fetch_add(1, Ordering::Relaxed);
            thread::sleep(self.moving);
        }
    }
}
