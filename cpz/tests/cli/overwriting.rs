//! Entries of each type over dests of each type.

use testkit::{
    or_skip,
    run::{Pair, Run},
    snapshot::{Attributes, assert_same_tree},
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ, NEWEST_CP};

fn file(tree: &Tree) -> &Tree {
    tree.file("source", b"content")
}

fn dir(tree: &Tree) -> &Tree {
    tree.file("source/f", b"content").symlink("source/l", "f")
}

fn symlink(tree: &Tree) -> &Tree {
    tree.symlink("source", "target").file("target", b"target")
}

fn fifo(tree: &Tree) -> &Tree {
    tree.fifo("source").mode(0o600)
}

fn over_file(tree: &Tree) -> &Tree {
    tree.file("dest", b"old")
}

fn over_longer_file(tree: &Tree) -> &Tree {
    tree.file("dest", vec![b'o'; 100_000]).mode(0o600)
}

fn over_read_only_file(tree: &Tree) -> &Tree {
    tree.file("dest", b"old").mode(0o444)
}

fn over_dir(tree: &Tree) -> &Tree {
    tree.file("dest/kept", b"old")
}

fn over_full_dir(tree: &Tree) -> &Tree {
    tree.file("dest/source/kept", b"old").file("dest/f", b"old")
}

fn over_symlink_to_file(tree: &Tree) -> &Tree {
    tree.file("other", b"older and longer")
        .symlink("dest", "other")
}

fn over_dangling_symlink(tree: &Tree) -> &Tree {
    tree.symlink("dest", "nowhere")
}

fn over_symlink_to_dir(tree: &Tree) -> &Tree {
    tree.file("other/kept", b"old").symlink("dest", "other")
}

fn over_fifo(tree: &Tree) -> &Tree {
    tree.fifo("dest")
}

fn over_socket(tree: &Tree) -> &Tree {
    tree.socket("dest")
}

/// Compares copies of one type over another: plain, with -T and -f, as an ordinary user, and in a tree.
#[track_caller]
fn copies_over(cp: Pair, source: fn(&Tree) -> &Tree, dest: fn(&Tree) -> &Tree) {
    let build = |tree: &Tree| {
        dest(source(tree));
    };
    cp.check(["source", "dest"], build);
    cp.check(["-T", "source", "dest"], build);
    cp.check(["-fv", "source", "dest"], build);
    cp.check_as_nobody(["-f", "source", "dest"], build);
    // Compare the same entries one level below the operand.
    let below = |tree: &Tree| {
        let path = tree.path().to_owned();
        source(&Tree::at(path.join("from")));
        dest(&Tree::at(path.join("to")));
        for name in ["source", "target"] {
            let (old, new) = (path.join("from").join(name), path.join("from"));
            let new = match name {
                "source" => new.join("dest"),
                _ => new.join("target"),
            };
            if old.symlink_metadata().is_ok() {
                std::fs::rename(old, new).expect("it can be renamed");
            }
        }
    };
    cp.check(["-T", "from", "to"], below);
    cp.check_as_nobody(["-fT", "from", "to"], below);
}

macro_rules! over_each_other {
    ($cp:ident; $($test:ident: $source:ident $dest:ident;)*) => {$(
        #[test]
        fn $test() {
            copies_over($cp, $source, $dest);
        }
    )*};
}

over_each_other! {
    CP;
    a_file_goes_over_a_file: file over_file;
    a_file_goes_over_a_longer_file: file over_longer_file;
    a_file_goes_over_a_read_only_file: file over_read_only_file;
    a_file_goes_over_a_symlink_to_a_file: file over_symlink_to_file;
    a_file_goes_over_a_dangling_symlink: file over_dangling_symlink;
    a_file_goes_over_a_socket: file over_socket;
    a_directory_goes_over_a_file: dir over_file;
    a_directory_goes_over_a_longer_file: dir over_longer_file;
    a_directory_goes_over_a_read_only_file: dir over_read_only_file;
    a_directory_goes_over_a_directory: dir over_dir;
    a_directory_goes_over_a_directory_in_a_directory: dir over_full_dir;
    a_directory_goes_over_a_symlink_to_a_file: dir over_symlink_to_file;
    a_directory_goes_over_a_dangling_symlink: dir over_dangling_symlink;
    a_directory_goes_over_a_symlink_to_a_directory: dir over_symlink_to_dir;
    a_directory_goes_over_a_fifo: dir over_fifo;
    a_directory_goes_over_a_socket: dir over_socket;
    a_symlink_goes_over_a_file: symlink over_file;
    a_symlink_goes_over_a_longer_file: symlink over_longer_file;
    a_symlink_goes_over_a_read_only_file: symlink over_read_only_file;
    a_symlink_goes_over_a_symlink_to_a_file: symlink over_symlink_to_file;
    a_symlink_goes_over_a_dangling_symlink: symlink over_dangling_symlink;
    a_symlink_goes_over_a_symlink_to_a_directory: symlink over_symlink_to_dir;
    a_symlink_goes_over_a_fifo: symlink over_fifo;
    a_symlink_goes_over_a_socket: symlink over_socket;
    a_fifo_goes_over_a_file: fifo over_file;
    a_fifo_goes_over_a_longer_file: fifo over_longer_file;
    a_fifo_goes_over_a_read_only_file: fifo over_read_only_file;
    a_fifo_goes_over_a_symlink_to_a_file: fifo over_symlink_to_file;
    a_fifo_goes_over_a_dangling_symlink: fifo over_dangling_symlink;
    a_fifo_goes_over_a_symlink_to_a_directory: fifo over_symlink_to_dir;
    a_fifo_goes_over_a_fifo: fifo over_fifo;
    a_fifo_goes_over_a_socket: fifo over_socket;
}

