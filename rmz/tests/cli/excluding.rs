//! `--exclude` and `--exclude-from`, which GNU's rm does not have.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use testkit::{
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, comb, plant},
};

use crate::support::{RM, rmz};

const TREE: &str = "t/a.o= t/a.c= t/build/out= t/d/b.o= t/d/build/out= t/d/keep.o=";

#[test]
fn entries_that_a_glob_matches_stay_with_the_directories_above() {
    RM.table().build(plant(TREE)).rows(
        r#"
        # What a glob matches stays, and the directories above.
        rmz --exclude=*.o t
        = -t/a.c -t/build -t/d/build
        rmz --exclude /build t
        = -t/a.o -t/a.c -t/d
        rmz --exclude=build/ t
        = -t/a.o -t/a.c -t/d/b.o -t/d/keep.o
        # The last pattern counts.
        rmz --exclude=*.o --exclude=!keep.o t
        = -t/a.c -t/build -t/d/build -t/d/keep.o
        rmz --exclude=!keep.o --exclude=*.o t
        = -t/a.c -t/build -t/d/build
        rmz --exclude=[!a].o --threads=4 t
        = -t/a.o -t/a.c -t/build -t/d/build -t/d/keep.o
        rmz --exclude=a.o/ t
        = -t
        # Spaces at the end of a pattern do not count.
        rmz '--exclude=a.o  ' '--exclude=b.o \x0d' t
        = -t/a.c -t/build -t/d/build -t/d/keep.o
        # Only what is removed is named and asked about.
        rmz -v --exclude=/d --exclude=a.? t
        > removed 't/build/out'
        > removed directory 't/build'
        = -t/build
        rmz -i --exclude=/d --exclude=build --exclude=a.o t << y y
        ! descend into directory 't'?
        ! remove regular empty file 't/a.c'?
        ? 0
        = -t/a.c
        # Patterns come from files and stdin in order.
        list='# objects\n*.o\x0d\n\n\\#odd  \n' t/#odd=
        rmz --exclude-from=list --exclude-from - --exclude=b.o t << !*.o a.o\c
        = -t/a.c -t/build -t/d/build -t/d/keep.o
        # A byte order mark at the start of a file does not belong to its first pattern.
        .
        sh:'printf "\\357\\273\\277*.o" | "$@"' rmz --exclude-from=- t
        = -t/a.c -t/build -t/d/build"#,
    );
}

#[test]
fn operands_and_globs() {
    RM.rows(
        r"
        # A shell expands * to operands, of which one must stay.
        a1= a2= b= d/d1= list=a1\0a2\0d\0b\0
        rmz --exclude=a* a1 ./a2 d/ b
        = -d -b
        rmz --exclude=d/ a1 a2 d b
        = -a1 -a2 -b
        rmz --exclude=a* --exclude=!a1 a1 a2 d b
        = -a1 -d -b
        rmz --exclude=/a1 a1 a2 d b
        = -a1 -a2 -d -b
        rmz --exclude=* --exclude=!x a1 d
        = -a1
        rmz --exclude=[ab]* -I a1 a2 b
        =
        rmz --exclude=a1 --files0-from=list
        = -a2 -d -b
        # Globs with a slash are relative to each operand.
        t/x= u/t/x= u/x= x=
        rmz --exclude=/x --exclude=/t t/ u x
        = -x",
    );
}

