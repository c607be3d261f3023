//! Promises that copies make to their callers. Tests of the commands compare the copies themselves with those of GNU cp.

use std::{fs, sync::Mutex};

use fuc_engine::{
    CopyOp, Dest, Error, Event, Observer, Operation, Reflink, Refusal, copy_tree, gnu::Mechanism,
};
use rustix::io::Errno;
use testkit::{
    probe, served,
    snapshot::{Snapshot, assert_same_tree},
    tree::{Scratch, Tree},
};

use crate::kit::{
    Failure, OnEvent, Told, all_but_atime, assert_unchanged, copy, copy_with, counts, exactly,
    paths, plain,
};

#[test]
fn a_tree_of_all_types_is_copied_and_counted_and_its_source_stays() {
    let scratch = Scratch::new();
    let source = Tree::at(scratch.at("s"));
    source.plant(
        "a/b/file=content %755 a/b/empty= %640 a/link->b/file dangling->nowhere pipe<fifo>
        socket<socket> empty/empty/ a %555",
    );
    if probe::is_root() {
        source
            .char_device("null", 1, 3)
            .block_device("block", 7, 77);
    }
    let dest = scratch.at("d");
    let before = Snapshot::of(source.path(), all_but_atime());
    assert_eq!(copy(source.path(), &dest), Told::complete(before.len(), 7));
    assert_same_tree(source.path(), &dest, plain());
    assert_unchanged(&before, source.path(), all_but_atime());
}

#[test]
fn copy_tree_returns_the_summary_or_the_failure() {
    let scratch = Scratch::new();
    let source = Tree::at(scratch.at("s"));
    source.plant("f=four");
    let dest = scratch.at("d");
    assert_eq!(counts(copy_tree(source.path(), &dest).unwrap()), (2, 4, 0));
    assert_same_tree(source.path(), &dest, plain());

    let missing = scratch.at("missing");
    let error = copy_tree(&missing, scratch.at("e")).unwrap_err();
    let expected = Failure::failed(Operation::Stat, &missing, Errno::NOENT);
    assert_eq!(Failure::of(&error), expected);
    assert!(!scratch.at("e").exists());
}

#[test]
fn dests_that_cannot_be_made_are_reported_with_the_operation_that_failed() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.plant("dir/ file=");
    let at = |name: &str| tree.path().join(name);
    for (source, dest, operation, errno) in [
        (
            "dir",
            Dest::Exactly(at("no/d")),
            Operation::CreateDirectory,
            Errno::NOENT,
        ),
        (
            "file",
            Dest::Exactly(at("no/d")),
            Operation::CreateFile,
            Errno::NOENT,
        ),
        (
            "file",
            Dest::Into(at("no")),
            Operation::OpenTarget,
            Errno::NOENT,
        ),
        (
            "dir",
            Dest::Into(at("file")),
            Operation::OpenTarget,
            Errno::NOTDIR,
        ),
        (
            "file",
            Dest::Exactly(at("nul\0")),
            Operation::Stat,
            Errno::INVAL,
        ),
        (
            "file",
            Dest::Into(at("nul\0")),
            Operation::OpenTarget,
            Errno::INVAL,
        ),
    ] {
        let (Dest::Exactly(path) | Dest::Into(path)) = &dest;
        let failure = Failure::failed(operation, path, errno);
        let told = copy_with(CopyOp::new(), [at(source)], &dest);
        assert_eq!(
            told,
            Told::complete(0, 0).with([failure]),
            "{source} to {dest:?}"
        );
    }
    let failure = Failure::failed(Operation::Stat, at("nul\0"), Errno::INVAL);
    assert_eq!(
        copy(at("nul\0"), at("d")),
        Told::complete(0, 0).with([failure])
    );
    assert_eq!(Snapshot::of(&scratch, plain()).len(), 3);
}

/// Collects failures and warnings apart from each other.
#[derive(Default)]
struct Heard {
    failures: Mutex<Vec<Error>>,
    warnings: Mutex<Vec<Error>>,
}

impl Observer for Heard {
    fn failed(&self, error: Error) {
        self.failures.failed(error);
    }

    fn warned(&self, warning: Error) {
        self.warnings.failed(warning);
    }
}

