//! Entries that an ordinary user may not read or write are reported once, with their paths. All others are copied.

use testkit::tree::Tree;

use crate::support::CP;

fn around(tree: &Tree) -> &Tree {
    tree.file("d/a/f", b"content")
        .file("d/z/f", b"content")
        .file("d/f", b"content")
}

#[track_caller]
fn with_dir_of_mode(mode: u32) {
    CP.check_as_nobody(["d", "new"], |tree| {
        around(tree)
            .file("d/odd/f", b"content")
            .file("d/odd/sub/f", b"content")
            .symlink("d/odd/l", "f")
            .fifo("d/odd/p")
            .select("d/odd")
            .mode(mode);
    });
    CP.check_as_nobody(["d", "new"], |tree| {
        around(tree).dir("d/odd").mode(mode);
    });
    CP.check_as_nobody(["odd", "new"], |tree| {
        tree.file("odd/f", b"content").select("odd").mode(mode);
    });
    // Copy into an existing directory.
    CP.check_as_nobody(["d", "new"], |tree| {
        around(tree)
            .file("d/odd/f", b"content")
            .select("d/odd")
            .mode(mode)
            .dir("new/d/odd");
    });
}

#[test]
fn reports_a_directory_of_mode_000() {
    with_dir_of_mode(0o000);
}

#[test]
fn reports_a_directory_that_is_only_searchable() {
    with_dir_of_mode(0o111);
}

#[test]
fn reports_the_entries_of_a_directory_that_is_only_readable() {
    with_dir_of_mode(0o444);
}

#[test]
fn reports_a_directory_without_r() {
    with_dir_of_mode(0o333);
}

#[test]
fn reports_the_entries_of_a_directory_without_x() {
    with_dir_of_mode(0o666);
}

#[test]
fn copies_a_read_only_directory() {
    with_dir_of_mode(0o555);
}

#[test]
fn copies_nested_read_only_directories() {
    CP.check_as_nobody(["d", "new"], |tree| {
        tree.file("d/1/2/f", b"content")
            .mode(0o400)
            .select("d/1/2")
            .mode(0o500)
            .select("d/1")
            .mode(0o555)
            .select("d")
            .mode(0o555);
    });
}

#[test]
fn reports_unreadable_files() {
    CP.check_as_nobody(["d", "new"], |tree| {
        around(tree)
            .file("d/locked", b"content")
            .mode(0)
            .file("d/locked-empty", b"")
            .mode(0)
            .file("d/a/write-only", b"content")
            .mode(0o222);
    });
}

#[test]
fn reports_an_unreadable_operand() {
    CP.check_as_nobody(["f", "new"], |tree| {
        tree.file("f", b"content").mode(0);
    });
    CP.check_as_nobody(["f", "old"], |tree| {
        tree.file("f", b"content").mode(0).file("old", b"old");
    });
    CP.check_as_nobody(["-f", "f", "g", "into"], |tree| {
        tree.file("f", b"content")
            .mode(0)
            .file("g", b"content")
            .file("into/f", b"old");
    });
}

#[test]
fn reports_sources_below_a_directory_without_x() {
    CP.check_as_nobody(["d/f", "d/sub", "d/missing", "into"], |tree| {
        tree.file("d/f", b"")
            .dir("d/sub")
            .dir("into")
            .select("d")
            .mode(0o666);
    });
}

#[test]
fn reports_a_dest_in_a_directory_without_w() {
    CP.check_as_nobody(["d", "f", "l", "p", "into"], |tree| {
        tree.file("d/f", b"content")
            .file("f", b"content")
            .symlink("l", "f")
            .fifo("p")
            .dir("into")
            .mode(0o555);
    });
}

#[test]
fn reports_a_dest_in_a_directory_without_x() {
    CP.check_as_nobody(["d", "f", "l", "p", "into"], |tree| {
        tree.file("d/f", b"content")
            .file("f", b"content")
            .symlink("l", "f")
            .fifo("p")
            .dir("into")
            .mode(0o666);
    });
    CP.check_as_nobody(["f", "into/new"], |tree| {
        tree.file("f", b"content").dir("into").mode(0o666);
    });
}

#[test]
fn reports_directories_of_the_dest_without_w() {
    CP.check_as_nobody(["d", "into"], |tree| {
        around(tree)
            .symlink("d/a/l", "f")
            .fifo("d/a/p")
            .file("d/a/sub/f", b"content")
            .dir("into/d/a")
            .mode(0o555);
    });
}

#[test]
fn reports_directories_of_the_dest_without_x() {
    CP.check_as_nobody(["d", "into"], |tree| {
        around(tree)
            .symlink("d/a/l", "f")
            .fifo("d/a/p")
            .file("d/a/sub/f", b"content")
            .dir("into/d/a")
            .mode(0o666);
    });
}

#[test]
fn reports_files_of_the_dest_without_w() {
    CP.check_as_nobody(["d", "into"], |tree| {
        around(tree).file("into/d/f", b"old").mode(0o444);
    });
}

#[test]
fn reports_files_of_other_users() {
    CP.check_as_nobody(["d", "into"], |tree| {
        around(tree)
            .file("d/theirs", b"content")
            .owner(1, 1)
            .mode(0o640)
            .file("d/readable", b"content")
            .owner(1, 1)
            .mode(0o4755)
            .file("into/d/f", b"old")
            .owner(1, 1);
    });
}
