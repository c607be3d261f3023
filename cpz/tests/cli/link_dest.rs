//! `--link-dest` links to the unchanged files of an older copy, and `--itemize` says what happened to each dest.

use std::{fs, os::unix::fs::MetadataExt, path::Path, time::Duration};

use testkit::{
    probe::{NOBODY, Skip, is_root, supports_acls, supports_xattrs},
    run::{Outcome, Run, Status},
    snapshot::{Attributes, Snapshot, assert_same_tree},
    tree::{Scratch, Tree, memory},
};

use crate::support::{CPZ, complaint, succeeds};

const AT: Duration = Duration::from_nanos(1_000_000_001);

fn build(tree: &Tree) {
    tree.dir("s/sub")
        .file("s/file", "1")
        .mtime(AT)
        .file("s/sub/below", "2")
        .mtime(AT)
        .file("s/empty", "")
        .mtime(AT)
        .symlink("s/link", "file")
        .mtime(AT);
}

/// Runs cpz in `scratch`, and returns its sorted lines.
fn lines(scratch: &Scratch, args: &[&str]) -> Vec<String> {
    let outcome = Run::new(CPZ).args(args).current_dir(scratch).output();
    assert!(outcome.stderr.is_empty(), "{outcome}");
    sorted(outcome.assert_success())
}

fn sorted(outcome: &Outcome) -> Vec<String> {
    let text = outcome.stdout_text();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn inode(path: impl AsRef<Path>) -> u64 {
    fs::symlink_metadata(path).unwrap().ino()
}

fn everything(path: impl AsRef<Path>) -> Snapshot {
    Snapshot::of(path, Attributes::ALL - Attributes::ATIME)
}

#[test]
fn unchanged_files_become_links_to_the_older_copy() {
    let scratch = Scratch::new();
    build(&Tree::at(scratch.path()));
    succeeds(&scratch, &["-aT", "s", "old"]);
    let before = everything(scratch.path().join("old"));
    let args = ["-aT", "--link-dest=old", "--itemize", "s", "new"];
    let expected = [
        "linked 'new/empty' (unchanged)",
        "linked 'new/file' (unchanged)",
        "linked 'new/sub/below' (unchanged)",
        "new 'new'",
        "new 'new/link'",
        "new 'new/sub'",
    ];
    let planned = lines(&scratch, &[&args[..], &["--dry-run"]].concat());
    assert_eq!(planned[..6], expected);
    assert_eq!(planned[6..], ["would copy 6 entries, 0 B"]);
    assert!(!scratch.path().join("new").exists());
    assert_eq!(
        lines(&scratch, &[&args[..], &["--verify", "--fsync"]].concat()),
        expected
    );
    for name in ["file", "sub/below", "empty"] {
        let [old, new] = ["old", "new"].map(|copy| inode(scratch.path().join(copy).join(name)));
        assert_eq!(old, new, "{name}");
    }
    let all = Attributes::ALL - Attributes::ATIME;
    assert_same_tree(scratch.path().join("s"), scratch.path().join("new"), all);
    let difference = before.diff(&everything(scratch.path().join("old")));
    assert!(difference.is_empty(), "{difference}");
}

/// A change after the older copy was made, and the line about `new/file` or `into/s/file`.
#[test]
fn a_file_that_would_be_another_one_is_copied() {
    let change_all = |change: &dyn Fn(&Tree), expected: &str| {
        let scratch = Scratch::new();
        let tree = Tree::at(scratch.path());
        build(&tree);
        succeeds(&scratch, &["-aT", "s", "old"]);
        change(&tree);
        let before = everything(scratch.path().join("old"));
        let lines = lines(
            &scratch,
            &["-aT", "--link-dest=old", "--itemize", "s", "new"],
        );
        let about = |line: &&String| line.contains("'new/file'");
        assert_eq!(
            lines.iter().find(about).expect("a line"),
            expected,
            "{lines:?}"
        );
        let all = Attributes::ALL - Attributes::ATIME;
        assert_same_tree(scratch.path().join("s"), scratch.path().join("new"), all);
        let difference = before.diff(&everything(scratch.path().join("old")));
        assert!(difference.is_empty(), "{difference}");
    };
    let new = "new 'new/file'";
    change_all(
        &|tree| {
            tree.file("s/file", "12").mtime(AT);
        },
        new,
    );
    change_all(
        &|tree| {
            tree.select("s/file").mtime(AT * 2);
        },
        new,
    );
    change_all(
        &|tree| {
            tree.select("s/file").mode(0o600);
        },
        new,
    );
    if is_root() {
        change_all(
            &|tree| {
                tree.select("s/file").owner(1, 1);
            },
            new,
        );
    }
    let place = Scratch::new();
    if supports_xattrs(place.path()) {
        change_all(
            &|tree| {
                tree.select("s/file").xattr("user.a", "1");
            },
            new,
        );
    }
    if supports_acls(place.path()) {
        change_all(
            &|tree| {
                tree.select("s/file").acl("u:1:r");
            },
            new,
        );
    }
    // Another type is at the older path, also on the way to it.
    let instead = |replace: &'static dyn Fn(&Tree)| {
        move |tree: &Tree| {
            fs::remove_file(tree.path().join("old/file")).unwrap();
            replace(tree);
        }
    };
    change_all(
        &instead(&|tree| {
            tree.symlink("old/file", "../s/file");
        }),
        new,
    );
    change_all(
        &instead(&|tree| {
            tree.fifo("old/file");
        }),
        new,
    );
    change_all(
        &instead(&|tree| {
            tree.dir("old/file");
        }),
        new,
    );
    change_all(&instead(&|_| {}), new);
}

