//! Copies of which several engines divide a large file; see [`crate::hub`].
//!
//! Each tree is a file, or a single directory with one file, so engines can steal nothing but ranges.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::kit::Limited as _;
use fuc_engine::distribute::Role;
use fuc_engine::{Cancel, CopyOp, Dereference, Dest, Operation, Reflink, Refusal, Sparse, Summary};
use rustix::io::Errno;
use testkit::probe::{Fs, LoopMount, Skip};
use testkit::snapshot::{Attributes, Snapshot, assert_same_tree};
use testkit::tree::{Scratch, Tree, remove_for_sure};

use crate::content::{data_map, pattern as slow_pattern};
use crate::hub::{Hub, failures, quick, slow, totals};
use crate::kit::{Failure, all_but_atime, exactly, paths, plain, until_raced};
use crate::races::Arena;
use crate::sharing_copies::{Twins, archive};

const MIB: usize = 1 << 20;
/// Size of the large file. It is enough for three engines, because each part has at least 4 MiB.
const LARGE: usize = 40 * MIB + 12_345;

/// Makes bytes that differ from block to block, and are never zero.
fn pattern(bytes: usize) -> Vec<u8> {
    let first = slow_pattern(MIB);
    let mut all = first.repeat(bytes.div_ceil(MIB));
    for number in 0..bytes / MIB {
        all[number * MIB..][..4].fill(number as u8 | 1);
    }
    all.truncate(bytes);
    all
}

/// Returns a copy that reads and writes content, although the files are on a local filesystem. Engines divide only such
/// files.
fn dividing(copy: CopyOp<'_>) -> CopyOp<'_> {
    copy.with(|copy| copy.reflink = Reflink::Never)
}

/// Gives a third engine time to ask the one that gets something.
fn give_time() {
    std::thread::sleep(Duration::from_millis(20));
}

/// Makes a directory with a large file.
fn build(root: &Path) -> Tree {
    let tree = Tree::at(root);
    tree.file("large", pattern(LARGE))
        .mode(0o640)
        .mtime(Duration::new(1_234_567_890, 123_456_789));
    tree
}

/// Returns the names in a directory that begin like those of incomplete dests.
fn hidden_names(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| {
            path.file_name()
                .unwrap()
                .as_encoded_bytes()
                .starts_with(b".cpz-")
        })
        .collect()
}

/// Returns how many engines have copied content.
fn writers(summaries: &[Summary]) -> usize {
    summaries.iter().filter(|it| it.bytes > 0).count()
}

#[test]
fn engines_copy_ranges_of_one_file() {
    for (engines, threads) in [(2, 1), (3, 1), (3, 4)] {
        until_raced(1, || {
            let twins = Twins::new();
            build(&twins.source());
            let hub = Hub::new(engines, give_time).patient();
            let copy = dividing(archive().threads(threads));
            let summaries = twins.assert_alike(&hub, &copy, all_but_atime());
            assert_same_tree(twins.source(), &twins.dests()[1], all_but_atime());
            assert_eq!(hub.not_reached(), 0);
            let bytes: u64 = summaries.iter().map(|it| it.bytes).sum();
            assert_eq!(bytes, LARGE as u64);
            usize::from(writers(&summaries) == engines)
        });
    }
}

