//! `--files0-from`: operands from a file or from stdin, as in `du`.

use std::fs;

use testkit::{
    run::{Outcome, Run, Signal, Status, Stream},
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ};

/// Makes files `a`, `b` and `c`, and a directory `d` with a file.
fn tree() -> Scratch {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("a", "")
        .file("b", "")
        .file("c", "")
        .file("d/f", "");
    scratch
}

fn run(scratch: &Scratch, args: &[&str], stdin: &str) -> Outcome {
    let run = Run::new(RMZ).args(args).stdin(stdin.as_bytes());
    run.current_dir(scratch).output()
}

/// Returns the names that are left in the tree.
fn left_in(scratch: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(scratch.path()).expect("a directory");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("a name in UTF-8");
    let mut names: Vec<String> = entries
        .map(|entry| name(entry.expect("an entry")))
        .collect();
    names.sort();
    names
}

#[track_caller]
fn assert_ended(outcome: &Outcome, status: i32, stderr: &str) {
    assert_eq!(outcome.status, Status::Exit(status), "{outcome}");
    assert_eq!(outcome.stderr_text().replace(RMZ, "rmz"), stderr);
}

#[test]
fn names_on_stdin_are_removed() {
    let scratch = tree();
    assert_ended(&run(&scratch, &["--files0-from=-"], "a\0d\0"), 0, "");
    assert_eq!(left_in(&scratch), ["b", "c"]);
}

#[test]
fn names_in_a_file_are_removed() {
    let scratch = tree();
    Tree::at(scratch.path()).file("my list", "a\0-\0c\0");
    Tree::at(scratch.path()).file("-", "");
    assert_ended(&run(&scratch, &["--files0-from", "my list"], "b\0"), 0, "");
    assert_eq!(left_in(&scratch), ["b", "d", "my list"]);
}

#[test]
fn an_empty_list_is_no_work() {
    let scratch = tree();
    assert_ended(&run(&scratch, &["--files0-from=-"], ""), 0, "");
    assert_eq!(left_in(&scratch), ["a", "b", "c", "d"]);
}

#[test]
fn an_empty_name_is_reported_and_the_rest_is_removed() {
    let scratch = tree();
    let message = "rmz: -:2: invalid zero-length file name\n\
                   rmz: -:4: invalid zero-length file name\n\
                   rmz: cannot remove 'none': No such file or directory\n";
    let outcome = run(&scratch, &["--files0-from=-"], "a\0\0b\0\0none\0");
    assert_ended(&outcome, 1, message);
    assert_eq!(left_in(&scratch), ["c", "d"]);
}

/// The name of `d/f` is cut, because `find` was killed. So `d` must not be removed.
#[test]
fn a_list_of_lines_is_refused_in_one_message() {
    let long = "b\n".repeat(10_000);
    for list in ["b\nc\n", &long] {
        let scratch = tree();
        let outcome = run(&scratch, &["--files0-from=-"], list);
        let message =
            "rmz: -:1: a newline is not the end of a name; write NUL bytes, as find -print0 does\n";
        assert_ended(&outcome, 1, message);
        assert_eq!(left_in(&scratch), ["a", "b", "c", "d"]);
    }
}

#[test]
fn a_last_name_without_a_nul_is_left_alone() {
    for (list, message) in [("a\0d", "-:2: 'd'"), ("a\0d/", "-:2: 'd/'")] {
        let scratch = tree();
        let outcome = run(&scratch, &["--files0-from=-"], list);
        let reason = "does not end in a NUL byte, so the name may be incomplete";
        assert_ended(&outcome, 1, &format!("rmz: {message} {reason}\n"));
        assert_eq!(left_in(&scratch), ["b", "c", "d"]);
        assert!(scratch.path().join("d/f").exists());
    }
    let scratch = tree();
    Tree::at(scratch.path()).file("my list", "d");
    let outcome = run(&scratch, &["--files0-from=my list"], "");
    let message =
        "rmz: 'my list':1: 'd' does not end in a NUL byte, so the name may be incomplete\n";
    assert_ended(&outcome, 1, message);
    assert!(scratch.path().join("d/f").exists());
}

#[test]
fn a_name_that_is_too_long_for_the_kernel_is_skipped() {
    let scratch = tree();
    let list = format!("a\0{}\0b\0", "d/".repeat(100_000));
    let outcome = run(&scratch, &["--files0-from=-"], &list);
    assert_ended(&outcome, 1, "rmz: -:2: File name too long\n");
    assert_eq!(left_in(&scratch), ["c", "d"]);
}

