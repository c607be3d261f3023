//! Trees with many entries.

use std::path::Path;
use std::time::Duration;

use testkit::run::{Outcome, Run};
use testkit::tree::{Scratch, chain, wide, wide_dirs};

use crate::job::{CPZ, RMZ, assert_shared, stat};

/// Returns the levels, types, sizes and names of all entries below a directory, which may be too many, or too deep, for a
/// snapshot.
fn listed(dir: &Path) -> Vec<String> {
    let format = ["-mindepth", "1", "-printf", "%d %y %s %f\\n"];
    let find = Run::new("find").arg(dir).args(format);
    let listed = find.time_limit(Duration::from_secs(120)).output();
    let text = listed.assert_success().stdout_text();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// Copies a tree of `entries` below its root with 4 ranks, and then removes the copy.
fn copy_and_remove(entries: usize, build: fn(&Path, usize)) -> [Outcome; 2] {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.at(name));
    build(&source, entries);
    let copied = CPZ.run(4, "-a --stats=json s d", &scratch);
    let expected = listed(&source);
    assert_eq!(expected.len(), entries);
    assert!(listed(&dest) == expected, "the copy differs");
    let removed = RMZ.run(4, "--stats=json d", &scratch);
    assert!(!dest.exists());
    let outcomes = [copied, removed];
    for outcome in &outcomes {
        outcome.assert_success();
        assert_eq!(stat(outcome, "entries"), entries as u64 + 1);
    }
    outcomes
}

/// Its paths are longer than the kernel takes, and it has more levels than a process has descriptors.
#[test]
fn a_chain_of_5_000_directories() {
    copy_and_remove(5_000, |dir, depth| chain(dir, depth));
}

#[test]
fn one_directory_of_30_000_files() {
    copy_and_remove(30_000, |dir, files| wide(dir, files));
}

#[test]
fn thirty_thousand_directories_in_one() {
    let outcomes = copy_and_remove(30_000, |dir, dirs| wide_dirs(dir, dirs));
    outcomes.iter().for_each(assert_shared);
}

#[test]
#[ignore = "takes minutes, and 2 GB for inodes"]
fn one_directory_of_a_million_files() {
    copy_and_remove(1_000_000, |dir, files| wide(dir, files));
}

#[test]
#[ignore = "takes minutes, and 2 GB for inodes"]
fn a_million_directories_in_one() {
    let outcomes = copy_and_remove(1_000_000, |dir, dirs| wide_dirs(dir, dirs));
    outcomes.iter().for_each(assert_shared);
}
