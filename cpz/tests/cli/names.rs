//! Names are quoted as GNU quotes them. The tests of rmz have more of them.

use crate::support::CP;

#[test]
fn names_that_are_long_or_begin_with_a_dash() {
    CP.rows(
        r#"
        # Names in lines are quoted.
        'd/new\nline=' d/it\'s= 'd/a b="'
        cpz -v d new
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
        cpz f -"#,
    );
}
