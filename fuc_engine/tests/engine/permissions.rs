//! Operations that an ordinary user is not permitted. The engine runs as that user in another process.

use testkit::probe::{self, NOBODY};
use testkit::snapshot::{Attributes, Kind, Snapshot, assert_same_tree};
use testkit::tree::{Scratch, Tree};

use crate::child;
use crate::kit::{all_but_atime, assert_unchanged};

const ACCES: &str = "13";

/// Builds a tree as root, and gives its root directory to the ordinary user.
fn theirs(scratch: &Scratch, build: impl FnOnce(&Tree)) -> Tree {
    let tree = Tree::at(scratch.path().join("theirs"));
    build(&tree);
    tree.select("").owner(NOBODY, NOBODY);
    tree
}

macro_rules! needs_root {
    () => {
        if !probe::is_root() {
            testkit::skip!("only root can become another user");
        }
    };
}

#[test]
fn an_unreadable_directory_is_reported_once_and_keeps_its_parents() {
    needs_root!();
    let scratch = Scratch::new();
    let tree = theirs(&scratch, |tree| {
        tree.file("t/a/locked/f", "")
            .select("t/a/locked")
            .owner(NOBODY, NOBODY)
            .mode(0o000)
            .file("t/a/g", "")
            .file("t/b/h", "")
            .select("t/a")
            .owner(NOBODY, NOBODY)
            .select("t/b")
            .owner(NOBODY, NOBODY)
            .select("t")
            .owner(NOBODY, NOBODY);
    });
    let root = tree.path().join("t");
    let report = child::remove(&root).uid(NOBODY).run();
    let failure = format!("Remove {ACCES} {:?}", root.join("a/locked"));
    assert_eq!(report.failures, [failure]);
    // The files g and h and the directory b are removed.
    assert_eq!(report.counts, (3, 0, 1));
    let left = Snapshot::of(&root, Attributes::CONTENT);
    assert_eq!(left.len(), 4);
    assert_eq!(left.kind("a/locked/f"), Some(Kind::RegularFile));
}

#[test]
fn an_empty_unreadable_directory_is_removed() {
    needs_root!();
    let scratch = Scratch::new();
    let tree = theirs(&scratch, |tree| {
        tree.dir("t/locked")
            .mode(0o000)
            .select("t")
            .owner(NOBODY, NOBODY);
    });
    let report = child::remove(tree.path().join("t")).uid(NOBODY).run();
    report.assert_complete(2, 0);
    crate::kit::assert_nothing_in(tree.path());
}

#[test]
fn each_entry_of_an_unwritable_directory_is_reported_and_the_directory_is_not() {
    needs_root!();
    let scratch = Scratch::new();
    let tree = theirs(&scratch, |tree| {
        tree.file("t/fixed/f", "")
            .file("t/fixed/g", "")
            .file("t/h", "")
            .select("t")
            .owner(NOBODY, NOBODY);
    });
    let root = tree.path().join("t");
    let before = Snapshot::of(root.join("fixed"), all_but_atime());
    let report = child::remove(&root).uid(NOBODY).run();
    let failure = |name| format!("Remove {ACCES} {:?}", root.join(name));
    assert_eq!(report.failures, ["fixed/f", "fixed/g"].map(failure));
    assert_eq!(report.counts, (1, 0, 2));
    assert_unchanged(&before, root.join("fixed"), all_but_atime());
}

#[test]
fn a_thousand_locked_directories_are_reported_once_each_by_several_threads() {
    needs_root!();
    let scratch = Scratch::in_memory();
    let tree = theirs(&scratch, |tree| {
        for number in 0..1000 {
            let dir = format!("t/{}/{number}", number % 10);
            tree.file(format!("{dir}/f"), "").select(dir).mode(0o700);
        }
        for number in 0..10 {
            tree.select(format!("t/{number}")).owner(NOBODY, NOBODY);
        }
        tree.select("t").owner(NOBODY, NOBODY);
    });
    let root = tree.path().join("t");
    let before = Snapshot::of(&root, Attributes::CONTENT);
    let report = child::remove(&root).uid(NOBODY).threads(8).run();
    let failure = |n| format!("Remove {ACCES} {:?}", root.join(format!("{}/{n}", n % 10)));
    let mut failures: Vec<_> = (0..1000).map(failure).collect();
    failures.sort();
    assert_eq!(report.failures, failures);
    assert_eq!(report.counts.0, 0);
    assert_unchanged(&before, &root, Attributes::CONTENT);
}

