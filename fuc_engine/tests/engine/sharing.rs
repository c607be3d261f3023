//! Removals that several engines share; see [`crate::hub`].
//!
//! Each test that is about stolen directories proves that directories were stolen: by their number, or because
//! something happens at the moment at which they change hands.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use fuc_engine::{Candidate, Operation, RemoveOp, Verdict};
use rustix::io::Errno;
use testkit::{
    needs, or_skip,
    probe::Removal,
    run::Run,
    served,
    tree::{Scratch, wide},
};

use crate::hub::{Hub, failures, slow, totals};
use crate::kit::{Failure, Limited as _, assert_nothing_in, entries_of};
use crate::races::{Arena, BUILT, DIRS, build};

/// Makes as many directories as [`DIRS`], each with two files and a directory.
fn built(scratch: &Scratch) -> PathBuf {
    let root = scratch.at("t");
    build(&root);
    root
}

#[test]
fn each_operand_is_shared() {
    let scratch = Scratch::in_memory();
    let operands = ["a", "b", "b/c"].map(|name| {
        let root = scratch.at(name);
        build(&root);
        root
    });
    let hub = Hub::new(3, || {});
    let removal = RemoveOp::new().threads(1);
    let (summaries, failures) = hub.remove(&removal, &operands);
    // The operand `b/c` is gone with `b`.
    assert_eq!(totals(&summaries), (3 * BUILT, 1));
    let missing = Failure::failed(Operation::Remove, &operands[2], Errno::NOENT);
    assert_eq!(failures, [missing]);
    assert_nothing_in(&scratch);
    assert!(hub.stolen() > 0);
}

#[test]
fn the_files_of_a_wide_directory_are_shared() {
    for threads in [1, 2] {
        let scratch = Scratch::in_memory();
        let root = scratch.at("t");
        wide(&root, 500);
        let hub = Hub::new(3, || {});
        let removal = RemoveOp::new().threads(threads);
        let (summaries, _) = hub.remove(&removal, &[root]);
        assert_eq!(totals(&summaries), (501, 0));
        let shares = summaries.iter().map(|it| it.entries);
        assert!(shares.clone().all(|it| it > 0), "{threads}: {shares:?}");
        assert_nothing_in(&scratch);
    }
}

/// Makes files immutable, until it is dropped.
struct Immutable<'a>(&'a [PathBuf]);

impl<'a> Immutable<'a> {
    fn new(files: &'a [PathBuf]) -> Self {
        Self::chattr("+i", files);
        Self(files)
    }

    fn chattr(flag: &str, files: &[PathBuf]) {
        Run::new("chattr").arg(flag).args(files).output();
    }
}

impl Drop for Immutable<'_> {
    fn drop(&mut self) {
        Self::chattr("-i", self.0);
    }
}

#[test]
fn a_failure_below_a_stolen_directory_is_reported_once_and_keeps_all_above() {
    needs!(root, "chattr");
    let scratch = Scratch::new();
    let root = built(&scratch);
    let kept = |number: usize| root.join(format!("{number}/sub/file"));
    let files: Vec<_> = (0..DIRS).map(kept).collect();
    let immutable = Immutable::new(&files);
    let hub = Hub::new(3, || {});
    let (summaries, failures) = hub.remove(&RemoveOp::new().threads(1), &[&root]);
    drop(immutable);
    assert!(hub.stolen() > 0);
    // The files in `sub` stay, and the directories above them.
    assert_eq!(totals(&summaries), (1 + DIRS, DIRS as u64));
    let failed = files
        .iter()
        .map(|file| Failure::failed(Operation::Remove, file, Errno::PERM));
    let mut failed: Vec<_> = failed.collect();
    failed.sort_by(|a, b| a.path.cmp(&b.path));
    assert_eq!(failures, failed);
    assert_eq!(entries_of(&root), 1 + 3 * DIRS, "only the ancestors stay");
}

