//! Names are bytes, and are quoted as GNU quotes them.

use std::path::Path;

use testkit::{run::Parity, tree::odd_names};

use crate::support::{RM, RMZ};

#[test]
fn quotes_odd_names() {
    for locale in ["C", "C.UTF-8"] {
        let run = |words: &str| {
            let parity = Parity::new(RMZ, "rm").words(words).args(odd_names());
            parity.env("LC_ALL", locale)
        };
        run("-rv --").check(|tree| {
            for name in odd_names() {
                let dir = tree.dir(name);
                dir.file(Path::new(name).join(name), "");
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