#[test]
fn a_list_that_cannot_be_read_is_reported() {
    let scratch = tree();
    for (file, message) in [
        (
            "none",
            "cannot open 'none' for reading: No such file or directory",
        ),
        ("", "cannot open '' for reading: No such file or directory"),
        ("d", "d: read error: Is a directory"),
    ] {
        let outcome = run(&scratch, &[&format!("--files0-from={file}")], "");
        assert_ended(&outcome, 1, &format!("rmz: {message}\n"));
    }
    let closed = Run::new("sh").args(["-c", r#"exec "$0" --files0-from=- <&-"#, RMZ]);
    let outcome = closed.current_dir(&scratch).output();
    assert_ended(&outcome, 1, "rmz: -: read error: Bad file descriptor\n");
    assert_eq!(left_in(&scratch), ["a", "b", "c", "d"]);
}

#[test]
fn operands_beside_a_list_are_refused() {
    let scratch = tree();
    let outcome = run(&scratch, &["--files0-from=-", "b", "c"], "a\0");
    let message = "rmz: extra operand 'b'\n\
                   file operands cannot be combined with --files0-from\n\
                   Try 'rmz --help' for more information.\n";
    assert_ended(&outcome, 1, message);
    assert_eq!(left_in(&scratch), ["a", "b", "c", "d"]);
}

#[test]
fn prompts_are_refused_if_stdin_holds_the_names() {
    let scratch = tree();
    for flag in ["-i", "-I", "--interactive"] {
        let outcome = run(&scratch, &["--files0-from=-", flag], "a\0y\0");
        let message = "rmz: --files0-from=- cannot be combined with -i or -I: stdin holds no answers\n\
                       Try 'rmz --help' for more information.\n";
        assert_ended(&outcome, 1, message);
    }
    assert_eq!(left_in(&scratch), ["a", "b", "c", "d"]);
    let outcome = run(&scratch, &["--files0-from=-", "-i", "-f"], "a\0none\0");
    assert_ended(&outcome, 0, "");
    assert_eq!(left_in(&scratch), ["b", "c", "d"]);
}

#[test]
fn only_one_option_can_read_stdin() {
    let scratch = tree();
    for args in [
        ["--files0-from=-", "--exclude-from=-"],
        ["--exclude-from=-", "--files0-from=-"],
    ] {
        let outcome = run(&scratch, &args, "a\0");
        let message = "rmz: --files0-from=- cannot be combined with --exclude-from=-: both read stdin\n\
                       Try 'rmz --help' for more information.\n";
        assert_ended(&outcome, 1, message);
    }
    for flag in ["-i", "-I"] {
        let outcome = run(&scratch, &["--exclude-from=-", flag, "a"], "b\ny\n");
        let message = "rmz: --exclude-from=- cannot be combined with -i or -I: stdin holds no answers\n\
                       Try 'rmz --help' for more information.\n";
        assert_ended(&outcome, 1, message);
    }
    assert_eq!(left_in(&scratch), ["a", "b", "c", "d"]);
    let outcome = run(&scratch, &["--exclude-from=-", "-i", "-f", "a", "d"], "f\n");
    assert_ended(&outcome, 0, "");
    assert_eq!(left_in(&scratch), ["b", "c", "d"]);
}

#[test]
fn prompts_about_a_list_in_a_file_are_answered_on_stdin() {
    let scratch = tree();
    Tree::at(scratch.path()).file("list", "a\0b\0");
    let args = ["--files0-from=list", "-I"];
    let question = "rmz: remove the files named in 'list'? ";
    assert_ended(&run(&scratch, &args, "n\n"), 0, question);
    assert_eq!(left_in(&scratch), ["a", "b", "c", "d", "list"]);
    let outcome = run(&scratch, &["--files0-from=list", "-i"], "n\ny\n");
    let questions = ["a", "b"].map(|name| format!("rmz: remove regular empty file '{name}'? "));
    assert_ended(&outcome, 0, &questions.concat());
    assert_eq!(left_in(&scratch), ["a", "c", "d", "list"]);
    Tree::at(scratch.path()).file("list", "a\0d\0");
    assert_ended(&run(&scratch, &args, "y\n"), 0, question);
    assert_eq!(left_in(&scratch), ["c", "list"]);
}

/// Another user may exchange a file that `find` has found for a directory.
#[test]
fn a_tree_that_has_taken_the_place_of_a_file_in_a_list_stays() {
    let args = ["--no-recursive", "--files0-from=-"];
    for args in [&args[..], &["-r", args[0], args[1]]] {
        let scratch = tree();
        let message = "rmz: cannot remove 'd': Is a directory\n";
        assert_ended(&run(&scratch, args, "a\0d\0b\0"), 1, message);
        assert_eq!(left_in(&scratch), ["c", "d"]);
        assert!(scratch.path().join("d/f").exists());
    }
    let scratch = tree();
    let recursive = ["--no-recursive", "-r", "--files0-from=-"];
    assert_ended(&run(&scratch, &recursive, "d\0"), 0, "");
    assert_eq!(left_in(&scratch), ["a", "b", "c"]);
}

#[test]
fn without_recursion_only_empty_directories_are_removed_and_only_if_asked_for() {
    let scratch = tree();
    Tree::at(scratch.path()).dir("e");
    let outcome = run(&scratch, &["--no-recursive", "d", "e", "a"], "");
    let message = "rmz: cannot remove 'd': Is a directory\n\
                   rmz: cannot remove 'e': Is a directory\n";
    assert_ended(&outcome, 1, message);
    let outcome = run(&scratch, &["--no-recursive", "-d", "d", "e"], "");
    assert_ended(&outcome, 1, "rmz: cannot remove 'd': Directory not empty\n");
    assert_eq!(left_in(&scratch), ["b", "c", "d"]);
}

#[test]
fn a_link_called_rm_does_not_know_the_option_for_files_only() {
    RM.strict().args(["--no-recursive", "a"]).check(|tree| {
        tree.file("a", "");
    });
}

/// `d` is a part of the name of a file in that directory.
#[test]
fn a_part_of_a_name_is_not_removed_after_a_signal() {
    let scratch = tree();
    let run = Run::new(RMZ).arg("--files0-from=-");
    let mut live = run.current_dir(&scratch).start();
    // The message shows that rmz has read all of this.
    live.write("a\0\0d");
    live.wait_for(Stream::Stderr, "-:2: invalid zero-length file name\n");
    live.signal(Signal::TERM);
    let outcome = live.finish();
    assert_eq!(outcome.status, Status::Signal(15), "{outcome}");
    assert_eq!(left_in(&scratch), ["a", "b", "c", "d"]);
    assert!(scratch.path().join("d/f").exists());
}

#[test]
fn a_link_called_rm_has_no_lists() {
    RM.strict()
        .args(["--files0-from=-"])
        .stdin("a\0")
        .check(|tree| {
            tree.file("a", "");
        });
}
