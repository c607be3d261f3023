//! The cells that are measured: each is one operation on one tree in one place.

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
    /// The cells of [`steady`](super::steady), which are not in [`all`].
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
    /// The tree has files of [`SPREAD_BYTES`], the same number in each of `dirs` directories.
    Spread { files: u64, dirs: u64 },
    /// The tree is a copy of one that the machine has.
    Real(Real),
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
            (Group::Slow, _) => [peers::SLOW_COPY, peers::CPZ_FIXED].concat(),
            (Group::Steady, Work::Remove) => {
                [peers::STEADY_REMOVE, peers::STEADY_RMZ_FIXED].concat()
            }
            (Group::Steady, _) => [peers::STEADY_COPY, peers::STEADY_CPZ_FIXED].concat(),
        }
    }

    /// Returns `true` if the place makes the floor meaningless. Its two threads wait most of the time.
    pub(crate) fn has_floor(&self) -> bool {
        !matches!(self.place, Place::Slow { .. })
    }

    /// Returns about how long a peer waits for replies. Requests about directories are not counted.
    pub(crate) fn waits(&self, peer: &Peer) -> Duration {
        let (Place::Slow { latency }, Tree::Spread { files, dirs }) = (self.place, &self.tree)
        else {
            return Duration::ZERO;
        };
        let requests = match self.work {
            Work::Remove => REMOVE_REQUESTS,
            Work::Copy | Work::Compare => COPY_REQUESTS,
        };
        let in_turn = (requests.all / f64::from(peer.at_once)).max(requests.locked / *dirs as f64);
        (latency + OVERHEAD).mul_f64(in_turn * *files as f64)
    }

    /// Returns `true` if a peer waits so long for replies that it is left out.
    pub(crate) fn is_too_slow(&self, peer: &Peer) -> bool {
        self.waits(peer) > LONGEST_WAIT
    }

    /// Returns the approximate number of files and bytes.
    ///
    /// For real trees it is a guess, which affects only the announced times and sizes.
    pub(crate) fn size(&self) -> (u64, u64) {
        match self.tree {
            Tree::Made { files, bytes, .. } => (files, bytes),
            Tree::Spread { files, .. } => (files, files * SPREAD_BYTES as u64),
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
            // Such a tree is in the memory of the server.
            (Tree::Spread { .. }, _) => 0,
            (Tree::Made { .. }, Work::Remove) => once,
            (Tree::Real(Real::Linux), _) => 3 * once,
            _ => 2 * once,
        }
    }

    /// Returns how long a full run measures the cell: enough for some rounds of the slowest peers.
    pub(crate) fn full_seconds(&self) -> f64 {
        if let Place::Slow { .. } = self.place {
            let peers = self.peers();
            let run = peers.iter().filter(|peer| !self.is_too_slow(peer));
            let preparing = OVERHEAD.mul_f64(PREPARING_REQUESTS * self.size().0 as f64);
            let once: Duration = run.map(|peer| self.waits(peer) + preparing).sum();
            return once.as_secs_f64() + SLOW_SECONDS;
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
        (8.0 * peers * run * disk * work).max(10.0)
    }
}

/// Numbers of files, with their short and long names.
const SIZES: [(u64, &str, &str); 4] = [
    (10, "10", "10"),
    (10_000, "10k", "10 000"),
    (100_000, "100k", "100 000"),
    (1_000_000, "1m", "1 000 000"),
];
const GB: u64 = 1_000_000_000;

/// The size of the files of [`Tree::Spread`].
pub(crate) const SPREAD_BYTES: usize = 1024;
/// The numbers of requests for each file.
struct Requests {
    all: f64,
    /// Those among them that lock the directory in which a name is made or removed.
    locked: f64,
}

