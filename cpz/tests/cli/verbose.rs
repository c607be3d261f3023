//! `-v`: a whole line for each copied entry.

use crate::support::CP;

#[test]
fn each_copied_entry_is_reported() {
    CP.rows(
        r"
        # Entries of all types are reported.
        f=content d/f=content d/e/ l->d fifo<fifo> e/ into/
        cpz -v f d l fifo e/ into
        # Paths are reported as they were given.
        d/f= e/f/x= g/f= into/
        cpz -v .//d e//f/ $PWD/g into//
        d/f= d/e/f= into/
        cpz -v d/. into
        cpz -v d// new/
        # Entries that exist are reported, too.
        d/f=new d/l->new d/p<fifo> d/e/ old/f=old old/l->old old/p<fifo> old/e/
        cpz -vT d old
        # Entries that are not copied are not reported.
        f=content d/f=content into/f/ into/d=old
        newest cpz -v missing f d into
        # Files that cannot be read are reported as by cp.
        d/locked=content %0 d/f=content d/locked-dir/f=content d/locked-dir %0
        user cpz -v d new
        # A dest that is removed by force is reported.
        d/f=content into/d/f=old %0
        user cpz -vf d into",
    );
}