#[test]
fn operands_are_divided_one_after_the_other() {
    for (parents, threads) in [(false, 1), (true, 4)] {
        until_raced(1, || {
            let scratch = Scratch::in_memory();
            let at = |name: &str| scratch.path().join(name);
            for dir in ["a", "b", "c", "into"] {
                Tree::at(at(dir));
            }
            build(&at("a"));
            build(&at("b"));
            Tree::at(at("c")).file("other", pattern(LARGE));
            symlink("c/other", at("link")).unwrap();
            let sources = ["a/large", "b/large", "link"].map(at);
            let copy = dividing(archive().threads(threads)).with(|copy| {
                copy.parents = parents;
                copy.preserve.links = false;
                copy.dereference = Dereference::Operands;
            });
            let hub = Hub::new(3, give_time).patient();
            let observers = slow(3);
            let dest = Dest::Into(at("into"));
            let summaries = hub.copy(&copy, &sources, &dest, &observers);
            assert_eq!(hub.not_reached(), 0);
            let below = |source: &Path| match parents {
                true => at("into").join(source.strip_prefix("/").unwrap()),
                false => at("into").join(source.file_name().unwrap()),
            };
            let mut copied = sources.iter().collect::<Vec<_>>();
            let mut refused = Vec::new();
            if !parents {
                let second = copied.remove(1);
                let refusal = Failure::refused(Refusal::JustCreated, below(second));
                refused.push(refusal.and(second));
            }
            assert_eq!(failures(observers), refused);
            assert_eq!(totals(&summaries).1, refused.len() as u64);
            for source in copied {
                let source = fs::canonicalize(source).unwrap();
                let name = sources
                    .iter()
                    .find(|name| fs::canonicalize(name).unwrap() == source);
                assert_same_tree(&source, below(name.unwrap()), all_but_atime());
            }
            usize::from(writers(&summaries) == 3)
        });
    }
}

#[test]
fn an_operand_is_divided_that_gets_another_name() {
    until_raced(1, || {
        let scratch = Scratch::in_memory();
        let at = |name: &str| scratch.path().join(name);
        build(&at("s"));
        Tree::at(at("d"));
        let hub = Hub::new(2, give_time).patient();
        let dest = at("d/new");
        let copy = dividing(archive().threads(1));
        let summaries = hub.copy(&copy, &[at("s/large")], &exactly(&dest), &slow(2));
        assert_eq!(totals(&summaries), (1, 0));
        assert_same_tree(at("s/large"), dest, all_but_atime());
        assert!(hidden_names(&at("d")).is_empty());
        hub.stolen()
    });
}

#[test]
fn ranges_reach_a_third_engine() {
    until_raced(1, || {
        let twins = Twins::new();
        build(&twins.source());
        let hub = Hub::new(3, give_time).patient();
        twins.assert_alike(&hub, &dividing(archive().threads(1)), all_but_atime());
        hub.stolen_from_assistants()
    });
}

#[test]
fn small_files_and_existing_ones_are_copied_by_one_engine() {
    for size in [8 * MIB - 1, LARGE] {
        let twins = Twins::new();
        let tree = Tree::at(twins.source());
        tree.file("large", pattern(size));
        if size == LARGE {
            for dest in twins.dests() {
                Tree::at(dest).file("large", "old");
            }
        }
        let hub = Hub::new(2, give_time).patient();
        twins.assert_alike(&hub, &dividing(archive().threads(1)), all_but_atime());
        assert_eq!(hub.stolen(), 0);
    }
}

#[test]
fn files_that_the_kernel_copies_are_not_divided() {
    let twins = Twins::new();
    build(&twins.source());
    let hub = Hub::new(2, give_time).patient();
    twins.assert_alike(&hub, &archive().threads(1), all_but_atime());
    assert_eq!(hub.stolen(), 0);
}

#[test]
fn holes_of_divided_files_stay_where_they_are() {
    for sparse in [Sparse::Auto, Sparse::Never] {
        until_raced(1, || {
            let twins = Twins::new();
            let data = pattern(2 * MIB);
            let places = [0, 3, 6, 20].map(|mib| (mib * MIB as u64, &data[..]));
            let tree = Tree::at(twins.source());
            tree.sparse("middle", 22 * MIB as u64, &places)
                .sparse("end", 25 * MIB as u64 + 7, &places[..2])
                .sparse("start", 22 * MIB as u64, &places[3..])
                .sparse("all", 10 * MIB as u64, &[]);
            let hub = Hub::new(2, give_time).patient();
            let copy = dividing(archive().threads(1).with(|copy| copy.sparse = sparse));
            twins.assert_alike(&hub, &copy, all_but_atime());
            for name in ["middle", "end", "start", "all"] {
                let [source, dest] =
                    [twins.source(), twins.dests()[1].clone()].map(|dir| data_map(&dir.join(name)));
                match sparse {
                    Sparse::Never => assert_eq!(dest.len(), 1, "{name}"),
                    _ => assert_eq!(dest, source, "{name}"),
                }
            }
            hub.stolen()
        });
    }
}

