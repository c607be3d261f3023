//! Deep and wide trees, and few descriptors. Trees are in memory, where building them is quick. The engine runs
//! in a process of its own, which has the limit.

use std::path::PathBuf;

use testkit::snapshot::{Attributes, Snapshot};
use testkit::tree::{Scratch, Tree, chain, comb, wide, wide_dirs};

use crate::child::{self, Child};
use crate::kit::{assert_nothing_in, assert_unchanged};

const CHAIN: usize = 20_000;
const COMB: usize = 5_000;
const WIDE: usize = 20_000;

/// Builds a tree, copies it, and removes both, in processes that `limit` configures.
#[track_caller]
fn copies_and_removes(build: impl FnOnce(PathBuf), limit: impl Fn(Child) -> Child) {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.path().join(name));
    build(source.clone());
    let wanted = Attributes::MODE | Attributes::SIZE;
    let before = Snapshot::of(&source, wanted);
    let copied = limit(child::copy(&source, &dest)).run();
    copied.assert_complete(before.len(), 0);
    assert_unchanged(&before, &dest, wanted);
    let mut peaks = vec![copied.peak_kib];
    for tree in [&dest, &source] {
        let removed = limit(child::remove(tree)).run();
        removed.assert_complete(before.len(), 0);
        peaks.push(removed.peak_kib);
    }
    assert_nothing_in(&scratch);
    println!("{} entries: peaks of {peaks:?} KiB", before.len());
}

#[test]
fn a_chain_with_the_usual_descriptors() {
    copies_and_removes(|dir| chain(dir, CHAIN), |child| child);
}

#[test]
fn a_chain_with_64_descriptors() {
    copies_and_removes(|dir| chain(dir, CHAIN), |child| child.nofile_limit(64));
}

#[test]
fn a_chain_with_20_descriptors() {
    // Few descriptors are the hardest case, so this chain is the longest.
    copies_and_removes(|dir| chain(dir, 5 * CHAIN), |child| child.nofile_limit(20));
}

#[test]
fn a_comb_with_20_descriptors() {
    copies_and_removes(|dir| comb(dir, COMB, 2), |child| child.nofile_limit(20));
}

#[test]
fn a_comb_with_64_descriptors_and_one_thread() {
    copies_and_removes(
        |dir| comb(dir, COMB, 2),
        |child| child.nofile_limit(64).threads(1),
    );
}

#[test]
fn a_comb_with_64_descriptors_and_two_threads() {
    copies_and_removes(
        |dir| comb(dir, COMB, 2),
        |child| child.nofile_limit(64).threads(2),
    );
}

#[test]
fn a_comb_with_64_descriptors_and_eight_threads() {
    copies_and_removes(
        |dir| comb(dir, COMB, 2),
        |child| child.nofile_limit(64).threads(8),
    );
}

#[test]
fn a_comb_with_20_descriptors_and_eight_threads() {
    copies_and_removes(
        |dir| comb(dir, COMB, 2),
        |child| child.nofile_limit(20).threads(8),
    );
}

#[test]
fn many_combs_with_64_descriptors_and_four_threads() {
    // One worker descends and evicts a directory to which another worker is about to return.
    let build = |dir: PathBuf| {
        for number in 0..40 {
            comb(dir.join(number.to_string()), 60, 1);
        }
    };
    for _ in 0..3 {
        copies_and_removes(build, |child| child.nofile_limit(64).threads(4));
    }
}

#[test]
fn a_wide_directory_with_20_descriptors() {
    copies_and_removes(|dir| wide(dir, WIDE), |child| child.nofile_limit(20));
}

#[test]
fn many_sub_directories_with_20_descriptors() {
    copies_and_removes(|dir| wide_dirs(dir, WIDE), |child| child.nofile_limit(20));
}

#[test]
fn many_sub_directories_with_eight_threads() {
    copies_and_removes(
        |dir| wide_dirs(dir, WIDE),
        |child| child.nofile_limit(256).threads(8),
    );
}

#[test]
fn wide_directories_in_wide_directories_with_20_descriptors() {
    // More listings would pause than there are descriptors to keep their positions.
    let build = |dir: PathBuf| {
        let mut at = dir;
        for _ in 0..12 {
            wide_dirs(&at, 1_000);
            at.push("d999");
        }
    };
    copies_and_removes(build, |child| child.nofile_limit(20));
}

#[test]
fn large_files_are_copied_with_twenty_descriptors() {
    let scratch = Scratch::in_memory();
    let source = Tree::at(scratch.path().join("s"));
    for number in 0..20 {
        // The file is mostly a hole: it has a large size, but little to copy.
        source.sparse(number.to_string(), 5 << 20, &[(0, b"x")]);
    }
    let dest = scratch.path().join("d");
    let copied = child::copy(source.path(), &dest).nofile_limit(20).run();
    assert_eq!(copied.failures, [""; 0]);
    assert_eq!(copied.counts.0, 21);
    testkit::snapshot::assert_same_tree(source.path(), &dest, Attributes::CONTENT);
}
