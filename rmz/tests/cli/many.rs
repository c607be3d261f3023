//! Enough entries to keep several threads busy.

use std::path::Path;

use testkit::{
    needs, or_skip,
    probe::gnu,
    run::Run,
    tree::{Scratch, Tree, chain, comb, sparse_dirs, wide},
};

use crate::support::{RM, RMZ};

#[track_caller]
fn with_threads(threads: usize, rows: &str, build: impl Fn(&Tree)) {
    RM.table().build(build).threads(threads).rows(rows);
}

fn thousand_files(tree: &Tree) {
    wide(tree.path().join("d"), 1_000);
}

fn three_hundred_dirs(tree: &Tree) {
    sparse_dirs(tree.path().join("d"), 300);
}

fn thousand_and_three_hundred(tree: &Tree) {
    thousand_files(tree);
    three_hundred_dirs(tree);
}

#[test]
#[ignore = "slow"]
fn many_entries_are_removed_by_any_number_of_threads() {
    with_threads(1, "rmz -v d", thousand_and_three_hundred);
    with_threads(2, "rmz -v d", thousand_and_three_hundred);
    with_threads(8, "rmz -v d", thousand_and_three_hundred);
    with_threads(8, "rmz d/d{0..299}", three_hundred_dirs);
    with_threads(4, "rmz d", |tree| chain(tree.path(), 1_500));
    with_threads(8, "rmz -v d", |tree| comb(tree.path(), 60, 3));
    let table = RM.table().build(thousand_and_three_hundred);
    table.rows("RMZ_THREADS=(1|8) bare rmz -rv d");
}

/// Runs a command recursively. Returns both streams as one.
fn both_streams(program: &Path, dir: &Scratch, args: &[&str], operands: &[String]) -> String {
    let run = Run::new("sh")
        .args(["-c", r#"exec "$0" -r "$@" 2>&1"#])
        .arg(program)
        .args(args)
        .args(operands);
    let outcome = run.current_dir(dir).output();
    outcome.stdout_text().replace("rmz: ", "rm: ")
}

#[test]
fn reports_the_failures_of_operands_in_their_order() {
    needs!(root, "chattr");
    let rm = or_skip!(gnu("rm"));
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    let mut operands = Vec::new();
    for number in 0..100 {
        tree.plant(format!("d{number}/sub/kept="));
        operands.extend([format!("d{number}"), format!("missing{number}")]);
    }
    let chattr = |flag: &str| {
        let run = Run::new("chattr").args(["-R", flag, "."]);
        run.current_dir(&scratch).output();
    };
    chattr("+i");
    let expected = both_streams(&rm, &scratch, &[], &operands);
    let outputs = ["--threads=1", "--threads=4", "--threads=16"].map(|threads| {
        (
            threads,
            both_streams(RMZ.as_ref(), &scratch, &[threads], &operands),
        )
    });
    chattr("-i");
    assert_eq!(expected.lines().count(), 200, "{expected}");
    for (threads, ours) in outputs {
        assert!(ours == expected, "{threads}:\n{ours}");
    }
}
