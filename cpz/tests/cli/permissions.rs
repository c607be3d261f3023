//! Entries that an ordinary user may not read or write are reported once, with their paths. All others are copied.

use crate::support::CP;

#[test]
fn directories_of_odd_modes() {
    CP.rows(
        r"
        # A directory that may not be read, searched or written to, with entries or empty, or as an operand.
        d/{a,z,odd,odd/sub}/f=content d/f=content d/odd/l->f d/odd/p<fifo> d/odd %(0|111|444|333|666|555)
        user cpz d new
        d/{a,z}/f=content d/f=content d/odd/ %(0|111|444|333|666|555)
        user cpz d new
        odd/f=content odd %(0|111|444|333|666|555)
        user cpz odd new
        # The same into an existing directory.
        d/{a,z,odd}/f=content d/f=content d/odd %(0|111|444|333|666|555) new/d/odd/
        user cpz d new
        # Directories that may not be written to are copied.
        d/1/2/f=content %400 d/1/2 %500 d/1 %555 d %555
        user cpz d new",
    );
}

#[test]
fn sources_that_may_not_be_read() {
    CP.rows(
        r"
        # Files that may not be read are reported.
        d/{a,z}/f=content d/f=content d/locked=content %0 d/locked-empty= %0 d/a/write-only=content %222
        user cpz d new
        # So are operands.
        f=content %0 old=old
        user cpz f (new|old)
        f=content %0 g=content into/f=old
        user cpz -f f g into
        # So are sources below a directory without x.
        d/f= d/sub/ into/ d %666
        user cpz d/f d/sub d/missing into
        # So are files of other users.
        d/{a,z}/f=content d/f=content d/theirs=content :1:1 %640 d/readable=content :1:1 %4755 into/d/f=old :1:1
        user cpz d into",
    );
}

#[test]
fn dests_that_may_not_be_written_to() {
    CP.rows(
        r"
        # A directory without w or x gets no copies.
        d/f=content f=content l->f p<fifo> into/ %(555|666)
        user cpz d f l p into
        user cpz f into/new
        # Neither does one below the dest.
        d/{a,z}/f=content d/f=content d/a/l->f d/a/p<fifo> d/a/sub/f=content into/d/a/ %(555|666)
        user cpz d into
        # A file without w is reported.
        d/{a,z}/f=content d/f=content into/d/f=old %444
        user cpz d into",
    );
}
