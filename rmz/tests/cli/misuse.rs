//! Wrong command lines: nothing is removed, and the messages are GNU's.

use testkit::{
    run::{Parity, Run, Status, normal_lines},
    tree::{Scratch, Tree},
};

use crate::support::RMZ;

#[track_caller]
fn misused(args: &[&str]) {
    let build = |tree: &Tree| {
        tree.file("f", "").file("d/f", "");
    };
    Parity::new(RMZ, "rm").args(args).check(build);
    Parity::new(RMZ, "rm")
        .args(args)
        .env("LC_ALL", "C.UTF-8")
        .check(build);
}

#[test]
fn refuses_unknown_options() {
    misused(&["-r", "--nope", "f"]);
    misused(&["-r", "--nope=x", "f"]);
    misused(&["-rx", "f"]);
    misused(&["-r", "f", "-Y"]);
}

#[test]
fn refuses_values_of_flags_that_take_none() {
    misused(&["--force=x", "f"]);
    misused(&["--recursive=", "f"]);
}

#[test]
fn refuses_ambiguous_options() {
    misused(&["--no", "--ver", "f"]);
    misused(&["--ver", "f"]);
    misused(&["--v", "f"]);
}

#[test]
fn refuses_to_shorten_the_option_that_gives_up_the_root() {
    misused(&["-r", "--no-preserve", "f"]);
    misused(&["-r", "--no-p", "f"]);
}

#[test]
fn refuses_unknown_values_of_preserve_root() {
    misused(&["-r", "--preserve-root=some", "f"]);
    misused(&["-r", "--preserve-root=", "f"]);
}

#[test]
fn stops_at_the_first_mistake() {
    misused(&["--nope", "--neither", "f"]);
    misused(&["-rxy", "f"]);
}

#[test]
fn takes_flags_in_any_bundle() {
    misused(&["-frRv", "f", "d"]);
    misused(&["--force", "--recursive", "--verbose", "f"]);
}

#[test]
fn refuses_numbers_of_threads_that_are_none() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("f", "");
    let outcome = Run::new(RMZ)
        .args(["--threads=0", "f"])
        .current_dir(&scratch)
        .output();
    assert_eq!(outcome.status, Status::Exit(1));
    let lines = normal_lines(&outcome.stderr, RMZ.as_ref());
    assert_eq!(lines, ["CMD: invalid number of threads: '0'"]);
    assert!(scratch.path().join("f").exists());
}

#[test]
fn ignores_a_number_of_threads_in_the_environment_that_is_none() {
    Parity::new(RMZ, "rm")
        .args(["-r", "d"])
        .env("RMZ_THREADS", "many")
        .check(|tree| {
            tree.file("d/f", "");
        });
}
