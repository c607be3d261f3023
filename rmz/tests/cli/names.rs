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

#[test]
fn quotes_odd_names() {
    for locale in ["C", "C.UTF-8"] {
        let run = |words: &str| {
            let parity = Parity::new(RMZ, "rm").words(words).args(odd());
            parity.env("LC_ALL", locale)
        };
        run("-rv --").check(|tree| {
            for name in odd() {
                let dir = tree.dir(name);
                dir.file(std::path::Path::new(name).join(name), "");
            }
        });
        run("-r --").check(|_| {});
    }
}

#[test]
fn names_that_are_long_or_short_or_begin_with_a_dash() {
    RM.rows(
        r"
        # Names may have 255 bytes, and no more.
        {n*255}/{n*255}=
        rmz -v {n*255}
        rmz {n*256} {d/*3000}/x
        rmz -f {n*256}
        # Names may begin with a dash.
        ./-v= ./-= --/ ./--progress= ./-f=
        rmz -v -- -v - -- --progress ./-f
        rmz -v -
        # The empty name is missed, but not by force.
        f= g=
        rmz ''
        rmz f '' g
        rmz -f '' f
        # Names of dots are removed that are neither dot nor dot dot.
        .../ .x= ..x/..y=
        rmz -v ... .x ..x",
    );
}
