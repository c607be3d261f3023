//! A cell: one operation on one tree in one place, the commands that compete in it, and how long that takes.

use std::time::Duration;

use super::peers::{self, Peer};

/// One comparison of several commands.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) name: String,
    pub(crate) group: Group,
    pub(crate) title: String,
    pub(crate) work: Work,
    pub(crate) tree: Tree,
    pub(crate) place: Place,
    pub(crate) cache: Cache,
    pub(crate) runs: Runs,
}

/// The runs in which a cell takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    QuickAndFull,
    Full,
    /// Only runs whose command line selects the cell, because it takes long.
    Selected,
}

/// Cells that share a table and a plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Remove,
    Copy,
    Real,
    Update,
    Filesystems,
    Slow,
    Large,
    /// rmz-mpi and cpz-mpi, which several processes run.
    Ranks,
    /// The engine against other libraries.
    Libraries,
    /// The cells of [`steady`](super::steady), which are not in [`cells::all`](super::cells::all).
    Steady,
}

/// All groups, in the order of the tables.
pub(crate) const GROUPS: &[Group] = &[
    Group::Remove,
    Group::Copy,
    Group::Real,
    Group::Update,
    Group::Filesystems,
    Group::Slow,
    Group::Large,
    Group::Ranks,
    Group::Libraries,
    Group::Steady,
];

impl Group {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Remove => "remove",
            Self::Copy => "copy",
            Self::Real => "real",
            Self::Update => "update",
            Self::Filesystems => "filesystems",
            Self::Slow => "slow",
            Self::Large => "large",
            Self::Ranks => "ranks",
            Self::Libraries => "libraries",
            Self::Steady => "steady",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Remove => "Removing",
            Self::Copy => "Copying",
            Self::Real => "Real trees",
            Self::Update => "Bringing a copy up to date",
            Self::Filesystems => "Filesystems on loop devices",
            Self::Slow => "Requests answered late",
            Self::Large => "Large files",
            Self::Ranks => "One tree, several ranks",
            Self::Libraries => "Libraries",
            Self::Steady => "Steadiness",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Remove,
    Copy,
    /// The work is that of a copy, but `copy` exists already and is complete.
    Compare,
}

