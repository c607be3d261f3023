//! Removals of operands of each type, and their options.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::iter;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Mutex;

use fuc_engine::{Cancel, Operation, Refusal, RemoveOp, remove_tree};
use rustix::io::Errno;
use testkit::probe;
use testkit::snapshot::{Attributes, Snapshot};
use testkit::tree::{Scratch, Tree, chain, wide, wide_dirs};

use crate::kit::{
    Failure, Told, assert_nothing_in, assert_unchanged, counts, paths, plain, remove, remove_with,
    threads,
};

#[test]
fn a_tree_of_all_types_is_removed_and_counted() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path().join("t"));
    tree.file("a/b/file", "content")
        .hardlink("a/b/file", "a/twin")
        .symlink("a/link", "b/file")
        .symlink("a/b/up", "..")
        .symlink("dangling", "nowhere")
        .fifo("pipe")
        .socket("socket")
        .dir("empty/empty");
    let entries = Snapshot::of(tree.path(), plain()).len();
    assert_eq!(remove(tree.path()), Told::complete(entries, 0));
    assert_nothing_in(&scratch);
}

#[test]
fn names_of_any_bytes_are_removed() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path().join("t"));
    let longest = [b'x'; 255];
    let names: [&[u8]; 6] = [b"\xff\xfe", b"\n", b" ", b"-rf", b"...", &longest];
    for name in names {
        let dir = Path::new(OsStr::from_bytes(name));
        tree.file(dir.join(dir), "");
    }
    assert_eq!(remove(tree.path()), Told::complete(13, 0));
    assert_nothing_in(&scratch);
}

#[test]
fn a_file_alone_is_removed() {
    let scratch = Scratch::new();
    Tree::at(&scratch).file("f", "content");
    let told = remove(scratch.path().join("f"));
    assert_eq!(told, Told::complete(1, 0));
    assert_nothing_in(&scratch);
}

#[test]
fn special_operands_are_removed() {
    let scratch = Scratch::new();
    Tree::at(&scratch).fifo("pipe").socket("socket").dir("dir");
    let operands = ["pipe", "socket", "dir"].map(|name| scratch.path().join(name));
    let told = remove_with(RemoveOp::new(), operands);
    assert_eq!(told, Told::complete(3, 0));
    assert_nothing_in(&scratch);
}

#[test]
fn a_symlink_is_removed_and_its_target_stays() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.file("target/file", "content")
        .symlink("link", "target");
    let before = Snapshot::of(tree.path().join("target"), Attributes::ALL);
    assert_eq!(remove(tree.path().join("link")), Told::complete(1, 0));
    assert_unchanged(&before, tree.path().join("target"), Attributes::ALL);
    assert_eq!(Snapshot::of(&scratch, plain()).len(), 3);
}

#[test]
fn symlinks_in_a_tree_are_not_followed() {
    let scratch = Scratch::new();
    let outside = Tree::at(scratch.path().join("outside"));
    outside.file("sub/file", "content");
    let tree = Tree::at(scratch.path().join("t"));
    tree.symlink("absolute", outside.path())
        .symlink("relative", "../outside")
        .symlink("file", "../outside/sub/file");
    let before = Snapshot::of(outside.path(), Attributes::ALL);
    assert_eq!(remove(tree.path()), Told::complete(4, 0));
    assert_unchanged(&before, outside.path(), Attributes::ALL);
}

#[test]
fn slashes_after_a_directory_change_nothing() {
    let scratch = Scratch::new();
    Tree::at(&scratch).file("d/f", "");
    let told = remove(scratch.path().join("d//"));
    assert_eq!(told, Told::complete(2, 0));
    assert_nothing_in(&scratch);
}

#[test]
fn remove_tree_returns_the_summary() {
    let scratch = Scratch::new();
    Tree::at(&scratch).file("d/f", "").dir("d/e");
    let summary = remove_tree(scratch.path().join("d")).unwrap();
    assert_eq!(counts(summary), (3, 0, 0));
    assert_nothing_in(&scratch);
}

#[test]
fn remove_tree_returns_the_failure() {
    let scratch = Scratch::new();
    let missing = scratch.path().join("missing");
    let error = remove_tree(&missing).unwrap_err();
    let expected = Failure::failed(Operation::Remove, &missing, Errno::NOENT);
    assert_eq!(Failure::of(&error), expected);
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    let error = std::io::Error::from(error);
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert!(error.to_string().contains("missing"), "{error}");
}

#[test]
fn a_missing_operand_is_reported_and_the_others_are_removed() {
    let scratch = Scratch::new();
    Tree::at(&scratch).file("a", "").file("b/c", "");
    let [a, missing, b] = ["a", "missing", "b"].map(|name| scratch.path().join(name));
    let told = remove_with(RemoveOp::new(), [&a, &missing, &b]);
    let failure = Failure::failed(Operation::Remove, missing, Errno::NOENT);
    assert_eq!(told, Told::complete(3, 0).with([failure]));
    assert_nothing_in(&scratch);
}

