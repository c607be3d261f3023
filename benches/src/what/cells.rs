//! The cells that are measured: each is one operation on one tree in one place.

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
    pub(crate) quick: bool,
}

/// Cells that share a table and a plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Remove,
    Copy,
    Real,
    Update,
    Filesystems,
}

/// All groups, in the order of the tables.
pub(crate) const GROUPS: &[Group] = &[
    Group::Remove,
    Group::Copy,
    Group::Real,
    Group::Update,
    Group::Filesystems,
];

impl Group {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Remove => "remove",
            Self::Copy => "copy",
            Self::Real => "real",
            Self::Update => "update",
            Self::Filesystems => "filesystems",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Remove => "Removing",
            Self::Copy => "Copying",
            Self::Real => "Real trees",
            Self::Update => "Bringing a copy up to date",
            Self::Filesystems => "Filesystems on loop devices",
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
        }
    }

    /// Returns the approximate number of files and bytes.
    ///
    /// For real trees it is a guess, which affects only the announced times and sizes.
    pub(crate) fn size(&self) -> (u64, u64) {
        match self.tree {
            Tree::Made { files, bytes, .. } => (files, bytes),
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
            (Tree::Made { .. }, Work::Remove) => once,
            (Tree::Real(Real::Linux), _) => 3 * once,
            _ => 2 * once,
        }
    }

    /// Returns how long a full run measures the cell: enough for some rounds of the slowest peers.
    pub(crate) fn full_seconds(&self) -> f64 {
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
const FLAT: &[&str] = &["-d", "0"];
const ZEROS: &[&str] = &["-d", "0", "--fill-byte", "0"];
const FEW: &[&str] = &["-r", "5"];

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
        quick: false,
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
            let quick = files == 100_000 || (bytes == 0 && files < 100_000);
            cells.push(Cell {
                quick,
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
        quick: true,
        ..flat
    });
    let title = "100 000 empty files, 5 per directory".to_owned();
    cells.push(Cell {
        quick: true,
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
    for filesystem in ["tmpfs", "ext4", "xfs", "btrfs"] {
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
                .filter(|cell| cell.quick)
                .all(|cell| cell.space_bytes() < 4 * GB)
        );
    }
}
