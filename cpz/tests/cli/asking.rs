//! `-i` asks about each dest that would be replaced. After a no, older releases exit with 0.

use testkit::{
    probe::{NOBODY, is_root},
    run::{Parity, Run, Status},
    tree::{Scratch, Tree},
};

use crate::support::{CPZ, NEWEST_CP};

fn files(tree: &Tree) {
    tree.file("a", "new")
        .file("b", "old")
        .mode(0o444)
        .symlink("l", "b")
        .symlink("dangling", "nowhere")
        .fifo("p")
        .file("d/a", "older")
        .mode(0o6751)
        .file("d/b", "older")
        .mode(0o1200)
        .file("from/d/f", "new")
        .file("from/e", "new")
        .file("from/g", "new")
        .file("d/d/f", "old")
        .file("d/e", "old");
}

fn asked(args: &[&str], answers: &str) -> Parity {
    NEWEST_CP.parity().args(["-i"]).args(args).stdin(answers)
}

fn as_nobody(args: &[&str], answers: &str) {
    if !is_root() {
        testkit::skip!("only root can become another user");
    }
    asked(args, answers).uid(NOBODY).check(files);
}

#[test]
fn asks_before_it_overwrites() {
    asked(&["-v", "a", "b"], "y\n").check(files);
    asked(&["-v", "a", "b"], "n\n").check(files);
    asked(&["-v", "a", "b"], "").check(files);
    asked(&["-v", "a", "new"], "").check(files);
}

#[test]
fn asks_about_each_of_several() {
    asked(&["-v", "a", "b", "d"], "y\nn\n").check(files);
    asked(&["-v", "a", "b", "d"], "n\ny\n").check(files);
}

#[test]
fn asks_about_files_in_a_tree_and_not_about_directories() {
    asked(&["-v", "-T", "from", "d"], "y\ny\n").check(files);
    asked(&["-v", "-T", "from", "d"], "n\nn\n").check(files);
}

#[test]
fn asks_about_links_and_fifos() {
    asked(&["a", "l"], "y\n").check(files);
    asked(&["l", "b"], "y\n").check(files);
    asked(&["-T", "p", "b"], "y\n").check(files);
    asked(&["a", "dangling"], "y\n").check(files);
    asked(&["-b", "a", "dangling"], "y\n").check(files);
}

#[test]
fn asks_an_ordinary_user_about_write_protected_dests() {
    as_nobody(&["a", "b"], "y\n");
    as_nobody(&["-f", "a", "b"], "y\n");
    as_nobody(&["--remove-destination", "a", "b"], "y\n");
    as_nobody(&["-b", "a", "l"], "y\n");
    as_nobody(&["a", "l"], "n\n");
    as_nobody(&["a", "b", "d"], "n\nn\n");
}

#[test]
fn does_not_ask_about_impossible_or_needless_copies() {
    asked(&["b", "b"], "y\n").check(files);
    asked(&["-u", "b", "a"], "y\n").check(files);
    asked(&["-T", "from", "a"], "y\n").check(files);
}

#[test]
fn asks_before_it_finds_a_directory_in_its_way() {
    asked(&["-T", "a", "d"], "y\n").check(files);
}

#[test]
fn the_last_of_i_and_n_counts() {
    asked(&["-n", "a", "b"], "y\n").check(files);
    asked(&["-n", "-i", "a", "b"], "y\n").check(files);
}

#[test]
fn declined_copies_make_the_status_1() {
    let status = |answers: &str| {
        let dir = Scratch::new();
        let tree = Tree::at(dir.path());
        files(&tree);
        // Only root may write to a file of mode 444.
        tree.select("b").mode(0o644);
        let run = Run::new(CPZ).args(["-i", "a", "b"]).current_dir(&dir);
        run.stdin(answers).output().status
    };
    assert_eq!(status("n\n"), Status::Exit(1));
    assert_eq!(status("y\n"), Status::Exit(0));
}