const REMOVE_REQUESTS: Requests = Requests {
    all: 1.0,
    locked: 1.0,
};
/// The slow filesystem counts these for cpz: open, read, flush and release, then lookup, create, write, flush and
/// release.
const COPY_REQUESTS: Requests = Requests {
    all: 9.0,
    locked: 2.0,
};
/// The requests for each file to remove a tree and make it again, while the server is fast.
const PREPARING_REQUESTS: f64 = 5.0;
/// The time of a request without latency, on two cores.
const OVERHEAD: Duration = Duration::from_micros(100);
/// A peer that waits longer than this for replies is left out.
const LONGEST_WAIT: Duration = Duration::from_secs(180);
/// The time for more rounds on a slow filesystem, after the first one.
const SLOW_SECONDS: f64 = 45.0;
const FLAT: &[&str] = &["-d", "0"];
const ZEROS: &[&str] = &["-d", "0", "--fill-byte", "0"];
const FEW: &[&str] = &["-r", "5"];

/// The filesystems of [`Group::Filesystems`].
pub(crate) const FILESYSTEMS: [&str; 4] = ["tmpfs", "ext4", "xfs", "btrfs"];

/// Returns every cell, in the order in which they run.
pub(crate) fn all() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (group, work) in [(Group::Remove, Work::Remove), (Group::Copy, Work::Copy)] {
        sizes(&mut cells, group, work);
        shapes(&mut cells, group, work);
    }
    real(&mut cells);
    update(&mut cells);
    filesystems(&mut cells);
    slow(&mut cells);
    cells
}

fn cell(group: Group, work: Work, name: String, title: String, tree: Tree) -> Cell {
    Cell {
        name,
        group,
        title,
        work,
        tree,
        place: Place::Here,
        cache: Cache::Warm,
        runs: Runs::Full,
    }
}

fn sizes(cells: &mut Vec<Cell>, group: Group, work: Work) {
    for (bytes, suffix, with) in [(0, "", "empty files"), (GB, "-1gb", "files, 1 GB")] {
        for (files, short, long) in SIZES {
            let tree = Tree::Made {
                files,
                bytes,
                shape: &[],
            };
            let name = format!("{}-{short}{suffix}", group.name());
            let runs = if files == 100_000 || (bytes == 0 && files < 100_000) {
                Runs::QuickAndFull
            } else {
                Runs::Full
            };
            cells.push(Cell {
                runs,
                ..cell(group, work, name, format!("{long} {with}"), tree)
            });
        }
    }
}

fn shapes(cells: &mut Vec<Cell>, group: Group, work: Work) {
    let empty = |shape| Tree::Made {
        files: 100_000,
        bytes: 0,
        shape,
    };
    let name = |suffix: &str| format!("{}-{suffix}", group.name());
    let flat = cell(
        group,
        work,
        name("flat"),
        "100 000 empty files in one directory".to_owned(),
        empty(FLAT),
    );
    cells.push(Cell {
        runs: Runs::QuickAndFull,
        ..flat
    });
    let title = "100 000 empty files, 5 per directory".to_owned();
    cells.push(Cell {
        runs: Runs::QuickAndFull,
        ..cell(group, work, name("5-per-dir"), title, empty(FEW))
    });
    if work == Work::Copy {
        let title = "100 000 files in one directory, 1 GB of zeros".to_owned();
        let tree = Tree::Made {
            files: 100_000,
            bytes: GB,
            shape: ZEROS,
        };
        cells.push(cell(group, work, name("flat-zeros"), title, tree));
    }
}

fn real(cells: &mut Vec<Cell>) {
    let trees = [
        (Real::Linux, "linux", "the Linux source"),
        (Real::Go, "go", "the Go source"),
        (Real::NodeModules, "node-modules", "a node_modules"),
        (Real::Registry, "registry", "a cargo registry"),
    ];
    let caches = [
        (Cache::Warm, "", ""),
        (Cache::Cold, "-cold", ", cold cache"),
    ];
    for (tree, short, long) in trees {
        for (work, verb) in [(Work::Copy, "copy"), (Work::Remove, "remove")] {
            for (cache, suffix, with) in caches {
                let (name, title) = (
                    format!("{verb}-{short}{suffix}"),
                    format!("{verb} {long}{with}"),
                );
                cells.push(Cell {
                    cache,
                    ..cell(Group::Real, work, name, title, Tree::Real(tree))
                });
            }
        }
    }
}

