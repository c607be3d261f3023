//! `-d` removes empty directories. It matters only under the name `rm`, because rmz is recursive by default.

use testkit::{
    probe::{NOBODY, is_root},
    run::{Parity, Run},
    skip,
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ};

#[track_caller]
fn strict(args: &[&str], answers: &str) {
    RM.strict().args(args).stdin(answers).check(build);
}

/// Compares with the newest release, because older ones look into directories first.
fn newest(args: &[&str], answers: &str) -> Parity {
    RM.strict().only_newest().args(args).stdin(answers)
}

fn build(tree: &Tree) {
    tree.dir("empty")
        .file("full/f", "")
        .file("file", "")
        .symlink("link", "empty")
        .symlink("full-link", "full");
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
fn reports_why_the_kernel_refuses_dots() {
    let dots = [
        "full/.",
        "empty/.",
        ".",
        "..",
        "./",
        "empty/..",
        "empty/.//",
    ];
    newest(&["-dv"], "").args(dots).check(build);
}

#[test]
fn ignores_names_that_are_invalid_if_forced() {
    newest(&["-df", "empty/.", "."], "").check(build);
    newest(&["-df", ".."], "").check(build);
    // A question makes them failures again.
    newest(&["-dfi", "empty/."], "y\n").check(build);
}

#[test]
fn asks_about_dots_of_empty_directories() {
    newest(&["-di", "empty/.", "full/."], "y\n").check(build);
    newest(&["-di", "empty/."], "n\n").check(build);
}

#[test]
fn leaves_mount_points_to_the_kernel() {
    newest(&["-d", "/proc", "/"], "").check(build);
    newest(&["-d", "--preserve-root=all", "/proc"], "").check(build);
    newest(&["-di", "/proc", "/"], "y\ny\n").check(build);
}

#[test]
fn does_not_follow_links() {
    strict(&["-d", "link"], "");
    strict(&["-d", "link/"], "");
    newest(&["-di", "full-link/", "link/"], "y\n").check(build);
}

#[test]
fn is_overridden_by_recursion() {
    strict(&["-dr", "full", "empty"], "");
    strict(&["-rd", "full"], "");
}

#[test]
fn asks_about_an_empty_directory_only() {
    newest(&["-di", "empty", "full", "file"], "y\ny\n").check(build);
    strict(&["-di", "empty"], "n\n");
}

#[test]
fn asks_about_a_write_protected_directory_only_if_it_is_empty() {
    if !is_root() {
        skip!("only root can become another user");
    }
    let args = ["---presume-input-tty", "locked", "locked-full", "full"];
    newest(&["-d"], "y\n")
        .args(args)
        .uid(NOBODY)
        .check(|tree: &Tree| {
            build(tree);
            tree.file("locked-full/f", "")
                .dir("locked")
                .mode(0o555)
                .select("locked-full")
                .mode(0o555);
        });
}

#[test]
fn removes_an_empty_directory_that_cannot_be_read() {
    if !is_root() {
        skip!("only root can become another user");
    }
    newest(&["-dv", "d", "not-empty", "locked/d"], "")
        .uid(NOBODY)
        .check(|tree: &Tree| {
            tree.dir("d")
                .mode(0)
                .file("not-empty/f", "")
                .select("not-empty")
                .mode(0)
                .dir("locked/d")
                .mode(0)
                .select("locked")
                .mode(0o555);
        });
}

#[test]
fn is_needless_if_recursion_is_on() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("full/f", "");
    let run = Run::new(RMZ).args(["-d", "full"]).current_dir(&scratch);
    run.output().assert_success();
    assert!(!scratch.path().join("full").exists());
}
