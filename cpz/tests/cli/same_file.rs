//! A file is not copied to itself, under any name.

use testkit::tree::Tree;

use crate::support::CP;

fn names_of_one_file(tree: &Tree) {
    tree.file("f", b"content")
        .hardlink("f", "twin")
        .symlink("l", "f")
        .symlink("l2", "l")
        .file("d/f", b"other")
        .symlink("d/l", "../f")
        .symlink("dl", "d");
}

#[test]
fn refuses_a_file_and_itself() {
    CP.check(["f", "f"], names_of_one_file);
    CP.check(["f", "./f"], names_of_one_file);
    CP.check(["f", "$PWD/f"], names_of_one_file);
    CP.check(["f", "."], names_of_one_file);
    CP.check(["d/f", "d"], names_of_one_file);
    CP.check(["d/f", "dl/f"], names_of_one_file);
}

#[test]
fn refuses_a_file_and_itself_even_if_forced() {
    CP.check(["-f", "f", "f"], names_of_one_file);
    CP.check(["-f", "f", "./f"], names_of_one_file);
    CP.check(["-f", "f", "twin"], names_of_one_file);
    CP.check(["-f", "f", "l"], names_of_one_file);
    CP.check(["-f", "l", "f"], names_of_one_file);
}

#[test]
fn refuses_a_file_and_its_hard_link() {
    CP.check(["f", "twin"], names_of_one_file);
    CP.check(["twin", "f"], names_of_one_file);
}

#[test]
fn refuses_a_file_and_a_symlink_to_it() {
    CP.check(["f", "l"], names_of_one_file);
    CP.check(["f", "l2"], names_of_one_file);
    CP.check(["f", "d/l"], names_of_one_file);
}

#[test]
fn refuses_a_symlink_and_its_target() {
    CP.check(["l", "f"], names_of_one_file);
    CP.check(["l2", "f"], names_of_one_file);
    CP.check(["l", "l"], names_of_one_file);
    CP.check(["l2", "l"], names_of_one_file);
    CP.check(["l", "l2"], names_of_one_file);
    CP.check(["l", "twin"], names_of_one_file);
}

#[test]
fn refuses_one_file_without_r() {
    CP.check_strict(["f", "f"], names_of_one_file);
    CP.check_strict(["l", "f"], names_of_one_file);
    CP.check_strict(["f", "l"], names_of_one_file);
    CP.check_strict(["l", "l2"], names_of_one_file);
    CP.check_strict(["f", "twin"], names_of_one_file);
    CP.check_strict(["-f", "l", "f"], names_of_one_file);
}

#[test]
fn takes_two_names_of_a_symlink_for_copied() {
    CP.check(["l", "l-twin"], |tree| {
        tree.file("f", b"content")
            .symlink("l", "f")
            .hardlink("l", "l-twin");
    });
}

#[test]
fn refuses_a_fifo_and_itself() {
    CP.check(["p", "p"], |tree| {
        tree.fifo("p");
    });
    CP.check(["p", "l"], |tree| {
        tree.fifo("p").symlink("l", "p");
    });
    CP.check(["p", "twin"], |tree| {
        tree.fifo("p").hardlink("p", "twin");
    });
}

#[test]
fn refuses_a_directory_as_its_own_dest() {
    CP.check(["-T", "d", "d"], names_of_one_file);
    CP.check(["-T", "d", "./d/"], names_of_one_file);
    CP.check(["-T", "d", "dl"], names_of_one_file);
    CP.check(["d", "."], names_of_one_file);
}

#[test]
fn refuses_a_directory_in_itself() {
    CP.check_messages(&["d", "d"], names_of_one_file);
    CP.check_messages(&["d", "dl"], names_of_one_file);
}

#[test]
fn goes_on_after_one_file_in_a_tree() {
    CP.check(["from", "to"], |tree| {
        tree.file("from/a", b"new")
            .file("from/b", b"new")
            .file("from/c/d", b"new")
            .hardlink("from/b", "to/from/b")
            .symlink("to/from/a", "../../from/a");
    });
}

#[test]
fn refuses_one_file_as_an_ordinary_user() {
    CP.check_as_nobody(["-f", "f", "twin"], |tree| {
        tree.file("f", b"content").mode(0o400).hardlink("f", "twin");
    });
    CP.check_as_nobody(["-f", "f", "f"], |tree| {
        tree.file("f", b"content").mode(0);
    });
}
