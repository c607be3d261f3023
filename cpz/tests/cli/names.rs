//! Names are bytes, and are quoted as GNU quotes them.

use std::path::Path;

use testkit::{run::Parity, tree::odd_names};

use crate::support::{CP, CPZ};

#[test]
fn quotes_odd_names() {
    Parity::new(CPZ, "cp")
        .words("-rvt into --")
        .args(odd_names())
        .check(|tree| {
            for name in odd_names() {
                tree.file(Path::new(name).join(name), b"content");
            }
            tree.dir("into");
        });
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
