//! Copies that are cancelled, and trees that another process changes, while entries are with another engine.

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use fuc_engine::{Cancel, CopyOp, Refusal};
use testkit::{
    or_skip,
    snapshot::assert_same_tree,
    tree::{Tree, remove_for_sure},
};

use super::{archive, build_linked};
use crate::hub::{Hub, failures, slow, totals};
use crate::kit::{Failure, Limited as _, entries_of, exactly, exchange, paths, places, plain};
use crate::races::{Arena, BUILT, DIRS, assert_nothing_from_outside, build};

#[test]
fn a_cancelled_run_ends_although_entries_are_away() {
    let (_scratch, source, dest) = places();
    for number in 0..20 {
        build(&source.join(number.to_string()));
    }
    build_linked(&source.join("linked"), 20, 50);
    let entries = entries_of(&source);
    let cancel = Cancel::new();
    let hub = Hub::new(3, || cancel.cancel());
    let copy = archive()
        .threads(2)
        .with(|copy| copy.verify = true)
        .cancelled_by(cancel.clone());
    let (summaries, failures) = hub.copy(&copy, &[&source], &exactly(&dest));
    assert!(summaries[0].cancelled);
    assert_eq!(failures, []);
    assert!(totals(&summaries).0 < entries);
}

#[test]
fn an_engine_that_is_cancelled_alone_leaves_its_part() {
    let (_scratch, source, dest) = places();
    build(&source);
    build_linked(&source, 20, 5);
    let cancel = Cancel::new();
    cancel.cancel();
    let hub = Hub::new(2, || {}).with_home(1);
    let observers = slow(2);
    let summaries = hub.run(&observers, |engine, observer, desk| {
        let copy = match engine {
            0 => archive().threads(1),
            _ => archive().cancelled_by(cancel.clone()),
        };
        let copy = copy.shared_by(desk, desk.role());
        copy.run(paths([&source]), &exactly(&dest), observer)
    });
    assert!(hub.stolen() > 0);
    assert_eq!(summaries[1].entries, 0);
    assert!(summaries[1].cancelled && !summaries[0].cancelled);
    assert!(failures(observers).is_empty());
    for number in 0..20 {
        assert!(!dest.join(format!("{number}/3")).exists());
    }
}

#[test]
fn links_that_replace_directories_while_engines_work_lead_nowhere() {
    let arena = or_skip!(Arena::new());
    let mut changed_hands = 0;
    for side in ["s", "d"] {
        for _ in 0..4 {
            let [source, dest] = ["s", "d"].map(|name| arena.at(name));
            build(&source);
            build_linked(&source.join("linked"), 10, 10);
            if side == "d" {
                build(&dest);
                Tree::at(&dest).plant("linked/{0..9}/");
            }
            let swapped = AtomicUsize::new(0);
            let decoys = arena.at("decoys");
            fs::create_dir(&decoys).unwrap();
            // Each time a fifth of the directories, so that some were not entered yet.
            let hub = Hub::new(3, || {
                let first = swapped.fetch_add(DIRS / 5, Ordering::Relaxed) % DIRS;
                for number in first..first + DIRS / 5 {
                    let decoy = decoys.join(number.to_string());
                    let _ = symlink(arena.outside(), &decoy);
                    let victim = match number % 4 {
                        0 => format!("linked/{}", number / 4),
                        _ => number.to_string(),
                    };
                    let _ = exchange(arena.at(side).join(victim), &decoy);
                }
            });
            let copy = archive().threads(1);
            hub.copy(&copy, &[&source], &exactly(&dest));
            changed_hands += hub.stolen() + hub.entrusted();
            arena.assert_outside_is_untouched();
            assert_nothing_from_outside(&dest);
            for left in [&source, &dest, &decoys] {
                remove_for_sure(left).unwrap();
            }
        }
    }
    assert!(changed_hands > 16);
}

#[test]
fn links_that_are_planted_before_entries_arrive_are_not_written_through() {
    for attributes_only in [false, true] {
        let arena = or_skip!(Arena::new());
        let [source, dest] = ["s", "d"].map(|name| arena.at(name));
        build_linked(&source, 10, 10);
        let planted = AtomicUsize::new(0);
        let hub = Hub::new(2, || {
            for number in 0..100 {
                let name = format!("{}/{}", number / 10, number % 10);
                let planting = symlink(arena.outside().join("marked3"), dest.join(name));
                planted.fetch_add(usize::from(planting.is_ok()), Ordering::Relaxed);
            }
        });
        let copy = archive()
            .with(|copy| copy.attributes_only = attributes_only)
            .threads(1);
        hub.copy(&copy, &[&source], &exactly(&dest));
        assert!(hub.entrusted() > 0);
        assert!(planted.into_inner() > 0);
        arena.assert_outside_is_untouched();
    }
}

#[test]
fn a_directory_that_replaces_the_parent_at_the_dest_is_not_taken_for_it() {
    let arena = or_skip!(Arena::new());
    let [source, dest, moved] = ["s", "d", "moved"].map(|name| arena.at(name));
    build(&source.join("top"));
    let hub = Hub::new(2, || {
        // Another directory takes the place of the parent.
        if !moved.exists() {
            fs::rename(dest.join("top"), &moved).unwrap();
            fs::create_dir(dest.join("top")).unwrap();
        }
    });
    let copy = CopyOp::new().threads(1);
    let (summaries, _) = hub.copy(&copy, &[&source], &exactly(&dest));
    assert!(hub.not_reached() > 0);
    assert_eq!(totals(&summaries), (1 + BUILT, 0));
    // The victim has filled the directory that it had made.
    assert_same_tree(source.join("top"), &moved, plain());
    assert_eq!(entries_of(&dest), 2);
}

#[test]
fn a_linked_source_that_is_replaced_by_a_file_of_another_home_is_not_copied() {
    let (scratch, source, dest) = places();
    let tree = Tree::at(&scratch);
    // The engine that lists is the home of one file, and the other engine of the other one.
    let [mut listed, mut other] = [None, None];
    for number in 0.. {
        let name = format!("file{number}");
        tree.file(&name, "content")
            .hardlink(&name, format!("{name}b"));
        let inode = fs::metadata(scratch.at(&name)).unwrap().ino();
        match inode % 2 {
            0 => other = Some(name),
            _ => listed = Some(name),
        }
        if listed.is_some() && other.is_some() {
            break;
        }
    }
    let (listed, other) = (listed.unwrap(), other.unwrap());
    tree.hardlink(&listed, "s/file").hardlink(&other, "other");
    let replaced = AtomicBool::new(false);
    let hub = Hub::new(2, || {
        if !replaced.swap(true, Ordering::Relaxed) {
            fs::rename(scratch.at("other"), source.join("file")).unwrap();
        }
    });
    let (_, failures) = hub.copy(&archive(), &[&source], &exactly(&dest));
    assert_eq!(hub.entrusted(), 1);
    let expected = Failure::refused(Refusal::SourceReplaced, source.join("file"));
    assert_eq!(failures, [expected]);
    assert!(!dest.join("file").exists());
}
