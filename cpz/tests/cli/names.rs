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
        .words("-rvt into --")
        .args(odd())
        .check(odd_tree);
}

#[test]
fn names_that_are_long_or_begin_with_a_dash() {
    CP.rows(
        r"
        # The target is quoted.
        .
        bare cpz -rt new\nline f
        bare cpz (-r|-rT) f g it\'s
        # Names may have 255 bytes, and no more.
        {n*255}/{n*255}=content f=content d/f=content l->f p<fifo> into/
        cpz -v {n*255} new
        cpz f {n*255}
        cpz {n*256} new
        cpz (f|d|l|p|f d) {n*256}
        # Names may begin with a dash.
        ./-v=content ./-=content --/f=content ./-t/ f=content
        cpz -v -- -v - -- -t
        cpz f -",
    );
}
