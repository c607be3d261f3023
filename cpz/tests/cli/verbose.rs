//! `-v`: a whole line for each copied entry.

use testkit::{
    run::Run,
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ, NEWEST_CP};

#[test]
fn reports_each_copied_entry() {
    CP.check(["-v", "f", "d", "l", "fifo", "e/", "into"], |tree| {
        tree.file("f", b"content")
            .file("d/f", b"content")
            .dir("d/e")
            .symlink("l", "d")
            .fifo("fifo")
            .dir("e")
            .dir("into");
    });
}

#[test]
fn tells_paths_as_they_were_given() {
    CP.check(["-v", ".//d", "e//f/", "$PWD/g", "into//"], |tree| {
        tree.file("d/f", b"")
            .file("e/f/x", b"")
            .file("g/f", b"")
            .dir("into");
    });
    CP.check(["-v", "d/.", "into"], |tree| {
        tree.file("d/f", b"").file("d/e/f", b"").dir("into");
    });
    CP.check(["-v", "d//", "new/"], |tree| {
        tree.file("d/f", b"").file("d/e/f", b"");
    });
}

#[test]
fn tells_of_files_that_exist() {
    CP.check(["-vT", "d", "old"], |tree| {
        tree.file("d/f", b"new")
            .symlink("d/l", "new")
            .fifo("d/p")
            .dir("d/e")
            .file("old/f", b"old")
            .symlink("old/l", "old")
            .fifo("old/p")
            .dir("old/e");
    });
}

#[test]
fn does_not_report_entries_that_are_not_copied() {
    NEWEST_CP.check(["-v", "missing", "f", "d", "into"], |tree| {
        tree.file("f", b"content")
            .file("d/f", b"content")
            .dir("into/f")
            .file("into/d", b"old");
    });
}

#[test]
fn reports_unreadable_files_as_cp_does() {
    CP.check_as_nobody(["-v", "d", "new"], |tree| {
        tree.file("d/locked", b"content")
            .mode(0)
            .file("d/f", b"content")
            .file("d/locked-dir/f", b"content")
            .select("d/locked-dir")
            .mode(0);
    });
}

#[test]
fn tells_of_a_forced_dest() {
    CP.check_as_nobody(["-vf", "d", "into"], |tree| {
        tree.file("d/f", b"content")
            .file("into/d/f", b"old")
            .mode(0);
    });
}

#[test]
fn tells_a_directory_before_its_children() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("d/e/f", b"").file("d/g", b"");
    let outcome = Run::new(CPZ)
        .args(["-v", "d", "new"])
        .current_dir(&scratch)
        .output();
    let told = outcome.assert_success().stdout_text();
    let line = |text| told.lines().position(|l| l == text).expect(text);
    assert!(line("'d' -> 'new'") < line("'d/g' -> 'new/g'"), "{told}");
    assert!(line("'d' -> 'new'") < line("'d/e' -> 'new/e'"), "{told}");
    assert!(
        line("'d/e' -> 'new/e'") < line("'d/e/f' -> 'new/e/f'"),
        "{told}"
    );
}

#[test]
fn writes_lines_whole_that_are_longer_than_a_pipe_takes_at_once() {
    let scratch = Scratch::new();
    // Each line has 14 names of 250 bytes twice, and quoting makes them longer.
    let deep = format!("d/{}", format!("{}'\"/", "n".repeat(248)).repeat(14));
    let tree = Tree::at(scratch.path());
    for i in 0..40 {
        tree.file(format!("{deep}{i}/f"), "");
    }
    let outcome = Run::new(CPZ)
        .args(["-v", "--threads=8", "d", "e"])
        .current_dir(&scratch)
        .output();
    let told = outcome.assert_success().stdout_text();
    let mut lines: Vec<&str> = told.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 1 + 14 + 40 + 40);
    let whole = |line: &&str| {
        line.starts_with('\'') && line.ends_with('\'') && line.matches(" -> ").count() == 1
    };
    assert!(lines.iter().all(whole));
}