#[test]
fn an_unreadable_source_is_reported_and_the_rest_is_copied() {
    needs_root!();
    let scratch = Scratch::new();
    let tree = theirs(&scratch, |tree| {
        tree.file("s/a/locked/f", "hidden")
            .select("s/a/locked")
            .mode(0o700)
            .file("s/a/secret", "hidden")
            .mode(0o600)
            .file("s/a/secret-empty", "")
            .mode(0o600)
            .file("s/b/h", "content")
            .file("s/b/empty", "");
    });
    let [source, dest] = ["s", "d"].map(|name| tree.path().join(name));
    let report = child::copy(&source, &dest).uid(NOBODY).run();
    let failure = |operation, name| format!("{operation} {ACCES} {:?}", source.join(name));
    let failures = [
        failure("OpenSource", "a/secret"),
        failure("OpenSource", "a/secret-empty"),
        failure("ReadDirectory", "a/locked"),
    ];
    assert_eq!(report.failures, failures);
    // Like GNU's cp, the engine makes an empty directory for the unreadable one, which counts as created.
    let expected = Tree::at(scratch.path().join("e"));
    expected
        .dir("a/locked")
        .mode(0o700)
        .file("b/h", "content")
        .file("b/empty", "");
    assert_same_tree(expected.path(), &dest, crate::kit::plain());
    assert_eq!(report.counts, (6, 7, 3));
}

#[test]
fn a_dest_that_may_not_be_written_is_reported_for_each_entry() {
    needs_root!();
    let scratch = Scratch::new();
    let tree = theirs(&scratch, |tree| {
        tree.file("s/fixed/f", "content")
            .file("s/fixed/empty", "")
            .symlink("s/fixed/link", "x")
            .fifo("s/fixed/pipe")
            .dir("s/fixed/sub")
            .file("s/fixed/there", "new")
            .file("s/g", "content")
            .dir("d/fixed")
            .file("d/fixed/there", "old")
            .select("d")
            .owner(NOBODY, NOBODY);
    });
    let [source, dest] = ["s", "d"].map(|name| tree.path().join(name));
    let before = Snapshot::of(dest.join("fixed"), Attributes::CONTENT);
    let report = child::copy(&source, &dest).uid(NOBODY).run();
    let fixed = dest.join("fixed");
    let failure = |operation, name| format!("{operation} {ACCES} {:?}", fixed.join(name));
    let failures = [
        failure("CreateDirectory", "sub"),
        failure("CreateFifo", "pipe"),
        failure("CreateFile", "empty"),
        failure("CreateFile", "f"),
        failure("CreateFile", "there"),
        failure("CreateSymlink", "link"),
    ];
    assert_eq!(report.failures, failures);
    // The directory d, fixed and g.
    assert_eq!(report.counts, (3, 7, 6));
    assert_unchanged(&before, &fixed, Attributes::CONTENT);
}

#[test]
fn a_tree_of_directories_that_their_owner_may_not_write_is_copied() {
    needs_root!();
    let scratch = Scratch::new();
    let tree = theirs(&scratch, |tree| {
        tree.file("s/a/b/c/f", "content")
            .select("s/a/b/c")
            .mode(0o555)
            .select("s/a/b")
            .mode(0o555)
            .select("s/a")
            .mode(0o1555);
    });
    let [source, dest] = ["s", "d"].map(|name| tree.path().join(name));
    let report = child::copy(&source, &dest).uid(NOBODY).run();
    report.assert_complete(5, 7);
    assert_same_tree(&source, &dest, crate::kit::plain());
}
