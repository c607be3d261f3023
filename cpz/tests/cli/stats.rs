//! `--stats`. The tests of rmz cover the rest.

use testkit::{
    run::{Run, Status},
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ};

#[test]
fn copied_entries_and_bytes_are_counted() {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("t/a", "12345")
        .symlink("t/link", "a");
    let run = Run::new(CPZ).args(["--stats=json", "t", "copy"]);
    let outcome = run.current_dir(&scratch).output();
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    assert_eq!(outcome.stderr, b"");
    let counts =
        r#"{"version":1,"entries":3,"files":1,"directories":1,"symlinks":1,"hard_links":0,"#;
    assert!(outcome.stdout_text().starts_with(counts), "{outcome}");
    assert!(
        outcome.stdout_text().contains(r#","bytes":5,"#),
        "{outcome}"
    );
}

#[test]
fn a_link_called_cp_has_no_stats() {
    CP.check_strict(["--stats", "a", "b"], |tree| {
        tree.file("a", "");
    });
}
