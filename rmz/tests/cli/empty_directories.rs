//! `-d` removes empty directories. It matters only under the name `rm`, because rmz is recursive by default.

use testkit::{
    probe::{NOBODY, is_root},
    run::Run,
    skip,
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ};

#[track_caller]
fn strict(args: &[&str], answers: &str) {
    RM.strict().args(args).stdin(answers).check(|tree: &Tree| {
        tree.dir("empty")
            .file("full/f", "")
            .file("file", "")
            .symlink("link", "empty");
    });
}

#[test]
fn removes_empty_directories_and_files() {
    strict(&["-d", "empty", "file"], "");
    strict(&["--dir", "-v", "empty/", "file"], "");
}

#[test]
fn keeps_directories_with_something_in_them() {
    strict(&["-d", "full", "empty"], "");
    strict(&["-dfv", "full", "missing", "empty"], "");
}

#[test]
fn refuses_dots_after_their_entries() {
    strict(&["-d", "full/.", "empty/.", ".", ".."], "");
}

#[test]
fn does_not_follow_links() {
    strict(&["-d", "link"], "");
    strict(&["-d", "link/"], "");
}

#[test]
fn is_overridden_by_recursion() {
    strict(&["-dr", "full", "empty"], "");
    strict(&["-rd", "full"], "");
}

#[test]
fn asks_about_an_empty_directory_only() {
    strict(&["-di", "empty", "full", "file"], "y\ny\n");
    strict(&["-di", "empty"], "n\n");
}

/// This test runs without GNU, because rm 9.1 reports an unreadable directory as not empty.
#[test]
fn removes_an_empty_directory_that_cannot_be_read() {
    if !is_root() {
        skip!("only root can become another user");
    }
    let scratch = Scratch::new();
    Tree::at(scratch.path()).mode(0o777);
    let make = Run::new("sh").args(["-c", "mkdir d; chmod 0 d"]);
    let make = make.current_dir(&scratch).uid(NOBODY);
    make.output().assert_success();
    let rmz = RM.link("rm");
    let run = Run::new(rmz.path()).args(["-d", "d"]);
    let outcome = run.current_dir(&scratch).uid(NOBODY).output();
    outcome.assert_success();
    assert!(!scratch.path().join("d").exists());
}

#[test]
fn is_needless_if_recursion_is_on() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("full/f", "");
    let run = Run::new(RMZ).args(["-d", "full"]).current_dir(&scratch);
    run.output().assert_success();
    assert!(!scratch.path().join("full").exists());
}
