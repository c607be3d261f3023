//! Names are bytes, and are quoted as GNU quotes them.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

use testkit::run::Parity;

use crate::support::{RM, RMZ};

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

fn rm_rv_odd(locale: &str, operands: impl Iterator<Item = &'static OsStr>) {
    Parity::new(RMZ, "rm")
        .args(["-rv", "--"])
        .args(operands)
        .env("LC_ALL", locale)
        .check(|tree| {
            for name in odd() {
                let dir = tree.dir(name);
                dir.file(std::path::Path::new(name).join(name), "");
            }
        });
}

#[test]
fn quotes_odd_names() {
    rm_rv_odd("C", odd());
}

#[test]
fn quotes_odd_names_in_utf_8() {
    rm_rv_odd("C.UTF-8", odd());
}

#[test]
fn quotes_odd_names_that_are_missing() {
    Parity::new(RMZ, "rm")
        .args(["-r", "--"])
        .args(odd())
        .check(|_| {});
}

#[test]
fn quotes_odd_names_that_are_missing_in_utf_8() {
    Parity::new(RMZ, "rm")
        .args(["-r", "--"])
        .args(odd())
        .env("LC_ALL", "C.UTF-8")
        .check(|_| {});
}

#[test]
fn removes_names_of_255_bytes() {
    let name = "n".repeat(255);
    RM.check(["-v", &name], |tree| {
        tree.file(format!("{name}/{name}"), "");
    });
}

#[test]
fn reports_names_that_are_too_long() {
    RM.check(
        ["n".repeat(256), format!("{}/x", "d/".repeat(3000))],
        |_| {},
    );
    RM.check(["-f".to_owned(), "n".repeat(256)], |_| {});
}

#[test]
fn removes_names_that_begin_with_a_dash() {
    RM.check(
        ["-v", "--", "-v", "-", "--", "--threads=x", "./-f"],
        |tree| {
            tree.file("-v", "")
                .file("-", "")
                .dir("--")
                .file("--threads=x", "")
                .file("-f", "");
        },
    );
}

#[test]
fn takes_a_lone_dash_for_a_name() {
    RM.check(["-v", "-"], |tree| {
        tree.file("-", "");
    });
}

#[test]
fn hints_at_a_file_named_like_an_option() {
    Parity::new(RMZ, "rm").args(["-foo"]).check(|tree| {
        tree.file("-foo", "");
    });
}

#[test]
fn misses_the_empty_name() {
    RM.check([""], |tree| {
        tree.file("f", "");
    });
    RM.check(["f", "", "g"], |tree| {
        tree.file("f", "").file("g", "");
    });
}

#[test]
fn ignores_the_empty_name_if_forced() {
    RM.check(["-f", "", "f"], |tree| {
        tree.file("f", "");
    });
}

#[test]
fn removes_names_of_dots_that_are_neither_dot_nor_dot_dot() {
    RM.check(["-v", "...", ".x", "..x"], |tree| {
        tree.dir("...").file(".x", "").file("..x/..y", "");
    });
}
