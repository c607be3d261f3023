//! Wrong command lines: nothing is copied, and the messages are GNU's.

use testkit::{run::Parity, tree::Tree};

use crate::support::CPZ;

#[track_caller]
fn misused(args: &[&str]) {
    let build = |tree: &Tree| {
        tree.file("f", b"content").file("d/f", b"content");
    };
    Parity::new(CPZ, "cp").args(args).check(build);
    Parity::new(CPZ, "cp")
        .args(args)
        .env("LC_ALL", "C.UTF-8")
        .check(build);
}

#[test]
fn needs_operands() {
    misused(&[]);
    misused(&["f"]);
    misused(&["-T"]);
    misused(&["-T", "f"]);
    misused(&["-t", "d"]);
    misused(&["--", "it's"]);
}

#[test]
fn refuses_too_many_operands() {
    misused(&["-T", "f", "d", "x"]);
    misused(&["-T", "f", "d", "x", "y"]);
}

#[test]
fn refuses_unknown_options() {
    misused(&["--nope", "f", "new"]);
    misused(&["--nope=x", "f", "new"]);
    misused(&["-rY", "f", "new"]);
    misused(&["f", "new", "-Y"]);
}

#[test]
fn refuses_values_of_flags_that_take_none() {
    misused(&["--force=x", "f", "new"]);
    misused(&["--recursive=", "f", "new"]);
}

#[test]
fn requires_values_of_flags_that_take_one() {
    misused(&["f", "-t"]);
    misused(&["f", "--target-directory"]);
}

#[test]
fn refuses_ambiguous_options() {
    misused(&["--re", "f", "new"]);
    misused(&["--ver", "f", "new"]);
    misused(&["--no", "f", "new"]);
}

#[test]
fn lists_possible_options_in_the_order_of_cp() {
    Parity::new(CPZ, "cp")
        .only_newest()
        .args(["--=", "f", "new"])
        .check(|tree| {
            tree.file("f", b"content");
        });
}

#[test]
fn takes_flags_in_any_bundle() {
    misused(&["-rfvT", "f", "new"]);
    misused(&["-rvtd", "f"]);
    misused(&[
        "--force",
        "--recursive",
        "--verbose",
        "--no-target",
        "f",
        "new",
    ]);
    misused(&["f", "-t", "d", "-v"]);
}

#[test]
fn ignores_a_number_of_threads_in_the_environment_that_is_none() {
    Parity::new(CPZ, "cp")
        .args(["-r", "d", "new"])
        .env("CPZ_THREADS", "0")
        .check(|tree| {
            tree.file("d/f", b"content");
        });
}
