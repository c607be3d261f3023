//! `--files0-from`: operands from a file or from stdin, as in `du`.

use testkit::{
    run::{Run, Signal, Status, Stream},
    tree::{Scratch, Tree, plant},
};

use crate::support::{RM, RMZ};

const TREE: &str = "a= b= c= d/f=";

#[test]
fn lists_of_operands() {
    RM.table().build(plant(TREE)).rows(
        r"
        # Names in a file or on stdin are removed. With an empty list, nothing is done.
        .
        rmz --files0-from=- << a\0d\0\c
        = -a -d
        rmz --files0-from=-
        =
        ./-= 'my list=a\0-\0c\0'
        rmz --files0-from 'my list' << b\0
        = -a -- -c
        # A bad name is reported, and the rest is removed.
        list=a\0\0b\0\0none\0
        rmz --files0-from=list
        ! list:2: invalid zero-length file name
        ! list:4: invalid zero-length file name
        ! cannot remove 'none': No such file or directory
        = -a -b
        # A list of lines is refused in one message: a cut name might be that of a directory.
        list='b\nc\n{b\n*9999}'
        rmz --files0-from=list
        ! list:1: a newline is not the end of a name; write NUL bytes, as find -print0 does
        # A last name without a NUL is left alone.
        'my list=a\0d/'
        rmz '--files0-from=my list'
        ! 'my list':2: 'd/' does not end in a NUL byte, so the name may be incomplete
        = -a
        rmz --files0-from=- << a\0d\c
        ! -:2: 'd' does not end in a NUL byte, so the name may be incomplete
        = -a
        # A name that is too long for the kernel is skipped.
        list=a\0{d/*100000}\0b\0
        rmz --files0-from=list
        ! list:2: File name too long
        = -a -b
        # A list that cannot be read is reported.
        .
        rmz --files0-from=none
        ! cannot open 'none' for reading: No such file or directory
        rmz --files0-from=
        ! cannot open '' for reading: No such file or directory
        rmz --files0-from=d
        ! d: read error: Is a directory
        # Operands beside a list are refused.
        rmz --files0-from=- b c << a\0
        ! extra operand 'b'
        !! file operands cannot be combined with --files0-from
        ! try
        # Prompts are refused if stdin holds the names.
        rmz --files0-from=- (-i|-I|--interactive) << a\0y\0
        ! --files0-from=- cannot be combined with -i or -I: stdin holds no answers
        ! try
        rmz --files0-from=- -i -f << a\0none\0\c
        = -a
        # Only one option can read stdin.
        rmz (--files0-from=- --exclude-from=-|--exclude-from=- --files0-from=-) << a\0
        ! --files0-from=- cannot be combined with --exclude-from=-: both read stdin
        ! try
        rmz --exclude-from=- (-i|-I) a << b y
        ! --exclude-from=- cannot be combined with -i or -I: stdin holds no answers
        ! try
        rmz --exclude-from=- -i -f a d << f
        = -a
        # Prompts about a list in a file are answered on stdin.
        list=a\0d\0
        rmz --files0-from=list -I << n
        ! remove the files named in 'list'?
        ? 0
        rmz --files0-from=list -I << y
        ! remove the files named in 'list'?
        ? 0
        = -a -d
        rmz --files0-from=list -i << n n
        ! remove regular empty file 'a'?
        ! descend into directory 'd'?
        ? 0",
    );
    let closed = RM.table();
    let closed = closed.setting(|parity| parity.in_script(r#"exec "$@" <&-"#));
    closed.rows("f= \n rmz --files0-from=- \n ! -: read error: Bad file descriptor");
}

#[test]
fn without_recursion() {
    RM.table().build(plant(TREE)).rows(
        r"
        # A tree stays that has taken the place of a file in a list: another user may exchange it.
        e/
        rmz (--no-recursive|-r --no-recursive) --files0-from=- << a\0d\0b\0\c
        ! cannot remove 'd': Is a directory
        = -a -b
        rmz --no-recursive -r --files0-from=- << d\0\c
        = -d
        # Only empty directories are removed, and only if asked for.
        rmz --no-recursive d e a
        ! cannot remove 'd': Is a directory
        ! cannot remove 'e': Is a directory
        = -a
        rmz --no-recursive -d d e
        ! cannot remove 'd': Directory not empty
        = -e",
    );
}

/// `d` is a part of the name of a file in that directory.
#[test]
fn a_part_of_a_name_is_not_removed_after_a_signal() {
    let scratch = Scratch::new();
    plant(TREE)(&Tree::at(&scratch));
    let run = Run::new(RMZ).arg("--files0-from=-");
    let mut live = run.current_dir(&scratch).start();
    // The message shows that rmz has read all of this.
    live.write("a\0\0d");
    live.wait_for(Stream::Stderr, "-:2: invalid zero-length file name\n");
    live.signal(Signal::TERM);
    let outcome = live.finish();
    assert_eq!(outcome.status, Status::Signal(15), "{outcome}");
    for name in ["a", "b", "c", "d/f"] {
        assert!(scratch.at(name).exists(), "{name}");
    }
}
