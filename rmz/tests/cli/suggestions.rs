//! Suggestions for options that rmz does not know.

use std::{path::Path, process::Command};

use testkit::{
    or_skip,
    probe::{Fs, LoopMount},
    run::{Link, Outcome, Run},
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ, rmz};

fn tree() -> Scratch {
    Scratch::with("f=")
}

/// Asserts that a misused command wrote these lines, apart from its path, and removed nothing.
#[track_caller]
fn assert_refused(outcome: &Outcome, scratch: &Scratch, output: &str, lines: [&str; 3]) {
    outcome.assert_status(1);
    let found: Vec<&str> = output.lines().collect();
    let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    assert_eq!(found, lines);
    assert!(scratch.at("f").exists());
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
        let run = rmz(&scratch, [argument, "f"]);
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
fn a_log_gets_the_suggestion_unless_the_command_is_called_rm() {
    let (rm, scratch) = (RM.link("rm"), tree());
    for (program, option, suggestion) in [
        (
            Path::new(RMZ),
            "--progres",
            "rmz: did you mean '--progress'? (extensions cannot be shortened)",
        ),
        (&rm.path(), "--stats", ""),
    ] {
        let run = Run::new(program).args([option, "f"]);
        let outcome = run.current_dir(&scratch).output();
        let path = program.display().to_string();
        let name = program.file_name().unwrap().display().to_string();
        let output = outcome.stderr_text().replace(&path, &name);
        let lines = [
            &*format!("{name}: unrecognized option '{option}'"),
            suggestion,
            &format!("Try '{name} --help' for more information."),
        ];
        assert_refused(&outcome, &scratch, &output, lines);
    }
}

#[test]
fn a_link_called_rm_makes_no_suggestion() {
    let (rm, scratch) = (RM.link("rm"), tree());
    let run = Run::new(rm.path()).words("--recursve f");
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

#[test]
fn a_link_called_rm_says_of_which_command_an_extension_is() {
    let (rm, scratch) = (RM.link("rm"), tree());
    let run = Run::new(rm.path()).words("--stats f");
    let outcome = or_skip!(run.current_dir(&scratch).at_terminal()).output();
    let path = rm.path().display().to_string();
    let output = outcome.stdout_text().replace(&path, "rm");
    let lines = [
        "rm: unrecognized option '--stats'",
        "rm: '--stats' is an option of rmz",
        "Try 'rm --help' for more information.",
    ];
    assert_refused(&outcome, &scratch, &output, lines);
}

#[test]
fn a_value_that_is_not_attached_is_not_an_operand() {
    for (option, value) in [("--stats", "json"), ("--progress", "always")] {
        let scratch = tree();
        Tree::at(&scratch).file(value, "");
        let run = Run::new(RMZ).args(["f", option, value]);
        let outcome = run.current_dir(&scratch).output();
        let line = format!("rmz: write '{option}={value}', or './{value}' for a file of that name");
        let output = outcome.stderr_text().replace(RMZ, "rmz");
        let lines = [&*line, "", "Try 'rmz --help' for more information."];
        assert_refused(&outcome, &scratch, &output, lines);
        assert!(scratch.at(value).exists());
    }
}

#[test]
fn the_letter_h_asks_for_help_unless_the_command_is_called_rm() {
    let help = |option| Run::new(RMZ).arg(option).output().stdout_text();
    assert_eq!(help("-vh"), help("--help"));
    assert!(help("--help").contains("\n  -h, --help "));
    RM.check_strict("-h", |_| {});
    let rm = Link::named("rm", RMZ);
    let strict = Run::new(rm.path()).arg("--help").output().stdout_text();
    assert!(strict.contains("\n      --help "), "{strict}");
}

#[test]
fn a_terminal_shows_a_hint_once() {
    let ext4 = or_skip!(LoopMount::new(Fs::Ext4, 8));
    Tree::at(ext4.path()).plant("d/f= d/g=");
    let chattr = |attribute| {
        let mut chattr = Command::new("chattr");
        let ran = chattr.args([attribute, "d/f", "d/g"]).current_dir(&ext4);
        assert!(ran.status().is_ok_and(|status| status.success()));
    };
    chattr("+i");
    let run = rmz(&ext4, "d");
    let shown = or_skip!(run.at_terminal()).output().stdout_text();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 3, "{shown}");
    let hint = "rmz: hint: 'chattr -R -i -a FILE', run by root, makes immutable files removable";
    assert_eq!(lines[2], hint);
    assert_eq!(run.output().stderr_text().lines().count(), 2);
    chattr("-i");
}
