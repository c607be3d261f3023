//! SIGINT, SIGTERM and SIGHUP: rmz stops at a prompt, and ends by the same signal.

use std::fs;

use crate::support::rmz;
use testkit::{
    run::{Signal, Status, Stream},
    tree::{Scratch, Tree},
};

#[test]
fn a_signal_at_a_prompt_is_the_last_answer() {
    for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15), (Signal::HUP, 1)] {
        let scratch = Scratch::with("a= b= c=");
        let run = rmz(&scratch, "-i a b c");
        let mut live = run.start();
        live.wait_for(Stream::Stderr, "'a'? ");
        live.write("y\n");
        live.wait_for(Stream::Stderr, "'b'? ");
        live.signal(signal);
        let outcome = live.finish();
        assert_eq!(outcome.status, Status::Signal(number), "{outcome}");
        let stderr = outcome.stderr_text();
        assert!(
            stderr.ends_with("interrupted: 1 entry removed\n"),
            "{outcome}"
        );
        let left = ["a", "b", "c"].map(|name| scratch.at(name).exists());
        assert_eq!(left, [false, true, true]);
    }
}

/// Without a limit, the removal would be complete long before.
#[test]
fn a_removal_that_waits_because_of_its_rate_ends_by_a_signal() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(&scratch);
    for number in 0..500 {
        tree.plant(format!("t/{number}="));
    }
    let left = || fs::read_dir(scratch.at("t")).map_or(0, Iterator::count);
    let mut live = rmz(&scratch, "--max-rate=1/s t").start();
    live.wait_for_effect(|| left() < 500);
    live.signal(Signal::INT);
    let outcome = live.finish();
    assert_eq!(outcome.status, Status::Signal(2), "{outcome}");
    assert!(left() > 0);
}
