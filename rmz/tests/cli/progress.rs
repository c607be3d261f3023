//! `--progress`, which GNU's rm does not have.

use testkit::{
    run::{Outcome, Run, Status},
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ};

/// What clears the line.
const CLEAR: &str = "\r\x1b[2K";

fn two_trees() -> Scratch {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("t/a", "").file("u/b", "");
    scratch
}

#[track_caller]
fn run(scratch: &Scratch, args: &[&str]) -> Outcome {
    Run::new(RMZ).args(args).current_dir(scratch).output()
}

/// `stderr` after the last line of progress was cleared; that there was one.
#[track_caller]
fn after_drawing(stderr: &str) -> &str {
    let (drawn, rest) = stderr.rsplit_once(CLEAR).expect("a line that was cleared");
    assert!(drawn.contains(" removed, "), "{stderr:?}");
    rest
}

#[test]
fn draws_and_clears_a_line() {
    let scratch = two_trees();
    let outcome = run(&scratch, &["--progress=always", "t", "u"]);
    assert_eq!(outcome.status, Status::Exit(0));
    assert_eq!(outcome.stdout, b"");
    assert_eq!(after_drawing(&outcome.stderr_text()), "");
    assert!(!scratch.path().join("t").exists());
}

#[test]
fn leaves_messages_whole() {
    let scratch = two_trees();
    let outcome = run(&scratch, &["--progress=always", "-v", "none", "t"]);
    assert_eq!(outcome.status, Status::Exit(1));
    let complaint = format!("{RMZ}: cannot remove 'none': No such file or directory\n");
    assert!(
        after_drawing(&outcome.stderr_text().replace(&complaint, "")).is_empty(),
        "{outcome}"
    );
    assert!(
        outcome
            .stderr_text()
            .contains(&format!("{CLEAR}{complaint}"))
    );
    assert_eq!(
        outcome.stdout_text(),
        "removed 't/a'\nremoved directory 't'\n"
    );
}

/// What stderr shows of a run that asks about each of many files, and waits long enough for the
/// first answers to be drawn between them.
#[track_caller]
fn shown_while_asking(flag: &str, operands: &str) -> String {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    // Each of them is a chance to be drawn, for the console is free from one question to the next.
    for number in 0..200 {
        tree.file(format!("t/{number}"), "");
    }
    let script = r#"(for i in 1 2 3 4; do sleep 0.15; echo y; done; exec yes) | "$0" -i "$1" $2"#;
    let outcome = Run::new("sh")
        .args(["-c", script, RMZ, flag, operands])
        .current_dir(&scratch)
        .output();
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    assert!(!scratch.path().join("t").exists());
    outcome.stderr_text()
}

/// The same of a run in which something was drawn. Who draws may find the console taken by one
/// question after the other.
#[track_caller]
fn drawn_while_asking(operands: &str) -> String {
    (0..20)
        .map(|_| shown_while_asking("--progress=always", operands))
        .find(|shown| shown.contains("? \n"))
        .expect("nothing was drawn between questions in any run")
}

#[test]
fn leaves_questions_whole() {
    let shown = drawn_while_asking("t");
    let is_asked = |question: &str| shown.contains(&format!("{RMZ}: {question}? "));
    assert!(is_asked("descend into directory 't'"), "{shown:?}");
    assert!(is_asked("remove regular empty file 't/0'"), "{shown:?}");
    assert!(is_asked("remove directory 't'"), "{shown:?}");
    // Neither in place of a question nor behind it.
    let is_whole =
        |after: &str| after.is_empty() || after.starts_with('\n') || after.starts_with(RMZ);
    assert!(shown.split("? ").skip(1).all(is_whole), "{shown:?}");
}

#[test]
fn shows_whole_numbers() {
    // Operands, which are counted one by one.
    let shown = drawn_while_asking("t/* t");
    let rates: Vec<&str> = shown
        .split(" removed, ")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once("/s, ")?.0))
        .collect();
    let is_whole = |rate: &&str| {
        rate.chars()
            .all(|digit| digit.is_ascii_digit() || digit == ',')
    };
    assert!(rates.iter().any(|&rate| rate != "0"), "{shown:?}");
    assert!(rates.iter().all(is_whole), "{rates:?}");
}

#[test]
fn draws_only_at_a_terminal_unless_told_otherwise() {
    let is_drawn = |flag| shown_while_asking(flag, "t").contains(" removed, ");
    assert!(!is_drawn("--progress"));
    assert!(!is_drawn("--progress=auto"));
    assert!(!is_drawn("--progress=never"));
}

#[test]
fn takes_the_last_word() {
    let outcome = run(
        &two_trees(),
        &["--progress=always", "--progress=never", "t"],
    );
    outcome.assert_success();
}

#[test]
fn refuses_other_words() {
    let outcome = run(&two_trees(), &["--progress=often", "t"]);
    assert_eq!(outcome.status, Status::Exit(1));
    let words = format!(
        "{RMZ}: invalid argument 'often' for '--progress'\n\
         Valid arguments are:\n  - 'auto'\n  - 'always'\n  - 'never'\n\
         Try '{RMZ} --help' for more information.\n"
    );
    assert_eq!(outcome.stderr_text(), words);
}

#[test]
fn is_unknown_to_rm() {
    let (rm, scratch) = (RM.link("rm"), two_trees());
    let outcome = Run::new(rm.path())
        .args(["--progress", "t"])
        .current_dir(&scratch)
        .output();
    assert_eq!(outcome.status, Status::Exit(1));
    let stderr = outcome.stderr_text();
    assert!(
        stderr.contains(": unrecognized option '--progress'\n"),
        "{stderr}"
    );
}

#[test]
fn is_to_be_spelled_in_full() {
    let outcome = run(&two_trees(), &["--progres", "t"]);
    let stderr = outcome.stderr_text();
    assert!(
        stderr.contains(": unrecognized option '--progres'\n"),
        "{stderr}"
    );
}
