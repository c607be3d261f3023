//! The counts by kind of a summary.

use std::path::Path;

use fuc_engine::{CopyOp, Counts, Dest, Error, LinkKind, Observer, RemoveOp, Summary};
use testkit::{
    probe::{Fs, LoopMount},
    tree::{Scratch, Tree, wide},
};

use crate::kit::{Limited as _, Person, exactly, paths};

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
    let tree = Tree::at(scratch.at("s"));
    tree.plant("a/one=content")
        .hardlink("a/one", "b/one again")
        .plant("empty= a/c/ l1->a l2->nothing b/l3->l3 pipe<fifo> b/socket<socket>");
    tree
}

fn copy(copy: CopyOp, source: &Path, dest: &Path) -> Summary {
    copy.run(paths([source]), &exactly(dest), &Person::default())
}

#[test]
fn a_copy_and_a_removal_count_each_kind() {
    let scratch = Scratch::new();
    let tree = build(&scratch);
    let dest = scratch.at("d");
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
    let dest = Dest::Into(scratch.at("d"));
    Tree::at(&scratch).dir("d");
    let copied = CopyOp::new().run(paths(&operands), &dest, &Person::default());
    assert_eq!(kinds(copied), [3, 3, 2, 2, 0, 0]);
    let removed = RemoveOp::new().run(paths(&operands), &Person::default());
    assert_eq!(kinds(removed), [3, 3, 2, 2, 0, 0]);
}

#[test]
fn hard_links_are_counted_apart_from_files() {
    let scratch = Scratch::new();
    let tree = build(&scratch);
    let preserving = CopyOp::new().with(|copy| copy.preserve.links = true);
    let linking = |kind| CopyOp::new().with(|copy| copy.as_links = Some(kind));
    for (name, options, expected) in [
        ("preserved", preserving, [2, 4, 3, 2, 1, 0]),
        ("linked", linking(LinkKind::Hard), [0, 4, 0, 0, 8, 0]),
        ("pointed", linking(LinkKind::Symbolic), [0, 4, 8, 0, 0, 0]),
    ] {
        let copied = copy(options, tree.path(), &scratch.at(name));
        assert_eq!(kinds(copied), expected, "{name}");
    }
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
    let scratch = Scratch::in_memory();
    let tree = build(&scratch);
    wide(tree.path().join("wide"), 1_000);
    let (live, dest) = (Live::default(), exactly(scratch.at("d")));
    let copied = CopyOp::new().run(paths([tree.path()]), &dest, &live);
    assert_eq!(kinds(copied), [1_003, 5, 3, 2, 0, 0]);
    assert_eq!(live.0.entries(), copied.entries);
    let removed = RemoveOp::new().run(paths([tree.path()]), &Live::default());
    assert_eq!(kinds(removed), [1_003, 5, 3, 2, 0, 0]);
}

#[test]
fn only_bytes_of_clones_are_counted_as_reflinked() {
    const LARGE: u64 = 5 << 20;
    let clones = LoopMount::new(Fs::Btrfs, 128);
    let scratch = Scratch::in_memory();
    let places = [
        (Some(scratch.path()), 0),
        (clones.as_ref().ok().map(LoopMount::path), LARGE),
    ];
    for (place, reflinked) in places {
        let Some(place) = place else { continue };
        let tree = Tree::at(place.join("s"));
        tree.file("large", vec![7; LARGE as usize])
            .plant("small=abc");
        let copied = copy(CopyOp::new(), tree.path(), &place.join("d"));
        assert_eq!(
            (copied.bytes, copied.reflinked_bytes),
            (LARGE + 3, reflinked)
        );
    }
    testkit::or_skip!(clones);
}