#[test]
fn divided_files_get_the_modes_of_undivided_ones() {
    for copy in [CopyOp::new(), archive()] {
        until_raced(1, || {
            let twins = Twins::new();
            let tree = Tree::at(twins.source());
            for mode in [0o400, 0o444, 0o600, 0o644, 0o755, 0o4711, 0o040] {
                tree.file(format!("{mode:o}"), pattern(4 * MIB)).mode(mode);
            }
            let hub = Hub::new(2, give_time).patient();
            let copy = dividing(copy.clone().threads(1));
            twins.assert_alike(&hub, &copy, plain() | Attributes::MODE);
            hub.stolen()
        });
    }
}

#[test]
fn options_hold_for_divided_files() {
    for copy in [
        archive().with(|copy| copy.durable = true),
        archive().with(|copy| copy.verify = true),
        archive().with(|copy| copy.reflink = Reflink::Never),
        archive().with(|copy| copy.sparse = Sparse::Always),
    ] {
        let twins = Twins::new();
        build(&twins.source());
        let hub = Hub::new(3, give_time).patient();
        let copy = dividing(copy.threads(2));
        twins.assert_alike(&hub, &copy, all_but_atime());
        assert_same_tree(twins.source(), &twins.dests()[1], all_but_atime());
    }
}

#[test]
fn an_engine_that_does_not_reach_the_file_gives_ranges_back() {
    until_raced(1, || {
        let scratch = Scratch::in_memory();
        let at = |name: &str| scratch.path().join(name);
        build(&at("s"));
        let hub = Hub::new(2, give_time).patient();
        let observers = slow(2);
        let copy = dividing(archive().threads(1));
        let summaries = hub.run(&observers, |engine, observer, desk| match engine {
            0 => desk
                .lead(copy.clone())
                .run(paths([at("s")]), &exactly(at("d")), observer),
            _ => copy.clone().shared_by(desk, Role::Assistant).run(
                paths([at("missing")]),
                &exactly(at("d")),
                observer,
            ),
        });
        assert_eq!(totals(&summaries), (2, 0));
        assert_eq!(summaries[1].bytes, 0);
        assert_same_tree(at("s"), at("d"), all_but_atime());
        hub.not_reached()
    });
}

#[test]
fn a_failure_is_reported_once_and_leaves_what_a_failed_copy_leaves() {
    until_raced(1, || {
        let Some(small) = small_mount() else { return 1 };
        let scratch = Scratch::in_memory();
        let source = build(&scratch.path().join("s"));
        let dest = small.path().join("d");
        let hub = Hub::new(3, give_time).patient();
        let observers = slow(3);
        let copy = dividing(archive().threads(2));
        let summaries = hub.copy(&copy, &[source.path()], &exactly(&dest), &observers);
        let large = dest.join("large");
        let expected = Failure::failed(Operation::Write, &large, Errno::NOSPC);
        assert_eq!(failures(observers), [expected]);
        assert_eq!(totals(&summaries), (1, 1));
        assert!(hidden_names(&dest).is_empty());
        // A later run with --update copies it again.
        let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        assert!(modified(&large) < modified(&source.path().join("large")));
        hub.stolen()
    });
}

