//! `--progress`, which GNU's cp does not have.

use testkit::{
    run::{Input, Outcome, Run, Status},
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ};

/// What clears the line.
const CLEAR: &str = "\r\x1b[2K";

fn fifo() -> Scratch {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .fifo("fifo")
        .file("f", "12345")
        .dir("d");
    scratch
}

/// Runs `line`, where `$0` is cpz, on a terminal that it has for all three streams.
#[track_caller]
fn at_a_terminal(scratch: &Scratch, line: &str) -> Outcome {
    let line = line.replace("$0", CPZ);
    Run::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(scratch)
        .output()
}

#[test]
fn draws_at_a_terminal_while_it_copies() {
    let scratch = fifo();
    let line = "(printf 123; sleep 0.5) >fifo & $0 --copy-contents --progress fifo f d";
    let outcome = at_a_terminal(&scratch, line);
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    let shown = outcome.stdout_text();
    let (drawn, rest) = shown.rsplit_once(CLEAR).expect("a line that was cleared");
    assert!(drawn.starts_with("0 copied, 0 B, 0 B/s, 0s"), "{shown:?}");
    assert_eq!(rest, "");
    assert_eq!(std::fs::read(scratch.path().join("d/f")).unwrap(), b"12345");
}

#[test]
fn draws_nothing_at_a_terminal_if_it_is_not_to() {
    let line = "(sleep 0.3) >fifo & $0 --copy-contents --progress=never fifo d";
    let outcome = at_a_terminal(&fifo(), line);
    assert_eq!(
        (outcome.status, outcome.stdout_text()),
        (Status::Exit(0), String::new())
    );
}

#[test]
fn draws_nothing_in_a_file_unless_told_otherwise() {
    let scratch = fifo();
    let copied = |flag| {
        let script = r#"sleep 0.3 >fifo & exec "$0" --copy-contents "$1" fifo f d"#;
        let run = Run::new("sh").args(["-c", script, CPZ, flag]);
        let outcome = run.current_dir(&scratch).output();
        assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
        outcome.stderr_text()
    };
    assert_eq!(copied("--progress"), "");
    let shown = copied("--progress=always");
    assert!(shown.starts_with("0 copied, 0 B, 0 B/s, 0s"), "{shown:?}");
    assert!(shown.ends_with(CLEAR), "{shown:?}");
}

#[test]
fn leaves_messages_whole_and_counts_on() {
    let scratch = fifo();
    let script = r#"sleep 0.3 >fifo & exec "$0" --copy-contents --progress=always f none fifo d"#;
    let outcome = Run::new("sh")
        .args(["-c", script, CPZ])
        .current_dir(&scratch)
        .output();
    assert_eq!(outcome.status, Status::Exit(1));
    let shown = outcome.stderr_text();
    let complaint = format!("{CLEAR}{CPZ}: cannot stat 'none': No such file or directory\n");
    let (_, after) = shown.split_once(&complaint).expect("a whole message");
    assert!(after.starts_with("1 copied, 5 B, "), "{shown:?}");
    assert!(after.ends_with(CLEAR), "{shown:?}");
}

/// What stderr shows after a question for which `typed`, and then the end of input, is typed.
#[track_caller]
fn after_a_question(typed: &str) -> String {
    let scratch = fifo();
    Tree::at(scratch.path()).file("d/f", "");
    let script = r#"sleep 0.3 >fifo & exec "$0" -i --copy-contents --progress=always f fifo d"#;
    let outcome = Run::new("sh")
        .args(["-c", script, CPZ])
        .current_dir(&scratch)
        .input(Input::Terminal)
        .stdin(typed)
        .output();
    let shown = outcome.stderr_text();
    let question = format!("{CPZ}: overwrite 'd/f'? ");
    let (_, after) = shown.split_once(&question).expect("a question");
    after.to_owned()
}

#[test]
fn is_drawn_below_a_question_at_which_input_ends() {
    for typed in ["", "n\u{4}"] {
        let after = after_a_question(typed);
        assert!(after.starts_with("\n0 copied, "), "{after:?}");
    }
}

#[test]
fn is_drawn_where_the_typed_line_ends() {
    // The terminal itself has shown that end.
    let after = after_a_question("n\n");
    assert!(after.starts_with("0 copied, "), "{after:?}");
}

#[test]
fn is_unknown_to_cp() {
    let (cp, scratch) = (CP.link("cp"), fifo());
    let outcome = Run::new(cp.path())
        .args(["--progress", "f", "g"])
        .current_dir(&scratch)
        .output();
    assert_eq!(outcome.status, Status::Exit(1));
    let stderr = outcome.stderr_text();
    assert!(
        stderr.contains(": unrecognized option '--progress'\n"),
        "{stderr}"
    );
}
