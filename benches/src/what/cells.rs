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
    Large,
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
    Group::Large,
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
            (Group::Steady, Work::Remove) => {
                [peers::STEADY_REMOVE, peers::STEADY_RMZ_FIXED].concat()
            }
            (Group::Steady, _) => [peers::STEADY_COPY, peers::STEADY_CPZ_FIXED].concat(),
        }
    }

    /// Returns `true` if the place makes the floor meaningless. Its two threads wait most of the time.
    pub(crate) fn has_floor(&self) -> bool {
        !self.is_slow()
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
        self.waits(peer) > LONGEST_WAIT
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
        (8.0 * peers * run * disk * work).max(10.0)
    }
}

impl Spread {
    /// Returns files of the same size in a single directory.
    const fn flat(files: u64, file_bytes: u64) -> Self {
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

/// Numbers of files, with their short and long names.
const SIZES: [(u64, &str, &str); 4] = [
    (10, "10", "10"),
    (10_000, "10k", "10 000"),
    (100_000, "100k", "100 000"),
    (1_000_000, "1m", "1 000 000"),
];
const GB: u64 = 1_000_000_000;
const MB: u64 = 1_000_000;
const KB: u64 = 1_000;

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
/// The time for more rounds on a slow filesystem, after the first one.
const SLOW_SECONDS: f64 = 45.0;
/// The time of a cell of [`Group::Large`] without latency. Except for clones, the fewest rounds take longer.
const LARGE_SECONDS: f64 = 15.0;
/// The fewest rounds of a cell of [`Group::Large`], so that medians can show small losses.
pub(crate) const LARGE_ROUNDS: usize = 5;
const FLAT: &[&str] = &["-d", "0"];
const ZEROS: &[&str] = &["-d", "0", "--fill-byte", "0"];
const FEW: &[&str] = &["-r", "5"];

/// A tree of [`Group::Large`], with a word for the name of its cells and a phrase for their titles.
struct LargeTree {
    short: &'static str,
    long: &'static str,
    spread: Spread,
}

const LARGE: [LargeTree; 3] = [
    LargeTree {
        short: "one",
        long: "one file of 1 GB",
        spread: Spread::flat(1, GB),
    },
    LargeTree {
        short: "ten",
        long: "ten files of 100 MB",
        spread: Spread::flat(10, 100 * MB),
    },
    LargeTree {
        short: "among",
        long: "a file of 500 MB among 10 000 of 4 KB",
        spread: Spread {
            large_file_bytes: Some(500 * MB),
            ..Spread::flat(10_000, 4 * KB)
        },
    },
];
/// The trees on the slow filesystem. They are smaller, because most commands wait for one reply at a time.
const LARGE_SLOW: [LargeTree; 3] = [
    LargeTree {
        short: "one",
        long: "one file of 100 MB",
        spread: Spread::flat(1, 100 * MB),
    },
    LargeTree {
        short: "ten",
        long: "ten files of 10 MB",
        spread: Spread::flat(10, 10 * MB),
    },
    LargeTree {
        short: "among",
        long: "a file of 50 MB among 1 000 of 4 KB",
        spread: Spread {
            large_file_bytes: Some(50 * MB),
            ..Spread::flat(1_000, 4 * KB)
        },
    },
];

/// The filesystems of [`Group::Filesystems`] and [`Group::Large`].
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
    large(&mut cells);
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
                    let tree = Tree::Spread(Spread {
                        dirs,
                        files,
                        file_bytes: 1024,
                        large_file_bytes: None,
                    });
                    cells.push(Cell {
                        place: Place::Slow { latency },
                        cache: Cache::Cold,
                        runs,
                        ..cell(Group::Slow, work, name, title, tree)
                    });
                }
            }
        }
    }
}

fn large(cells: &mut Vec<Cell>) {
    for filesystem in FILESYSTEMS {
        for LargeTree {
            short,
            long,
            spread,
        } in LARGE
        {
            let copy = (Work::Copy, "copy", "");
            let remove = (Work::Remove, "remove", "-remove");
            let works = match (short, filesystem) {
                ("among", "tmpfs" | "ext4") => vec![copy, remove],
                _ => vec![copy],
            };
            for (work, verb, suffix) in works {
                let title = format!("{filesystem}: {verb} {long}");
                let name = format!("large-{short}-{filesystem}{suffix}");
                cells.push(Cell {
                    place: Place::New(filesystem),
                    ..cell(Group::Large, work, name, title, Tree::Spread(spread))
                });
            }
        }
    }
    for LargeTree {
        short,
        long,
        spread,
    } in LARGE_SLOW
    {
        let title = format!("1 ms: copy {long}");
        let name = format!("large-{short}-slow-1ms");
        let latency = Duration::from_millis(1);
        cells.push(Cell {
            place: Place::Slow { latency },
            cache: Cache::Cold,
            runs: if short == "among" {
                Runs::Selected
            } else {
                Runs::Full
            },
            ..cell(Group::Large, Work::Copy, name, title, Tree::Spread(spread))
        });
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
    fn large_files_are_copied_in_each_place_and_no_peer_waits_for_minutes() {
        let large = |cell: &Cell| cell.group == Group::Large;
        let copies: Vec<_> = all()
            .into_iter()
            .filter(|cell| large(cell) && cell.work == Work::Copy)
            .collect();
        for place in [&FILESYSTEMS[..], &["slow-1ms"]].concat() {
            for tree in ["one", "ten", "among"] {
                let name = format!("large-{tree}-{place}");
                let cell = copies.iter().find(|cell| cell.name == name);
                let peers = cell.expect(&name).peers();
                for label in ["fcp", "cpz (published)"] {
                    assert!(peers.iter().any(|peer| peer.label == label), "{name}");
                }
                let waits = peers.iter().any(|peer| cell.unwrap().is_too_slow(peer));
                assert!(!waits, "{name}");
            }
        }
        let removals = all()
            .into_iter()
            .filter(|cell| large(cell) && cell.work == Work::Remove);
        let names: Vec<_> = removals.map(|cell| cell.name).collect();
        assert_eq!(
            names,
            ["large-among-tmpfs-remove", "large-among-ext4-remove"]
        );
    }

    #[test]
    fn pieces_of_one_file_are_waited_for_in_turn_and_those_of_ten_at_once() {
        let waits = |name: &str, at_once| {
            let cell = all().into_iter().find(|cell| cell.name == name).unwrap();
            let peer = Peer {
                at_once,
                ..cell.peers()[0]
            };
            cell.waits(&peer).as_secs_f64()
        };
        let (one, ten) = ("large-one-slow-1ms", "large-ten-slow-1ms");
        assert!(waits(one, 10) > 0.9 * waits(one, 1));
        assert!(waits(ten, 10) < 0.2 * waits(ten, 1));
        assert!((waits(one, 1) / waits(ten, 1) - 1.0).abs() < 0.1);
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
