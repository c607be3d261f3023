//! Names are bytes, and are quoted as GNU quotes them.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, path::Path};

use testkit::{run::Parity, tree::Tree};

use crate::support::{CP, CPZ};

const ODD: [&[u8]; 12] = [
    b"new\nline",
    b"tab\tcr\r",
    b"\xff\xfe",
    b"caf\xc3\xa9",
    b"it's",
    b"\"double\"",
    b"both\"'",
    b"back\\slash",
    b" space ",
    b"$(x)`y`;*?",
    b"~#{[!",
    b"\x01\x1b\x7f",
];

fn odd() -> impl Iterator<Item = &'static OsStr> {
    ODD.iter().map(|bytes| OsStr::from_bytes(bytes))
}

fn odd_tree(tree: &Tree) {
    for name in odd() {
        tree.file(Path::new(name).join(name), b"content");
    }
    tree.dir("into");
}

#[test]
fn quotes_odd_names() {
    Parity::new(CPZ, "cp")
        .args(["-rvt", "into", "--"])
        .args(odd())
        .check(odd_tree);
}

#[test]
fn quotes_odd_names_in_utf_8() {
    Parity::new(CPZ, "cp")
        .args(["-rvt", "into", "--"])
        .args(odd())
        .env("LC_ALL", "C.UTF-8")
        .check(odd_tree);
}

#[test]
fn quotes_odd_names_that_are_missing() {
    Parity::new(CPZ, "cp")
        .args(["-rvt", ".", "--"])
        .args(odd())
        .check(|_| {});
}

#[test]
fn quotes_odd_names_that_are_the_target() {
    Parity::new(CPZ, "cp")
        .args(["-rt", "new\nline", "f"])
        .check(|_| {});
    Parity::new(CPZ, "cp")
        .args(["-r", "f", "g", "it's"])
        .check(|_| {});
    Parity::new(CPZ, "cp")
        .args(["-rT", "f", "g", "it's"])
        .check(|_| {});
}

#[test]
fn copies_names_of_255_bytes() {
    let name = "n".repeat(255);
    CP.check(["-v", &name, "new"], |tree| {
        tree.file(format!("{name}/{name}"), b"content");
    });
    CP.check(["f", &name], |tree| {
        tree.file("f", b"content");
    });
}

#[test]
fn reports_names_that_are_too_long() {
    let name = "n".repeat(256);
    let build = |tree: &Tree| {
        tree.file("f", b"content")
            .file("d/f", b"content")
            .symlink("l", "f")
            .fifo("p")
            .dir("into");
    };
    CP.check([&name, "new"], build);
    CP.check(["f", &name], build);
    CP.check(["d", &name], build);
    CP.check(["l", &name], build);
    CP.check(["p", &name], build);
    CP.check(["f", "d", &name], build);
}

#[test]
fn copies_names_that_begin_with_a_dash() {
    CP.check(["-v", "--", "-v", "-", "--", "-t"], |tree| {
        tree.file("-v", b"content")
            .file("-", b"content")
            .file("--/f", b"content")
            .dir("-t");
    });
}

#[test]
fn takes_a_lone_dash_for_a_name() {
    CP.check(["f", "-"], |tree| {
        tree.file("f", b"content");
    });
}
