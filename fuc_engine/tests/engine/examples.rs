//! Tests of the programs in `examples/`.

use std::{env, path::PathBuf};

use testkit::{
    run::Run,
    snapshot::{Snapshot, assert_same_tree},
    tree::{Scratch, Tree},
};

use crate::kit::{assert_nothing_in, plain};

/// Finds an example, which `cargo test` builds beside the tests. `cargo test --test engine` does not build it.
fn example(name: &str) -> Result<PathBuf, testkit::probe::Skip> {
    let myself = env::current_exe().expect("a process has a program");
    let built = myself
        .ancestors()
        .nth(2)
        .map(|dir| dir.join("examples").join(name))
        .filter(|path| path.is_file());
    built.ok_or_else(|| testkit::probe::Skip(format!("the example {name} is not built")))
}

fn tree(scratch: &Scratch) -> Tree {
    let tree = Tree::at(scratch.at("s"));
    tree.plant("a/b=content l->a e/");
    tree
}

#[test]
fn remove_removes_and_counts_and_tells_of_a_failure() {
    let program = testkit::or_skip!(example("remove"));
    let scratch = Scratch::new();
    let tree = tree(&scratch);
    let remove = || Run::new(&program).arg(tree.path()).output();
    let outcome = remove();
    outcome.assert_success();
    assert_eq!(outcome.stdout_text(), "removed 5 entries, 0 failed\n");
    assert_nothing_in(&scratch);
    let outcome = remove();
    outcome.assert_status(1);
    assert_eq!(outcome.stdout_text(), "removed 0 entries, 1 failed\n");
    let stderr = outcome.stderr_text();
    assert!(stderr.contains("No such file or directory"), "{outcome}");
}

#[test]
fn copy_copies_and_counts() {
    let program = testkit::or_skip!(example("copy"));
    let scratch = Scratch::new();
    let tree = tree(&scratch);
    let dest = scratch.at("d");
    let outcome = Run::new(program).args([tree.path(), &dest]).output();
    outcome.assert_success();
    assert_eq!(
        outcome.stdout_text(),
        "copied 5 entries of 7 bytes, 0 failed\n"
    );
    assert_same_tree(tree.path(), &dest, plain());
}

#[test]
fn progress_moves_and_counts() {
    let program = testkit::or_skip!(example("progress"));
    let scratch = Scratch::new();
    let tree = tree(&scratch);
    let before = Snapshot::of(tree.path(), plain());
    let dest = scratch.at("d");
    let outcome = Run::new(program).args([tree.path(), &dest]).output();
    outcome.assert_success();
    let last = outcome.stdout_text();
    let last = last.lines().last();
    assert_eq!(last, Some("5 copied, 5 removed, 0 failed"));
    crate::kit::assert_unchanged(&before, &dest, plain());
    assert_eq!(Snapshot::of(&scratch, plain()).kind("s"), None);
}
