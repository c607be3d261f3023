//! Filesystems on which a removal needs room, and so may fail until others are done.

use std::collections::BTreeSet;

use testkit::{
    or_skip,
    run::{Outcome, Run, Status},
    tree::{Scratch, Tree},
};

use crate::support::RMZ;

const LINES: usize = 15;

/// Makes a tree, an empty directory and a file, which are `LINES` names.
fn tree() -> Scratch {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("t/a/1", "")
        .file("t/a/2", "")
        .symlink("t/a/link", "1")
        .fifo("t/a/fifo")
        .dir("t/a/empty")
        .file("t/b/c/d/1", "")
        .file("t/b/2", "")
        .file("t/1", "")
        .dir("empty")
        .file("file", "");
    scratch
}

/// Runs rmz such that its calls of `unlinkat` of these numbers fail.
fn run(scratch: &Scratch, error: &str, when: &str, args: &[&str]) -> Outcome {
    let inject = format!("inject=unlinkat:error={error}:when={when}");
    Run::new("strace")
        .args(["-f", "-o", "/dev/null", "-e", &inject, RMZ])
        .args(args)
        .args(["t", "empty", "file"])
        .current_dir(scratch)
        .output()
}

#[test]
fn names_that_fail_for_a_moment_are_removed_once_others_are() {
    or_skip!(Run::new(RMZ).arg("-f").calls());
    for error in ["ENOSPC", "EDQUOT"] {
        for when in ["1", "1+2", "2+2", "1..14", "3..40"] {
            for threads in ["--threads=1", "--threads=4"] {
                let scratch = tree();
                let outcome = run(&scratch, error, when, &["-v", threads]);
                assert_eq!(outcome.status, Status::Exit(0), "{error} {when}: {outcome}");
                assert_eq!(outcome.stderr_text(), "");
                let stdout = outcome.stdout_text();
                let lines: BTreeSet<&str> = stdout.lines().collect();
                assert_eq!((lines.len(), stdout.lines().count()), (LINES, LINES));
                for name in ["t", "empty", "file"] {
                    assert!(!scratch.path().join(name).exists());
                }
            }
        }
    }
}

#[test]
fn names_that_fail_for_a_moment_are_counted_once() {
    or_skip!(Run::new(RMZ).arg("-f").calls());
    let counts = |when| {
        let outcome = run(&tree(), "ENOSPC", when, &["--stats=json"]);
        outcome.assert_success();
        let stdout = outcome.stdout_text();
        let counts = stdout.split(r#","wall_seconds":"#).next();
        counts.unwrap_or_default().to_owned()
    };
    assert_eq!(counts("1+2"), counts("1000"));
}

#[test]
fn names_that_fail_until_the_end_are_reported_once_and_their_directories_stay() {
    or_skip!(Run::new(RMZ).arg("-f").calls());
    let scratch = tree();
    let outcome = run(&scratch, "EDQUOT", "1+", &[]);
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let complaints = outcome.stderr_text().replace(RMZ, "rmz");
    let mut lines: Vec<&str> = complaints.lines().collect();
    lines.sort_unstable();
    let names = [
        "empty",
        "file",
        "t/1",
        "t/a/1",
        "t/a/2",
        "t/a/empty",
        "t/a/fifo",
        "t/a/link",
        "t/b/2",
        "t/b/c/d/1",
    ];
    let expected = names.map(|name| format!("rmz: cannot remove '{name}': Disk quota exceeded"));
    assert_eq!(lines, expected);
    assert!(scratch.path().join("t/b/c/d/1").exists());
}

#[test]
fn an_operand_that_must_be_empty_waits_for_room() {
    or_skip!(Run::new(RMZ).arg("-f").calls());
    let scratch = tree();
    let inject = "inject=unlinkat:error=ENOSPC:when=1..3";
    let run = Run::new("strace").args(["-f", "-o", "/dev/null", "-e", inject]);
    let link = crate::support::RM.link("rm");
    let run = run.arg(link.path()).args(["-d", "file", "empty"]);
    run.current_dir(&scratch).output().assert_success();
    assert!(!scratch.path().join("empty").exists());
}
