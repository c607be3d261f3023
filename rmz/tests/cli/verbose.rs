//! `-v`: a whole line for each removed entry.

use testkit::{
    run::{Run, Status},
    tree::{Scratch, Tree},
};

use crate::support::{RM, RMZ};

#[test]
fn reports_each_removed_entry() {
    RM.check(["-v", "f", "d", "l", "fifo", "e/"], |tree| {
        tree.file("f", "")
            .file("d/f", "")
            .dir("d/e")
            .symlink("l", "d")
            .fifo("fifo")
            .dir("e");
    });
}

#[test]
fn tells_paths_as_they_were_given() {
    RM.check(["-v", ".//d", "e//f/", "$PWD/g"], |tree| {
        tree.file("d/f", "").file("e/f/x", "").file("g/f", "");
    });
}

#[test]
fn does_not_report_missing_operands() {
    RM.check(["-v", "missing", "f"], |tree| {
        tree.file("f", "");
    });
}

#[test]
fn reports_children_before_their_directory() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("d/e/f", "").file("d/g", "");
    let outcome = Run::new(RMZ)
        .args(["-v", "d"])
        .current_dir(&scratch)
        .output();
    let told = outcome.assert_success().stdout_text();
    let line = |text| told.lines().position(|l| l == text).expect(text);
    assert!(
        line("removed 'd/e/f'") < line("removed directory 'd/e'"),
        "{told}"
    );
    assert!(
        line("removed directory 'd/e'") < line("removed directory 'd'"),
        "{told}"
    );
    assert!(
        line("removed 'd/g'") < line("removed directory 'd'"),
        "{told}"
    );
}

#[test]
fn writes_lines_whole_that_are_longer_than_a_pipe_takes_at_once() {
    let scratch = Scratch::new();
    // 15 names of 250 bytes: each line is close to PATH_MAX, and quoting makes it longer.
    let deep = format!("d/{}", format!("{}'\"/", "n".repeat(248)).repeat(15));
    let tree = Tree::at(scratch.path());
    for i in 0..40 {
        tree.file(format!("{deep}{i}/f"), "");
    }
    let outcome = Run::new(RMZ)
        .args(["-v", "--threads=8", "d"])
        .current_dir(&scratch)
        .output();
    let told = outcome.assert_success().stdout_text();
    let mut lines: Vec<&str> = told.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 1 + 15 + 40 + 40);
    let whole = |line: &&str| {
        line.starts_with("removed ") && line.ends_with('\'') && line.matches("removed").count() == 1
    };
    assert!(lines.iter().all(whole));
}

#[test]
fn writes_to_a_full_device_and_fails_but_removes() {
    crate::support::RM
        .parity()
        .in_script(r#"exec "$@" >/dev/full"#)
        .args(["-v", "d"])
        .check(|tree| {
            tree.file("d/f", "");
        });
}

#[test]
fn says_nothing_without_it() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("d/f", "");
    let outcome = Run::new(RMZ).arg("d").current_dir(&scratch).output();
    assert_eq!(outcome.status, Status::Exit(0));
    assert!(outcome.stdout.is_empty() && outcome.stderr.is_empty());
}