#[test]
fn a_file_without_room_beside_a_divided_one_is_copied_after_it() {
    until_raced(1, || {
        let Some(mount) = mount(59) else { return 1 };
        let scratch = Scratch::in_memory();
        let root = scratch.path().join("s");
        // The order of the listing decides which one is begun first.
        Tree::at(&root).file("other", pattern(9 * MIB));
        let source = build(&root);
        source.file("another", pattern(9 * MIB));
        let dest = mount.path().join("d");
        let hub = Hub::new(2, || std::thread::sleep(Duration::from_millis(100))).patient();
        let observers = slow(2);
        let copy = dividing(archive().threads(1));
        hub.copy(&copy, &[source.path()], &exactly(&dest), &observers);
        assert_eq!(failures(observers), []);
        assert_same_tree(source.path(), &dest, all_but_atime());
        hub.stolen()
    });
}

/// Mounts a filesystem that is too small for the large file.
fn small_mount() -> Option<LoopMount> {
    mount(32)
}

fn mount(mib: u64) -> Option<LoopMount> {
    LoopMount::new(Fs::Tmpfs, mib)
        .inspect_err(Skip::announce)
        .ok()
}

#[test]
fn a_cancelled_copy_leaves_no_part_of_a_divided_file() {
    for cancelled in 0..2 {
        until_raced(1, || {
            let scratch = Scratch::in_memory();
            let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
            build(&source);
            let cancels = [Cancel::new(), Cancel::new()];
            let hub = Hub::new(2, || cancels[cancelled].cancel()).patient();
            let observers = slow(2);
            let copy = dividing(archive().threads(1));
            let summaries = hub.run(&observers, |engine, observer, desk| {
                let copy = copy.clone().cancelled_by(cancels[engine].clone());
                match engine {
                    0 => desk
                        .lead(copy)
                        .run(paths([&source]), &exactly(&dest), observer),
                    _ => copy.shared_by(desk, Role::Assistant).run(
                        paths([&source]),
                        &exactly(&dest),
                        observer,
                    ),
                }
            });
            assert_eq!(failures(observers), []);
            assert!(hidden_names(&dest).is_empty());
            if hub.stolen() == 0 {
                return 0;
            }
            assert!(summaries[cancelled].cancelled);
            match cancelled {
                // The leader owns the file.
                0 => {
                    assert!(!dest.join("large").exists());
                    assert_eq!(summaries[0].discarded, 1);
                }
                _ => assert_same_tree(&source, &dest, all_but_atime()),
            }
            1
        });
    }
}

#[test]
fn a_file_that_takes_over_the_hidden_name_is_neither_written_nor_removed() {
    for hard_link in [false, true] {
        until_raced(1, || {
            let Some(arena) = arena() else { return 1 };
            let [source, dest, moved] = ["s", "d", "moved"].map(|name| arena.at(name));
            build(&source);
            let target = arena.outside().join("marked3");
            let swapped = AtomicUsize::new(0);
            let hub = Hub::new(3, || {
                for hidden in hidden_names(&dest) {
                    if moved.exists() || fs::rename(&hidden, &moved).is_err() {
                        continue;
                    }
                    let planted = match hard_link {
                        true => fs::hard_link(&target, &hidden),
                        false => symlink(&target, &hidden),
                    };
                    swapped.fetch_add(usize::from(planted.is_ok()), Ordering::Relaxed);
                }
            })
            .patient();
            let copy = dividing(CopyOp::new().threads(1));
            let summaries = hub.copy(&copy, &[&source], &exactly(&dest), &quick(3));
            assert_eq!(totals(&summaries), (2, 0));
            let planted = hidden_names(&dest);
            assert_eq!(planted.len(), swapped.load(Ordering::Relaxed));
            planted
                .iter()
                .for_each(|path| fs::remove_file(path).unwrap());
            arena.assert_outside_is_untouched();
            assert_same_tree(&source, &dest, plain());
            remove_for_sure(&dest).unwrap();
            swapped.load(Ordering::Relaxed).min(hub.not_reached())
        });
    }
}

/// Makes an arena, or announces why that is not possible here.
fn arena() -> Option<Arena> {
    Arena::new().inspect_err(Skip::announce).ok()
}

