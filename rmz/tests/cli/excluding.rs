//! `--exclude` and `--exclude-from`, which GNU's rm does not have.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use testkit::{
    probe::{NOBODY, is_root},
    run::{Outcome, Run, Status, normal_lines},
    skip,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, comb},
};

use crate::support::{RM, RMZ};

#[track_caller]
fn run(dir: &Scratch, args: &[&str]) -> Outcome {
    Run::new(RMZ).args(args).current_dir(dir).output()
}

/// Runs rmz, and asserts that it prints nothing and leaves exactly these paths in the tree `t`.
#[track_caller]
fn leaves(dir: &Scratch, args: &[&str], expected: &[&str]) {
    let outcome = run(dir, args);
    outcome.assert_success();
    assert_eq!(
        (outcome.stdout_text(), outcome.stderr_text()),
        Default::default()
    );
    let left = Snapshot::of(dir.path().join("t"), Attributes::NAMES);
    for path in expected {
        assert!(left.kind(path).is_some(), "{path} is gone");
    }
    // The snapshot also holds the tree itself.
    assert_eq!(left.len(), expected.len() + 1, "{args:?}: {left:?}");
}

fn tree() -> Scratch {
    let scratch = Scratch::new();
    Tree::at(scratch.path().join("t"))
        .file("a.o", "")
        .file("a.c", "")
        .file("build/out", "")
        .file("d/b.o", "")
        .file("d/build/out", "")
        .file("d/keep.o", "");
    scratch
}

#[test]
fn leaves_alone_what_a_glob_matches_and_the_directories_above() {
    for (globs, expected) in [
        (
            &["--exclude=*.o"][..],
            &["a.o", "d", "d/b.o", "d/keep.o"][..],
        ),
        (&["--exclude", "/build"], &["build", "build/out"]),
        (
            &["--exclude=build/"],
            &["build", "build/out", "d", "d/build", "d/build/out"],
        ),
        (
            &["--exclude=*.o", "--exclude=!keep.o"],
            &["a.o", "d", "d/b.o"],
        ),
        (
            &["--exclude=!keep.o", "--exclude=*.o"],
            &["a.o", "d", "d/b.o", "d/keep.o"],
        ),
        (&["--exclude=d/**/out"], &["d", "d/build", "d/build/out"]),
        (&["--exclude=a.?"], &["a.o", "a.c"]),
        (&["--exclude=[!a].o", "--threads=4"], &["d", "d/b.o"]),
        (&["--exclude=a.o/"], &[]),
    ] {
        let scratch = tree();
        if expected.is_empty() {
            run(&scratch, &[globs, &["t"]].concat()).assert_success();
            assert!(!scratch.path().join("t").exists());
        } else {
            leaves(&scratch, &[globs, &["t"]].concat(), expected);
        }
    }
}

/// A shell expands `*` to operands, of which one must stay.
#[test]
fn an_operand_is_excluded_by_a_glob_without_a_slash() {
    let scratch = Scratch::new();
    let names = || Snapshot::of(scratch.path(), Attributes::NAMES);
    for (args, left) in [
        (
            &["--exclude=a*", "a1", "./a2", "d/", "b"][..],
            &["a1", "a2"][..],
        ),
        (&["--exclude=d/", "a1", "a2", "d", "b"], &["d", "d/d1"]),
        (
            &["--exclude=a*", "--exclude=!a1", "a1", "a2", "d", "b"],
            &["a2"],
        ),
        (&["--exclude=/a1", "a1", "a2", "d", "b"], &[]),
        (
            &["--exclude=*", "--exclude=!x", "a1", "d"],
            &["a2", "b", "d", "d/d1"],
        ),
        (
            &["--exclude=[ab]*", "-I", "a1", "a2", "b"],
            &["a1", "a2", "b", "d", "d/d1"],
        ),
        (&["--exclude=a1", "--files0-from=list"], &["a1", "list"]),
    ] {
        let tree = Tree::at(scratch.path());
        tree.file("a1", "")
            .file("a2", "")
            .file("b", "")
            .file("d/d1", "");
        if args.contains(&"--files0-from=list") {
            tree.file("list", "a1\0a2\0d\0b\0");
        }
        let outcome = run(&scratch, args);
        outcome.assert_success();
        assert_eq!(outcome.stderr_text(), "");
        let found = names();
        for name in left {
            assert!(found.kind(name).is_some(), "{args:?} removes {name}");
        }
        assert_eq!(found.len(), left.len() + 1, "{args:?}: {found:?}");
    }
}