/// The origin of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tree {
    /// The tree is made by ftzz, again each time.
    Made {
        files: u64,
        bytes: u64,
        shape: &'static [&'static str],
    },
    /// The tree is made by the runner, because ftzz draws the sizes and places of files at random.
    Spread(Spread),
    /// The tree is a copy of one that the machine has.
    Real(Real),
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
pub(crate) enum Real {
    Linux,
    Go,
    NodeModules,
    Registry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The tree is in the runner's directory.
    Here,
    /// The tree is in a new filesystem of this type.
    New(&'static str),
    /// The tree is in a new filesystem whose server answers each request late; see `serve`.
    Slow { latency: Duration },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cache {
    Warm,
    Cold,
}

/// The numbers of requests for each file.
struct Requests {
    all: f64,
    /// Those among them that lock the directory in which a name is made or removed.
    locked: f64,
    /// The number for each piece of [`PIECE_BYTES`] of a large file.
    piece: f64,
}

/// The size of the kernel's writes when it carries out `copy_file_range`. It reads ahead, so only its writes wait.
const PIECE_BYTES: u64 = 64 << 10;

const REMOVE_REQUESTS: Requests = Requests {
    all: 1.0,
    locked: 1.0,
    piece: 0.0,
};
/// The slow filesystem counts these for cpz: open, read, flush and release, then lookup, create, write, flush and
/// release.
const COPY_REQUESTS: Requests = Requests {
    all: 9.0,
    locked: 2.0,
    piece: 1.0,
};
/// The requests for each file to remove a tree and make it again, while the server is fast.
const PREPARING_REQUESTS: f64 = 5.0;
/// The time of a request without latency, on two cores.
const OVERHEAD: Duration = Duration::from_micros(100);
/// A peer that waits longer than this for replies is left out.
const LONGEST_WAIT: Duration = Duration::from_secs(180);
/// The same in cells of [`Group::Slow`] that only run if they are selected, unless ours waits for more than half of it.
/// They compare the default with the best fixed numbers of threads, and all other peers would take hours.
const LONGEST_WAIT_IF_SELECTED: Duration = Duration::from_secs(30);
/// The time for more rounds on a slow filesystem, after the first one.
const SLOW_SECONDS: f64 = 45.0;
/// The time of a cell of [`Group::Large`] without latency. Except for clones, the fewest rounds take longer.
const LARGE_SECONDS: f64 = 15.0;
/// The fewest rounds of a cell of [`Group::Large`], so that medians can show small losses.
pub(crate) const LARGE_ROUNDS: usize = 5;
/// For about this time, ext4 does not reuse the inode of a removed file. For each new file it looks at all such inodes
/// again.
///
/// Copying the Linux source with a cold cache directly after its last copy was removed takes cpz 1.8 times as long, and
/// xcp 1.1 times (3 rounds). This search is a third of the processor time of cpz, and less than a tenth of that of xcp.
pub(crate) const RECENTLY_REMOVED: Duration = Duration::from_secs(60);

impl Cell {
    /// Returns the commands that compete in this cell.
    pub(crate) fn peers(&self) -> Vec<Peer> {
        let flat = matches!(
            self.tree,
            Tree::Made {
                shape: ["-d", "0", ..],
                ..
            }
        );
        match (self.group, self.work) {
            (Group::Remove, _) if flat => [peers::REMOVE, peers::REMOVE_FLAT].concat(),
            (Group::Remove, _) => peers::REMOVE.to_vec(),
            (Group::Copy, _) => peers::COPY.to_vec(),
            (Group::Update, _) => peers::UPDATE.to_vec(),
            (Group::Real, Work::Remove) => peers::REAL_REMOVE.to_vec(),
            (Group::Real, _) => peers::REAL_COPY.to_vec(),
            (Group::Filesystems, Work::Remove) => peers::FILESYSTEM_REMOVE.to_vec(),
            (Group::Filesystems, _) => peers::FILESYSTEM_COPY.to_vec(),
            (Group::Slow, Work::Remove) => [peers::SLOW_REMOVE, peers::RMZ_FIXED].concat(),
            (Group::Slow, _) => [peers::SLOW_COPY, &[peers::RSYNC_COPY], peers::CPZ_FIXED].concat(),
            (Group::Large, Work::Remove) => [peers::FILESYSTEM_REMOVE, &[peers::RM_RAYON]].concat(),
            (Group::Large, _) if self.is_slow() => peers::SLOW_COPY.to_vec(),
            (Group::Large, _) => [peers::FILESYSTEM_COPY, &[peers::FCP, peers::XCP]].concat(),
            (Group::Ranks, Work::Remove) if self.is_slow() => peers::RANKS_SLOW_REMOVE.to_vec(),
            (Group::Ranks, _) if self.is_slow() => peers::RANKS_SLOW_COPY.to_vec(),
            (Group::Ranks, Work::Remove) => peers::RANKS_REMOVE.to_vec(),
            (Group::Ranks, _) => peers::RANKS_COPY.to_vec(),
            (Group::Libraries, Work::Remove) => peers::LIBRARY_REMOVE.to_vec(),
            (Group::Libraries, _) => peers::LIBRARY_COPY.to_vec(),
            (Group::Steady, Work::Remove) => {
                [peers::STEADY_REMOVE, peers::STEADY_RMZ_FIXED].concat()
            }
            (Group::Steady, _) => [peers::STEADY_COPY, peers::STEADY_CPZ_FIXED].concat(),
        }
    }

    /// Returns `true` if the peers are compared with the floor. On a slow filesystem it is meaningless, because its
    /// two threads wait most of the time. Libraries are compared with ours.
    pub(crate) fn has_floor(&self) -> bool {
        !self.is_slow() && self.group != Group::Libraries
    }

    fn is_slow(&self) -> bool {
        matches!(self.place, Place::Slow { .. })
    }

    /// Returns about how long a peer waits for replies. Requests about directories are not counted.
    pub(crate) fn waits(&self, peer: &Peer) -> Duration {
        let (Place::Slow { latency }, Tree::Spread(spread)) = (self.place, &self.tree) else {
            return Duration::ZERO;
        };
        let requests = match self.work {
            Work::Remove => REMOVE_REQUESTS,
            Work::Copy | Work::Compare => COPY_REQUESTS,
        };
        let at_once = f64::from(peer.at_once);
        let each = (requests.all / at_once).max(requests.locked / spread.dirs as f64);
        // The pieces of one file are copied one after another.
        let pieces = |bytes: u64| (bytes / PIECE_BYTES) as f64 * requests.piece;
        let equal = pieces(spread.file_bytes);
        let equal = (equal * spread.files as f64 / at_once).max(equal);
        let large = pieces(spread.large_file_bytes.unwrap_or(0));
        (latency + OVERHEAD).mul_f64(each * spread.files as f64 + equal + large)
    }

    /// Returns `true` if a peer waits so long for replies that it is left out.
    pub(crate) fn is_too_slow(&self, peer: &Peer) -> bool {
        let longest = match (self.group, self.runs) {
            (Group::Slow, Runs::Selected) => {
                let ours = self.waits(&self.peers()[0]);
                (2 * ours).clamp(LONGEST_WAIT_IF_SELECTED, LONGEST_WAIT)
            }
            _ => LONGEST_WAIT,
        };
        self.waits(peer) > longest
    }

    /// Returns the approximate number of files and bytes.
    ///
    /// For real trees it is a guess, which affects only the announced times and sizes.
    pub(crate) fn size(&self) -> (u64, u64) {
        match self.tree {
            Tree::Made { files, bytes, .. } => (files, bytes),
            Tree::Spread(spread) => spread.size(),
            Tree::Real(Real::Linux) => (84_000, 1_500_000_000),
            Tree::Real(Real::Go) => (11_000, 120_000_000),
            Tree::Real(Real::NodeModules) => (66_000, 770_000_000),
            Tree::Real(Real::Registry) => (20_000, 400_000_000),
        }
    }

    /// Returns an upper limit of the space: a page and an inode for each file, and the same again for a copy.
    pub(crate) fn space_bytes(&self) -> u64 {
        let (files, bytes) = self.size();
        let once = files * if bytes == 0 { 1_500 } else { 5_500 } + bytes;
        match (&self.tree, self.work) {
            // The tree is in the memory of the server.
            _ if self.is_slow() => 0,
            (Tree::Made { .. } | Tree::Spread(_), Work::Remove) => once,
            (Tree::Real(Real::Linux), _) => 3 * once,
            _ => 2 * once,
        }
    }

    /// Returns `true` if the copies must not be removed between two runs, see [`RECENTLY_REMOVED`].
    pub(crate) fn keeps_copies(&self) -> bool {
        self.work == Work::Copy && self.cache == Cache::Cold && !self.is_slow()
    }

    /// Returns how long a full run measures the cell: enough for some rounds of the slowest peers.
    pub(crate) fn full_seconds(&self) -> f64 {
        if self.is_slow() {
            let peers = self.peers();
            let run = peers.iter().filter(|peer| !self.is_too_slow(peer));
            let preparing = OVERHEAD.mul_f64(PREPARING_REQUESTS * self.size().0 as f64);
            let once: Duration = run.map(|peer| self.waits(peer) + preparing).sum();
            return match self.group {
                Group::Large => once.as_secs_f64() * LARGE_ROUNDS as f64,
                _ => once.as_secs_f64() + SLOW_SECONDS,
            };
        }
        if self.group == Group::Large {
            return LARGE_SECONDS;
        }
        let (files, bytes) = self.size();
        let peers = self.peers().len() as f64;
        let run = files as f64 * 8e-6 + bytes as f64 * 0.6e-9;
        let disk = if self.cache == Cache::Cold || self.place != Place::Here {
            2.0
        } else {
            1.0
        };
        let work = if self.work == Work::Copy { 1.5 } else { 1.0 };
        let waits = match self.keeps_copies() {
            true => RECENTLY_REMOVED.as_secs_f64(),
            false => 0.0,
        };
        waits + (8.0 * peers * run * disk * work).max(10.0)
    }
}

impl Spread {
    /// Returns files of the same size in a single directory.
    pub(super) const fn flat(files: u64, file_bytes: u64) -> Self {
        Self {
            dirs: 1,
            files,
            file_bytes,
            large_file_bytes: None,
        }
    }

    /// Returns the number of files and bytes.
    fn size(&self) -> (u64, u64) {
        let large = self.large_file_bytes;
        (
            self.files + u64::from(large.is_some()),
            self.files * self.file_bytes + large.unwrap_or(0),
        )
    }
}
