//! Entries that an ordinary user may not remove are reported once, with their paths. All others are removed.

use crate::support::RM;
use testkit::needs;

#[test]
fn directories_of_odd_modes() {
    RM.rows(
        r"
        # A full directory that may not be read, searched or written to.
        d/a/f= d/sub/odd/file= d/sub/odd/dir/file= d/sub/sibling/f= d/z/f= d/sub/odd %(0|666|555|333|444|111)
        user rmz (-v d|-vf d|d/sub/odd)
        # An empty one is removed.
        d/f= d/odd/ %(0|555|333|666)
        user rmz -v (d|d/odd)
        # Files of any mode are removed.
        f= %0 d/a= %0 d/b= %444 d/c<fifo> %0
        user rmz f d",
    );
}

#[test]
fn entries_that_may_not_be_removed() {
    RM.rows(
        r"
        # Operands in a directory without w stay, also an empty one.
        f= d/f= l->d . %555
        user rmz f d l missing
        d/ . %555
        user rmz -v d
        # Operands below a directory without x are reported.
        d/f= d/sub/f= d %666
        user rmz (|-f) d/f d/missing d/sub/f
        # Several locked directories stay, and the rest goes.
        d/1/locked/f= d/1/f= d/2/3/locked/f= d/2/3/f= d/2/locked/f= e/f=
        d/1/locked %0 d/2/3/locked %555 d/2/locked %111
        user rmz -v d e
        d/x/y/z= d/x/y %555 d/x %555
        user rmz d
        # Each file that stays is reported.
        d/a= d/b= d/c->a d/e/ d/g/h= d %555
        user rmz d
        # The entries of a directory of another user stay.
        d/theirs/f= :1 d/theirs/empty/ :1 d/theirs :1 d/their-empty/ :1 d/their-file= :1 d/ours=
        user rmz -v d
        # So do those of other users in a sticky directory.
        d/sticky/theirs= :1 d/sticky/their-dir/ :1 d/sticky/ours= d/sticky/our-dir/ d/sticky :1 %1777
        user rmz -v d",
    );
}

#[test]
fn reports_an_unreadable_directory_that_may_not_be_removed() {
    needs!(root, "setpriv");
    let script = r#"chown -R 65534:65534 d && chattr +i d
        setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; status=$?
        chattr -i d; exit $status"#;
    let table = RM.table().setting(|parity| parity.in_script(script));
    table.rows("d/sub/ %0 \n newest rmz (-v|-f|-d) d/sub");
}
