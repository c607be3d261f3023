//! Deep and wide trees, and few descriptors. Trees are in memory, where building them is quick. The engine runs
//! in a process of its own, which has the limit.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use fuc_engine::{CopyOp, Dest, Event, Preserve};
use testkit::{
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, chain, comb, wide, wide_dirs},
};

use crate::child::{self, Child};
use crate::kit::{Limited as _, OnEvent, assert_nothing_in, assert_unchanged, paths, places};

/// Builds a tree whose size depends on a number.
type Build = fn(&Path, usize);

/// Trees, and the limits of the processes that copy and remove them: descriptors, and threads.
const ROWS: &[(&str, Build, u64, usize)] = &[
    ("a chain", chain_of, 1024, 4),
    ("a chain", chain_of, 64, 4),
    // Few descriptors are the hardest case, so this chain is the longest.
    ("a longer chain", |at, size| chain(at, 5 * size), 20, 4),
    ("a comb", comb_of, 20, 1),
    ("a comb", comb_of, 64, 1),
    ("a comb", comb_of, 64, 2),
    ("a comb", comb_of, 64, 8),
    ("a comb", comb_of, 20, 8),
    // One worker descends and evicts a directory to which another worker is about to return.
    ("many combs", combs, 64, 4),
    ("many combs", combs, 64, 4),
    ("many combs", combs, 64, 4),
    ("a wide directory", |at, size| wide(at, size), 20, 4),
    (
        "many directories in one",
        |at, size| wide_dirs(at, size),
        20,
        4,
    ),
    (
        "many directories in one",
        |at, size| wide_dirs(at, size),
        256,
        8,
    ),
    // More listings would pause than there are descriptors to keep their positions.
    ("wide directories in each other", nested, 20, 4),
];

fn chain_of(at: &Path, size: usize) {
    chain(at, size);
}

fn comb_of(at: &Path, size: usize) {
    comb(at, size / 4, 2);
}

fn combs(at: &Path, size: usize) {
    for number in 0..size / 500 {
        comb(at.join(number.to_string()), 60, 1);
    }
}

fn nested(at: &Path, size: usize) {
    let mut at = at.to_owned();
    for _ in 0..size / 650 {
        wide_dirs(&at, 1_000);
        at.push("d999");
    }
}

/// Builds each tree, copies it, and removes both, in processes with its limits.
fn copies_and_removes(size: usize) {
    for (name, build, descriptors, threads) in ROWS {
        let row = format!("{name}, {descriptors} descriptors, {threads} threads");
        let (scratch, source, dest) = places();
        build(&source, size);
        let limit = |child: Child| child.nofile_limit(*descriptors).threads(*threads).run();
        let wanted = Attributes::MODE | Attributes::SIZE;
        let before = Snapshot::of(&source, wanted);
        let expected = (before.len() as u64, 0, 0);
        let copied = limit(child::copy(&source, &dest));
        assert_eq!(
            (copied.counts, &copied.failures[..]),
            (expected, &[][..]),
            "{row}"
        );
        assert_unchanged(&before, &dest, wanted);
        for tree in [&dest, &source] {
            let removed = limit(child::remove(tree));
            assert_eq!(
                (removed.counts, &removed.failures[..]),
                (expected, &[][..]),
                "{row}"
            );
        }
        assert_nothing_in(&scratch);
    }
}

#[test]
fn trees_that_are_larger_than_the_limits_are_copied_and_removed() {
    copies_and_removes(1_000);
}

#[test]
#[ignore = "slow"]
fn trees_that_are_much_larger_than_the_limits_are_copied_and_removed() {
    copies_and_removes(8_000);
}

#[test]
fn large_files_are_copied_with_twenty_descriptors() {
    let (_scratch, source, dest) = places();
    let tree = Tree::at(&source);
    for number in 0..20 {
        // The file is mostly a hole: it has a large size, but little to copy.
        tree.sparse(number.to_string(), 5 << 20, &[(0, b"x")]);
    }
    let copied = child::copy(&source, &dest).nofile_limit(20).run();
    assert_eq!(copied.failures, [""; 0]);
    assert_eq!(copied.counts.0, 21);
    testkit::snapshot::assert_same_tree(source, dest, Attributes::CONTENT);
}

#[test]
fn links_to_finished_directories_leave_none_of_them_open() {
    const MANY: usize = 300;
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    for number in 0..MANY {
        let apart = format!("apart/{number}/name");
        tree.file(&apart, "")
            .hardlink(&apart, format!("together/{number}"));
    }
    // Test both orders of the directories.
    for order in [["apart", "together"], ["together", "apart"]] {
        let dest = scratch.at(format!("first-{}", order[0]));
        fs::create_dir(&dest).unwrap();
        let most = AtomicUsize::new(0);
        let observer = OnEvent(|_: Event<'_>| {
            let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
            let targets = open.filter_map(|fd| fs::read_link(fd.path()).ok());
            let at_dest = targets.filter(|target| target.starts_with(&dest));
            most.fetch_max(at_dest.count(), Ordering::Relaxed);
        });
        let archive = CopyOp::new()
            .threads(1)
            .with(|copy| copy.preserve = Preserve::all());
        let sources = order.map(|name| scratch.at(name));
        let summary = archive.run(paths(sources), &Dest::Into(dest.clone()), &observer);
        assert!(summary.is_complete());
        assert_eq!(fs::metadata(dest.join("together/7")).unwrap().nlink(), 2);
        let most = most.into_inner();
        assert!(most < 20, "{most} open at once");
    }
}
