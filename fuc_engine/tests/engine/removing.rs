//! Promises that removals make to their callers. Tests of the commands compare the removals themselves with those of GNU rm.

use std::{fs, io::ErrorKind, iter, os::unix::fs::MetadataExt as _, sync::Mutex};

use fuc_engine::{Ask, Cancel, Operation, Refusal, RemoveOp, remove_contents, remove_tree};
use rustix::io::Errno;
use testkit::{
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, chain, wide},
};

use crate::kit::{
    Failure, Person, Told, assert_nothing_in, assert_unchanged, copy, counts, paths, plain, remove,
    remove_with, told,
};

#[test]
fn remove_tree_returns_the_summary_or_the_failure() {
    let scratch = Scratch::new();
    Tree::at(&scratch).plant("d/f= d/e/");
    let summary = remove_tree(scratch.at("d")).unwrap();
    assert_eq!(counts(summary), (3, 0, 0));
    assert_nothing_in(&scratch);

    let missing = scratch.at("missing");
    let error = remove_tree(&missing).unwrap_err();
    let expected = Failure::failed(Operation::Remove, &missing, Errno::NOENT);
    assert_eq!(Failure::of(&error), expected);
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = std::io::Error::from(error);
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("missing"), "{error}");
}

#[test]
fn failures_have_the_order_of_the_operands_which_take_effect_one_after_the_other() {
    let scratch = Scratch::new();
    Tree::at(&scratch).plant("a/b/f= a/g= z/");
    let at = |name: &str| scratch.at(name);
    let operands = ["a/b", "a\0b", "a", "a/b", "z/.", "a", "z", ""];
    let operands = operands.map(|name| {
        if name.is_empty() {
            name.into()
        } else {
            at(name)
        }
    });
    let told = remove_with(RemoveOp::new(), &operands);
    let failed = |index: usize, errno| Failure::failed(Operation::Remove, &operands[index], errno);
    let failures = [
        failed(1, Errno::INVAL),
        failed(3, Errno::NOENT),
        Failure::refused(Refusal::DotOrDotDot, &operands[4]),
        failed(5, Errno::NOENT),
        failed(7, Errno::NOENT),
    ];
    assert_eq!(told, Told::complete(5, 0).with(failures));
    assert_nothing_in(&scratch);
}

#[test]
fn operands_are_taken_while_earlier_ones_are_removed() {
    let scratch = Scratch::in_memory();
    Tree::at(&scratch).plant("first= last/");
    let [first, last] = ["first", "last"].map(|name| scratch.at(name));
    let mut was_removed = false;
    let missing = (0..20_000).map(|_| {
        was_removed = was_removed || !first.exists();
        scratch.at("missing")
    });
    let mut operands = iter::once(first.clone()).chain(missing).chain([last]);
    // The number of these is unknown.
    let operands = iter::from_fn(|| operands.next());
    let removal = RemoveOp::new().with(|removal| removal.ignore_missing = true);
    let told = told(|observer| removal.run(operands, observer));
    assert!(was_removed, "all operands were collected first");
    assert_eq!(told, Told::complete(2, 0));
    assert_nothing_in(&scratch);
}

/// A list can end because the signal that cancels the run has ended its reader.
#[test]
fn a_run_is_cancelled_if_the_token_is_when_the_operands_end() {
    let scratch = Scratch::in_memory();
    Tree::at(&scratch).plant("f=");
    let cancel = Cancel::new();
    let end = iter::from_fn(|| {
        cancel.cancel();
        None
    });
    let operands = iter::once(scratch.at("f")).chain(end);
    let removal = RemoveOp::new().cancelled_by(cancel.clone());
    let summary = removal.run(operands, &Person::default());
    assert!(summary.cancelled, "{summary:?}");
}

#[test]
fn the_process_is_as_it_was() {
    let state = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let umask = status.lines().find(|line| line.starts_with("Umask"));
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        (
            std::env::current_dir().unwrap(),
            umask.map(str::to_owned),
            limit,
        )
    };
    let before = state();
    let scratch = Scratch::in_memory();
    let [tree, dest] = ["t", "u"].map(|name| scratch.at(name));
    chain(&tree, 1_500);
    assert_eq!(copy(&tree, dest), Told::complete(1_501, 0));
    assert_eq!(state(), before);
    assert_eq!(remove(tree), Told::complete(1_501, 0));
    assert_eq!(state(), before);
}

