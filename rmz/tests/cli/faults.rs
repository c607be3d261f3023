//! Each system call of a run fails in every way that is possible: either everything is gone and the status
//! is 0, or a message names a path and the status is 1.

use testkit::{
    or_skip,
    run::{Fault, Outcome, Run, Status, is_left_out, possible_errors},
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree},
};

use crate::support::RMZ;

fn build(scratch: &Scratch) {
    let tree = Tree::at(scratch.path());
    let dir = scratch.path().join("d");
    testkit::tree::remove_for_sure(dir).unwrap();
    tree.dir("beside")
        .file("d/file", "1")
        .fifo("d/fifo")
        .symlink("d/link", "../beside")
        .dir("d/none")
        .file("d/e/f/file", "2")
        .hardlink("d/file", "d/e/name");
}

/// Returns `true` if each line of stderr names a file of the tree.
fn names_paths(outcome: &Outcome) -> bool {
    let complaint = outcome.stderr_text().replace(RMZ, "rmz");
    let names_path =
        |line: &str| line.starts_with("rmz: ") && (line.contains("'d'") || line.contains("'d/"));
    !complaint.is_empty() && complaint.lines().all(names_path)
}

#[test]
fn a_call_that_fails_is_reported_or_makes_no_difference() {
    let scratch = Scratch::new();
    build(&scratch);
    Tree::at(scratch.path()).file("beside/file", "3");
    let run = Run::new(RMZ)
        .args(["-r", "--threads=1", "d"])
        .current_dir(&scratch);
    let calls = or_skip!(run.calls());

    let beside = || Snapshot::of(scratch.path().join("beside"), Attributes::ALL);
    let (before, tree) = (beside(), scratch.path().join("d"));
    let mut wrong = Vec::new();
    for (call, error) in possible_errors(&calls) {
        build(&scratch);
        let outcome = run.with_fault(call, Fault::Error(error)).output();
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
