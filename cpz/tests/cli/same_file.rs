//! A file is not copied to itself, under any name.

use testkit::tree::plant;

use crate::support::CP;

const NAMES: &str = "f=content twin==f l->f l2->l d/f=other d/l->../f dl->d";

#[test]
fn one_file_under_any_name() {
    CP.table().build(plant(NAMES)).rows(
        r"
        # A file is refused as its own dest, also by force.
        cpz f (f|./f|$PWD/f|.)
        cpz d/f (d|dl/f)
        cpz -f f (f|./f|twin|l)
        cpz -f l f
        # So is a hard link of it.
        cpz (f twin|twin f)
        # So is a symlink to it, and its target.
        cpz f (l|l2|d/l)
        cpz (l|l2) f
        cpz l (l|l2|twin)
        cpz l2 l
        # So they are without -r.
        cp (f f|l f|f l|l l2|f twin|-f l f)
        # A directory is refused as its own dest.
        cpz -T d (d|./d/|dl)
        cpz d .
        # Two names of a symlink count as copied.
        l-twin==l
        cpz l l-twin
        # A FIFO is refused, too.
        p<fifo> lp->p pp==p
        cpz p (p|lp|pp)",
    );
    CP.rows(
        r"
        # Others in a tree are copied.
        from/a=new from/b=new from/c/d=new to/from/b==from/b to/from/a->../../from/a
        cpz from to
        # An ordinary user is refused, too.
        f=content %400 twin==f
        user cpz -f f twin
        f=content %0
        user cpz -f f f",
    );
}
