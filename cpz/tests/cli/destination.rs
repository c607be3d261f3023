//! Where the copy goes.

use std::path::Path;

use testkit::{
    run::{Parity, Run, Status},
    tree::{Scratch, Tree},
};

use crate::support::{CPZ, complaint, cp_r, succeeds};

fn small(tree: &Tree) {
    tree.file("a/b/f", b"content")
        .file("a/g", b"more")
        .symlink("a/l", "g")
        .file("f", b"file")
        .file("old", b"old")
        .dir("dir")
        .symlink("to-dir", "dir")
        .symlink("to-old", "old")
        .symlink("dangling", "nowhere");
}

#[test]
fn copies_directories_without_being_told_to() {
    let scratch = Scratch::new();
    small(&Tree::at(scratch.path()));
    succeeds(&scratch, &["a", "b"]);
    testkit::snapshot::assert_same_tree(
        scratch.path().join("a"),
        scratch.path().join("b"),
        testkit::snapshot::Attributes::CONTENT,
    );
}

#[test]
fn makes_a_missing_dest() {
    cp_r(["a", "new"], small);
    cp_r(["f", "new"], small);
}

#[test]
fn makes_a_missing_dest_with_a_slash_if_it_is_a_directory() {
    cp_r(["a", "new/"], small);
    cp_r(["a", "new//"], small);
    cp_r(["a", "new/."], small);
}

#[test]
fn makes_no_file_with_a_slash_after_it() {
    cp_r(["f", "new/"], small);
    cp_r(["f", "old/"], small);
    cp_r(["f", "dangling/"], small);
}

#[test]
fn copies_into_an_existing_directory() {
    cp_r(["a", "dir"], small);
    cp_r(["f", "dir"], small);
    cp_r(["a", "dir/"], small);
    cp_r(["f", "dir/."], small);
}

#[test]
fn copies_into_the_directory_behind_a_symlink() {
    cp_r(["a", "to-dir"], small);
    cp_r(["f", "to-dir/"], small);
}

#[test]
fn copies_over_an_existing_file() {
    cp_r(["f", "old"], small);
    cp_r(["f", "to-old"], small);
}

#[test]
fn copies_no_directory_over_a_file() {
    cp_r(["a", "old"], small);
    cp_r(["a", "to-old"], small);
    cp_r(["a", "old/"], small);
}

#[test]
fn copies_the_content_of_a_directory_with_a_dot_after_it() {
    cp_r(["a/.", "dir"], small);
    cp_r(["a/.", "new"], small);
    cp_r(["a/./", "dir"], small);
}

#[test]
fn copies_a_directory_with_slashes_after_it() {
    cp_r(["a/", "dir"], small);
    cp_r(["a///", "new"], small);
    cp_r(["-v", "a//b//", "dir//"], small);
}

#[test]
fn copies_a_path_that_ends_in_dot_dot() {
    cp_r(["-v", "a/b/..", "dir"], small);
    cp_r(["-v", "a/b/..", "new"], small);
}

#[test]
fn copies_into_the_working_directory() {
    cp_r(["a/b", "."], small);
    cp_r(["a/g", "a/b/f", "./"], |tree| {
        tree.file("a/b/f", b"content").file("a/g", b"more");
    });
}

#[test]
fn copies_by_absolute_paths() {
    cp_r(["-v", "$PWD/a", "$PWD/dir"], small);
    cp_r(["-v", "$PWD/f", "$PWD/new"], small);
}

#[test]
fn copies_several_into_a_directory() {
    cp_r(["a", "f", "old", "dir"], small);
    cp_r(["a", "f", "to-dir"], small);
}

#[test]
fn copies_several_only_into_a_directory() {
    cp_r(["a", "f", "old"], small);
    cp_r(["a", "f", "new"], small);
    cp_r(["a", "f", "dangling"], small);
    cp_r(["a", "f", "old/"], small);
}

#[test]
fn makes_no_parents_of_the_dest() {
    cp_r(["f", "new/f"], small);
    cp_r(["a", "new/new"], small);
    cp_r(["a", "old/new"], small);
    cp_r(["f", "old/new"], small);
}

#[test]
fn copies_into_a_target_directory() {
    cp_r(["-t", "dir", "a", "f"], small);
    cp_r(["--target-directory=to-dir", "a"], small);
    cp_r(["a", "-tdir/"], small);
}

#[test]
fn wants_the_target_directory_to_be_one() {
    cp_r(["-t", "old", "a"], small);
    cp_r(["-t", "new", "a"], small);
    cp_r(["-t", "dangling", "a"], small);
    cp_r(["-t", "", "a"], small);
}

#[test]
fn takes_one_target_directory() {
    cp_r(["-t", "dir", "-t", "to-dir", "a"], small);
    cp_r(["-t", "dir", "-T", "a", "new"], small);
}

#[test]
fn takes_the_dest_for_the_copy_itself_if_told_to() {
    cp_r(["-T", "a", "dir"], small);
    cp_r(["-T", "a", "new"], small);
    cp_r(["-T", "a", "to-dir"], small);
    cp_r(["-T", "f", "old"], small);
    cp_r(["-T", "a/", "dir/"], small);
}

#[test]
fn copies_no_file_over_a_directory() {
    cp_r(["-T", "f", "dir"], small);
    cp_r(["-T", "f", "to-dir"], small);
    cp_r(["-T", "f", "dir/"], small);
}

#[test]
fn takes_two_operands_if_there_is_no_target_directory() {
    cp_r(["-T", "a", "f", "dir"], small);
    cp_r(["-T", "a"], small);
}

