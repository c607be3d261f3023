//! Copies to a full filesystem.

use std::path::Path;

use testkit::{
    or_skip,
    probe::{Fs, LoopMount, is_gnu},
    run::{Outcome, Run, Status, normal_lines},
    skip,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, noise, wide_dirs},
};

use crate::support::CPZ;

/// Runs a command in a tree, in which the link `full` leads to the filesystem.
fn run(program: &str, tree: &Scratch, full: &LoopMount, args: &[&str]) -> Outcome {
    Tree::at(tree.path()).symlink("full", full.path());
    Run::new(program)
        .arg("-r")
        .args(args)
        .current_dir(tree)
        .output()
}

/// Runs both commands, each with a filesystem of 1 MiB, and asserts that they print the same messages.
#[track_caller]
fn same_words(args: &[&str], build: impl Fn(&Tree)) {
    if !is_gnu("cp") {
        skip!("cp is not GNU's here");
    }
    let (ours, gnu) = testkit::run::twin(build);
    let (our_full, gnu_full) = (
        or_skip!(LoopMount::new(Fs::Tmpfs, 1)),
        or_skip!(LoopMount::new(Fs::Tmpfs, 1)),
    );
    let said = |program: &str, tree: &Scratch, full: &LoopMount| {
        let outcome = run(program, tree, full, args);
        (
            outcome.status,
            normal_lines(&outcome.stderr, Path::new(program)),
        )
    };
    assert_eq!(
        said(CPZ, &ours, &our_full),
        said("cp", &gnu, &gnu_full),
        "ours, GNU's"
    );
    let names = |full: &LoopMount| Snapshot::of(full, Attributes::MODE);
    assert_eq!(names(&gnu_full).diff(&names(&our_full)), "");
}

#[test]
fn names_the_file_that_has_no_room() {
    same_words(&["big", "full/"], |tree| {
        tree.file("big", noise(3 << 20));
    });
    same_words(&["d", "full/"], |tree| {
        tree.file("d/big", noise(3 << 20));
    });
}

#[test]
fn names_the_file_of_zeros_that_has_no_room() {
    same_words(&["big", "full/"], |tree| {
        tree.file("big", vec![0; 3 << 20]);
    });
}

#[test]
fn has_room_for_holes() {
    same_words(&["holes", "full/"], |tree| {
        tree.sparse("holes", 1 << 30, &[(0, b"head"), ((1 << 30) - 4, b"tail")]);
    });
}

#[test]
fn keeps_copies_that_were_complete() {
    let full = or_skip!(LoopMount::new(Fs::Tmpfs, 1));
    let scratch = Scratch::new();
    let content = noise(30_000);
    for i in 0..100 {
        Tree::at(scratch.path()).file(format!("d/f{i}"), &content);
    }
    let outcome = run(CPZ, &scratch, &full, &["d", "full/"]);
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let complaints = outcome.stderr_text();
    assert!(complaints.contains("No space left on device"), "{outcome}");
    for i in 0..100 {
        let copy = std::fs::read(full.path().join(format!("d/f{i}"))).unwrap_or_default();
        let complete = copy == content;
        let named = complaints.contains(&format!("full/d/f{i}'"));
        assert!(complete != named, "f{i}: {} bytes\n{outcome}", copy.len());
    }
}

#[test]
fn names_each_directory_that_has_no_room() {
    let full = or_skip!(LoopMount::new(Fs::Tmpfs, 1));
    let scratch = Scratch::new();
    // More directories than the filesystem will have inodes.
    wide_dirs(scratch.path().join("d"), 2_000);
    let remounted = Run::new("mount")
        .args(["-o", "remount,nr_inodes=500"])
        .arg(full.path())
        .output();
    if remounted.status != Status::Exit(0) {
        skip!("no limit of inodes: {remounted}");
    }
    let outcome = run(CPZ, &scratch, &full, &["d", "full/"]);
    assert_eq!(outcome.status, Status::Exit(1));
    let complaints = outcome.stderr_text();
    let made = Snapshot::of(&full, Attributes::NAMES).len() - 2;
    assert_eq!(complaints.lines().count(), 2_000 - made, "{outcome}");
    let about_room = |line: &str| {
        line.contains("cannot create directory 'full/d/d")
            && line.ends_with(": No space left on device")
    };
    assert!(complaints.lines().all(about_room), "{outcome}");
}

/// Replaces a file in a directory, with a backup, by one for which there is no room. Returns the entries afterwards.
fn replaced_without_room(flags: &[&str], content: &[u8]) -> Result<Snapshot, testkit::probe::Skip> {
    let full = LoopMount::new(Fs::Tmpfs, 1)?;
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("d/big", content);
    Tree::at(full.path()).file("d/big", "old");
    let args = [flags, &["-T", "d", "full/d"]].concat();
    let outcome = run(CPZ, &scratch, &full, &args);
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let backup = std::fs::read(full.path().join("d/big")).unwrap_or_default();
    assert_eq!(backup, b"old", "{outcome}");
    Ok(Snapshot::of(&full, Attributes::NAMES))
}

#[test]
fn gives_the_backup_its_name_back() {
    // Small files are copied while the directory is listed, large ones later.
    for size in [3 << 20, 9 << 20] {
        let there = or_skip!(replaced_without_room(&["-b"], &noise(size)));
        assert_eq!(there.len(), 3, "{there:?}");
        let there = or_skip!(replaced_without_room(&["--backup=t"], &noise(size)));
        assert_eq!(there.len(), 3, "{there:?}");
    }
}
