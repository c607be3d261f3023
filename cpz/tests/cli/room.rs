//! Copies to a full filesystem.

use std::{ffi::OsStr, path::Path, time::Duration};

use testkit::{
    or_skip,
    probe::{Fs, LoopMount, gnu},
    run::{Outcome, Run, normal_lines},
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, noise, wide_dirs},
};

use crate::support::{CPZ, cpz, with_few_inodes};

/// Runs a command in a tree, in which the link `full` leads to the filesystem.
fn run(program: impl AsRef<OsStr>, tree: &Scratch, full: &LoopMount, args: &[&str]) -> Outcome {
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
    let cp = or_skip!(gnu("cp"));
    let (ours, gnu) = testkit::run::twin(build);
    let (our_full, gnu_full) = (
        or_skip!(LoopMount::new(Fs::Tmpfs, 1)),
        or_skip!(LoopMount::new(Fs::Tmpfs, 1)),
    );
    let said = |program: &Path, tree: &Scratch, full: &LoopMount| {
        let outcome = run(program, tree, full, args);
        (outcome.status, normal_lines(&outcome.stderr, program))
    };
    assert_eq!(
        said(CPZ.as_ref(), &ours, &our_full),
        said(&cp, &gnu, &gnu_full),
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
        Tree::at(&scratch).file(format!("d/f{i}"), &content);
    }
    let outcome = run(CPZ, &scratch, &full, &["d", "full/"]);
    outcome.assert_status(1);
    let complaints = outcome.stderr_text();
    assert!(complaints.contains("No space left on device"), "{outcome}");
    for i in 0..100 {
        let copy = std::fs::read(full.at(format!("d/f{i}"))).unwrap_or_default();
        let complete = copy == content;
        let named = complaints.contains(&format!("full/d/f{i}'"));
        assert!(complete != named, "f{i}: {} bytes\n{outcome}", copy.len());
    }
}

#[test]
#[ignore = "slow"]
fn names_each_directory_that_has_no_room() {
    let full = or_skip!(with_few_inodes());
    let scratch = Scratch::new();
    // Make more directories than the filesystem will have inodes.
    wide_dirs(scratch.at("d"), 2_000);
    let outcome = run(CPZ, &scratch, &full, &["d", "full/"]);
    outcome.assert_status(1);
    let complaints = outcome.stderr_text();
    let made = Snapshot::of(&full, Attributes::NAMES).len() - 2;
    assert_eq!(complaints.lines().count(), 2_000 - made, "{outcome}");
    let about_room = |line: &str| {
        line.contains("cannot create directory 'full/d/d")
            && line.ends_with(": No space left on device")
    };
    assert!(complaints.lines().all(about_room), "{outcome}");
}

