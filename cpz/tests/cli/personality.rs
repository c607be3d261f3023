//! Under the name `cp`, cpz has the defaults of cp.

use testkit::{
    run::{Run, Status, normal_lines},
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ, NEWEST_CP};

fn small(tree: &Tree) {
    tree.file("d/f", b"content")
        .file("f", b"content")
        .dir("into")
        .symlink("l", "d");
}

#[test]
fn a_link_called_cp_omits_directories() {
    CP.check_strict(["d", "new"], small);
    CP.check_strict(["d", "f", "l", "into"], small);
    CP.check_strict(["l", "new"], small);
    CP.check_strict(["d/", ".", "into"], small);
}

#[test]
fn a_link_called_cp_says_that_it_omits_a_directory() {
    let link = CP.link("cp");
    let scratch = Scratch::new();
    small(&Tree::at(scratch.path()));
    let outcome = Run::new(link.path())
        .args(["d", "new"])
        .current_dir(&scratch)
        .output();
    assert_eq!(outcome.status, Status::Exit(1));
    let lines = normal_lines(&outcome.stderr, &link.path());
    assert_eq!(lines, ["CMD: -r not specified; omitting directory 'd'"]);
}

#[test]
fn cpz_omits_directories_if_told_to() {
    for (args, is_copied) in [
        (&["--no-recursive"][..], false),
        (&["-a", "--no-recursive"], false),
        (&["--no-recursive", "-r"], true),
        (&["--no-recursive", "-a"], true),
    ] {
        let scratch = Scratch::new();
        small(&Tree::at(scratch.path()));
        let run = Run::new(CPZ).args(args).args(["d", "f", "into"]);
        let outcome = run.current_dir(&scratch).output();
        let lines = normal_lines(&outcome.stderr, CPZ.as_ref());
        let (status, expected): (_, &[_]) = match is_copied {
            true => (0, &[]),
            false => (1, &["CMD: -r not specified; omitting directory 'd'"]),
        };
        assert_eq!(outcome.status, Status::Exit(status), "{args:?}");
        assert_eq!(lines, expected, "{args:?}");
        let copy = |name| scratch.path().join("into").join(name).exists();
        assert_eq!([copy("f"), copy("d")], [true, is_copied], "{args:?}");
    }
}

#[test]
fn a_link_called_cp_is_recursive_if_told_to() {
    CP.check_strict(["-r", "d", "new"], small);
    CP.check_strict(["-R", "d", "l", "into"], small);
    CP.check_strict(["--recur", "d", "new"], small);
}

#[test]
fn a_link_called_cp_copies_files() {
    CP.check_strict(["f", "new"], small);
    CP.check_strict(["-v", "f", "d/f", "into"], small);
    NEWEST_CP.check_strict(["-T", "f", "into"], small);
    CP.check_strict(["f", "into"], small);
}

#[test]
fn a_link_called_cp_knows_no_extension() {
    CP.check_strict(["--threads=2", "f", "new"], small);
    CP.check_strict(["--no-recursive", "f", "new"], small);
}

#[test]
fn a_link_called_cp_obeys_the_environment_as_to_threads() {
    CP.strict()
        .args(["-r", "d", "new"])
        .env("CPZ_THREADS", "3")
        .check(small);
}

#[test]
fn a_link_of_another_name_is_cpz() {
    let scratch = Scratch::new();
    small(&Tree::at(scratch.path()));
    let link = CP.link("duplicate");
    let run = Run::new(link.path())
        .args(["--threads=2", "d", "new"])
        .current_dir(&scratch);
    run.output().assert_success();
    assert_eq!(
        std::fs::read(scratch.path().join("new/f")).unwrap(),
        b"content"
    );
}

#[test]
fn help_goes_to_stdout() {
    let outcome = Run::new(CPZ).arg("--help").output();
    outcome.assert_success();
    assert!(outcome.stdout_text().starts_with("Usage: "));
}

#[test]
fn version_goes_to_stdout() {
    let outcome = Run::new(CPZ).arg("--version").output();
    outcome.assert_success();
    assert!(outcome.stdout_text().contains(env!("CARGO_PKG_VERSION")));
}
