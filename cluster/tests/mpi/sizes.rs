//! Trees with many entries.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::time::Duration;

use testkit::or_skip;
use testkit::probe::Skip;
use testkit::run::{Outcome, Run};
use testkit::tree::{Scratch, chain, wide, wide_dirs};

use crate::job::{CPZ, RMZ, assert_shared, stat};

/// The number of the entries below a directory, and a sum over their names, types, levels and sizes.
#[derive(Debug, PartialEq)]
struct Content {
    entries: u64,
    sum: u64,
}

impl Content {
    /// Lists a directory. Its entries may be too many, or too deep, for a snapshot.
    fn of(dir: &Path) -> Self {
        let format = ["-mindepth", "1", "-printf", "%d %y %s %f\\n"];
        let find = Run::new("find").arg(dir).args(format);
        let listed = find.time_limit(Duration::from_secs(120)).output();
        listed.assert_success();
        let lines = listed.stdout.split_inclusive(|&byte| byte == b'\n');
        let mut content = Self { entries: 0, sum: 0 };
        for line in lines {
            let mut hasher = DefaultHasher::new();
            line.hash(&mut hasher);
            content.entries += 1;
            content.sum = content.sum.wrapping_add(hasher.finish());
        }
        content
    }
}

/// Copies a tree of `entries` below its root with 4 ranks, and then removes the copy.
fn copy_and_remove(entries: usize, build: fn(&Path, usize)) -> Result<[Outcome; 2], Skip> {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.at(name));
    build(&source, entries);
    let all = entries as u64 + 1;
    let copied = CPZ.run(4, &["-a", "--stats=json", "s", "d"], &scratch)?;
    copied.assert_success();
    assert_eq!(stat(&copied, "entries"), all);
    let content = Content::of(&source);
    assert_eq!(content.entries, entries as u64);
    assert_eq!(content, Content::of(&dest));
    let removed = RMZ.run(4, &["--stats=json", "d"], &scratch)?;
    removed.assert_success();
    assert_eq!(stat(&removed, "entries"), all);
    assert!(!dest.exists());
    Ok([copied, removed])
}

#[test]
fn a_chain_of_20_000_directories() {
    or_skip!(copy_and_remove(20_000, |dir, depth| chain(dir, depth)));
}

#[test]
fn one_directory_of_30_000_files() {
    or_skip!(copy_and_remove(30_000, |dir, files| wide(dir, files)));
}

#[test]
fn thirty_thousand_directories_in_one() {
    let outcomes = or_skip!(copy_and_remove(30_000, |dir, dirs| wide_dirs(dir, dirs)));
    outcomes.iter().for_each(assert_shared);
}

#[test]
#[ignore = "takes minutes, and 2 GB for inodes"]
fn one_directory_of_a_million_files() {
    or_skip!(copy_and_remove(1_000_000, |dir, files| wide(dir, files)));
}

#[test]
#[ignore = "takes minutes, and 2 GB for inodes"]
fn a_million_directories_in_one() {
    let outcomes = or_skip!(copy_and_remove(1_000_000, |dir, dirs| wide_dirs(dir, dirs)));
    outcomes.iter().for_each(assert_shared);
}