/// Replaces a file in a directory, with a backup, by a file for which there is no room. Returns a snapshot of the
/// directory.
fn replaced_without_room(flags: &[&str], content: &[u8]) -> Result<Snapshot, testkit::probe::Skip> {
    let full = LoopMount::new(Fs::Tmpfs, 1)?;
    let scratch = Scratch::new();
    Tree::at(&scratch).file("d/big", content);
    Tree::at(full.path()).plant("d/big=old");
    let args = [flags, &["-T", "d", "full/d"]].concat();
    let outcome = run(CPZ, &scratch, &full, &args);
    outcome.assert_status(1);
    let backup = std::fs::read(full.at("d/big")).unwrap_or_default();
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

const LARGE: usize = 5 << 20;
const LARGE_FILES: usize = 12;

/// Copies large files to a filesystem of 32 MiB by eight workers. Returns the outcome and the dests.
fn copies_large_files(full: &LoopMount, flags: &[&str]) -> (Outcome, Vec<Option<Vec<u8>>>) {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.symlink("full", full.path());
    for i in 0..LARGE_FILES {
        tree.file(format!("d/f{i}"), noise(LARGE));
    }
    let outcome = Run::new(CPZ)
        .words("-r -T --threads=8")
        .args(flags)
        .words("d full/d")
        .current_dir(&scratch)
        .fails();
    let dests = (0..LARGE_FILES)
        .map(|i| std::fs::read(full.at(format!("d/f{i}"))).ok())
        .collect();
    (outcome, dests)
}

/// Asserts that each file that was not copied is reported once, and that no other one is.
#[track_caller]
fn reports_all_but_the_complete(outcome: &Outcome, dests: &[Option<Vec<u8>>]) {
    let complaints = outcome.stderr_text();
    let content = noise(LARGE);
    for (i, dest) in dests.iter().enumerate() {
        let named = complaints
            .lines()
            .filter(|line| line.contains(&format!("'full/d/f{i}'")))
            .filter(|line| line.ends_with(": No space left on device"));
        let incomplete = dest.as_ref() != Some(&content);
        assert_eq!(named.count(), usize::from(incomplete), "f{i}: {outcome}");
    }
}

#[test]
#[ignore = "slow"]
fn begins_no_large_file_after_one_had_no_room() {
    let full = or_skip!(LoopMount::new(Fs::Tmpfs, 32));
    let (outcome, dests) = copies_large_files(&full, &[]);
    reports_all_but_the_complete(&outcome, &dests);
    let complete = |dest: &&Option<Vec<u8>>| dest.as_ref().is_some_and(|dest| dest.len() == LARGE);
    // A single worker would copy this many, too.
    assert_eq!(dests.iter().filter(complete).count(), 6, "{outcome}");
    assert_eq!(dests.iter().flatten().count(), 7, "{outcome}");
}

#[test]
#[ignore = "slow"]
fn keeps_the_dests_of_large_files_for_which_there_is_no_room() {
    let old = noise(2 << 20);
    for flags in [
        &[][..],
        &["-u"],
        &["--remove-destination"],
        &["-b"],
        &["-a"],
    ] {
        let full = or_skip!(LoopMount::new(Fs::Tmpfs, 32));
        for i in 0..LARGE_FILES {
            Tree::at(full.path())
                .file(format!("d/f{i}"), &old)
                .mtime(Duration::ZERO);
        }
        let (outcome, dests) = copies_large_files(&full, flags);
        reports_all_but_the_complete(&outcome, &dests);
        let content = noise(LARGE);
        let lost = |dest: &&Option<Vec<u8>>| {
            !dest
                .as_ref()
                .is_some_and(|dest| *dest == old || *dest == content)
        };
        let lost = dests.iter().filter(lost).count();
        assert!(lost <= 1, "{flags:?}: {lost} dests are lost\n{outcome}");
    }
}

#[test]
fn copies_large_files_again_when_there_is_room() {
    let full = or_skip!(LoopMount::new(Fs::Tmpfs, 32));
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.file("d/a", noise(40 << 20));
    // The old dest makes room for the new one.
    tree.file("e/b", noise(LARGE)).file("e/c", noise(LARGE));
    Tree::at(full.path()).file("e/b", noise(LARGE));
    let outcome = run(CPZ, &scratch, &full, &["--threads=1", "d", "e", "full/"]);
    outcome.assert_status(1);
    let complaints = outcome.stderr_text();
    assert_eq!(complaints.lines().count(), 2, "{outcome}");
    assert!(!complaints.contains("e/b"), "{outcome}");
    assert!(complaints.contains("full/e/c'"), "{outcome}");
    assert!(!full.at("e/c").exists());
}

#[test]
fn a_file_that_did_not_fit_is_called_incomplete_at_a_terminal() {
    let full = or_skip!(LoopMount::new(Fs::Tmpfs, 1));
    let scratch = Scratch::new();
    Tree::at(&scratch)
        .file("f", noise(3 << 20))
        .symlink("full", full.path());
    let run = cpz(&scratch, "f full");
    let failure = "cpz: error writing 'full/f': No space left on device\n";
    let shown = or_skip!(run.at_terminal()).output().stdout_text();
    let shown = shown.replace("\r\n", "\n");
    assert_eq!(shown, format!("cpz: 'full/f' is incomplete\n{failure}"));
    assert_eq!(run.output().stderr_text(), failure);
}