#[test]
fn a_missing_operand_may_be_ignored() {
    let scratch = Scratch::new();
    Tree::at(&scratch).file("file", "");
    let before = Snapshot::of(&scratch, Attributes::ALL);
    let options = RemoveOp::new().with(|options| options.ignore_missing = true);
    let operands = ["missing", "missing/too", "file/below"].map(|n| scratch.path().join(n));
    assert_eq!(remove_with(options, operands), Told::complete(0, 0));
    assert_unchanged(&before, &scratch, Attributes::ALL);
}

#[test]
fn a_directory_is_refused_without_recursion() {
    let scratch = Scratch::new();
    Tree::at(&scratch).file("d/f", "").file("g", "");
    let before = Snapshot::of(scratch.path().join("d"), Attributes::ALL);
    let options = RemoveOp::new().with(|options| options.recursive = false);
    let operands = ["d", "g"].map(|name| scratch.path().join(name));
    let told = remove_with(options, &operands);
    let failure = Failure::refused(Refusal::NotRecursive, &operands[0]);
    assert_eq!(told, Told::complete(1, 0).with([failure]));
    assert_unchanged(&before, &operands[0], Attributes::ALL);
}

#[test]
fn dot_and_dot_dot_are_refused() {
    let scratch = Scratch::new();
    Tree::at(&scratch).file("d/f", "");
    let before = Snapshot::of(&scratch, Attributes::ALL);
    let operands = ["d/.", "d/..", "d/./", "d/..//"].map(|name| scratch.path().join(name));
    let refused = |path: &_| Failure::refused(Refusal::DotOrDotDot, path);
    // Build the path as text, because `join` would drop the last dot.
    let told = remove_with(RemoveOp::new(), &operands);
    assert_eq!(
        told,
        Told::complete(0, 0).with(operands.iter().map(refused))
    );
    assert_unchanged(&before, &scratch, Attributes::ALL);
}

#[test]
fn an_operand_with_a_nul_byte_is_reported() {
    let scratch = Scratch::new();
    Tree::at(&scratch).file("a", "");
    let operands = ["a\0b", "a"].map(|name| scratch.path().join(name));
    let told = remove_with(RemoveOp::new(), &operands);
    let failure = Failure::failed(Operation::Remove, &operands[0], Errno::INVAL);
    assert_eq!(told, Told::complete(1, 0).with([failure]));
    assert_nothing_in(&scratch);
}

#[test]
fn an_empty_operand_is_missing() {
    let told = remove("");
    let failure = Failure::failed(Operation::Remove, "", Errno::NOENT);
    assert_eq!(told, Told::complete(0, 0).with([failure]));
}

#[test]
fn no_operands_are_no_work() {
    let none: [&str; 0] = [];
    let told = remove_with(RemoveOp::new(), none);
    assert_eq!(told, Told::complete(0, 0));
}

#[test]
fn operands_take_effect_in_order() {
    let scratch = Scratch::new();
    Tree::at(&scratch).file("a/b/f", "").file("a/g", "");
    let operands = ["a/b", "a", "a/b", "a"].map(|name| scratch.path().join(name));
    let told = remove_with(RemoveOp::new(), &operands);
    let missing = |path: &_| Failure::failed(Operation::Remove, path, Errno::NOENT);
    assert_eq!(
        told,
        Told::complete(4, 0).with(operands[2..].iter().map(missing))
    );
    assert_nothing_in(&scratch);
}

#[test]
fn a_thousand_operands_are_removed() {
    let scratch = Scratch::in_memory();
    wide(&scratch, 500);
    wide_dirs(&scratch, 500);
    let operands = fs::read_dir(&scratch).unwrap().map(|e| e.unwrap().path());
    let told = remove_with(RemoveOp::new(), operands.collect::<Vec<_>>());
    assert_eq!(told, Told::complete(1000, 0));
    assert_nothing_in(&scratch);
}

#[test]
fn operands_are_taken_while_earlier_ones_are_removed() {
    let scratch = Scratch::in_memory();
    Tree::at(&scratch).file("first", "").dir("last");
    let [first, last] = ["first", "last"].map(|name| scratch.path().join(name));
    let was_removed = Cell::new(false);
    let missing = (0..100_000).map(|_| {
        was_removed.set(was_removed.get() || !first.exists());
        scratch.path().join("missing")
    });
    let mut operands = iter::once(first.clone()).chain(missing).chain([last]);
    // The number of these is unknown.
    let operands = iter::from_fn(|| operands.next());
    let failures = Mutex::new(Vec::new());
    let removal = RemoveOp::new().with(|removal| removal.ignore_missing = true);
    let summary = removal.run(operands, &failures);
    assert!(was_removed.get(), "all operands were collected first");
    assert_eq!(Told::new(summary, failures), Told::complete(2, 0));
    assert_nothing_in(&scratch);
}

