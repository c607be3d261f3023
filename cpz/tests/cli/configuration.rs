//! `CPZ_CONFIG`: options of a user's own for every run. The tests of rmz cover the rest.

use std::fs;

use testkit::{
    run::{Outcome, Run, Status},
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ};

fn run(config: &str, args: &[&str]) -> (Outcome, Scratch) {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("a", "new")
        .file("b", "old")
        .file("config", config.as_bytes());
    let run = Run::new(CPZ).args(args).env("CPZ_CONFIG", "config");
    let outcome = run.current_dir(&scratch).output();
    (outcome, scratch)
}

fn content_of_b(scratch: &Scratch) -> String {
    fs::read_to_string(scratch.path().join("b")).expect("b can be read")
}

#[test]
fn an_option_of_the_file_takes_effect_together_with_the_command_line() {
    for (args, copied) in [
        (&["--exclude=!f*", "src", "d"][..], [true, false]),
        (&["--no-config", "--exclude=!f*", "src", "d"], [true, true]),
    ] {
        let scratch = Scratch::new();
        Tree::at(scratch.path())
            .file("src/f", "")
            .file("src/g", "")
            .file("config", "--exclude=?\n");
        let run = Run::new(CPZ).args(args).env("CPZ_CONFIG", "config");
        run.current_dir(&scratch).output().assert_success();
        let is_copied = ["f", "g"].map(|name| scratch.path().join("d").join(name).exists());
        assert_eq!(is_copied, copied, "{args:?}");
    }
}

#[test]
fn an_option_of_cp_in_the_file_is_refused() {
    let (outcome, scratch) = run("--verify\n--force\n", &["a", "b"]);
    let message = "cpz: config:2: '--force' is not an extension that can be set here\n";
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    assert_eq!(outcome.stderr_text(), message);
    assert_eq!(content_of_b(&scratch), "old");
}

#[test]
fn an_extension_that_does_not_suit_every_run_is_refused() {
    for line in [
        "--dry-run",
        "--resume",
        "--files0-from=list",
        "--exclude-from=-",
    ] {
        let (outcome, scratch) = run(&format!("{line}\n"), &["-a", "a", "b"]);
        let message = format!("cpz: config:1: '{line}' is not an extension that can be set here\n");
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        assert_eq!(outcome.stderr_text(), message);
        assert_eq!(content_of_b(&scratch), "old");
    }
}

#[test]
fn a_link_called_cp_reads_no_file() {
    let strict = CP.strict().args(["a", "b"]);
    strict.env("CPZ_CONFIG", "config").check(|tree| {
        tree.file("a", "").file("config", "nonsense");
    });
}
