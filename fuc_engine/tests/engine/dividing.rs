//! Large files of which other machines copy parts; see [`crate::hub`].

use std::{
    fs::{self, File},
    ops::Range,
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
};

use fuc_engine::{
    Cancel, CopyOp, Dest, Execution, Reflink, Replace, Sparse, distribute::LargeCopy,
};
use testkit::{
    snapshot::{Attributes, assert_same_tree},
    tree::{Scratch, Tree},
};

use crate::hub::{Hub, LARGE};
use crate::kit::{Limited as _, all_but_atime, exactly};
use crate::sharing_copies::archive;

/// Returns a copy that reads and writes content, although the files are on a local filesystem. Only such files are divided.
fn reading(copy: CopyOp<'_>) -> CopyOp<'_> {
    copy.threads(1).with(|copy| copy.reflink = Reflink::Never)
}

fn build(root: &Path) -> Tree {
    let tree = Tree::at(root);
    tree.file("sub/deep/large", vec![1; LARGE])
        .mode(0o440)
        .file("large", vec![2; LARGE + 1])
        .mode(0o4755)
        .file("small", vec![3; LARGE - 1])
        .plant("sub/deep @1000");
    tree
}

/// Copies a range as another machine does.
fn copy_range(copy: &LargeCopy, range: Range<u64>) -> bool {
    let source = File::open(&copy.source).unwrap();
    let dest = File::options().write(true).open(&copy.dest).unwrap();
    let found = [&source, &dest].map(|file| file.metadata().unwrap());
    assert_eq!([&found[0], &found[1]].map(MetadataExt::ino), copy.inodes);
    assert_eq!(
        [&found[0], &found[1]].map(fs::Metadata::len),
        [copy.bytes; 2]
    );
    assert_eq!(found[0].mtime(), copy.modified);
    let mut bytes = vec![0; (range.end - range.start) as usize];
    source.read_exact_at(&mut bytes, range.start).unwrap();
    dest.write_all_at(&bytes, range.start).unwrap();
    true
}

/// Copies half of a range, and fails.
fn fail(copy: &LargeCopy, range: Range<u64>) -> bool {
    copy_range(copy, range.start..range.end / 2);
    false
}

#[test]
fn other_machines_copy_new_large_files_and_engines_those_that_they_cannot() {
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.at(name);
    build(&at("s"));
    for (divide, bytes) in [
        (copy_range as fn(&LargeCopy, Range<u64>) -> bool, LARGE - 1),
        (fail, 3 * LARGE),
    ] {
        let hub = Hub::new(2, || {}).dividing(divide);
        let copy = reading(archive());
        let (summaries, failures) = hub.copy(&copy, &[at("s")], &exactly(at("d")));
        assert_eq!(failures, []);
        let counted = |count: fn(&fuc_engine::Summary) -> u64| summaries.iter().map(count).sum();
        let counted: [u64; 2] = [counted(|it| it.files), counted(|it| it.bytes)];
        assert_eq!(counted, [3, bytes as u64]);
        assert_same_tree(at("s"), at("d"), all_but_atime());
        let divided = hub.divided();
        let below = [("large", 1), ("sub/deep/large", 3)];
        assert_eq!(divided.len(), below.len());
        for (file, (name, names_below)) in divided.iter().zip(below) {
            assert_eq!(file.source, at("s").join(name));
            assert_eq!(file.names_below, names_below);
            assert_eq!(file.dest.parent(), at("d").join(name).parent());
        }
        fs::remove_dir_all(at("d")).unwrap();
    }
}

#[test]
fn an_operand_is_divided() {
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.at(name);
    build(&at("s"));
    fs::create_dir(at("into")).unwrap();
    let hub = Hub::new(2, || {}).dividing(copy_range);
    let dest = Dest::Into(at("into"));
    let (_, failures) = hub.copy(&reading(archive()), &[at("s/large")], &dest);
    assert_eq!(failures, []);
    assert_eq!(hub.divided()[0].names_below, 0);
    assert_same_tree(at("s/large"), at("into/large"), all_but_atime());
    assert_eq!(fs::read_dir(at("into")).unwrap().count(), 1);
}

#[test]
fn a_file_that_another_process_puts_at_the_dest_meanwhile_is_treated_by_the_rules() {
    for (replace, is_kept) in [(Replace::None, true), (Replace::All, false)] {
        let scratch = Scratch::in_memory();
        let at = |name: &str| scratch.at(name);
        Tree::at(at("s")).file("large", vec![2; LARGE]);
        let hub = Hub::new(2, || {}).dividing(|copy, range| {
            fs::write(copy.dest.with_file_name("large"), "other").unwrap();
            copy_range(copy, range)
        });
        let copy = reading(archive()).with(|copy| copy.rules.replace = replace);
        let (_, failures) = hub.copy(&copy, &[at("s")], &exactly(at("d")));
        assert_eq!(failures, []);
        let len = fs::metadata(at("d/large")).unwrap().len();
        assert_eq!(len, if is_kept { 5 } else { LARGE as u64 });
        assert_eq!(fs::read_dir(at("d")).unwrap().count(), 1);
    }
}

/// A change of a copy, or of the tree, which is built in `s`, and may have a dest `d`.
type Change = fn(&Tree, &mut CopyOp<'_>);

#[test]
fn an_engine_copies_large_files_that_cannot_be_divided() {
    let changes: [(&str, Change); 4] = [
        ("the dest exists", |tree, _| {
            tree.plant("d/large=old d/sub/deep/large=old");
        }),
        ("the kernel copies", |_, copy| copy.reflink = Reflink::Auto),
        ("zeros become holes", |_, copy| copy.sparse = Sparse::Always),
        ("it is a dry run", |_, copy| {
            copy.execution = Execution::DryRun;
        }),
    ];
    for (reason, change) in changes {
        let scratch = Scratch::in_memory();
        let at = |name: &str| scratch.at(name);
        build(&at("s"));
        let mut copy = reading(archive());
        change(&Tree::at(&scratch), &mut copy);
        let hub = Hub::new(2, || {}).dividing(|_, _| unreachable!("it was divided"));
        let (_, failures) = hub.copy(&copy, &[at("s")], &exactly(at("d")));
        assert_eq!(failures, [], "{reason}");
        if copy.execution == Execution::Real {
            assert_same_tree(at("s/large"), at("d/large"), Attributes::DATA);
        }
    }
}

#[test]
fn a_copy_that_is_cancelled_while_other_machines_copy_parts_leaves_none() {
    static CANCEL: std::sync::OnceLock<Cancel> = std::sync::OnceLock::new();
    let cancel = CANCEL.get_or_init(Cancel::new);
    let scratch = Scratch::in_memory();
    let at = |name: &str| scratch.at(name);
    Tree::at(at("s")).file("large", vec![2; LARGE]);
    let hub = Hub::new(2, || {}).dividing(|copy, range| {
        CANCEL.get().unwrap().cancel();
        copy_range(copy, range)
    });
    let copy = reading(archive()).cancelled_by(cancel.clone());
    let (summaries, _) = hub.copy(&copy, &[at("s")], &exactly(at("d")));
    assert!(summaries.iter().any(|it| it.cancelled));
    assert_eq!(summaries.iter().map(|it| it.discarded).sum::<u64>(), 1);
    assert_eq!(fs::read_dir(at("d")).unwrap().count(), 0);
}
