//! `--files0-from`: sources from a file or from stdin. The tests of rmz cover how the list is read.

use std::fs;

use testkit::{
    run::{Outcome, Run, Status},
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ, complaint};

/// Makes files `a` and `b`, a tree `s`, and an empty directory `d`.
fn tree() -> Scratch {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("a", "a")
        .file("b", "b")
        .file("s/f", "f")
        .dir("d");
    scratch
}

fn run(scratch: &Scratch, args: &[&str], stdin: &str) -> Outcome {
    let run = Run::new(CPZ).args(args).stdin(stdin.as_bytes());
    run.current_dir(scratch).output()
}

/// Returns the names in `d`.
fn copied_to(scratch: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(scratch.path().join("d")).expect("a directory");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("a name in UTF-8");
    let mut names: Vec<String> = entries
        .map(|entry| name(entry.expect("an entry")))
        .collect();
    names.sort();
    names
}

#[test]
fn sources_are_copied_into_the_only_operand_or_the_target_directory() {
    for args in [
        &["--files0-from=-", "d"][..],
        &["--files0-from=-", "-t", "d"],
    ] {
        let scratch = tree();
        run(&scratch, args, "a\0s//\0").assert_success();
        assert_eq!(copied_to(&scratch), ["a", "s"]);
        let copy = fs::read_to_string(scratch.path().join("d/s/f"));
        assert_eq!(copy.expect("a copy"), "f");
    }
}

#[test]
fn a_single_source_is_copied_into_the_directory_too() {
    let scratch = tree();
    Tree::at(scratch.path()).file("list", "a\0");
    run(&scratch, &["--files0-from=list", "d"], "").assert_success();
    assert_eq!(copied_to(&scratch), ["a"]);
}

#[test]
fn a_bad_name_is_reported_and_the_rest_is_copied() {
    let scratch = tree();
    let outcome = run(&scratch, &["--files0-from=-", "d"], "a\0\0b\0s");
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let message = "cpz: -:2: invalid zero-length file name\n\
                   cpz: -:4: 's' does not end in a NUL byte, so the name may be incomplete\n";
    assert_eq!(outcome.stderr_text(), message);
    assert_eq!(copied_to(&scratch), ["a", "b"]);
}

#[test]
fn other_operands_are_refused() {
    for (args, message) in [
        (
            &["--files0-from=-"][..],
            "missing destination file operand\n",
        ),
        (
            &["--files0-from=-", "b", "d"],
            "extra operand 'b'\nfile operands cannot be combined with --files0-from\n",
        ),
        (
            &["--files0-from=-", "-t", "d", "b"],
            "extra operand 'b'\nfile operands cannot be combined with --files0-from\n",
        ),
        (
            &["--files0-from=-", "-T", "d"],
            "cannot combine --files0-from and --no-target-directory (-T)\n",
        ),
        (&["--files0-from=-", "b"], "target 'b': Not a directory\n"),
        (
            &["--files0-from=-", "new"],
            "target 'new': No such file or directory\n",
        ),
        (
            &["--files0-from=-", "-i", "d"],
            "--files0-from=- cannot be combined with -i: stdin holds no answers\n",
        ),
        (
            &["--exclude-from=-", "--files0-from=-", "d"],
            "--files0-from=- cannot be combined with --exclude-from=-: both read stdin\n",
        ),
        (
            &["--exclude-from=-", "-i", "a", "d"],
            "--exclude-from=- cannot be combined with -i: stdin holds no answers\n",
        ),
    ] {
        let scratch = tree();
        let outcome = run(&scratch, args, "a\0");
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        let complaint = complaint(&outcome);
        assert!(
            complaint.starts_with(&format!("cpz: {message}")),
            "{complaint}"
        );
        assert_eq!(copied_to(&scratch), [""; 0], "{args:?}");
    }
}

#[test]
fn a_link_called_cp_has_no_lists() {
    let strict = CP.strict().args(["--files0-from=-", "d"]);
    strict.stdin("a\0").check(|tree| {
        tree.file("a", "").dir("d");
    });
}
