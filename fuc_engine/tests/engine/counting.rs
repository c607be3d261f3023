//! The counts by kind of a summary.

use crate::kit::paths;
use std::path::Path;
use std::sync::Mutex;

use crate::kit::Limited as _;
use fuc_engine::{CopyOp, Counts, Dest, Error, LinkKind, Observer, RemoveOp, Summary};
use testkit::probe::{Fs, LoopMount};
use testkit::tree::{Scratch, Tree, wide};

/// The counts by kind: files, directories, symlinks, other, hard links, unknown.
fn kinds(summary: Summary) -> [u64; 6] {
    let kinds = [
        summary.files,
        summary.directories,
        summary.symlinks,
        summary.other,
        summary.hard_links,
        summary.unknown,
    ];
    assert_eq!(kinds.iter().sum::<u64>(), summary.entries);
    assert!(summary.is_complete());
    kinds
}

/// Makes a tree of 2 files, one of which has another name, 4 directories, 3 symlinks and 2 others.
fn build(scratch: &Scratch) -> Tree {
    let tree = Tree::at(scratch.path().join("s"));
    tree.file("a/one", "content")
        .hardlink("a/one", "b/one again")
        .file("empty", "")
        .dir("a/c")
        .symlink("l1", "a")
        .symlink("l2", "nothing")
        .symlink("b/l3", "l3")
        .fifo("pipe")
        .socket("b/socket");
    tree
}

fn copy(copy: CopyOp, source: &Path, dest: &Path) -> Summary {
    copy.run(
        paths([source]),
        &Dest::Exactly(dest.to_owned()),
        &Mutex::new(Vec::new()),
    )
}

#[test]
fn a_copy_and_a_removal_count_each_kind() {
    let scratch = Scratch::new();
    let tree = build(&scratch);
    let dest = scratch.path().join("d");
    for threads in [1, 4] {
        let copied = copy(CopyOp::new().threads(threads), tree.path(), &dest);
        assert_eq!(kinds(copied), [3, 4, 3, 2, 0, 0]);
        let removed = RemoveOp::new().threads(threads).remove(&dest);
        assert_eq!(kinds(removed.expect("it is removable")), [3, 4, 3, 2, 0, 0]);
    }
}

#[test]
fn operands_are_counted_by_their_kinds() {
    let scratch = Scratch::new();
    let tree = build(&scratch);
    let operands = ["empty", "l2", "pipe", "a", "b"].map(|name| tree.path().join(name));
    let dest = Dest::Into(scratch.path().join("d"));
    Tree::at(&scratch).dir("d");
    let failures = Mutex::new(Vec::new());
    let copied = CopyOp::new().run(paths(&operands), &dest, &failures);
    assert_eq!(kinds(copied), [3, 3, 2, 2, 0, 0]);
    let removed = RemoveOp::new().run(paths(&operands), &failures);
    assert_eq!(kinds(removed), [3, 3, 2, 2, 0, 0]);
}

#[test]
fn hard_links_are_counted_apart_from_files() {
    let scratch = Scratch::new();
    let tree = build(&scratch);
    let preserving = CopyOp::new().with(|copy| copy.preserve.links = true);
    let preserved = copy(preserving, tree.path(), &scratch.path().join("d"));
    assert_eq!(kinds(preserved), [2, 4, 3, 2, 1, 0]);
    let linking = CopyOp::new().with(|copy| copy.as_links = Some(LinkKind::Hard));
    let linked = copy(linking, tree.path(), &scratch.path().join("e"));
    assert_eq!(kinds(linked), [0, 4, 0, 0, 8, 0]);
    let pointing = CopyOp::new().with(|copy| copy.as_links = Some(LinkKind::Symbolic));
    let pointed = copy(pointing, tree.path(), &scratch.path().join("f"));
    assert_eq!(kinds(pointed), [0, 4, 8, 0, 0, 0]);
}

/// Lends counters to the run, so that workers publish their counts early.
#[derive(Default)]
struct Live(Counts);

impl Observer for Live {
    fn failed(&self, error: Error) {
        panic!("{error}");
    }

    fn counts(&self) -> Option<&Counts> {
        Some(&self.0)
    }
}

#[test]
fn counts_by_kind_are_complete_if_counters_are_read_during_the_run() {
    let scratch = Scratch::new();
    let tree = build(&scratch);
    wide(tree.path().join("wide"), 3_000);
    let (live, dest) = (Live::default(), scratch.path().join("d"));
    let copied = CopyOp::new().run(paths([tree.path()]), &Dest::Exactly(dest), &live);
    assert_eq!(kinds(copied), [3_003, 5, 3, 2, 0, 0]);
    assert_eq!(live.0.entries(), copied.entries);
    let removed = RemoveOp::new().run(paths([tree.path()]), &Live::default());
    assert_eq!(kinds(removed), [3_003, 5, 3, 2, 0, 0]);
}

#[test]
fn bytes_of_clones_are_counted_as_reflinked() {
    let mount = testkit::or_skip!(LoopMount::new(Fs::Btrfs, 128));
    let tree = Tree::at(mount.path().join("s"));
    tree.file("large", vec![7; 5 << 20]).file("small", "abc");
    let copied = copy(CopyOp::new(), tree.path(), &mount.path().join("d"));
    assert_eq!(
        (copied.bytes, copied.reflinked_bytes),
        (5 * 1024 * 1024 + 3, 5 * 1024 * 1024)
    );
}

#[test]
fn bytes_that_were_copied_are_not_reflinked() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(scratch.path().join("s"));
    tree.file("large", vec![7; 5 << 20]);
    let copied = copy(CopyOp::new(), tree.path(), &scratch.path().join("d"));
    assert_eq!((copied.bytes, copied.reflinked_bytes), (5 << 20, 0));
}
