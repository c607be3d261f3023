//! `--dry-run`, which GNU's rm does not have: what a real run would print, and nothing is removed.

use std::os::unix::fs::chown;

use testkit::{
    probe::is_root,
    run::{Run, Status, check_dry_run},
    tree::{Scratch, Tree},
};

use crate::support::RMZ;

/// An ordinary user, whom permissions bind.
const USER: u32 = 65534;

#[test]
fn ends_with_the_entries_and_the_bytes_that_would_be_removed() {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("d/a", "12345")
        .file("d/e/b", "123")
        .symlink("d/l", "a");
    let total = Run::new(RMZ).args(["--dry-run=total", "d"]);
    let total = total.current_dir(&scratch).output();
    assert_eq!(
        total.assert_success().stdout_text(),
        "would remove 5 entries, 8 B\n"
    );
    let dry = Run::new(RMZ)
        .args(["--dry-run", "d"])
        .current_dir(&scratch)
        .output();
    assert_eq!(dry.status, Status::Exit(0));
    assert_eq!(dry.stderr, b"");
    let told = dry.stdout_text();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 6, "{told}");
    assert_eq!(
        lines[4..],
        ["would remove directory 'd'", "would remove 5 entries, 8 B"]
    );
    assert!(scratch.path().join("d/e/b").exists());
}

#[test]
fn sees_each_operand_as_if_no_other_one_had_been_removed() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("d/a", "");
    let dry = Run::new(RMZ).args(["--dry-run", "d/a", "d"]);
    let dry = dry.current_dir(&scratch).output();
    let told = "would remove 'd/a'
would remove 'd/a'
would remove directory 'd'
would remove 3 entries, 0 B
";
    assert_eq!(dry.assert_success().stdout_text(), told);
}

#[test]
fn asks_about_a_directory_that_may_be_read_but_not_searched() {
    let scratch = Scratch::in_memory();
    Tree::at(scratch.path())
        .file("a/f", "")
        .dir("a")
        .mode(0o400);
    let mut dry = Run::new(RMZ)
        .args(["--dry-run", "-i", "a", "a/f"])
        .stdin("y\ny\n")
        .current_dir(&scratch);
    if is_root() {
        for path in ["", "a"] {
            chown(scratch.path().join(path), Some(USER), Some(USER)).expect("root may do that");
        }
        dry = dry.uid(USER);
    }
    let dry = dry.output();
    assert_eq!(dry.status, Status::Exit(1));
    let asked = "descend into write-protected directory 'a'? ";
    assert!(dry.stderr_text().contains(asked), "{dry}");
}

#[test]
fn refuses_what_a_real_run_refuses() {
    let told = check_dry_run(RMZ, &["/", ".", "none", "d/.."], |tree| {
        tree.dir("d");
    });
    assert_eq!(told.status, Status::Exit(1));
    assert_eq!(told.stdout_text(), "would remove 0 entries, 0 B\n");
}

#[test]
fn a_directory_stays_if_something_in_it_cannot_be_removed() {
    use testkit::probe::{NOBODY, Skip, is_root};
    if !is_root() {
        return Skip("only root can become another user".into()).announce();
    }
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    tree.file("d/e/f", "").file("d/g", "");
    for dir in ["d", "d/e"] {
        tree.select(dir).owner(NOBODY, NOBODY);
    }
    tree.select("d/e").mode(0o555);
    let run = |first| {
        let run = Run::new(RMZ).args([first, "d"]).uid(USER);
        run.current_dir(&scratch).output()
    };
    let (dry, real) = (run("--dry-run"), run("--verbose"));
    assert_eq!(dry.status, Status::Exit(1));
    assert_eq!(
        dry.stdout_text(),
        "would remove 'd/g'\nwould remove 1 entry, 0 B\n"
    );
    assert_eq!(dry.stderr_text(), real.stderr_text());
    assert_eq!(real.stdout_text(), "removed 'd/g'\n");
}

#[test]
fn asks_what_a_real_run_asks_and_plans_by_the_answers() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("d/a", "");
    let run = |first| {
        let run = Run::new(RMZ).args([first, "-i", "d"]).stdin(b"y\nn\ny\n");
        run.current_dir(&scratch).output()
    };
    let (dry, real) = (run("--dry-run"), run("--verbose"));
    assert_eq!(dry.stderr_text(), real.stderr_text());
    assert_eq!(dry.status, real.status);
    assert_eq!(dry.stdout_text(), "would remove 0 entries, 0 B\n");
}

#[test]
fn foresees_that_a_directory_which_keeps_an_entry_may_not_be_removed() {
    if !is_root() {
        testkit::skip!("only root can become another user");
    }
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    tree.file("a/d/f", "").select("a/d").mode(0o777);
    let run = |first| {
        let run = Run::new(RMZ).args([first, "-i", "a/d"]).stdin(b"y\nn\ny\n");
        run.uid(USER).current_dir(&scratch).output()
    };
    let (dry, real) = (run("--dry-run"), run("--verbose"));
    assert_eq!(dry.stderr_text(), real.stderr_text());
    assert!(real.stderr_text().contains("Permission denied"), "{real}");
}

#[test]
fn is_unknown_under_the_name_rm() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("f", "");
    let outcome = Run::new(crate::support::RM.link("rm").path())
        .args(["--dry-run", "f"])
        .current_dir(&scratch)
        .output();
    assert_eq!(outcome.status, Status::Exit(1));
    assert!(
        outcome
            .stderr_text()
            .contains("unrecognized option '--dry-run'"),
        "{outcome}"
    );
    assert!(scratch.path().join("f").exists());
}
