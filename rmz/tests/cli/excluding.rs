//! `--exclude` and `--exclude-from`, which GNU's rm does not have.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use testkit::{
    probe::{NOBODY, is_root},
    run::{Outcome, Run, Status, plant},
    skip,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, comb},
};

use crate::support::{RM, RMZ};

const TREE: &str = "t/a.o= t/a.c= t/build/out= t/d/b.o= t/d/build/out= t/d/keep.o=";

fn tree() -> Scratch {
    let scratch = Scratch::new();
    plant(TREE)(&Tree::at(scratch.path()));
    scratch
}

#[track_caller]
fn run(dir: &Scratch, args: &[&str]) -> Outcome {
    Run::new(RMZ).args(args).current_dir(dir).output()
}

#[test]
fn entries_that_a_glob_matches_stay_with_the_directories_above() {
    RM.table().build(plant(TREE)).rows(
        r"
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
        rmz --exclude=d/**/out t
        = -t/a.o -t/a.c -t/build -t/d/b.o -t/d/keep.o
        rmz --exclude=a.? t
        = -t/build -t/d
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
        = -t/a.c -t/build -t/d/build -t/d/keep.o",
    );
}

#[test]
fn the_mark_of_the_byte_order_is_no_part_of_a_pattern() {
    let scratch = tree();
    Tree::at(scratch.path()).file("list", "\u{feff}*.o\n");
    run(&scratch, &["--exclude-from=list", "t"]).assert_success();
    assert!(scratch.path().join("t/a.o").exists());
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
fn a_pattern_that_begins_with_an_operand_is_an_error_in_each_spelling() {
    let scratch = tree();
    let absolute = scratch.path().join("t").display().to_string();
    let name = scratch.path().file_name().unwrap().to_str().unwrap();
    let through_parent = format!("../{name}/./t");
    for operand in [
        "./t",
        ".//t",
        "././t/.",
        "t/./",
        "t/d/..",
        &through_parent,
        &absolute,
    ] {
        let outcome = run(&scratch, &["--exclude=t/d", operand]);
        assert_eq!(outcome.status, Status::Exit(1), "{operand}");
        let expected =
            format!("rmz: invalid pattern 't/d': it is relative to '{operand}'; write '/d'\n");
        assert_eq!(outcome.stderr_text(), expected);
        assert!(scratch.path().join("t/d/b.o").exists());
    }
}

/// rsync takes such a pattern for the path below the directory of the operand.
#[test]
fn a_pattern_that_begins_with_the_name_of_an_operand_elsewhere_is_an_error() {
    let scratch = tree();
    Tree::at(scratch.path()).dir("elsewhere/deep");
    let absolute = scratch.path().join("t").display().to_string();
    let name = scratch.path().file_name().unwrap().to_str().unwrap();
    let with_parent = format!("{name}/t/d");
    for operand in ["../../t", &absolute] {
        for pattern in ["t/d", "!t/d", &with_parent] {
            let args = [&format!("--exclude={pattern}"), operand];
            let dir = scratch.path().join("elsewhere/deep");
            let outcome = Run::new(RMZ).args(args).current_dir(dir).output();
            assert_eq!(outcome.status, Status::Exit(1), "{operand} {pattern}");
            let meant = if pattern.starts_with('!') {
                "!/d"
            } else {
                "/d"
            };
            let expected = format!(
                "rmz: invalid pattern '{pattern}': it is relative to '{operand}'; write '{meant}'\n"
            );
            assert_eq!(outcome.stderr_text(), expected);
            assert!(scratch.path().join("t/d/b.o").exists());
        }
    }
    // The names below an operand may begin with its own.
    let args = ["--exclude=/t/d", "--exclude=d/t", "../../t"];
    let dir = scratch.path().join("elsewhere/deep");
    let outcome = Run::new(RMZ).args(args).current_dir(dir).output();
    outcome.assert_success();
    assert!(!scratch.path().join("t").exists());
}

#[test]
fn a_pattern_is_relative_to_an_operand_in_which_the_user_works() {
    let scratch = tree();
    let dir = scratch.path().join("t");
    let outcome = Run::new(RMZ)
        .args(["--exclude=d/build", "../t"])
        .current_dir(&dir)
        .output();
    outcome.assert_success();
    let left = Snapshot::of(&dir, Attributes::NAMES);
    assert!(left.kind("d/b.o").is_none() && left.kind("d/build/out").is_some());
}

#[test]
fn names_that_are_not_utf_8_are_matched() {
    let scratch = Scratch::new();
    let odd = OsStr::from_bytes(b"\xff\xfe.o");
    Tree::at(scratch.path().join("t"))
        .file(odd, "")
        .file("gone", "");
    run(&scratch, &["--exclude=??.o", "t"]).assert_success();
    assert!(scratch.path().join("t").join(odd).exists());
    assert!(!scratch.path().join("t/gone").exists());
}

#[test]
fn patterns_that_are_not_utf_8_match_bytes() {
    let scratch = Scratch::new();
    let [kept, gone] = [&b"\xff.o"[..], b"\xef.o"].map(OsStr::from_bytes);
    let tree = Tree::at(scratch.path().join("t"));
    tree.file(kept, "").file(gone, "");
    let outcome = Run::new(RMZ)
        .args([b"--exclude=[\xf0-\xff]*", &b"t"[..]].map(OsStr::from_bytes))
        .current_dir(&scratch)
        .output();
    outcome.assert_success();
    assert_eq!(outcome.stderr_text(), "");
    assert!(scratch.path().join("t").join(kept).exists());
    assert!(!scratch.path().join("t").join(gone).exists());
}

#[test]
fn an_excluded_directory_is_not_opened() {
    if !is_root() {
        skip!("only root can become another user");
    }
    let scratch = Scratch::new();
    let top = Tree::at(scratch.path().join("t"));
    top.file("secret/x", "").file("gone", "");
    for path in ["t/secret/x", "t/secret", "t", ""] {
        let path = scratch.path().join(path);
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    top.select("secret").mode(0);
    let run = |args: &[&str]| {
        let run = Run::new(RMZ).args(args).current_dir(&scratch);
        run.uid(NOBODY).output()
    };
    let outcome = run(&["--exclude=secret", "t"]);
    outcome.assert_success();
    assert_eq!(outcome.stderr_text(), "");
    assert!(!scratch.path().join("t/gone").exists());
    // Without the option, rmz would have tried.
    let outcome = run(&["t"]);
    let expected = "rmz: cannot remove 't/secret': Permission denied\n";
    assert_eq!(outcome.stderr_text(), expected);
}

#[test]
#[ignore = "slow"]
fn a_deep_tree_with_few_descriptors_keeps_what_is_excluded() {
    const DEPTH: usize = 3_000;
    let scratch = Scratch::in_memory();
    comb(scratch.path().join("t"), DEPTH, 2);
    let before = Snapshot::of(scratch.path().join("t"), Attributes::NAMES).len();
    let outcome = Run::new(RMZ)
        .args(["--exclude=f1", "t"])
        .current_dir(&scratch)
        .nofile_limit(20)
        .output();
    outcome.assert_success();
    let left = Snapshot::of(scratch.path().join("t"), Attributes::NAMES).len();
    // Each level has two directories, and a file `f0` in either. The last level is empty.
    assert_eq!(left, before - 2 * DEPTH - 1);
}
