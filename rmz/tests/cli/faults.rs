//! Each system call of a run fails in every way that is possible: either everything is gone and the status
//! is 0, or a message names a path and the status is 1.

use testkit::{
    or_skip,
    run::{Outcome, Run, Status, is_left_out, possible_errors},
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree},
};

use crate::support::{RMZ, rmz};

fn build(scratch: &Scratch) {
    let tree = Tree::at(scratch);
    let dir = scratch.at("d");
    testkit::tree::remove_for_sure(dir).unwrap();
    tree.plant(
        "beside/ d/file=1 d/fifo<fifo> d/link->../beside d/none/ d/e/f/file=2 d/e/name==d/file",
    );
}

/// Returns `true` if each line of stderr names a file of the tree.
fn names_paths(outcome: &Outcome) -> bool {
    let complaint = outcome.stderr_text().replace(RMZ, "rmz");
    let names_path =
        |line: &str| line.starts_with("rmz: ") && (line.contains("'d'") || line.contains("'d/"));
    !complaint.is_empty() && complaint.lines().all(names_path)
}

#[test]
#[ignore = "slow"]
fn a_call_that_fails_is_reported_or_makes_no_difference() {
    let scratch = Scratch::new();
    build(&scratch);
    scratch.plant("beside/file=3");
    let run = rmz(&scratch, "-r --threads=1 d");
    let calls = or_skip!(run.calls());

    let beside = || Snapshot::of(scratch.at("beside"), Attributes::ALL);
    let (before, tree) = (beside(), scratch.at("d"));
    let mut wrong = Vec::new();
    for (call, error) in possible_errors(&calls) {
        build(&scratch);
        let outcome = run.with_fault(call, &format!("error={error}")).output();
        let gone = tree.symlink_metadata().is_err();
        let right = match outcome.status {
            Status::Exit(0) => gone && outcome.stderr.is_empty(),
            Status::Exit(1) => error != "EINTR" && names_paths(&outcome),
            _ => false,
        };
        if !right && !is_left_out(&outcome) {
            wrong.push(format!(
                "{error} of {}\ngone: {gone}, {outcome}",
                call.shown
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} faults:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(before, beside());
}

/// Runs rmz on `operand`, `d` or `d/bad`. Each of these calls that reaches the directory `d/bad` fails with `error`.
fn run_unread(scratch: &Scratch, operand: &str, call: &str, error: &str) -> Outcome {
    let inject = format!("inject={call}:error={error}");
    let dir = scratch.path().canonicalize().unwrap();
    let (bad, operand) = (dir.join("d/bad"), dir.join(operand));
    let run = Run::new("strace").words("-f -o /dev/null -P bad -P");
    run.arg(bad)
        .args(["-e", &inject, RMZ, "-r"])
        .arg(operand)
        .output()
}

#[test]
fn an_empty_directory_is_removed_whatever_prevents_that_it_is_listed() {
    let scratch = Scratch::new();
    or_skip!(Run::new(RMZ).arg("-f").calls());
    for call in ["openat", "getdents64"] {
        for error in ["EIO", "EPERM", "EUCLEAN", "ENOTCONN", "ESTALE", "EACCES"] {
            for operand in ["d", "d/bad"] {
                Tree::at(&scratch).dir("d/bad");
                let outcome = run_unread(&scratch, operand, call, error);
                outcome.assert_success();
                assert_eq!(outcome.stderr_text(), "", "{call} {error}");
                assert!(!scratch.at(operand).exists());
            }
        }
    }
}

#[test]
fn the_reason_why_a_directory_with_entries_cannot_be_listed_is_reported() {
    let scratch = Scratch::new();
    or_skip!(Run::new(RMZ).arg("-f").calls());
    for call in ["openat", "getdents64"] {
        for (error, text) in [
            ("EIO", "Input/output error"),
            ("EPERM", "Operation not permitted"),
            ("EUCLEAN", "Structure needs cleaning"),
        ] {
            for operand in ["d", "d/bad"] {
                scratch.plant("d/bad/f= d/gone=");
                let outcome = run_unread(&scratch, operand, call, error);
                outcome.assert_status(1);
                let complaint = outcome.stderr_text().replace(RMZ, "rmz");
                assert!(complaint.starts_with("rmz: cannot remove '"), "{outcome}");
                let end = format!("/d/bad': {text}\n");
                assert!(complaint.ends_with(&end), "{outcome}");
                assert_eq!(complaint.lines().count(), 1, "{outcome}");
                let left = Snapshot::of(scratch.path(), Attributes::NAMES);
                assert!(left.kind("d/bad/f").is_some());
                assert_eq!(left.kind("d/gone").is_some(), operand == "d/bad");
            }
        }
    }
}

#[test]
fn a_tree_is_removed_if_the_kernel_cannot_say_when_directories_were_made() {
    let scratch = Scratch::new();
    or_skip!(Run::new(RMZ).arg("-f").calls());
    for error in ["EINVAL", "EOPNOTSUPP", "EACCES", "EIO", "ENOTTY", "ENOENT"] {
        for operand in ["d", "d/bad"] {
            scratch.plant("d/bad/e/f=");
            let outcome = run_unread(&scratch, operand, "statx", error);
            outcome.assert_success();
            assert_eq!(outcome.stderr_text(), "", "{error}");
            assert!(!scratch.at(operand).exists(), "{error}");
        }
    }
}

#[test]
fn a_call_that_is_always_interrupted_fails() {
    let scratch = Scratch::new();
    or_skip!(Run::new(RMZ).arg("-f").calls());
    for call in ["unlinkat", "getdents64"] {
        build(&scratch);
        let run = rmz(&scratch, "d").with_faults(&format!("{call}:error=EINTR"));
        let outcome = run.output();
        assert_eq!(outcome.status, Status::Exit(1), "{call} {outcome}");
        let said = outcome.stderr_text();
        assert!(
            said.contains(": Interrupted system call\n"),
            "{call} {said}"
        );
        assert!(names_paths(&outcome), "{call} {outcome}");
    }
}