// Older releases do not name the source in this refusal.
over_each_other! {
    NEWEST_CP;
    a_file_goes_over_a_directory: file over_dir;
    a_file_goes_over_a_directory_in_a_directory: file over_full_dir;
    a_file_goes_over_a_symlink_to_a_directory: file over_symlink_to_dir;
    a_symlink_goes_over_a_directory: symlink over_dir;
    a_symlink_goes_over_a_directory_in_a_directory: symlink over_full_dir;
    a_fifo_goes_over_a_directory: fifo over_dir;
    a_fifo_goes_over_a_directory_in_a_directory: fifo over_full_dir;
}

#[test]
fn writes_through_a_second_name_of_the_dest() {
    CP.check(["f", "old"], |tree| {
        tree.file("f", b"new")
            .file("old", b"old")
            .hardlink("old", "twin");
    });
}

#[test]
fn force_makes_another_file_of_an_unwritable_dest() {
    CP.check_as_nobody(["-fv", "f", "old"], |tree| {
        tree.file("f", b"new")
            .mode(0o640)
            .file("old", b"old")
            .mode(0o400)
            .hardlink("old", "twin");
    });
}

#[test]
fn refuses_to_overwrite_a_directory_before_it_opens_the_source() {
    NEWEST_CP.check_as_nobody(["-v", "f", "into"], |tree| {
        tree.file("f", b"content").mode(0).dir("into/f");
    });
}

#[test]
fn refuses_to_overwrite_a_file_before_it_lists_the_directory() {
    CP.check_as_nobody(["-v", "d", "into"], |tree| {
        tree.file("into/d", b"old").dir("d").mode(0);
    });
}

#[test]
fn force_does_not_help_in_a_directory_without_w() {
    CP.check_as_nobody(["-f", "f", "d/old"], |tree| {
        tree.file("f", b"new")
            .file("d/old", b"old")
            .mode(0o400)
            .select("d")
            .mode(0o555);
    });
}

#[test]
fn force_does_not_follow_a_symlink_to_an_unwritable_file() {
    CP.check_as_nobody(["-f", "f", "l"], |tree| {
        tree.file("f", b"new")
            .file("old", b"old")
            .mode(0o400)
            .symlink("l", "old");
    });
}

#[test]
fn writes_to_a_writable_file_in_a_directory_without_w() {
    CP.check_as_nobody(["f", "d"], |tree| {
        tree.file("f", b"new")
            .file("d/f", b"older")
            .select("d")
            .mode(0o555);
    });
}

#[test]
fn replaces_no_symlink_in_a_directory_without_w() {
    CP.check_as_nobody(["l", "fifo", "d"], |tree| {
        tree.symlink("l", "x")
            .fifo("fifo")
            .symlink("d/l", "y")
            .fifo("d/fifo")
            .select("d")
            .mode(0o555);
    });
}

#[test]
fn a_file_for_which_no_worker_waits_wakes_none() {
    const FILES: usize = 200;
    let scratch = Scratch::in_memory();
    for number in 0..FILES {
        Tree::at(&scratch)
            .file(format!("s/{number}"), "new")
            .file(format!("d/{number}"), "old");
    }
    let args = ["-rT", "--threads=2", "s", "d"];
    let calls = Run::new(CPZ).args(args).current_dir(&scratch).calls();
    let calls = or_skip!(calls);
    let wakes = calls.iter().filter(|call| call.name == "futex").count();
    assert!(wakes < FILES / 2, "{wakes} calls for {FILES} files");
}

#[test]
fn rights_that_an_older_copy_has_already_are_not_set_again() {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(scratch.path());
    for (mode, sets) in [(0o640, false), (0o600, true), (0o644, true)] {
        tree.file("s", "new")
            .mode(0o640)
            .file("d", "old")
            .mode(mode);
        let run = Run::new(CPZ).args(["-a", "s", "d"]).current_dir(&scratch);
        let calls = or_skip!(run.calls());
        let is_about_rights = |name: &str| ["fchmod", "fchown", "fremovexattr"].contains(&name);
        let set = calls.iter().filter(|call| is_about_rights(&call.name));
        let set: Vec<_> = set.map(|call| &call.name).collect();
        assert_eq!(!set.is_empty(), sets, "{mode:o}: {set:?}");
        let at = |name: &str| scratch.path().join(name);
        assert_same_tree(at("s"), at("d"), Attributes::ALL - Attributes::ATIME);
    }
}
