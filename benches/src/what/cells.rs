//! The list of all cells.

use std::time::Duration;

use super::cell::{Cache, Cell, Group, Place, Real, Runs, Spread, Tree, Work};

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
    ranks(&mut cells);
    libraries(&mut cells);
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

/// Adds the cells of rmz-mpi and cpz-mpi. They only run if they are selected, because these programs need MPI and are not
/// built with the others.
fn ranks(cells: &mut Vec<Cell>) {
    let spread = |dirs, files| Spread {
        dirs,
        files,
        file_bytes: 0,
        large_file_bytes: None,
    };
    for (work, verb, files) in [
        (Work::Remove, "remove", 20_000),
        (Work::Copy, "copy", 4_000),
    ] {
        let slow = spread(files / 20, files);
        let latency = Duration::from_millis(1);
        let title = format!("1 ms: {verb} {} 000 empty files", files / 1_000);
        let tree = Tree::Spread(slow);
        cells.push(Cell {
            place: Place::Slow { latency },
            cache: Cache::Cold,
            runs: Runs::Selected,
            ..cell(
                Group::Ranks,
                work,
                format!("ranks-slow-{verb}"),
                title,
                tree,
            )
        });
        let title = format!("tmpfs: {verb} 500 000 empty files");
        let tree = Tree::Spread(spread(10_000, 500_000));
        cells.push(Cell {
            place: Place::New("tmpfs"),
            runs: Runs::Selected,
            ..cell(
                Group::Ranks,
                work,
                format!("ranks-tmpfs-{verb}"),
                title,
                tree,
            )
        });
    }
}

fn libraries(cells: &mut Vec<Cell>) {
    let small = |file_bytes| Spread {
        dirs: 2_000,
        files: 100_000,
        file_bytes,
        large_file_bytes: None,
    };
    let trees = [
        ("empty", "100 000 empty files", small(0)),
        ("4k", "100 000 files of 4 KiB", small(4096)),
        ("large", "10 files of 100 MB", Spread::flat(10, 100 * MB)),
    ];
    for filesystem in ["tmpfs", "ext4"] {
        for (work, verb) in [(Work::Remove, "remove"), (Work::Copy, "copy")] {
            for (short, long, spread) in trees {
                let name = format!("library-{filesystem}-{verb}-{short}");
                let title = format!("{long}, {filesystem}");
                cells.push(Cell {
                    place: Place::New(filesystem),
                    runs: Runs::Selected,
                    ..cell(Group::Libraries, work, name, title, Tree::Spread(spread))
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::what::peers::Peer;

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
        assert!(!left_out("slow-10ms-copy-50k-256").contains(&"cpz"));
        assert!(!left_out("slow-10ms-remove-50k-256").contains(&"rmz --threads=32"));
        assert!(left_out("slow-10ms-copy-50k-flat").contains(&"cpz --threads=128"));
        assert!(left_out("slow-1ms-copy-flat").is_empty());
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
