//! A file is not copied to itself, by whatever name.

use testkit::tree::Tree;

use crate::support::{cp_r, cp_r_as_nobody, same_words, strict_cp};

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
    cp_r(["f", "f"], names_of_one_file);
    cp_r(["f", "./f"], names_of_one_file);
    cp_r(["f", "$PWD/f"], names_of_one_file);
    cp_r(["f", "."], names_of_one_file);
    cp_r(["d/f", "d"], names_of_one_file);
    cp_r(["d/f", "dl/f"], names_of_one_file);
}

#[test]
fn refuses_a_file_and_itself_even_if_forced() {
    cp_r(["-f", "f", "f"], names_of_one_file);
    cp_r(["-f", "f", "./f"], names_of_one_file);
    cp_r(["-f", "f", "twin"], names_of_one_file);
    cp_r(["-f", "f", "l"], names_of_one_file);
    cp_r(["-f", "l", "f"], names_of_one_file);
}

#[test]
fn refuses_a_file_and_its_hard_link() {
    cp_r(["f", "twin"], names_of_one_file);
    cp_r(["twin", "f"], names_of_one_file);
}

#[test]
fn refuses_a_file_and_a_symlink_to_it() {
    cp_r(["f", "l"], names_of_one_file);
    cp_r(["f", "l2"], names_of_one_file);
    cp_r(["f", "d/l"], names_of_one_file);
}

#[test]
fn refuses_a_symlink_and_what_it_leads_to() {
    cp_r(["l", "f"], names_of_one_file);
    cp_r(["l2", "f"], names_of_one_file);
    cp_r(["l", "l"], names_of_one_file);
    cp_r(["l2", "l"], names_of_one_file);
    cp_r(["l", "l2"], names_of_one_file);
    cp_r(["l", "twin"], names_of_one_file);
}

#[test]
fn refuses_one_file_without_r() {
    strict_cp(["f", "f"], names_of_one_file);
    strict_cp(["l", "f"], names_of_one_file);
    strict_cp(["f", "l"], names_of_one_file);
    strict_cp(["l", "l2"], names_of_one_file);
    strict_cp(["f", "twin"], names_of_one_file);
    strict_cp(["-f", "l", "f"], names_of_one_file);
}

#[test]
fn takes_two_names_of_a_symlink_for_copied() {
    cp_r(["l", "l-twin"], |tree| {
        tree.file("f", b"content")
            .symlink("l", "f")
            .hardlink("l", "l-twin");
    });
}

#[test]
fn refuses_a_fifo_and_itself() {
    cp_r(["p", "p"], |tree| {
        tree.fifo("p");
    });
    cp_r(["p", "l"], |tree| {
        tree.fifo("p").symlink("l", "p");
    });
    cp_r(["p", "twin"], |tree| {
        tree.fifo("p").hardlink("p", "twin");
    });
}

#[test]
fn refuses_a_directory_as_its_own_dest() {
    cp_r(["-T", "d", "d"], names_of_one_file);
    cp_r(["-T", "d", "./d/"], names_of_one_file);
    cp_r(["-T", "d", "dl"], names_of_one_file);
    cp_r(["d", "."], names_of_one_file);
}

#[test]
fn refuses_a_directory_in_itself() {
    same_words(&["d", "d"], names_of_one_file);
    same_words(&["d", "dl"], names_of_one_file);
}

#[test]
fn goes_on_after_one_file_in_a_tree() {
    cp_r(["from", "to"], |tree| {
        tree.file("from/a", b"new")
            .file("from/b", b"new")
            .file("from/c/d", b"new")
            .hardlink("from/b", "to/from/b")
            .symlink("to/from/a", "../../from/a");
    });
}

#[test]
fn refuses_one_file_as_an_ordinary_user() {
    cp_r_as_nobody(["-f", "f", "twin"], |tree| {
        tree.file("f", b"content").mode(0o400).hardlink("f", "twin");
    });
    cp_r_as_nobody(["-f", "f", "f"], |tree| {
        tree.file("f", b"content").mode(0);
    });
}