#[test]
fn wrong_patterns_are_errors_before_anything_is_removed() {
    RM.table().build(plant(TREE)).rows(
        r"
        list='*.o\n\n[a\n' dir/ patterns='*.o\n\nt/d/\n'
        rmz --exclude-from=none t
        ! cannot open 'none' for reading: No such file or directory
        rmz --exclude-from=dir t
        ! error reading 'dir': Is a directory
        rmz --exclude-from=list t
        ! list:3: invalid pattern '[a': no ']' follows '['
        rmz --exclude=a\\ t
        ! invalid pattern 'a\': nothing follows the last backslash
        rmz --exclude= t
        ! invalid pattern '': it is empty
        rmz --exclude=./a.o t
        ! invalid pattern './a.o': it is relative to each operand, where nothing is called '.' or '..'
        rmz --exclude=../a.o t
        ! invalid pattern '../a.o': it is relative to each operand, where nothing is called '.' or '..'
        # The user means it in another way.
        rmz --exclude=t/d t
        ! invalid pattern 't/d': it is relative to 't'; write '/d'
        rmz --exclude=!t/d/ t//
        ! invalid pattern '!t/d/': it is relative to 't//'; write '!/d/'
        rmz --exclude=$PWD/t/d t
        ! invalid pattern '$PWD/t/d': it is relative to 't'; write '/d'
        rmz '--exclude={a,b}.o' t
        ! invalid pattern '{a,b}.o': braces are not expanded; give one option for each alternative, or write '\{'
        rmz --exclude-from=patterns ./t
        ! patterns:3: invalid pattern 't/d/': it is relative to './t'; write '/d/'
        # It matches an operand or a directory above it.
        rmz --exclude=t/d t/a.c t/d
        ! invalid pattern 't/d': it is relative to each operand, and so does not exclude 't/d'
        rmz --exclude=t/d t/a.c ./t/d/
        ! invalid pattern 't/d': it is relative to each operand, and so does not exclude './t/d/'
        rmz --exclude=t/d t/a.c t/d/build
        ! invalid pattern 't/d': it is relative to each operand, and so does not exclude 't/d/build'
        rmz --exclude=t/d t/a.c .//t/d/b.o
        ! invalid pattern 't/d': it is relative to each operand, and so does not exclude './/t/d/b.o'
        rmz --exclude=t/*.o t/a.c ./t/a.o
        ! invalid pattern 't/*.o': it is relative to each operand, and so does not exclude './t/a.o'
        rmz --exclude=**/build t/a.c t/d/build/out
        ! invalid pattern '**/build': it is relative to each operand, and so does not exclude 't/d/build/out'
        # These are none of that.
        rmz --exclude=t*/d --exclude=/t/d --exclude=tt/d t
        = -t
        rmz --exclude=*/* --exclude=!t/d --exclude=t/e t/d
        = -t/d/b.o -t/d/keep.o
        # A name in a list with which a pattern begins is left out.
        patterns='t/d\n' u= list=./t\0t/d/b.o\0./u\0
        rmz --exclude=t/d --files0-from=list
        ! list:1: invalid pattern 't/d': it is relative to './t'; write '/d'
        ! list:2: invalid pattern 't/d': it is relative to each operand, and so does not exclude 't/d/b.o'
        = -u
        rmz --exclude-from=patterns --files0-from=list
        ! list:1: patterns:1: invalid pattern 't/d': it is relative to './t'; write '/d'
        ! list:2: patterns:1: invalid pattern 't/d': it is relative to each operand, and so does not exclude 't/d/b.o'
        = -u",
    );
    let closed = RM.table();
    let closed = closed.setting(|parity| parity.in_script(r#"exec "$@" <&-"#));
    closed.rows(
        "# A closed stdin holds no patterns.
        f=
        rmz --exclude-from=- f
        ! error reading '-': Bad file descriptor",
    );
}

#[test]
fn names_and_patterns_that_are_not_utf_8_are_bytes() {
    let scratch = Scratch::new();
    let [kept, gone] = [&b"t/\xff\xfe.o"[..], b"t/\xef\xfe.o"].map(OsStr::from_bytes);
    Tree::at(&scratch).file(kept, "").file(gone, "");
    let args = [b"--exclude=[\xf0-\xff]?.o", &b"t"[..]].map(OsStr::from_bytes);
    rmz(&scratch, args).output().assert_success();
    let left = [kept, gone].map(|name| scratch.at(name).exists());
    assert_eq!(left, [true, false]);
}

#[test]
#[ignore = "slow"]
fn a_deep_tree_with_few_descriptors_keeps_what_is_excluded() {
    const DEPTH: usize = 3_000;
    let scratch = Scratch::in_memory();
    comb(scratch.at("t"), DEPTH, 2);
    let before = Snapshot::of(scratch.at("t"), Attributes::NAMES).len();
    let outcome = rmz(&scratch, "--exclude=f1 t").nofile_limit(20).output();
    outcome.assert_success();
    let left = Snapshot::of(scratch.at("t"), Attributes::NAMES).len();
    // Each level has two directories, and a file `f0` in either. The last level is empty.
    assert_eq!(left, before - 2 * DEPTH - 1);
}

#[test]
fn operands_elsewhere() {
    RM.rows(
        r#"
        # A pattern that begins with an operand is an error in each spelling.
        t/d/b.o=
        rmz --exclude=t/d (./t|.//t|././t/.|t/./|t/d/..|$PWD/t)
        ! invalid pattern 't/d': it is relative to '...t...'; write '/d'
        # rsync takes such a pattern for the path below the directory of the operand.
        up/t/d/b.o= elsewhere/deep/
        sh:'cd elsewhere/deep; exec "$@"' rmz (--exclude=t/d|--exclude=!t/d|--exclude=up/t/d) (../../up/t|$PWD/up/t)
        ! invalid pattern '...t/d': it is relative to '...up/t'; write '.../d'
        # The names below an operand may begin with its own.
        sh:'cd elsewhere/deep; exec "$@"' rmz --exclude=/t/d --exclude=d/t ../../up/t
        = -up/t
        # A pattern is relative to an operand in which the user works.
        t/a= t/d/build/out= t/d/b.o=
        sh:'cd t; exec "$@"' rmz --exclude=d/build ../t
        = -t/a -t/d/b.o
        # An excluded directory is not opened. Without the option, rmz would have tried.
        t/secret/x= t/gone= t/secret %0
        user rmz --exclude=secret t
        = -t/gone
        user rmz t
        ! cannot remove 't/secret': Permission denied
        = -t/gone"#,
    );
}