#[test]
fn a_directory_that_replaces_the_one_of_a_divided_file_is_not_written_to() {
    until_raced(1, || {
        let Some(arena) = arena() else { return 1 };
        let [source, dest, moved] = ["s", "d", "moved"].map(|name| arena.at(name));
        build(&source.join("top"));
        let replaced = AtomicBool::new(false);
        let hub = Hub::new(2, || {
            if !hidden_names(&dest.join("top")).is_empty()
                && !replaced.swap(true, Ordering::Relaxed)
            {
                fs::rename(dest.join("top"), &moved).unwrap();
                symlink(arena.outside(), dest.join("top")).unwrap();
            }
        })
        .patient();
        let copy = dividing(CopyOp::new().threads(1));
        let summaries = hub.copy(&copy, &[&source], &exactly(&dest), &quick(2));
        arena.assert_outside_is_untouched();
        assert_eq!(totals(&summaries).1, 0);
        let filled = match replaced.load(Ordering::Relaxed) {
            true => &moved,
            false => &dest.join("top"),
        };
        assert_same_tree(source.join("top"), filled, plain());
        hub.not_reached()
    });
}

#[test]
fn a_dest_that_appears_while_ranges_are_copied_is_written_under_its_name() {
    until_raced(1, || {
        let twins = Twins::new();
        build(&twins.source()).select("large").mode(0o644);
        let large = twins.dests()[1].join("large");
        let appeared = AtomicBool::new(false);
        let hub = Hub::new(2, || {
            if !appeared.swap(true, Ordering::Relaxed) {
                fs::write(&large, "another").unwrap();
            }
        })
        .patient();
        twins.assert_alike(&hub, &dividing(CopyOp::new().threads(1)), plain());
        usize::from(appeared.into_inner())
    });
}

/// The result of a copy whose source changed during the run.
struct Raced {
    copied: Vec<u8>,
    /// The content of the source in the end.
    whole: Vec<u8>,
    stolen: usize,
}

/// Copies the large file, and lets `change` change it each time that something is given to a thief.
fn copy_while_it_changes(change: impl Fn(&fs::File) + Sync) -> Raced {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    build(&source);
    let large = source.join("large");
    let hub = Hub::new(2, || {
        change(&fs::File::options().write(true).open(&large).unwrap());
    })
    .patient();
    let observers = slow(2);
    let copy = dividing(archive().threads(1));
    hub.copy(&copy, &[&source], &exactly(&dest), &observers);
    assert_eq!(failures(observers), []);
    Raced {
        copied: fs::read(dest.join("large")).unwrap(),
        whole: fs::read(&large).unwrap(),
        stolen: hub.stolen(),
    }
}

#[test]
fn a_divided_copy_of_a_file_that_shrinks_is_a_beginning_of_it() {
    let left = 2 * MIB + 77;
    until_raced(1, || {
        let Raced { copied, stolen, .. } =
            copy_while_it_changes(|file| file.set_len(left as u64).unwrap());
        assert!(copied.len() >= left && copied[..left] == pattern(LARGE)[..left]);
        usize::from(stolen > 0 && copied.len() == left)
    });
}

#[test]
fn a_file_that_grows_is_copied_to_an_end() {
    until_raced(1, || {
        let Raced {
            copied,
            whole,
            stolen,
        } = copy_while_it_changes(|file| file.write_all_at(&[7; MIB], LARGE as u64).unwrap());
        assert!(
            copied.len() >= LARGE && whole.starts_with(&copied),
            "{}",
            copied.len()
        );
        stolen
    });
}

#[test]
fn names_of_directories_are_complete_when_ranges_are() {
    // The directory gets its time after the hidden name is gone.
    until_raced(1, || {
        let twins = Twins::new();
        let tree = build(&twins.source().join("sub"));
        tree.select("").mtime(Duration::from_secs(1_000));
        let hub = Hub::new(3, give_time).patient();
        twins.assert_alike(&hub, &dividing(archive().threads(1)), all_but_atime());
        let names = Snapshot::of(&twins.dests()[1], Attributes::NAMES);
        assert_eq!(names.len(), 1 + 1 + 1);
        hub.stolen()
    });
}
