//! SIGKILL at any system call, and then the same command again.

use std::path::Path;

use crate::support::rmz;
use testkit::{
    or_skip,
    run::Status,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree},
};

/// Builds the directory `d`, and beside it a directory that some entries of `d` lead to.
fn build(dir: &Path) {
    let tree = Tree::at(dir);
    tree.plant("beside/file=1 d/name==beside/file d/link->../beside d/fifo<fifo> d/none/");
    for number in 0..10 {
        tree.plant(format!("d/{number}/e/f=2 d/{number}/g="));
    }
}

/// Kills rmz at `rounds` calls, which are spread over the whole run, and runs it again each time. Asserts
/// that `d` is gone then, and nothing else.
#[track_caller]
fn is_completed_by_a_second_run(threads: usize, rounds: usize) {
    let scratch = Scratch::in_memory();
    let threads_arg = format!("--threads={threads}");
    let run = rmz(&scratch, ["-rf", &threads_arg, "d"]);
    build(scratch.path());
    let calls = or_skip!(run.calls());

    let left = Snapshot::of(&scratch, Attributes::CONTENT);
    let mut killed = 0;
    for round in 0..rounds {
        let call = &calls[calls.len() * round / rounds];
        std::fs::remove_dir_all(scratch.at("beside")).unwrap();
        build(scratch.path());
        let outcome = run.with_fault(call, "signal=KILL").output();
        killed += usize::from(outcome.status == Status::Signal(9));
        run.output().assert_success();
        let difference = left.diff(&Snapshot::of(&scratch, Attributes::CONTENT));
        assert!(
            difference.is_empty(),
            "killed at {}\n{difference}",
            call.shown
        );
    }
    // With several threads, the numbers of calls depend on timing, so some rounds end before the call is reached.
    let least = if threads == 1 { rounds / 2 } else { 1 };
    assert!(killed >= least, "killed in {killed} of {rounds} rounds");
}

#[test]
#[ignore = "slow"]
fn a_removal_that_was_killed_is_completed_by_the_same_command() {
    is_completed_by_a_second_run(1, 40);
    is_completed_by_a_second_run(4, 10);
}
