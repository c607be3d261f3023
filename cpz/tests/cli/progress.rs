//! `--progress`, which GNU's cp does not have.
//!
//! A source that is a FIFO blocks a run until the test has seen the expected text on stderr.

use std::{fs::File, thread};

use testkit::{
    run::{Input, Live, Outcome, Run, Status, Stream},
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ};

/// Clears the line.
const CLEAR: &str = "\r\x1b[2K";

/// The first drawing of a run.
const FIRST: &str = "0 copied, 0 B, 0 B/s, 0s";

/// A tree with a FIFO that blocks a copy.
struct Held {
    scratch: Scratch,
}

impl Held {
    fn new() -> Self {
        let scratch = Scratch::new();
        Tree::at(scratch.path())
            .fifo("fifo")
            .file("f", "12345")
            .file("g", "")
            .dir("d");
        Self { scratch }
    }

    #[track_caller]
    fn start(&self, args: &[&str]) -> Live {
        self.run(args).start()
    }

    fn run(&self, args: &[&str]) -> Run {
        let run = Run::new(CPZ).arg("--copy-contents").args(args);
        run.current_dir(&self.scratch)
    }

    /// Starts cpz with a terminal as all three streams. Its output appears on stdout.
    #[track_caller]
    fn start_at_a_terminal(&self, args: &str) -> Live {
        let line = format!("{CPZ} --copy-contents {args}");
        let run = Run::new("script").args(["-qec", &line, "/dev/null"]);
        run.current_dir(&self.scratch).start()
    }

    /// Lets the run go on by opening and closing the FIFO.
    fn release(&self) {
        let fifo = self.scratch.path().join("fifo");
        // Use a thread, because opening waits until the run opens the FIFO too, and a failed run never does.
        thread::spawn(move || File::options().write(true).open(fifo).map(drop));
    }

    #[track_caller]
    fn finish(&self, live: Live) -> Outcome {
        self.release();
        live.finish()
    }
}

/// Returns once a run that begins now has drawn its line after the usual delay. So a run that began
/// earlier would have drawn one too.
#[track_caller]
fn wait_as_long_as_a_drawing_takes() {
    let held = Held::new();
    let mut control = held.start(&["--progress=always", "fifo", "d"]);
    control.wait_for(Stream::Stderr, FIRST);
    control.wait_for(Stream::Stderr, "0 copied, ");
    held.finish(control);
}

#[test]
fn draws_at_a_terminal_while_it_copies() {
    let held = Held::new();
    let mut live = held.start_at_a_terminal("--progress fifo f d");
    live.wait_for(Stream::Stdout, FIRST);
    let outcome = held.finish(live);
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    let shown = outcome.stdout_text();
    let (drawn, rest) = shown.rsplit_once(CLEAR).expect("a line that was cleared");
    assert!(drawn.starts_with(FIRST), "{shown:?}");
    assert_eq!(rest, "");
    assert_eq!(
        std::fs::read(held.scratch.path().join("d/f")).unwrap(),
        b"12345"
    );
}

#[test]
fn draws_nothing_at_a_terminal_if_told_not_to() {
    let held = Held::new();
    let mut live = held.start_at_a_terminal("--progress=never none fifo d");
    let complaint = "cannot stat 'none': No such file or directory\r\n";
    live.wait_for(Stream::Stdout, complaint);
    wait_as_long_as_a_drawing_takes();
    let outcome = held.finish(live);
    assert_eq!(outcome.stdout_text(), format!("cpz: {complaint}"));
}

#[test]
fn draws_nothing_in_a_file_unless_told_to() {
    let held = Held::new();
    let mut live = held.start(&["--progress", "none", "fifo", "f", "d"]);
    let complaint = "cannot stat 'none': No such file or directory\n";
    live.wait_for(Stream::Stderr, complaint);
    wait_as_long_as_a_drawing_takes();
    let outcome = held.finish(live);
    assert_eq!(outcome.stderr_text(), format!("cpz: {complaint}"));
}