#[test]
fn no_link_in_the_older_copy_is_followed() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    build(&tree);
    succeeds(&scratch, &["-aT", "s", "old"]);
    fs::rename(
        scratch.path().join("old/sub"),
        scratch.path().join("elsewhere"),
    )
    .unwrap();
    tree.symlink("old/sub", "../elsewhere");
    let lines = lines(
        &scratch,
        &["-aT", "--link-dest=old", "--itemize", "s", "new"],
    );
    assert!(
        lines.contains(&"new 'new/sub/below'".to_owned()),
        "{lines:?}"
    );
}

#[test]
fn the_older_copy_stands_for_the_directory_that_is_copied_into() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    build(&tree);
    tree.dir("old")
        .dir("into")
        .dir("parents")
        .dir("with-parents");
    let sources = ["s", "s/file", "s/sub/."];
    succeeds(&scratch, &["-a", "-t", "old", "s", "s/file", "s/sub/."]);
    let args = ["-a", "--link-dest=old", "--itemize", "-t", "into"];
    let all = lines(&scratch, &[&args[..], &sources].concat());
    let copied = ["new 'into/s'", "new 'into/s/link'", "new 'into/s/sub'"];
    let (new, linked): (Vec<_>, Vec<_>) = all.into_iter().partition(|line| line.starts_with("new"));
    assert_eq!(new, copied);
    assert_eq!(linked.len(), 5, "{linked:?}");

    succeeds(&scratch, &["-a", "--parents", "s/sub/below", "parents"]);
    let args = [
        "-a",
        "--parents",
        "--link-dest=parents",
        "--itemize",
        "s/sub/below",
    ];
    let linked = lines(&scratch, &[&args[..], &["with-parents"]].concat());
    assert!(linked[0].starts_with("linked"), "{linked:?}");
}

#[test]
fn without_an_older_copy_all_is_copied_with_a_warning() {
    let scratch = Scratch::new();
    build(&Tree::at(scratch.path()));
    let run = Run::new(CPZ).args(["-aT", "--link-dest=missing", "s", "new"]);
    let outcome = run.current_dir(&scratch).output();
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    let warning =
        "cpz: warning: nothing is linked to files in 'missing': No such file or directory\n";
    assert_eq!(complaint(&outcome), warning);
    let all = Attributes::ALL - Attributes::ATIME;
    assert_same_tree(scratch.path().join("s"), scratch.path().join("new"), all);
}

