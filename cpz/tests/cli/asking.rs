//! `-i` asks about each dest that would be replaced. After a no, older releases exit with 0.

use crate::support::NEWEST_CP;

#[test]
fn dests_are_asked_about() {
    NEWEST_CP.rows(
        r"
        # Each is asked about before it is overwritten.
        a=new b=old %444 l->b dangling->nowhere p<fifo> d/a=older %6751 d/b=older %1200
        from/d/f=new from/e=new from/g=new d/d/f=old d/e=old
        cpz -i -v a b << (y|n)
        cpz -i -v a (b|new)
        cpz -i -v a b d << (y n|n y)
        # Files in a tree are asked about, and directories are not.
        cpz -i -v -T from d << (y y|n n)
        # Links and FIFOs are asked about.
        cpz -i (a l|l b|-T p b|a dangling|-b a dangling) << y
        # An ordinary user is asked about dests that may not be written to.
        user cpz -i (|-f|--remove-destination) a b << y
        user cpz -i -b a l << y
        user cpz -i a l << n
        user cpz -i a b d << n n
        # Copies that are impossible or needless are not asked about.
        cpz -i (b b|-u b a|-T from a) << y
        # A directory in the way is found after the question.
        cpz -i -T a d << y
        # The last of -i and -n counts.
        cpz -i (-n|-n -i) a b << y
        # The status is 1 after a no.
        a=new b=old
        cpz -i a b << n
        ! overwrite 'b'?
        cpz -i a b << y
        ! overwrite 'b'?
        ? 0
        = b=new",
    );
}
