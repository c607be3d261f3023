//! A cell: one operation on one tree in one place, the commands that compete in it, and how often they run.

use std::time::Duration;

use testkit::probe::Fs;

use super::peers::Peer;

/// One comparison of several commands.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) name: String,
    pub(crate) table: Table,
    /// The words for the tree. A removal and a copy with the same words share a row of their table.
    pub(crate) title: String,
    pub(crate) work: Work,
    pub(crate) tree: Tree,
    pub(crate) place: Place,
    pub(crate) previous: Previous,
    /// The commands: ours first, and GNU's second.
    pub(crate) peers: Vec<Peer>,
    pub(crate) rounds: usize,
}

/// A table of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    Made,
    Real,
    Special,
    /// The table of the engine and other libraries, whose cells only run if they are selected.
    Libraries,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Remove,
    Copy,
}

/// The origin of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tree {
    /// The tree is made by ftzz, again each time.
    Made {
        files: u64,
        bytes: u64,
        shape: &'static [&'static str],
    },
    /// The tree is made by the runner, because ftzz draws the sizes and places of files at random.
    Spread(Spread),
    /// The tree is a copy of the one that `benches/setup.sh` has made under this name.
    Real(&'static str),
}

/// Files of the same size, the same number in each directory, and at most one larger file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) dirs: u64,
    /// The number of files of `file_bytes`, in all directories together.
    pub(crate) files: u64,
    pub(crate) file_bytes: u64,
    /// The size of one more file in the first directory. It is made after half of the others.
    pub(crate) large_file_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The tree is on a tmpfs.
    Memory,
    /// The tree is on a disk with ext4, and all caches are dropped before each run.
    Disk,
    /// The tree is in a new filesystem of this type, on a loop device whose image is on a tmpfs.
    New(Fs),
    /// The tree is on a server that answers each request late.
    Served {
        latency: Duration,
        /// One, or a client for each rank of a job.
        clients: usize,
        /// The bytes per second of each client, in each direction.
        bandwidth: Option<u64>,
    },
}

/// The way in which the copy of one run makes room for that of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Previous {
    Removed,
    /// The copy is removed directly before the run, after the caches were dropped.
    RemovedLast,
    /// The copy stays until the end of the cell, and the cell begins [`RECENTLY_REMOVED`] after the one before.
    Kept,
}

/// For about this time, ext4 without a journal does not reuse the inode of a removed file. For each new file it looks
/// at all such inodes again.
///
/// Copying the Linux source with a cold cache directly after its last copy was removed takes cpz 1.8 times as long, and
/// xcp 1.1 times (3 rounds). This search is a third of the processor time of cpz, and less than a tenth of that of xcp.
/// The cell `copy-after-removal` measures it.
pub(crate) const RECENTLY_REMOVED: Duration = Duration::from_secs(60);

impl Spread {
    /// Returns files of the same size, spread over directories.
    pub(crate) const fn new(dirs: u64, files: u64, file_bytes: u64) -> Self {
        Self {
            dirs,
            files,
            file_bytes,
            large_file_bytes: None,
        }
    }
}

impl Work {
    /// Returns the word in the names of cells.
    pub(crate) fn verb(self) -> &'static str {
        self.pick("remove", "copy")
    }

    /// Returns the value for this work.
    pub(crate) fn pick<T>(self, removal: T, copy: T) -> T {
        match self {
            Self::Remove => removal,
            Self::Copy => copy,
        }
    }
}

impl Place {
    /// Returns how late a server answers.
    pub(crate) fn latency(self) -> Option<Duration> {
        match self {
            Self::Served { latency, .. } => Some(latency),
            Self::Memory | Self::Disk | Self::New(_) => None,
        }
    }
}

impl Cell {
    /// Returns `true` if jobs of MPI compete in the cell.
    pub(crate) fn is_for_ranks(&self) -> bool {
        matches!(self.place, Place::Served { clients: 2.., .. })
    }

    /// Returns an upper limit of the space: a page and an inode for each file, for the tree and for each copy. Each real
    /// tree is taken for the largest.
    pub(crate) fn space_bytes(&self) -> u64 {
        let (files, bytes) = match self.tree {
            Tree::Made { files, bytes, .. } => (files, bytes),
            Tree::Spread(spread) => (
                spread.files,
                spread.files * spread.file_bytes + spread.large_file_bytes.unwrap_or(0),
            ),
            Tree::Real(_) => (84_000, 1_500_000_000),
        };
        let copies = match (self.work, self.previous) {
            (Work::Remove, _) => 0,
            (Work::Copy, Previous::Kept) => self.rounds * (self.peers.len() + 1),
            (Work::Copy, _) => 1,
        };
        (1 + copies as u64) * (files * 5_500 + bytes)
    }
}