#[test]
fn reports_missing_sources() {
    cp_r(["missing", "new"], small);
    cp_r(["missing", "dir"], small);
    cp_r(["f", "missing", "a", "dir"], small);
    cp_r(["missing/x", "f/x", "f/", "dangling/x", "dir"], small);
}

#[test]
fn reports_empty_names() {
    cp_r(["", "new"], small);
    cp_r(["f", ""], small);
    cp_r(["a", ""], small);
    cp_r(["", "f", "dir"], small);
    cp_r(["f", "a", ""], small);
}

#[test]
fn does_not_go_through_a_dangling_symlink() {
    cp_r(["f", "dangling"], small);
    cp_r(["a", "dangling"], small);
    cp_r(["-T", "f", "dangling"], small);
}

#[test]
fn forces_no_way_through_a_dangling_symlink() {
    cp_r(["-f", "f", "dangling"], small);
}

#[test]
fn merges_into_a_directory_that_exists() {
    cp_r(["-v", "a", "dir"], |tree| {
        tree.file("a/b/f", b"new")
            .file("a/g", b"new")
            .file("dir/a/b/f", b"older and longer")
            .file("dir/a/b/kept", b"kept")
            .dir("dir/a/c")
            .mode(0o700);
    });
}

#[test]
fn keeps_the_modes_of_directories_that_exist() {
    cp_r(["-T", "a", "dir"], |tree| {
        tree.file("a/b/f", b"new")
            .select("a/b")
            .mode(0o777)
            .select("a")
            .mode(0o777)
            .dir("dir/b")
            .mode(0o700)
            .select("dir")
            .mode(0o711);
    });
}

#[test]
fn merges_through_no_symlink_below_the_dest() {
    cp_r(["a", "dir"], |tree| {
        tree.file("a/b/f", b"new")
            .dir("other")
            .dir("dir/a")
            .symlink("dir/a/b", "../../other");
    });
}

#[test]
fn writes_through_a_symlink_below_the_dest_that_leads_to_a_file() {
    cp_r(["a", "dir"], |tree| {
        tree.file("a/f", b"new")
            .file("other", b"older and longer")
            .dir("dir/a")
            .symlink("dir/a/f", "../../other");
    });
}

#[test]
fn merges_no_directory_with_a_file() {
    cp_r(["a", "dir"], |tree| {
        tree.file("a/b/f", b"new")
            .file("a/c", b"new")
            .file("dir/a/b", b"a file")
            .dir("dir/a/c");
    });
}

#[test]
fn does_not_make_what_a_dangling_link_with_a_slash_leads_to() {
    let build = |tree: &Tree| {
        tree.dir("d").symlink("l", "x").symlink("dest", "nowhere");
    };
    cp_r(["d", "dest/"], build);
    cp_r(["l", "dest/"], build);
}

/// Compares where `POSIXLY_CORRECT` is set.
#[track_caller]
fn posix(args: &[&str]) {
    let parity = Parity::new(CPZ, "cp").args(["-r"]).args(args);
    parity.env("POSIXLY_CORRECT", "1").check(|tree| {
        small(tree);
        tree.file("x/f", b"newer")
            .mode(0o640)
            .symlink("dir/f", "../made")
            .symlink("dir/x/f", "away")
            .symlink("far", "no/where")
            .symlink("slash", "nowhere/")
            .symlink("loop", "loop")
            .symlink("twice", "dangling")
            .fifo("p");
    });
}

#[test]
fn writes_through_a_dangling_link_if_posix_is_to_be_obeyed() {
    posix(&["f", "dangling"]);
    posix(&["-v", "f", "dir"]);
    posix(&["f", "twice"]);
    posix(&["-p", "x/f", "dangling"]);
    posix(&["--no-preserve=mode", "x/f", "dangling"]);
    posix(&["--parents", "x/f", "dir"]);
    posix(&["--attributes-only", "f", "dangling"]);
    posix(&["-n", "f", "dangling"]);
    posix(&["-u", "f", "dangling"]);
    posix(&["f", "f", "dir"]);
}

#[test]
fn replaces_a_dangling_link_itself_where_nothing_is_written() {
    posix(&["-b", "f", "dangling"]);
    posix(&["--remove-destination", "f", "dangling"]);
    posix(&["a/l", "dangling"]);
    posix(&["p", "dangling"]);
    posix(&["a", "dangling"]);
}

#[test]
fn tells_why_nothing_can_be_made_where_a_dangling_link_leads() {
    posix(&["f", "far"]);
    posix(&["f", "slash"]);
    posix(&["f", "loop"]);
}

#[test]
fn leaves_the_link_if_what_it_leads_to_cannot_be_cloned() {
    let scratch = Scratch::new();
    small(&Tree::at(scratch.path()));
    let outcome = Run::new(CPZ)
        .args(["--reflink=always", "/proc/version", "dangling"])
        .env("POSIXLY_CORRECT", "1")
        .current_dir(&scratch)
        .output();
    assert_eq!(outcome.status, Status::Exit(1));
    let link = std::fs::read_link(scratch.path().join("dangling"));
    assert_eq!(link.expect("a link"), Path::new("nowhere"));
}

#[test]
fn makes_nothing_through_a_link_below_an_operand() {
    let scratch = Scratch::new();
    small(Tree::at(scratch.path()).symlink("dir/g", "../made"));
    let outcome = Run::new(CPZ)
        .args(["-T", "a", "dir"])
        .env("POSIXLY_CORRECT", "1")
        .current_dir(&scratch)
        .output();
    let words = "cpz: not writing through dangling symlink 'dir/g'\n";
    assert_eq!(
        (outcome.status, complaint(&outcome).as_str()),
        (Status::Exit(1), words)
    );
    assert!(!scratch.path().join("made").exists());
}