fn update(cells: &mut Vec<Cell>) {
    let tree = Tree::Made {
        files: 140_000,
        bytes: GB,
        shape: &[],
    };
    let first = "140 000 files, 1 GB, first run".to_owned();
    cells.push(cell(
        Group::Update,
        Work::Copy,
        "update-first".to_owned(),
        first,
        tree.clone(),
    ));
    let again = "140 000 files, 1 GB, nothing changed".to_owned();
    cells.push(cell(
        Group::Update,
        Work::Compare,
        "update-unchanged".to_owned(),
        again,
        tree,
    ));
}

fn filesystems(cells: &mut Vec<Cell>) {
    for filesystem in FILESYSTEMS {
        for (work, verb) in [(Work::Remove, "remove"), (Work::Copy, "copy")] {
            for (bytes, suffix, with) in [
                (0, "", "empty files"),
                (200_000_000, "-data", "files of 4 KB"),
            ] {
                let tree = Tree::Made {
                    files: 50_000,
                    bytes,
                    shape: &[],
                };
                let title = format!("{filesystem}: {verb} 50 000 {with}");
                let name = format!("{filesystem}-{verb}{suffix}");
                let place = Place::New(filesystem);
                cells.push(Cell {
                    place,
                    ..cell(Group::Filesystems, work, name, title, tree)
                });
            }
        }
    }
}

fn slow(cells: &mut Vec<Cell>) {
    const FEW: u64 = 1_500;
    let shapes = [
        (256, "256", "in 256 directories"),
        (8, "8", "in 8 directories"),
        (1, "flat", "in one directory"),
    ];
    for (files, short, long) in [(FEW, "", "1 500"), (50_000, "50k-", "50 000")] {
        for (latency_us, name) in [(100, "0.1"), (1_000, "1"), (10_000, "10")] {
            for (work, verb) in [(Work::Remove, "remove"), (Work::Copy, "copy")] {
                for (dirs, shape, with) in shapes {
                    let title = format!("{name} ms: {verb} {long} files {with}");
                    let name = format!("slow-{name}ms-{verb}-{short}{shape}");
                    let runs = match (latency_us, work) {
                        (1_000, Work::Remove) if files == FEW && dirs == 256 => Runs::QuickAndFull,
                        (100 | 1_000, _) if files == FEW => Runs::Full,
                        _ => Runs::Selected,
                    };
                    let latency = Duration::from_micros(latency_us);
                    cells.push(Cell {
                        place: Place::Slow { latency },
                        cache: Cache::Cold,
                        runs,
                        ..cell(Group::Slow, work, name, title, Tree::Spread { files, dirs })
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let cells = all();
        let names: HashSet<_> = cells.iter().map(|cell| &cell.name).collect();
        assert_eq!(names.len(), cells.len());
    }

    #[test]
    fn commands_that_wait_for_minutes_are_left_out() {
        let left_out = |name: &str| -> Vec<_> {
            let cell = all().into_iter().find(|cell| cell.name == name).unwrap();
            let peers = cell.peers().into_iter();
            let slow = peers.filter(|peer| cell.is_too_slow(peer));
            slow.map(|peer| peer.label).collect()
        };
        assert!(left_out("slow-10ms-remove-256").is_empty());
        assert!(left_out("slow-10ms-remove-50k-8").contains(&"rm -r"));
        assert!(!left_out("slow-10ms-remove-50k-8").contains(&"rmz --threads=8"));
        assert!(left_out("slow-10ms-copy-50k-flat").contains(&"cpz --threads=128"));
        assert!(left_out("copy-1m").is_empty());
    }

    #[test]
    fn only_a_flat_directory_is_for_perl() {
        let perl = |cell: &Cell| cell.peers().iter().any(|peer| peer.program == "perl");
        let names: Vec<_> = all()
            .into_iter()
            .filter(perl)
            .map(|cell| cell.name)
            .collect();
        assert_eq!(names, ["remove-flat"]);
    }

    #[test]
    fn a_quick_run_has_no_large_trees() {
        assert!(
            all()
                .iter()
                .filter(|cell| cell.runs == Runs::QuickAndFull)
                .all(|cell| cell.space_bytes() < 4 * GB)
        );
    }
}