#[test]
fn an_older_copy_on_another_filesystem_is_of_no_use() {
    let (scratch, other) = (Scratch::new(), Scratch::new_in(&memory()));
    let device = |scratch: &Scratch| fs::metadata(scratch.path()).unwrap().dev();
    if device(&scratch) == device(&other) {
        return Skip("there is only one filesystem".to_owned()).announce();
    }
    build(&Tree::at(scratch.path()));
    let old = other.path().join("old");
    let old = old.to_str().expect("UTF-8");
    succeeds(&scratch, &["-aT", "s", old]);
    let link_dest = format!("--link-dest={old}");
    let run = Run::new(CPZ).args(["-aT", &link_dest, "--itemize", "s", "new"]);
    for run in [run.clone().arg("--dry-run"), run] {
        let outcome = run.current_dir(&scratch).output();
        assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
        let lines = sorted(&outcome);
        assert!(
            lines.iter().all(|line| !line.starts_with("linked")),
            "{lines:?}"
        );
        let warning = complaint(&outcome);
        assert!(
            warning.ends_with(": Invalid cross-device link\n"),
            "{warning}"
        );
    }
}

/// The older copy is part of what the command would delete, write to or take for its own.
#[test]
fn the_older_copy_is_neither_deleted_nor_written_to() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    build(&tree);
    succeeds(&scratch, &["-aT", "s", "old"]);
    succeeds(&scratch, &["-aT", "s", "backup"]);
    succeeds(&scratch, &["-aT", "s", "backup/.old"]);
    let before = ["old", "backup/.old"].map(|name| everything(scratch.path().join(name)));
    tree.file("s/file", "changed").mtime(AT * 2);

    let refused = |args: &[&str], expected: &str| {
        let outcome = Run::new(CPZ).args(args).current_dir(&scratch).output();
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        assert!(complaint(&outcome).contains(expected), "{outcome}");
    };
    refused(
        &["-aT", "--delete", "--link-dest=backup/.old", "s", "backup"],
        "backup",
    );
    refused(&["-aT", "--link-dest=old", "s", "old"], "are the same file");
    // A dest leads to a file of the older copy that has one name.
    tree.dir("new").symlink("new/file", "../old/file");
    succeeds(&scratch, &["-aT", "--link-dest=old", "s", "new"]);
    // A file of the older copy has lost its content, but neither its size nor its time.
    tree.file("old/sub/below", "x").mtime(AT);
    let damaged = everything(scratch.path().join("old"));
    refused(
        &["-aT", "--verify", "--link-dest=old", "s", "verified"],
        "differs from",
    );
    assert!(!scratch.path().join("verified/sub/below").exists());
    let difference = damaged.diff(&everything(scratch.path().join("old")));
    assert!(difference.is_empty(), "{difference}");
    let difference = before[1].diff(&everything(scratch.path().join("backup/.old")));
    assert!(difference.is_empty(), "{difference}");
    tree.file("old/sub/below", "2").mtime(AT);
    let difference = before[0].diff(&everything(scratch.path().join("old")));
    assert!(difference.is_empty(), "{difference}");
}

/// A copy would not have what only the older file has, or what this user cannot give.
#[test]
fn a_file_that_has_more_than_a_copy_is_not_linked() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    build(&tree);
    succeeds(&scratch, &["-aT", "s", "old"]);
    let is_copied = |args: &[&str]| {
        let lines = lines(&scratch, args);
        let is_new = |line: &String| line.starts_with("new ") && line.ends_with("/file'");
        assert!(lines.iter().any(is_new), "{args:?}: {lines:?}");
    };
    if supports_xattrs(scratch.path()) {
        tree.select("s/file").xattr("user.a", "1");
        tree.select("old/file").xattr("user.a", "1");
        is_copied(&[
            "-pT",
            "--link-dest=old",
            "--itemize",
            "-r",
            "s",
            "without-xattrs",
        ]);
        fs::remove_dir_all(scratch.path().join("old")).unwrap();
        succeeds(&scratch, &["-aT", "s", "old"]);
        tree.select("old/file").xattr("user.b", "1");
        is_copied(&["-aT", "--link-dest=old", "--itemize", "s", "with-fewer"]);
    }
    if is_root() {
        tree.dir("theirs").select("theirs").mode(0o777);
        let args = ["-aT", "--link-dest=old", "--itemize", "s", "theirs/new"];
        let run = Run::new(CPZ).args(args).uid(NOBODY).current_dir(&scratch);
        let lines = sorted(&run.output());
        assert!(
            lines.contains(&"new 'theirs/new/file'".to_owned()),
            "{lines:?}"
        );
        assert!(
            lines.iter().all(|line| line.starts_with("new ")),
            "{lines:?}"
        );
    }
}

