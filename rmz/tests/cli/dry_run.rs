//! `--dry-run`, which GNU's rm does not have: what a real run would print, and nothing is removed.

use testkit::{run::check_dry_run, tree::plant};

use crate::support::{RM, RMZ};

#[test]
fn plans() {
    RM.rows(
        r"
        # A plan ends with the entries and the bytes that would be removed.
        d/a=12345 d/e/b=123 d/l->a
        rmz --dry-run=total d
        > would remove 5 entries, 8 B
        rmz --dry-run d
        > would remove 'd/a'
        > would remove 'd/e/b'
        > would remove 'd/l'
        > would remove directory 'd/e'
        > would remove directory 'd'
        > would remove 5 entries, 8 B
        # Each operand is seen as if no other one had been removed.
        d/a=
        rmz --dry-run d/a d
        > would remove 'd/a'
        > would remove 'd/a'
        > would remove directory 'd'
        > would remove 3 entries, 0 B
        # A directory may be read but not searched.
        a/f= a %400
        user rmz --dry-run -i a a/f << y y
        > would remove 0 entries, 0 B
        ! descend into write-protected directory 'a'?
        ! cannot remove 'a/f': Permission denied
        ! remove write-protected directory 'a'?
        ! cannot remove 'a': Directory not empty
        ! cannot remove 'a/f': Permission denied
        # A directory stays if something in it cannot be removed.
        d/e/f= d/g= d/e %555
        user rmz --dry-run d
        > would remove 'd/g'
        > would remove 1 entry, 0 B
        ! cannot remove 'd/e/f': Permission denied
        user rmz --verbose d
        > removed 'd/g'
        ! cannot remove 'd/e/f': Permission denied
        = -d/g
        # The questions are those of a real run, and the answers count.
        d/a=
        rmz --dry-run -i d << y n y
        > would remove 0 entries, 0 B
        ! descend into directory 'd'?
        ! remove regular empty file 'd/a'?
        ! remove directory 'd'?
        ! cannot remove 'd': Directory not empty
        rmz -i d << y n y
        ! descend into directory 'd'?
        ! remove regular empty file 'd/a'?
        ! remove directory 'd'?
        ! cannot remove 'd': Directory not empty
        # A directory that keeps an entry may not be removed.
        a/d/f= :1 a/d :1 %777 a :1
        user rmz --dry-run -i a/d << y n y
        > would remove 0 entries, 0 B
        ! descend...
        ! remove...
        ! remove...
        ! cannot remove 'a/d': Permission denied
        user rmz -i a/d << y n y
        ! descend...
        ! remove...
        ! remove...
        ! cannot remove 'a/d': Permission denied",
    );
    let told = check_dry_run(RMZ, &["/", ".", "none", "d/.."], plant("d/"));
    told.assert_status(1);
    assert_eq!(told.stdout_text(), "would remove 0 entries, 0 B\n");
}