#[test]
fn a_closed_stdin_holds_no_patterns_and_is_an_error() {
    let scratch = tree();
    let closed = Run::new("sh").args(["-c", r#"exec "$0" --exclude-from=- t <&-"#, RMZ]);
    let outcome = closed.current_dir(&scratch).output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    assert_eq!(
        outcome.stderr_text(),
        "rmz: error reading '-': Bad file descriptor\n"
    );
    assert!(scratch.path().join("t/a.o").exists());
}

#[test]
fn globs_with_a_slash_are_relative_to_each_operand() {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("t/x", "")
        .file("u/t/x", "")
        .file("u/x", "")
        .file("x", "");
    run(&scratch, &["--exclude=/x", "--exclude=/t", "t/", "u", "x"]).assert_success();
    let left = Snapshot::of(scratch.path(), Attributes::NAMES);
    assert!(
        left.kind("t/x").is_some() && left.kind("u/t/x").is_some() && left.kind("u/x").is_some()
    );
    assert!(left.kind("x").is_none());
}

#[test]
fn reads_patterns_from_files_and_stdin_in_order() {
    let scratch = tree();
    Tree::at(scratch.path()).file("list", "\u{feff}# objects\n*.o\r\n\n\\#odd  \n");
    Tree::at(scratch.path().join("t")).file("#odd", "");
    let args = [
        "--exclude-from=list",
        "--exclude-from",
        "-",
        "--exclude=b.o",
        "t",
    ];
    let outcome = Run::new(RMZ)
        .args(args)
        .current_dir(&scratch)
        .stdin("!*.o\na.o")
        .output();
    outcome.assert_success();
    let left = Snapshot::of(scratch.path().join("t"), Attributes::NAMES);
    for name in ["#odd", "a.o", "d/b.o"] {
        assert!(left.kind(name).is_some(), "{name} is gone");
    }
    assert_eq!(left.len(), 5);
}

#[test]
fn a_bad_file_or_pattern_is_an_error_before_anything_is_removed() {
    let scratch = tree();
    Tree::at(scratch.path())
        .file("list", "*.o\n\n[a\n")
        .dir("dir");
    for (args, expected) in [
        (
            ["--exclude-from=none", "t"],
            "cannot open 'none' for reading: No such file or directory",
        ),
        (
            ["--exclude-from=dir", "t"],
            "error reading 'dir': Is a directory",
        ),
        (
            ["--exclude-from=list", "t"],
            "list:3: invalid pattern '[a': no ']' follows '['",
        ),
        (
            ["--exclude=a\\", "t"],
            "invalid pattern 'a\\': nothing follows the last backslash",
        ),
        (["--exclude=", "t"], "invalid pattern '': it is empty"),
        (
            ["--exclude=./a.o", "t"],
            "invalid pattern './a.o': it is relative to each operand, where nothing is called '.' or '..'",
        ),
        (
            ["--exclude=../a.o", "t"],
            "invalid pattern '../a.o': it is relative to each operand, where nothing is called '.' or '..'",
        ),
    ] {
        let outcome = run(&scratch, &args);
        assert_eq!(outcome.status, Status::Exit(1), "{args:?}");
        assert_eq!(outcome.stderr_text(), format!("rmz: {expected}\n"));
        assert!(scratch.path().join("t/a.o").exists());
    }
}

#[test]
fn a_pattern_that_the_user_means_in_another_way_is_an_error() {
    let scratch = tree();
    let absolute = scratch.path().join("t/d").display().to_string();
    for (pattern, operand, reason) in [
        ("t/d", "t", "it is relative to 't'; write '/d'"),
        ("!t/d/", "t//", "it is relative to 't//'; write '!/d/'"),
        (&absolute, "t", "it is relative to 't'; write '/d'"),
        (
            "{a,b}.o",
            "t",
            "braces are not expanded; give one option for each alternative, or write '\\{'",
        ),
    ] {
        let outcome = run(&scratch, &[&format!("--exclude={pattern}"), operand]);
        assert_eq!(outcome.status, Status::Exit(1), "{pattern}");
        let expected = format!("rmz: invalid pattern '{pattern}': {reason}\n");
        assert_eq!(outcome.stderr_text(), expected);
        assert!(scratch.path().join("t/a.o").exists());
    }
    // Neither is the path of an operand.
    run(
        &scratch,
        &["--exclude=t*/d", "--exclude=/t/d", "--exclude=tt/d", "t"],
    )
    .assert_success();
    assert!(!scratch.path().join("t").exists());
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
fn a_pattern_that_matches_an_operand_or_a_directory_above_it_is_an_error() {
    let scratch = tree();
    for (pattern, operand) in [
        ("t/d", "t/d"),
        ("t/d", "./t/d/"),
        ("t/d", "t/d/build"),
        ("t/d", ".//t/d/b.o"),
        ("t/*.o", "./t/a.o"),
        ("**/build", "t/d/build/out"),
    ] {
        let outcome = run(
            &scratch,
            &[&format!("--exclude={pattern}"), "t/a.c", operand],
        );
        assert_eq!(outcome.status, Status::Exit(1), "{pattern} {operand}");
        let reason = "it is relative to each operand, and so does not exclude";
        let expected = format!("rmz: invalid pattern '{pattern}': {reason} '{operand}'\n");
        assert_eq!(outcome.stderr_text(), expected);
        assert!(scratch.path().join("t/a.c").exists());
        assert!(scratch.path().join(operand).exists());
    }
    let args = ["--exclude=*/*", "--exclude=!t/d", "--exclude=t/e", "t/d"];
    run(&scratch, &args).assert_success();
    assert!(scratch.path().join("t/d/build/out").exists());
    assert!(!scratch.path().join("t/d/b.o").exists());
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
fn a_name_in_a_list_with_which_a_pattern_begins_is_left_out() {
    let scratch = tree();
    for (option, place) in [
        ("--exclude=t/d", ""),
        ("--exclude-from=patterns", "patterns:1: "),
    ] {
        Tree::at(scratch.path())
            .file("patterns", "t/d\n")
            .file("u", "");
        let outcome = Run::new(RMZ)
            .args([option, "--files0-from=-"])
            .current_dir(&scratch)
            .stdin("./t\0t/d/b.o\0./u\0")
            .output();
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        let expected = format!(
            "rmz: -:1: {place}invalid pattern 't/d': it is relative to './t'; write '/d'\n\
             rmz: -:2: {place}invalid pattern 't/d': it is relative to each operand, \
             and so does not exclude 't/d/b.o'\n"
        );
        assert_eq!(outcome.stderr_text(), expected);
        assert!(scratch.path().join("t/d/b.o").exists());
        assert!(!scratch.path().join("u").exists());
    }
}

#[test]
fn a_pattern_in_a_file_that_begins_with_an_operand_is_an_error_with_its_line() {
    let scratch = tree();
    Tree::at(scratch.path()).file("patterns", "*.o\n\nt/d/\n");
    let outcome = run(&scratch, &["--exclude-from=patterns", "./t"]);
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    let expected =
        "rmz: patterns:3: invalid pattern 't/d/': it is relative to './t'; write '/d/'\n";
    assert_eq!(outcome.stderr_text(), expected);
    assert!(scratch.path().join("t/a.c").exists());
}

#[test]
fn spaces_at_the_end_of_a_pattern_do_not_count() {
    let scratch = tree();
    let args = ["--exclude=a.o  ", "--exclude=b.o \r", "t"];
    run(&scratch, &args).assert_success();
    let left = Snapshot::of(scratch.path().join("t"), Attributes::NAMES);
    assert!(left.kind("a.o").is_some() && left.kind("d/b.o").is_some());
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
fn names_only_what_is_removed() {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("t/d/keep", "")
        .file("t/d/gone", "");
    let outcome = run(&scratch, &["-v", "--exclude=keep", "t"]);
    outcome.assert_success();
    assert_eq!(outcome.stdout_text(), "removed 't/d/gone'\n");
}

#[test]
fn prompts_only_for_what_is_removed() {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("t/keep", "")
        .file("t/gone", "");
    let outcome = Run::new(RMZ)
        .args(["-i", "--exclude=keep", "t"])
        .current_dir(&scratch)
        .stdin("y\ny\ny\n")
        .output();
    assert_eq!(outcome.status, Status::Exit(0));
    let expected = "rmz: descend into directory 't'? rmz: remove regular empty file 't/gone'? ";
    assert_eq!(outcome.stderr_text().replace(RMZ, "rmz"), expected);
    assert!(scratch.path().join("t/keep").exists());
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

#[test]
fn rm_does_not_know_the_options() {
    let link = RM.link("rm");
    for option in ["--exclude=x", "--exclude-from=x", "--gitignore"] {
        let outcome = Run::new(link.path()).args([option, "t"]).output();
        assert_eq!(outcome.status, Status::Exit(1));
        let lines = normal_lines(&outcome.stderr, &link.path());
        assert_eq!(lines[0], format!("CMD: unrecognized option '{option}'"));
    }
    let outcome = Run::new(RMZ).args(["--gitignore", "t"]).output();
    let lines = normal_lines(&outcome.stderr, Path::new(RMZ));
    assert_eq!(lines[0], "CMD: unrecognized option '--gitignore'");
}