#[test]
fn warnings_are_no_failures_and_a_failure_may_have_two_paths() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.plant("f=content sub/f=other");
    let [file, other, made] = ["f", "sub/f", "d/f"].map(|name| tree.path().join(name));
    let into = Dest::Into(tree.path().join("d"));
    let refused = Failure::refused(Refusal::JustCreated, made).and(&other);
    let expected = Told::complete(1, 7).with([refused]);

    tree.dir("d");
    let heard = Heard::default();
    let summary = CopyOp::new().run(paths([&file, &file, &other]), &into, &heard);
    assert_eq!(Told::new(summary, heard.failures), expected);
    let warnings = heard.warnings.into_inner().unwrap();
    let warnings: Vec<_> = warnings.iter().map(Failure::of).collect();
    assert_eq!(warnings, [Failure::refused(Refusal::FileNamedTwice, &file)]);

    // An observer without `warned` does not collect warnings as failures.
    fs::remove_file(tree.path().join("d/f")).unwrap();
    assert_eq!(
        copy_with(CopyOp::new(), [&file, &file, &other], &into),
        expected
    );
}

#[test]
fn a_busy_program_is_replaced_by_force_only() {
    // The dest is a running program. ETXTBSY prevents even root from writing to it; a mode would
    // not.
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.plant("new=content %755");
    let [new, busy] = ["new", "busy"].map(|name| tree.path().join(name));
    // Another process copies the program. A fork of this one could hold it open for writing when it is started.
    let made = std::process::Command::new("cp")
        .arg("/bin/sleep")
        .arg(&busy)
        .status();
    assert!(made.unwrap().success());
    let before = Snapshot::of(&busy, all_but_atime());
    let mut sleeping = std::process::Command::new(&busy).arg("60").spawn().unwrap();
    let plainly = copy(&new, &busy);
    let unharmed = Snapshot::of(&busy, all_but_atime());
    let options = CopyOp::new().with(|options| options.force = true);
    let forced = copy_with(options, [&new], &exactly(&busy));
    sleeping.kill().unwrap();
    sleeping.wait().unwrap();
    let failure = Failure::failed(Operation::CreateFile, &busy, Errno::TXTBSY);
    assert_eq!(plainly, Told::complete(0, 0).with([failure]));
    assert_eq!(unharmed, before);
    assert_eq!(forced, Told::complete(1, 7));
    assert_same_tree(&new, &busy, plain());
}

#[test]
fn a_fifo_that_cannot_replace_a_file_says_why() {
    let mount = served!(mknod: Some(Errno::PERM));
    let scratch = Scratch::new();
    Tree::at(&scratch).fifo("pipe");
    Tree::at(mount.stored()).plant("f=content");
    let dest = mount.at("f");
    let atomic = CopyOp::new().with(|copy| copy.rules.atomic = true);
    let failure = Failure::failed(Operation::CreateFifo, &dest, Errno::PERM);
    let told = copy_with(atomic, [scratch.at("pipe")], &exactly(&dest));
    assert_eq!(told, Told::complete(0, 0).with([failure]));
    assert_eq!(fs::read(&dest).unwrap(), b"content");
}

#[test]
fn the_event_of_a_copied_file_has_the_copy_method_if_that_is_wanted() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    tree.sparse("s/f", 1 << 20, &[(0, b"x")]);
    let methods = |dest: &str, reports_methods| {
        let options = CopyOp::new().with(|options| {
            options.reflink = Reflink::Never;
            options.reports_methods = reports_methods;
        });
        let methods = Mutex::new(Vec::new());
        let asking = OnEvent(|event: Event<'_>| {
            if let Event::Copied { method, .. } = event {
                methods.lock().unwrap().extend(method);
            }
        });
        let at = |name: &str| tree.path().join(name);
        assert!(
            options
                .run(paths([at("s")]), &exactly(at(dest)), &asking)
                .is_complete()
        );
        methods.into_inner().unwrap()
    };
    assert!(methods("without", false).is_empty());
    let told = methods("d", true);
    let [method] = told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(method.offload, Mechanism::Avoided);
    assert_eq!(method.reflink, Mechanism::Avoided);
    let holes = method.holes.expect("the copy has looked for holes");
    assert!(holes.asks_filesystem && !holes.finds_zeros);
}
