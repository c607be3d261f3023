//! The look-ahead: it counts what a run finds, changes nothing, and can be cancelled.

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    sync::Arc,
};

use fuc_engine::{
    Cancel, Candidate, CopyOp, Counts, Dereference, Filter, LinkKind, Preserve, RemoveOp, Verdict,
};
use testkit::tree::{Scratch, Tree};

use crate::kit::{paths, remove_with};

/// Returns a tree of nine entries with 16 bytes in three names of two files.
fn tree() -> Scratch {
    let scratch = Scratch::with("t/a/one=12345 t/a/two=123456 t/a/fifo<fifo> t/b/empty/");
    let at = |name: &str| scratch.at(name);
    fs::hard_link(at("t/a/one"), at("t/b/one")).unwrap();
    symlink(at("t/a/two"), at("t/b/link")).unwrap();
    scratch
}

/// Returns the entries and bytes that `count` finds, or `None` if it could not count all.
fn counted(count: impl FnOnce(&Arc<Counts>) -> bool) -> Option<(u64, u64)> {
    let counts = Arc::default();
    count(&counts).then(|| (counts.entries(), counts.bytes()))
}

#[test]
fn a_removal_counts_entries_and_removes_none() {
    let scratch = tree();
    let operands = [scratch.at("t"), scratch.at("missing")];
    let remove = RemoveOp::default();
    let found = counted(|counts| remove.count(paths(&operands), counts));
    assert_eq!(found, Some((9, 0)));
    assert_eq!(remove_with(remove, &operands).counts.0, 9);

    let scratch = tree();
    let flat = RemoveOp::new().with(|options| options.recursive = false);
    let found = counted(|counts| flat.count(paths([scratch.at("t")]), counts));
    assert_eq!(found, Some((1, 0)));
}

#[test]
fn a_copy_counts_bytes_of_names_or_of_files() {
    let scratch = tree();
    let count = |copy: CopyOp| counted(|counts| copy.count(paths([scratch.at("t")]), counts));
    assert_eq!(count(CopyOp::default()), Some((9, 16)));
    // The two names of a file count once.
    let keeping_links = CopyOp::new().with(|options| options.preserve.links = true);
    assert_eq!(count(keeping_links), Some((9, 6 + 5)));
    let linking = CopyOp::new().with(|options| options.as_links = Some(LinkKind::Hard));
    assert_eq!(count(linking), Some((9, 0)));
    let following = CopyOp::new().with(|options| options.dereference = Dereference::Always);
    assert_eq!(count(following), None);
}

#[test]
fn a_copy_of_one_of_several_snapshots_counts_what_it_copies() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.plant("1/file=content");
    for number in 2..5 {
        tree.dir(number.to_string())
            .plant(format!("{number}/file==1/file"));
    }
    let copy = CopyOp::new().with(|copy| copy.preserve = Preserve::all());
    let found = counted(|counts| copy.count(paths([scratch.at("4")]), counts));
    assert_eq!(found, Some((2, 7)));
    let copied = copy.copy(scratch.at("4"), scratch.at("copy"));
    assert_eq!(copied.unwrap().bytes, 7);
}

#[test]
fn skipped_directories_count_for_a_copy_only() {
    let scratch = tree();
    let top = scratch.at("t");
    let filter: Arc<dyn Filter> = Arc::new(|entry: &Candidate<'_>| match entry.is_directory() {
        true => Verdict::Skip,
        false => Verdict::Take,
    });
    let copy = CopyOp::new().filtered_by(Arc::clone(&filter));
    let (entries, _) = counted(|counts| copy.count(paths([&top]), counts)).unwrap();
    let copied = copy.copy(&top, scratch.at("copy")).unwrap();
    assert_eq!((entries, copied.entries), (9, 9));
    let removal = RemoveOp::new().filtered_by(filter);
    // The operand counts, although it stays because of the skipped directories.
    let (entries, _) = counted(|counts| removal.count(paths([&top]), counts)).unwrap();
    let removed = removal.remove(&top).unwrap();
    assert_eq!((entries, removed.entries), (6, 5));
}

#[test]
fn holes_are_not_counted() {
    let scratch = Scratch::new();
    let path = scratch.at("f");
    fs::write(&path, vec![1; 1 << 20]).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(1 << 30).unwrap();
    // Some filesystems allocate blocks only when they write them.
    file.sync_all().unwrap();
    let copy = CopyOp::new();
    let found = counted(|counts| copy.count(paths([&path]), counts));
    let summary = copy.copy(&path, scratch.at("copy")).unwrap();
    assert_eq!(found, Some((1, summary.bytes)));
}

#[test]
fn times_of_access_stay() {
    let scratch = tree();
    let directory = scratch.at("t/a");
    fs::File::open(&directory)
        .unwrap()
        .set_times(fs::FileTimes::new().set_accessed(std::time::UNIX_EPOCH))
        .unwrap();
    assert!(CopyOp::default().count(paths([scratch.at("t")]), &Arc::default()));
    assert_eq!(directory.metadata().unwrap().atime(), 0);
}

#[test]
fn a_deep_tree_takes_few_descriptors() {
    let scratch = Scratch::in_memory();
    testkit::tree::chain(scratch.at("t"), 2000);
    let found = counted(|counts| RemoveOp::default().count(paths([scratch.at("t")]), counts));
    assert_eq!(found, Some((2001, 0)));
    testkit::tree::remove_for_sure(scratch.at("t")).unwrap();
}

#[test]
fn a_cancelled_count_says_so() {
    let scratch = tree();
    let cancel = Cancel::new();
    cancel.cancel();
    let remove = RemoveOp::default().cancelled_by(cancel.clone());
    let counts = Arc::<Counts>::default();
    assert!(!remove.count(paths([scratch.at("t")]), &counts));
    // The operand may be counted.
    assert!(counts.entries() <= 1, "{counts:?}");
}