/// The source would change with a copy that is another name of it.
#[test]
fn a_file_of_the_older_copy_that_is_the_source_is_copied() {
    let scratch = Scratch::new();
    build(&Tree::at(scratch.path()));
    let lines = lines(&scratch, &["-aT", "--link-dest=s", "--itemize", "s", "new"]);
    assert!(
        lines.iter().all(|line| line.starts_with("new ")),
        "{lines:?}"
    );
}

/// The older copy has the same inodes, so neither content nor attributes may be changed in place.
#[test]
fn a_second_run_does_not_change_the_older_copy() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    build(&tree);
    succeeds(&scratch, &["-aT", "s", "old"]);
    succeeds(&scratch, &["-aT", "--link-dest=old", "s", "new"]);
    let before = everything(scratch.path().join("old"));
    tree.file("s/file", "changed").mtime(AT * 2);
    tree.select("s/sub/below").mode(0o600);
    for rules in [
        &["--resume"][..],
        &["-u"],
        &["--no-preserve=links"],
        &["--atomic"],
    ] {
        let args = [&["-aT", "--link-dest=old"][..], rules, &["s", "new"]].concat();
        succeeds(&scratch, &args);
        let difference = before.diff(&everything(scratch.path().join("old")));
        assert!(difference.is_empty(), "{rules:?}: {difference}");
        assert_eq!(
            fs::read(scratch.path().join("new/file")).unwrap(),
            b"changed"
        );
    }
    let all = Attributes::ALL - Attributes::ATIME;
    assert_same_tree(scratch.path().join("s"), scratch.path().join("new"), all);
}

#[test]
fn each_dest_has_a_line_that_says_why() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    build(&tree);
    succeeds(&scratch, &["-aT", "s", "d"]);
    tree.file("d/file", "longer").mtime(AT);
    tree.select("d/sub/below").mtime(AT * 2);
    tree.file("d/extra", "").dir("d/gone");
    fs::remove_file(scratch.path().join("d/link")).unwrap();
    tree.file("d/link", "no link").file("s/added", "");
    let args = ["-aT", "--resume", "--delete", "--itemize", "s", "d"];
    let expected = [
        "deleted 'd/extra'",
        "deleted 'd/gone'",
        "deleted 'd/link'",
        "kept 'd/empty' (same size and time)",
        "new 'd/added'",
        "new 'd/link'",
        "updated 'd/file' (other size)",
        "updated 'd/sub/below' (other time)",
    ];
    let planned = lines(&scratch, &[&args[..], &["--dry-run"]].concat());
    assert_eq!(planned[..8], expected);
    assert_eq!(lines(&scratch, &args), expected);
    for (rule, line) in [
        ("-u", "kept 'd/file' (not older)"),
        ("-n", "kept 'd/file' (exists)"),
        ("-f", "updated 'd/file' (same size and time)"),
    ] {
        let lines = lines(&scratch, &["-aT", rule, "--itemize", "s", "d"]);
        assert!(lines.contains(&line.to_owned()), "{lines:?}");
    }
    let run = Run::new(CPZ)
        .args(["-aTi", "--itemize", "s", "d"])
        .stdin("");
    let lines = sorted(&run.current_dir(&scratch).output());
    assert!(
        lines.contains(&"kept 'd/file' (declined)".to_owned()),
        "{lines:?}"
    );
}

#[test]
fn a_device_with_an_older_copy_is_made_anew() {
    if !is_root() {
        return Skip("this user cannot make devices".to_owned()).announce();
    }
    let scratch = Scratch::new();
    Tree::at(scratch.path()).char_device("s/null", 1, 3);
    succeeds(&scratch, &["-aT", "s", "old"]);
    let lines = lines(
        &scratch,
        &["-aT", "--link-dest=old", "--itemize", "s", "new"],
    );
    assert_eq!(lines, ["new 'new'", "new 'new/null'"]);
}

#[test]
fn options_that_make_no_copies_exclude_an_older_copy() {
    for (args, complaint_of) in [
        (
            &["--link-dest=old", "a", "b"][..],
            "--link-dest needs -a or -p",
        ),
        (
            &["-al", "--link-dest=old", "a", "b"],
            "--link-dest is mutually exclusive with -l, -s and --attributes-only",
        ),
    ] {
        let outcome = Run::new(CPZ).args(args).output();
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        assert!(
            complaint(&outcome).starts_with(&format!("cpz: {complaint_of}\n")),
            "{outcome}"
        );
    }
}