#[test]
fn names_that_need_room_are_reported_although_the_leader_steals() {
    let mount = served!(removal: Removal::Hesitant(Errno::NOSPC));
    build(&mount.stored_at("t"));
    let root = mount.at("t");
    let hub = Hub::new(2, || {});
    let mut observers = slow(2);
    // The leader is done first, and asks the other engine for work.
    observers[0].with_help = Duration::ZERO;
    observers[1].with_help = Duration::from_millis(25);
    let removal = RemoveOp::new().threads(1);
    let summaries = hub.remove_observed(&removal, &[&root], &observers);
    assert!(hub.stolen_from_assistants() > 0);
    const FILES: usize = 2 * DIRS + 1;
    assert_eq!(totals(&summaries), (0, FILES as u64));
    let failed = failures(observers);
    let mut names: Vec<_> = failed.iter().map(|it| &it.path).collect();
    names.dedup();
    assert_eq!(names.len(), FILES);
    assert_eq!(
        Failure::failed(Operation::Remove, names[0], Errno::NOSPC),
        failed[0]
    );
    assert_eq!(entries_of(&root), BUILT);
}

#[test]
fn what_the_filter_keeps_below_a_stolen_directory_keeps_all_above() {
    let scratch = Scratch::in_memory();
    let root = built(&scratch);
    let hub = Hub::new(3, || {});
    let kept = |entry: &Candidate<'_>| match entry.path_below_operand() {
        path if path == Path::new("7/sub/file") => Verdict::Prune,
        _ => Verdict::Take,
    };
    let removal = RemoveOp::new().threads(1).filtered_by(kept);
    let (summaries, _) = hub.remove(&removal, &[&root]);
    assert!(hub.stolen() > 0);
    assert_eq!(totals(&summaries), (BUILT - 4, 0));
    assert!(root.join("7/sub/file").exists());
    assert_eq!(entries_of(&root), 4);
}

#[test]
fn directories_that_were_moved_before_a_thief_reaches_them_are_removed_by_their_victim() {
    let arena = or_skip!(Arena::new());
    // All directories are in `top`, so that `top` is the parent that a thief must reach.
    let top = arena.at("t/top");
    build(&top);
    let moved = arena.at("moved");
    fs::create_dir(&moved).unwrap();
    let hub = Hub::new(3, || {
        // The first theft moves the parent away, and a link to the outside takes its place.
        if fs::rename(&top, moved.join("top")).is_ok() {
            std::os::unix::fs::symlink(arena.outside(), &top).unwrap();
        }
    });
    let (summaries, failed) = hub.remove(&RemoveOp::new().threads(1), &[arena.at("t")]);
    assert!(hub.not_reached() > 0, "the thief reached something");
    arena.assert_outside_is_untouched();
    // As with one engine: the moved directory is empty, and the link, not the directory, had its name in the end.
    assert_eq!(totals(&summaries).0, BUILT - 1);
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0].path, top);
    assert_eq!(entries_of(&moved), 2);
}

#[test]
fn a_directory_that_replaces_the_parent_is_not_taken_for_it() {
    let arena = or_skip!(Arena::new());
    let top = arena.at("t/top");
    build(&top);
    let moved = arena.at("moved");
    let hub = Hub::new(2, || {
        // A directory with the same names takes the place of the parent.
        if !moved.exists() {
            fs::rename(&top, &moved).unwrap();
            build(&top);
        }
    });
    let (summaries, _) = hub.remove(&RemoveOp::new().threads(1), &[arena.at("t")]);
    assert!(hub.not_reached() > 0);
    // The victim has emptied the directory that it had listed, and then listed the name again.
    assert_eq!(totals(&summaries), (2 * BUILT, 0));
    assert_eq!(entries_of(&moved), 1);
    assert!(!arena.at("t").exists());
}

#[test]
fn links_that_replace_directories_while_engines_work_are_removed_themselves() {
    let arena = or_skip!(Arena::new());
    let mut stolen = 0;
    for _ in 0..6 {
        let root = arena.at("t");
        build(&root);
        let decoy = arena.at("decoy");
        let swaps = AtomicUsize::new(0);
        let hub = Hub::new(3, || {
            let number = swaps.fetch_add(7, Ordering::Relaxed) % DIRS;
            let _ = std::os::unix::fs::symlink(arena.outside(), &decoy);
            let _ = crate::kit::exchange(root.join(number.to_string()), &decoy);
        });
        hub.remove(&RemoveOp::new().threads(1), &[&root]);
        stolen += hub.stolen();
        arena.assert_outside_is_untouched();
        for left in [&root, &decoy] {
            testkit::tree::remove_for_sure(left).unwrap();
        }
    }
    assert!(stolen > 6);
}
