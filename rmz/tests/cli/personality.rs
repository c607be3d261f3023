//! Under the name `rm`, rmz has the defaults of rm.

use std::path::Path;

use testkit::{
    or_skip,
    probe::newest_gnu,
    run::{Outcome, Run, Status, normal_lines},
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ};

/// Runs a link with this name in a directory with a tree `d` and a file `f`.
fn run_link(name: &'static str, args: &[&str]) -> (Outcome, Vec<String>, Scratch) {
    let link = RM.link(name);
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("d/f", "").file("f", "");
    let outcome = Run::new(link.path())
        .args(args)
        .current_dir(&scratch)
        .output();
    let lines = normal_lines(&outcome.stderr, &link.path());
    (outcome, lines, scratch)
}

#[test]
fn a_link_called_rm_takes_no_directory() {
    RM.check_strict(["d", "f"], |tree| {
        tree.file("d/f", "").file("f", "");
    });
}

#[test]
fn a_link_called_rm_says_that_it_is_a_directory() {
    let (outcome, lines, scratch) = run_link("rm", &["d"]);
    assert_eq!(outcome.status, Status::Exit(1));
    assert_eq!(lines, ["CMD: cannot remove 'd': Is a directory"]);
    assert!(scratch.path().join("d/f").exists());
}

#[test]
fn a_link_called_rm_takes_no_directory_even_if_forced() {
    RM.check_strict(["-f", "d", "f", "e", "l/"], |tree| {
        tree.file("d/f", "")
            .file("f", "")
            .dir("e")
            .symlink("l", "d");
    });
}

#[test]
fn a_link_called_rm_refuses_dots_and_roots_like_directories() {
    RM.check_strict([".", "d/..", "d/.", "d/"], |tree| {
        tree.file("d/f", "");
    });
}

#[test]
fn a_link_called_rm_is_recursive_if_told_to() {
    RM.check_strict(["-r", "d"], |tree| {
        tree.file("d/f", "");
    });
    RM.check_strict(["-Rf", "d"], |tree| {
        tree.file("d/f", "");
    });
    RM.check_strict(["--recur", "d"], |tree| {
        tree.file("d/f", "");
    });
}

#[test]
fn a_link_called_rm_knows_no_extension() {
    RM.check_strict(["--threads=2", "f"], |tree| {
        tree.file("f", "");
    });
    let (outcome, lines, scratch) = run_link("rm", &["--threads=2", "f"]);
    assert_eq!(outcome.status, Status::Exit(1));
    assert_eq!(lines[0], "CMD: unrecognized option '--threads=2'");
    assert!(scratch.path().join("f").exists());
}

#[test]
fn a_link_of_another_name_is_rmz() {
    let (outcome, _, scratch) = run_link("purge", &["--threads=2", "d"]);
    outcome.assert_success();
    assert!(!scratch.path().join("d").exists());
}

#[test]
fn a_link_of_another_name_speaks_under_it() {
    let (outcome, lines, _) = run_link("purge", &["missing"]);
    assert_eq!(outcome.status, Status::Exit(1));
    assert_eq!(
        lines,
        ["CMD: cannot remove 'missing': No such file or directory"]
    );
}

#[test]
fn messages_name_a_command_called_by_a_path_as_rm_does() {
    let rm = or_skip!(newest_gnu("rm"));
    let said = |program: &Path, args: &[&str]| {
        let scratch = Scratch::new();
        Tree::at(scratch.path())
            .symlink("bin/rm", program)
            .file("f", "");
        let run = Run::new("sh").args(["-c", r#"exec ./bin/rm "$@""#, "sh"]);
        let run = run.args(args).stdin("n\n").current_dir(&scratch);
        let outcome = run.output();
        (outcome.status, outcome.stderr_text())
    };
    for args in [
        &["missing"][..],
        &[],
        &["--bogus"],
        &["-x"],
        &["--interactive=x"],
        &["--preserve-root=x"],
        &["--no-preserve-roo"],
        &["-ri", "f", "."],
    ] {
        assert_eq!(said(RMZ.as_ref(), args), said(&rm, args), "{args:?}");
    }
}

#[test]
fn a_link_called_rm_obeys_the_environment_as_to_threads() {
    RM.strict()
        .args(["-r", "d"])
        .env("RMZ_THREADS", "3")
        .check(|tree| {
            tree.file("d/a/f", "").file("d/b/f", "");
        });
}

#[test]
fn help_goes_to_stdout() {
    let outcome = Run::new(RMZ).arg("--help").output();
    outcome.assert_success();
    assert!(outcome.stdout_text().starts_with("Usage: "));
}

#[test]
fn version_goes_to_stdout() {
    let outcome = Run::new(RMZ).arg("--version").output();
    outcome.assert_success();
    assert!(outcome.stdout_text().contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn nothing_is_removed_if_help_is_asked_for() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("f", "");
    Run::new(RMZ)
        .args(["f", "--help"])
        .current_dir(&scratch)
        .output()
        .assert_success();
    assert!(Path::exists(&scratch.path().join("f")));
}