#[test]
fn relative_operands_are_looked_up_in_an_open_directory() {
    let scratch = Scratch::in_memory();
    let [dir, moved] = ["dir", "moved"].map(|name| scratch.at(name));
    Tree::at(&dir).plant("f=");
    chain(dir.join("deep"), 1_500);
    let open = fs::File::open(&dir).unwrap();
    fs::rename(&dir, &moved).unwrap();
    // Another tree of the same name stays.
    Tree::at(&dir).plant("deep/f= f=");
    let left = Snapshot::of(&dir, plain());

    let removal = RemoveOp::default().in_dir(&open);
    let told = told(|observer| removal.run(paths(["deep", "missing", "f"]), observer));
    let missing = Failure::failed(Operation::Remove, "missing", Errno::NOENT);
    assert_eq!(told, Told::complete(1_502, 0).with([missing]));
    assert_nothing_in(&moved);
    assert_unchanged(&left, &dir, plain());
}

#[test]
fn a_directory_that_is_emptied_stays_itself() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(scratch.at("d"));
    tree.plant("a/b/c=content l->a p<fifo>");
    wide(tree.path().join("wide"), 500);
    let inode = || fs::metadata(tree.path()).unwrap().ino();
    let before = inode();
    let summary = remove_contents(tree.path()).expect("all can be removed");
    assert_eq!((summary.files, summary.directories), (501, 3));
    assert_eq!((summary.symlinks, summary.other), (1, 1));
    assert_nothing_in(tree.path());
    assert_eq!(inode(), before);
    assert_eq!(remove_contents(tree.path()).unwrap().entries, 0);
}

#[test]
fn several_directories_are_emptied_and_each_failure_is_reported() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.plant("a/f= b/sub/f= file= to/kept/ link->to");
    let emptying = || RemoveOp::new().contents_only();
    let operands = ["a", "missing", "file", "link", "b"].map(|name| tree.path().join(name));
    let failures = Mutex::new(Vec::new());
    let summary = emptying().run(paths(&operands), &failures);
    let failures = failures.into_inner().unwrap();
    let failures: Vec<_> = failures.iter().map(|it| (it.path(), it.kind())).collect();
    let expected = [
        (&*operands[1], ErrorKind::NotFound),
        (&*operands[2], ErrorKind::NotADirectory),
        (&*operands[3], ErrorKind::NotADirectory),
    ];
    assert_eq!((summary.entries, &failures[..]), (3, &expected[..]));
    let left = Snapshot::of(&scratch, Attributes::NAMES);
    assert_eq!(left.len(), 7, "{left:?}");

    let followed = remove_contents(tree.path().join("link/")).expect("the slash follows the link");
    assert_eq!(followed.entries, 1);
    let ignoring = emptying().with(|removal| removal.ignore_missing = true);
    assert!(
        ignoring
            .remove(&operands[1])
            .expect("it is ignored")
            .is_complete()
    );
    // Nothing but one directory may be entered, in case that the root is not refused.
    let root = emptying()
        .with(|removal| removal.ask = Ask::Always)
        .remove("/");
    assert_eq!(
        root.expect_err("it is the root").kind(),
        ErrorKind::InvalidInput
    );
}

#[test]
fn questions_are_about_entries_and_not_about_the_directory_that_is_emptied() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.at("d"));
    tree.plant("keep=x f=x");
    let person = Person::declining(["keep"]);
    let emptying = RemoveOp::new()
        .with(|removal| removal.ask = Ask::Always)
        .contents_only();
    assert_eq!(
        counts(emptying.run(paths([tree.path()]), &person)),
        (1, 0, 0)
    );
    let mut asked = person.asked();
    asked.sort();
    assert_eq!(asked, ["remove File f", "remove File keep"]);
    assert!(tree.path().join("keep").exists());
}
