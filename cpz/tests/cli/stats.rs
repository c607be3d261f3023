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
fn a_run_that_cannot_begin_has_totals_too() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("a", "").file("b", "");
    let run = |args: &[&str]| {
        let run = Run::new(CPZ).args(args).arg("--stats=json");
        run.current_dir(&scratch).output()
    };
    for args in [&["a", "b", "none"][..], &["--files0-from=none", "."]] {
        let outcome = run(args);
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        let stdout = outcome.stdout_text();
        assert!(
            stdout.starts_with(r#"{"version":1,"entries":0,"#),
            "{outcome}"
        );
        assert!(stdout.contains(r#""failures":1,"#), "{outcome}");
        assert_eq!(outcome.stderr_text().lines().count(), 1, "{outcome}");
    }
    assert_eq!(run(&["a"]).stdout_text(), "", "the command line is wrong");
}

#[test]
fn a_link_called_cp_has_no_stats() {
    CP.check_strict(["--stats", "a", "b"], |tree| {
        tree.file("a", "");
    });
}