#[test]
fn draws_in_a_file_if_told_to() {
    let held = Held::new();
    let mut live = held.start(&["--progress=always", "fifo", "f", "d"]);
    live.wait_for(Stream::Stderr, FIRST);
    let outcome = held.finish(live);
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    let shown = outcome.stderr_text();
    assert!(shown.starts_with(FIRST), "{shown:?}");
    assert!(shown.ends_with(CLEAR), "{shown:?}");
}

#[test]
fn leaves_messages_whole_and_counts_on() {
    let held = Held::new();
    let mut live = held.start(&["--progress=always", "f", "none", "fifo", "d"]);
    let complaint = format!("{CLEAR}cpz: cannot stat 'none': No such file or directory\n");
    live.wait_for(Stream::Stderr, &complaint);
    live.wait_for(Stream::Stderr, "1 copied, 5 B, ");
    let outcome = held.finish(live);
    assert_eq!(outcome.status, Status::Exit(1));
    let shown = outcome.stderr_text();
    let (_, after) = shown.split_once(&complaint).expect("a whole message");
    assert!(after.starts_with("1 copied, 5 B, "), "{shown:?}");
    assert!(after.ends_with(CLEAR), "{shown:?}");
}

#[test]
fn leaves_questions_whole() {
    let held = Held::new();
    Tree::at(held.scratch.path())
        .file("d/f", "")
        .file("d/g", "");
    let mut live = held.start(&["-i", "--progress=always", "f", "fifo", "g", "d"]);
    let question = |name: &str| format!("{CLEAR}{CPZ}: overwrite 'd/{name}'? ");
    live.wait_for(Stream::Stderr, &question("f"));
    live.write("y\n");
    // The line is not on that of the question, although a pipe echoes no newline.
    live.wait_for(Stream::Stderr, "\n1 copied, 5 B, ");
    held.release();
    live.wait_for(Stream::Stderr, &question("g"));
    live.write("y\n");
    let outcome = live.finish();
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    let shown = outcome.stderr_text();
    let is_whole = |after: &str| after.is_empty() || after.starts_with('\n');
    assert!(shown.split("? ").skip(1).all(is_whole), "{shown:?}");
}

/// Returns the text on stderr after a question for which `typed` is typed.
#[track_caller]
fn after_a_question(typed: &str) -> String {
    let held = Held::new();
    Tree::at(held.scratch.path()).file("d/f", "");
    let run = held.run(&["-i", "--progress=always", "f", "fifo", "d"]);
    let mut live = run.input(Input::Terminal).start();
    let question = format!("{CPZ}: overwrite 'd/f'? ");
    live.wait_for(Stream::Stderr, &question);
    live.write(typed);
    live.wait_for(Stream::Stderr, "0 copied, ");
    let shown = held.finish(live).stderr_text();
    let (_, after) = shown.split_once(&question).expect("a question");
    after.to_owned()
}

#[test]
fn draws_below_a_question_at_which_input_ends() {
    // The second \u{4} ends a line without a newline.
    for typed in ["\u{4}", "n\u{4}\u{4}"] {
        let after = after_a_question(typed);
        assert!(after.starts_with("\n0 copied, "), "{after:?}");
    }
}

#[test]
fn draws_on_the_line_after_a_typed_newline() {
    // The terminal itself has shown the newline.
    let after = after_a_question("n\n");
    assert!(after.starts_with("0 copied, "), "{after:?}");
}

#[test]
fn is_unknown_to_cp() {
    let (cp, held) = (CP.link("cp"), Held::new());
    let outcome = Run::new(cp.path())
        .args(["--progress", "f", "g"])
        .current_dir(&held.scratch)
        .output();
    assert_eq!(outcome.status, Status::Exit(1));
    let stderr = outcome.stderr_text();
    assert!(
        stderr.contains(": unrecognized option '--progress'\n"),
        "{stderr}"
    );
}
