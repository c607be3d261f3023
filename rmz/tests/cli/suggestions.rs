//! Suggestions for options that rmz does not know, at a terminal.

use testkit::{
    or_skip,
    run::{Outcome, Run, Status},
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ};

fn tree() -> Scratch {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("f", "");
    scratch
}

/// Asserts that a misused command wrote these lines, apart from its path, and removed nothing.
#[track_caller]
fn assert_refused(outcome: &Outcome, scratch: &Scratch, output: &str, lines: [&str; 3]) {
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let found: Vec<&str> = output.lines().collect();
    let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    assert_eq!(found, lines);
    assert!(scratch.path().join("f").exists());
}

#[test]
fn a_misspelt_option_is_answered_with_a_suggestion_at_a_terminal() {
    for (argument, suggestion) in [
        ("--recursve", "rmz: did you mean '--recursive'?"),
        (
            "--progres",
            "rmz: did you mean '--progress'? (extensions cannot be shortened)",
        ),
        ("--xyz", ""),
    ] {
        let scratch = tree();
        let run = Run::new(RMZ).args([argument, "f"]).current_dir(&scratch);
        let outcome = or_skip!(run.at_terminal()).output();
        let output = outcome.stdout_text().replace(RMZ, "rmz");
        let lines = [
            &*format!("rmz: unrecognized option '{argument}'"),
            suggestion,
            "Try 'rmz --help' for more information.",
        ];
        assert_refused(&outcome, &scratch, &output, lines);
    }
}

#[test]
fn a_script_gets_no_suggestion() {
    let scratch = tree();
    let run = Run::new(RMZ).args(["--progres", "f"]);
    let outcome = run.current_dir(&scratch).output();
    let output = outcome.stderr_text().replace(RMZ, "rmz");
    let lines = [
        "rmz: unrecognized option '--progres'",
        "",
        "Try 'rmz --help' for more information.",
    ];
    assert_refused(&outcome, &scratch, &output, lines);
}

#[test]
fn a_link_called_rm_makes_no_suggestion() {
    let (rm, scratch) = (RM.link("rm"), tree());
    let run = Run::new(rm.path()).args(["--recursve", "f"]);
    let outcome = or_skip!(run.current_dir(&scratch).at_terminal()).output();
    let path = rm.path().display().to_string();
    let output = outcome.stdout_text().replace(&path, "rm");
    let lines = [
        "rm: unrecognized option '--recursve'",
        "",
        "Try 'rm --help' for more information.",
    ];
    assert_refused(&outcome, &scratch, &output, lines);
}
