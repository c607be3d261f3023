//! `--files0-from`: sources from a file or from stdin. The tests of rmz cover how the list is read.

use crate::support::CP;

#[test]
fn lists_of_sources() {
    CP.rows(
        r"
        # Sources go into the only operand or the target directory, also a single one.
        a=a b=b s/f=f d/ list=a\0 bad=a\0\0b\0s both=a\0s//\0
        cpz --files0-from=both (d|-t d)
        = d/a=a d/s/f=f
        cpz --files0-from=list d
        = d/a=a
        # A bad name is reported, and the rest is copied.
        cpz --files0-from=bad d
        ! bad:2: invalid zero-length file name
        ! bad:4: 's' does not end in a NUL byte, so the name may be incomplete
        = d/a=a d/b=b
        # Other operands are refused.
        cpz --files0-from=-
        ! missing destination file operand
        ! try
        cpz --files0-from=- (b d|-t d b)
        ! extra operand 'b'
        !! file operands cannot be combined with --files0-from
        ! try
        cpz --files0-from=- -T d
        ! cannot combine --files0-from and --no-target-directory (-T)
        cpz --files0-from=- b
        ! target 'b': Not a directory
        cpz --files0-from=- new
        ! target 'new': No such file or directory
        cpz --files0-from=- -i d
        ! --files0-from=- cannot be combined with -i: stdin holds no answers
        ! try",
    );
}