/// A list can end because the signal that cancels the run has ended its reader.
#[test]
fn a_run_is_cancelled_if_the_token_is_when_the_operands_end() {
    let scratch = Scratch::in_memory();
    Tree::at(&scratch).file("f", "");
    let cancel = Cancel::new();
    let end = iter::from_fn(|| {
        cancel.cancel();
        None
    });
    let operands = iter::once(scratch.path().join("f")).chain(end);
    let failures = Mutex::new(Vec::new());
    let summary = RemoveOp::new()
        .cancelled_by(cancel.clone())
        .run(operands, &failures);
    assert!(summary.cancelled, "{summary:?}");
}

#[test]
fn any_number_of_threads_removes_the_same() {
    for number in [1, 2, 8] {
        let scratch = Scratch::in_memory();
        let tree = Tree::at(scratch.path().join("t"));
        for dir in 0..200 {
            for file in 0..5 {
                tree.file(format!("{}/{dir}/{file}", dir % 7), "");
            }
        }
        wide(scratch.path().join("t/wide"), 5_000);
        let entries = Snapshot::of(tree.path(), Attributes::NAMES).len();
        let options = RemoveOp::new().with(|options| options.threads = threads(number));
        let told = remove_with(options, [tree.path()]);
        assert_eq!(told, Told::complete(entries, 0), "{number} threads");
        assert_nothing_in(&scratch);
    }
}

#[test]
fn a_mount_point_is_reported_once_and_keeps_its_parents() {
    if !probe::is_root() {
        testkit::skip!("only root can mount");
    }
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path().join("t"));
    tree.file("a/b/f", "")
        .dir("a/b/point")
        .file("a/c/f", "")
        .file("d", "");
    let point = tree.path().join("a/b/point");
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "tmpfs"])
        .arg(&point)
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        testkit::skip!("mount refuses");
    }
    let told = remove(tree.path());
    let unmounted = std::process::Command::new("umount").arg(&point).status();
    assert!(unmounted.unwrap().success());
    let failure = Failure::failed(Operation::Remove, &point, Errno::BUSY);
    assert_eq!(told, Told::complete(4, 0).with([failure]));
    // The mount point and its three ancestors stay.
    assert_eq!(Snapshot::of(tree.path(), plain()).len(), 4);
}

#[test]
fn the_process_is_as_it_was() {
    let state = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let umask = status
            .lines()
            .find(|l| l.starts_with("Umask"))
            .map(str::to_owned);
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        (std::env::current_dir().unwrap(), umask, limit)
    };
    let before = state();
    let scratch = Scratch::in_memory();
    testkit::tree::chain(scratch.path().join("t"), 3_000);
    assert_eq!(
        crate::kit::copy(scratch.path().join("t"), scratch.path().join("u")),
        Told::complete(3_001, 0)
    );
    assert_eq!(state(), before);
    assert_eq!(remove(scratch.path().join("t")), Told::complete(3_001, 0));
    assert_eq!(state(), before);
}

#[test]
fn relative_operands_are_looked_up_in_an_open_directory() {
    let scratch = Scratch::new();
    Tree::at(&scratch).file("dir/a/b/f", "").file("dir/f", "");
    let [dir, moved] = ["dir", "moved"].map(|name| scratch.path().join(name));
    let open = fs::File::open(&dir).unwrap();
    fs::rename(&dir, &moved).unwrap();
    // Another tree of the same name stays.
    Tree::at(&scratch).file("dir/a/b/f", "").file("dir/f", "");
    let left = Snapshot::of(&dir, plain());

    let failures = Mutex::new(Vec::new());
    let operands = ["a", "missing", "f"];
    let summary = RemoveOp::default()
        .in_dir(&open)
        .run(paths(operands), &failures);
    assert_eq!((summary.entries, summary.failures), (4, 1));
    let failures = failures.into_inner().unwrap();
    assert_eq!(failures[0].path(), Path::new("missing"));
    assert_nothing_in(&moved);
    assert!(left.diff(&Snapshot::of(&dir, plain())).is_empty());
}

#[test]
fn deep_trees_are_removed_from_an_open_directory() {
    let scratch = Scratch::new();
    chain(scratch.path().join("dir/deep"), 3_000);
    let open = fs::File::open(scratch.path().join("dir")).unwrap();
    let failures = Mutex::new(Vec::new());
    let summary = RemoveOp::default()
        .in_dir(&open)
        .run(paths(["deep"]), &failures);
    assert!(summary.is_complete(), "{failures:?}");
    assert_nothing_in(scratch.path().join("dir"));
}
