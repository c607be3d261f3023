//! Large files that the caller copies in place of an engine; see [`crate::hub`].

use std::fs;
use std::path::Path;
use std::time::Duration;

use fuc_engine::{Backup, CopyOp, Dereference, Dest, Execution, Reflink, Sparse};
use testkit::snapshot::{Attributes, assert_same_tree};
use testkit::tree::{Scratch, Tree};

use crate::hub::{Hub, failures, slow, totals};
use crate::kit::{Limited as _, exactly};
use crate::sharing_copies::archive;

/// The least size of a file that is taken over.
const LARGE: usize = 4 << 20;

/// Returns a copy that reads and writes content, although the files are on a local filesystem. Only such files are taken
/// over.
fn reading(copy: CopyOp<'_>) -> CopyOp<'_> {
    copy.threads(1).with(|copy| copy.reflink = Reflink::Never)
}

fn build(root: &Path) -> Tree {
    let tree = Tree::at(root);
    tree.file("sub/deep/large", vec![1; LARGE])
        .mode(0o640)
        .file("large", vec![2; LARGE + 1])
        .mode(0o600)
        .file("small", vec![3; LARGE - 1]);
    tree
}

#[test]
fn new_large_files_are_left_to_the_caller() {
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.path().join(name);
    let tree = build(&at("s"));
    tree.select("sub/deep").mtime(Duration::from_secs(1_000));
    for engines in [1, 2] {
        let dest = at(&format!("d{engines}"));
        let hub = Hub::new(engines, || {}).taking_over();
        let observers = slow(engines);
        let copy = reading(archive());
        let summaries = hub.copy(&copy, &[at("s")], &exactly(&dest), &observers);
        assert_eq!(failures(observers), []);
        // Three directories and the small file.
        assert_eq!(totals(&summaries), (4, 0));
        let taken = hub.taken();
        let below = [
            ("large", 1, LARGE + 1, 0o600),
            ("sub/deep/large", 3, LARGE, 0o600),
        ];
        assert_eq!(taken.len(), below.len());
        for (file, (name, names_below, bytes, mode)) in taken.iter().zip(below) {
            assert_eq!(file.source, at("s").join(name));
            assert_eq!(file.dest, dest.join(name));
            assert_eq!(file.names_below, names_below);
            assert_eq!(file.bytes, bytes as u64);
            assert_eq!(file.mode, mode);
            assert!(!file.dest.exists());
        }
        let directories = ["s", dest.to_str().unwrap()].map(|root| at(root).join("sub/deep"));
        let modified = directories.map(|dir| fs::metadata(dir).unwrap().modified().unwrap());
        assert_eq!(modified[0], modified[1]);
    }
}

#[test]
fn operands_are_left_to_the_caller_unless_they_may_share_a_dest() {
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.path().join(name);
    build(&at("a"));
    build(&at("b"));
    Tree::at(at("c")).file("other", vec![4; LARGE]);
    fs::create_dir(at("into")).unwrap();
    let sources = ["a/large", "b/large", "c/other"].map(at);
    let hub = Hub::new(2, || {}).taking_over();
    let observers = slow(2);
    let dest = Dest::Into(at("into"));
    let summaries = hub.copy(&reading(archive()), &sources, &dest, &observers);
    assert_eq!(
        totals(&summaries),
        (1, 1),
        "the second one has the dest of the first"
    );
    let taken = hub.taken();
    assert_eq!(taken.len(), 1);
    assert_eq!((&taken[0].source, taken[0].names_below), (&sources[2], 0));
    assert_eq!(taken[0].dest, at("into/other"));
    let data = Attributes::DATA;
    assert_same_tree(&sources[0], at("into/large"), data);
}

/// A change of a copy, or of the tree, which is built in `s`, and may have a dest `d`.
type Change = fn(&Tree, &mut CopyOp<'_>);

#[test]
fn an_engine_copies_large_files_that_cannot_be_divided() {
    let changes: [(&str, Change); 9] = [
        ("the dest exists", |tree, _| {
            tree.file("d/large", "old").file("d/sub/deep/large", "old");
        }),
        ("the source has another name", |tree, copy| {
            tree.hardlink("s/large", "s/name")
                .hardlink("s/sub/deep/large", "s/sub/name");
            copy.preserve.links = true;
        }),
        ("a link may be another name", |_, copy| {
            copy.dereference = Dereference::Always;
            copy.preserve.links = true;
        }),
        ("the kernel copies", |_, copy| copy.reflink = Reflink::Auto),
        ("zeros become holes", |_, copy| copy.sparse = Sparse::Always),
        ("the copy is verified", |_, copy| copy.verify = true),
        ("a backup is made", |tree, copy| {
            tree.file("d/large", "old").file("d/sub/deep/large", "old");
            copy.rules.backup = Some(Backup::Simple);
        }),
        ("directories may be merged", |_, copy| {
            copy.rules.follow_links_to_directories = true;
        }),
        ("it is a dry run", |_, copy| {
            copy.execution = Execution::DryRun;
        }),
    ];
    for (reason, change) in changes {
        let scratch = Scratch::in_memory();
        let at = |name: &str| scratch.path().join(name);
        build(&at("s"));
        let mut copy = reading(archive());
        change(&Tree::at(scratch.path()), &mut copy);
        let hub = Hub::new(2, || {}).taking_over();
        let observers = slow(2);
        hub.copy(&copy, &[at("s")], &exactly(at("d")), &observers);
        assert_eq!(failures(observers), [], "{reason}");
        assert_eq!(hub.taken(), [], "{reason}");
        if copy.execution == Execution::Real {
            assert_eq!(
                fs::read(at("d/large")).unwrap(),
                vec![2; LARGE + 1],
                "{reason}"
            );
        }
    }
}
