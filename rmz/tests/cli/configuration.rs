//! `RMZ_CONFIG`: options of a user's own for every run.

use testkit::{
    run::{Outcome, Run, Status},
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ};

fn tree(config: &str) -> Scratch {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("f", "")
        .file("config", config.as_bytes());
    scratch
}

fn run(scratch: &Scratch, args: &[&str]) -> Outcome {
    let run = Run::new(RMZ).args(args).env("RMZ_CONFIG", "config");
    run.current_dir(scratch).output()
}

#[track_caller]
fn assert_refused(config: &str, message: &str) {
    let scratch = tree(config);
    let outcome = run(&scratch, &["f"]);
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    assert_eq!(outcome.stderr_text(), format!("rmz: {message}\n"));
    assert!(scratch.path().join("f").exists());
}

#[test]
fn options_of_the_file_take_effect() {
    let scratch = tree("# always\n\n  \n--threads=1\n--progress=always");
    let outcome = run(&scratch, &["f"]);
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    assert!(
        outcome.stderr_text().starts_with("1 entry removed in "),
        "{outcome}"
    );
    assert!(!scratch.path().join("f").exists());
}

#[test]
fn options_that_suit_every_run_are_accepted() {
    let scratch =
        tree("--progress=never\n--threads=2\n--exclude=a\n--exclude-from=patterns\n--stats=json\n");
    Tree::at(scratch.path())
        .file("patterns", "b\n")
        .file("t/a", "")
        .file("t/b", "")
        .file("t/c", "");
    let outcome = run(&scratch, &["t"]);
    outcome.assert_success();
    assert!(
        outcome.stdout_text().starts_with("{\"version\":1,"),
        "{outcome}"
    );
    let left = ["a", "b", "c"].map(|name| scratch.path().join("t").join(name).exists());
    assert_eq!(left, [true, true, false]);
}

#[test]
fn options_of_the_command_line_win() {
    let outcome = run(&tree("--progress=always\n"), &["--progress=never", "f"]);
    outcome.assert_success();
}

#[test]
fn the_file_can_be_left_out() {
    for config in ["--progress=always\n", "nonsense\n"] {
        let scratch = tree(config);
        run(&scratch, &["--no-config", "f"]).assert_success();
        assert!(!scratch.path().join("f").exists());
    }
}

#[test]
fn an_empty_variable_names_no_file() {
    let scratch = tree("");
    let run = Run::new(RMZ).arg("f").env("RMZ_CONFIG", "");
    run.current_dir(&scratch).output().assert_success();
    assert!(!scratch.path().join("f").exists());
}

#[test]
fn only_extensions_are_accepted() {
    for line in [
        "--recursive",
        "-f",
        "-rf",
        "g",
        "--",
        "--threads",
        "--progres",
        " --progress",
        "--no-config",
        "--help",
        // These make a run do something else.
        "--dry-run",
        "--detach",
        "--reap",
        "--files0-from=list",
        "--exclude-from=-",
        "--exclude-from=/dev/stdin",
        "--exclude-from=/dev//fd/0",
        "--exclude-from=/proc/self/fd/0",
    ] {
        let message = match line {
            "--threads" => "config:2: option '--threads' requires an argument".to_owned(),
            _ => format!("config:2: '{line}' is not an extension that can be set here"),
        };
        assert_refused(&format!("#\n{line}\n"), &message);
    }
}

#[test]
fn an_option_of_the_file_that_excludes_one_of_the_command_line_is_named() {
    let scratch = tree("--stats\n");
    let outcome = run(&scratch, &["--detach", "f"]);
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let message = "rmz: cannot combine --stats with --detach or --reap; the file that RMZ_CONFIG \
                   names sets an option, and --no-config leaves it out\n";
    assert!(outcome.stderr_text().starts_with(message), "{outcome}");
    let outcome = run(&scratch, &["--detach", "--dry-run", "f"]);
    let message = "rmz: cannot combine --dry-run with --detach or --reap\n";
    assert!(outcome.stderr_text().starts_with(message), "{outcome}");
    assert!(scratch.path().join("f").exists());
}

#[test]
fn a_pattern_of_the_file_that_begins_with_an_operand_is_refused() {
    let scratch = tree("--exclude=p/keep\n");
    Tree::at(scratch.path()).file("p/keep/x", "");
    let outcome = run(&scratch, &["./p"]);
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let message = "rmz: invalid pattern 'p/keep': it is relative to './p'; write '/keep'\n";
    assert_eq!(outcome.stderr_text(), message);
    assert!(scratch.path().join("p/keep/x").exists());
}

#[test]
fn a_space_before_a_value_is_pointed_out() {
    for (line, hint) in [
        ("--exclude *.o", "; write '--exclude=*.o'"),
        ("--threads\t 2 ", "; write '--threads=2'"),
        ("--threads = 2", "; write '--threads=2'"),
        ("--stats --unlock", ""),
        ("--interactive never", ""),
        ("--no-such 1", ""),
    ] {
        let quoted = line.replace('\t', "'$'\\t''");
        let message =
            format!("config:1: '{quoted}' is not an extension that can be set here{hint}");
        assert_refused(line, &message);
    }
}

#[test]
fn values_are_checked_and_taken_byte_for_byte() {
    for (value, quoted) in [("0", "'0'"), ("4 ", "'4 '"), ("4\r", r"'4\r'")] {
        let message = format!("config:1: invalid number of threads: {quoted}");
        assert_refused(&format!("--threads={value}\n"), &message);
    }
    for (line, quoted) in [
        ("--threads='4'", r"'--threads='\''4'\'''"),
        ("--exclude=\"a\" ", "'--exclude=\"a\" '"),
    ] {
        let reason = "no shell removes the quotes, so leave them out";
        assert_refused(line, &format!("config:1: {quoted}: {reason}"));
    }
    assert_refused(
        "--progress=ne\0ver",
        "config:1: the line contains a NUL byte",
    );
    assert_refused(
        "--progress\n--exclude=./a\n",
        "config:2: invalid pattern './a': it is relative to each operand, where nothing is called '.' or '..'",
    );
    assert_refused(
        "--exclude-from=missing\n",
        "config:1: cannot open 'missing' for reading: No such file or directory",
    );
}

#[test]
fn a_file_that_cannot_be_read_ends_the_run_before_any_work() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("f", "").dir("config");
    for (file, reason) in [
        ("config", "Is a directory"),
        ("none", "No such file or directory"),
    ] {
        let run = Run::new(RMZ).arg("f").env("RMZ_CONFIG", file);
        let outcome = run.current_dir(&scratch).output();
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        let message = format!("rmz: cannot read '{file}', which RMZ_CONFIG names: {reason}\n");
        assert_eq!(outcome.stderr_text(), message);
        assert!(scratch.path().join("f").exists());
    }
}

#[test]
fn a_bad_file_does_not_prevent_help() {
    let outcome = run(&tree("nonsense"), &["--help"]);
    outcome.assert_success();
    assert!(outcome.stdout_text().contains("--no-config"), "{outcome}");
}

#[test]
fn a_link_called_rm_reads_no_file() {
    RM.strict()
        .args(["f"])
        .env("RMZ_CONFIG", "config")
        .check(|tree| {
            tree.file("f", "").file("config", "nonsense");
        });
    RM.check_strict(["--no-config", "f"], |tree| {
        tree.file("f", "");
    });
}
