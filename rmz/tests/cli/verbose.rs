//! `-v`: a whole line for each removed entry.

use testkit::tree::{Scratch, Tree};

use crate::support::{RM, rmz};

#[test]
fn each_removed_entry_is_reported() {
    RM.rows(
        r"
        # Entries of all types are reported.
        f= d/f= d/e/ l->d fifo<fifo> e/
        rmz -v f d l fifo e/
        # Without the option, nothing is.
        rmz d
        = -d
        # Paths are reported as they were given.
        d/f= e/f/x= g/f=
        rmz -v .//d e//f/ $PWD/g
        # Missing operands are only errors.
        f=
        rmz -v missing f",
    );
}

#[test]
fn writes_lines_whole_that_are_longer_than_a_pipe_takes_at_once() {
    let scratch = Scratch::new();
    // 15 names of 250 bytes: each line is close to PATH_MAX, and quoting makes it longer.
    let deep = format!("d/{}", format!("{}'\"/", "n".repeat(248)).repeat(15));
    let tree = Tree::at(&scratch);
    for i in 0..40 {
        tree.file(format!("{deep}{i}/f"), "");
    }
    let outcome = rmz(&scratch, "-v --threads=8 d").output();
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
