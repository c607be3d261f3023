//! `--exclude`, `--exclude-from` and `--gitignore`, which GNU's cp does not have. The reference is git.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use testkit::{
    probe::{NOBODY, has_program, is_root},
    run::{Run, Status, normal_lines},
    skip,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, chain, wide},
};

use crate::support::{CP, CPZ, complaint, succeeds};

/// Asserts that `dir` holds exactly these paths.
#[track_caller]
fn holds(dir: impl AsRef<Path>, expected: &[&str]) {
    let found = Snapshot::of(dir, Attributes::NAMES);
    for path in expected {
        assert!(found.kind(path).is_some(), "{path} is missing: {found:?}");
    }
    assert_eq!(found.len(), expected.len() + 1, "{found:?}");
}

#[test]
fn copies_everything_else() {
    for (args, expected) in [
        (
            &["--exclude=*.o"][..],
            &["build", "build/out", "d", "d/a.c", "top"][..],
        ),
        (&["--exclude=/top", "--exclude=d"], &["build", "build/out"]),
        (
            &["--exclude=b*/", "--exclude=*.o", "--exclude=!/d/*.o"],
            &["d", "d/a.c", "d/a.o", "top"],
        ),
        (&["--exclude=d/**"], &["build", "build/out", "d", "top"]),
        (&["--exclude=*"], &[]),
    ] {
        for options in [
            &["-r"][..],
            &["-a", "--threads=4"],
            &["-al"],
            &["-a", "--verify"],
            &["-rx", "--parents"],
        ] {
            let scratch = Scratch::new();
            Tree::at(scratch.path().join("s"))
                .file("top", "")
                .file("d/a.o", "x")
                .file("d/a.c", "x")
                .file("build/out", "");
            Tree::at(scratch.path()).dir("dest");
            succeeds(&scratch, &[args, options, &["s", "dest"]].concat());
            holds(scratch.path().join("dest/s"), expected);
        }
    }
}

#[test]
fn a_second_name_is_copied_if_the_first_is_excluded() {
    let scratch = Scratch::new();
    Tree::at(scratch.path().join("s"))
        .file("a", "content")
        .hardlink("a", "b")
        .hardlink("a", "c");
    succeeds(&scratch, &["-a", "--exclude=a", "s", "d"]);
    holds(scratch.path().join("d"), &["b", "c"]);
    let wanted = Attributes::NAMES | Attributes::LINKS;
    let copy = Snapshot::of(scratch.path().join("d"), wanted);
    Tree::at(scratch.path().join("e"))
        .file("b", "content")
        .hardlink("b", "c");
    assert_eq!(
        copy.diff(&Snapshot::of(scratch.path().join("e"), wanted)),
        ""
    );
}

#[test]
fn a_directory_may_be_copied_into_itself_if_the_copy_is_excluded() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("file", "").dir("backup");
    succeeds(&scratch, &["--exclude=/backup", ".", "backup"]);
    holds(scratch.path().join("backup"), &["file"]);
}

#[test]
fn an_excluded_directory_is_not_opened() {
    if !is_root() {
        skip!("only root can become another user");
    }
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    tree.file("s/secret/x", "").file("s/file", "");
    tree.select("s/secret").mode(0);
    std::os::unix::fs::chown(scratch.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let run = |args: &[&str]| {
        let run = Run::new(CPZ).args(args).current_dir(&scratch);
        run.uid(NOBODY).output()
    };
    run(&["--exclude=secret", "s", "d"]).assert_success();
    holds(scratch.path().join("d"), &["file"]);
    // Without the option, cpz would have tried.
    assert_eq!(run(&["s", "e"]).status, Status::Exit(1));
}

#[test]
fn a_source_is_excluded_by_a_glob_without_a_slash() {
    let scratch = Scratch::new();
    Tree::at(scratch.path())
        .file("a.o", "")
        .file("b.c", "")
        .file("d/c.o", "")
        .dir("dest");
    succeeds(&scratch, &["--exclude=*.o", "a.o", "b.c", "d", "dest"]);
    holds(scratch.path().join("dest"), &["b.c", "d"]);
}

#[test]
fn gitignore_files_hold_below_their_directories() {
    let scratch = Scratch::new();
    Tree::at(scratch.path().join("s"))
        .file(".gitignore", "*.o\n/target\n")
        .file(".git/config", "")
        .file("a.o", "")
        .file("target/x", "")
        .file("d/.gitignore", "!keep.o\n/only-here\n")
        .file("d/a.o", "")
        .file("d/keep.o", "")
        .file("d/only-here", "")
        .file("d/e/only-here", "")
        .file("d/e/keep.o", "")
        .file("e/keep.o", "")
        .file("e/target", "");
    succeeds(&scratch, &["--gitignore", "s", "d"]);
    let git = [".git", ".git/config", ".gitignore"];
    let expected = [
        "d",
        "d/.gitignore",
        "d/keep.o",
        "d/e",
        "d/e/only-here",
        "d/e/keep.o",
        "e",
        "e/target",
    ];
    holds(scratch.path().join("d"), &[&git[..], &expected].concat());
    // The user's patterns come first.
    let args = ["--gitignore", "--exclude=!a.o", "--exclude=.git*", "s", "e"];
    succeeds(&scratch, &args);
    let expected = [
        "a.o",
        "d",
        "d/a.o",
        "d/keep.o",
        "d/e",
        "d/e/only-here",
        "d/e/keep.o",
        "e",
        "e/target",
    ];
    holds(scratch.path().join("e"), &expected);
}

#[test]
fn a_gitignore_file_that_is_no_regular_file_does_not_count() {
    let scratch = Scratch::new();
    Tree::at(scratch.path().join("s"))
        .file("list", "*\n")
        .symlink("link/.gitignore", "../list")
        .file("link/file", "")
        .fifo("fifo/.gitignore")
        .file("fifo/file", "")
        .file("dir/.gitignore/x", "")
        .file("dir/file", "")
        .socket("socket/.gitignore")
        .file("socket/file", "");
    let copied = Snapshot::of(scratch.path().join("s"), Attributes::NAMES);
    succeeds(&scratch, &["--gitignore", "s", "d"]);
    assert_eq!(
        copied.diff(&Snapshot::of(scratch.path().join("d"), Attributes::NAMES)),
        ""
    );
}

#[test]
fn a_gitignore_file_that_cannot_be_read_is_a_failure() {
    if !is_root() {
        skip!("only root can become another user");
    }
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path());
    tree.file("s/d/.gitignore", "*\n").file("s/d/file", "");
    tree.select("s/d/.gitignore").mode(0);
    std::os::unix::fs::chown(scratch.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let outcome = Run::new(CPZ)
        .args(["--gitignore", "--exclude=.gitignore"])
        .args(["--stats=json", "s", "d"])
        .current_dir(&scratch)
        .uid(NOBODY)
        .output();
    assert_eq!(outcome.status, Status::Exit(1));
    assert!(outcome.stdout_text().contains(r#""failures":1,"#));
    let expected = "cpz: cannot open 's/d/.gitignore' for reading: Permission denied\n";
    assert_eq!(complaint(&outcome), expected);
    holds(scratch.path().join("d"), &["d", "d/file"]);
}

#[test]
fn gitignore_files_are_read_with_few_descriptors() {
    const DEPTH: usize = 500;
    let scratch = Scratch::in_memory();
    let source = scratch.path().join("s");
    chain(&source, DEPTH);
    let mut dir = source.clone();
    for level in 0..DEPTH {
        Tree::at(&dir)
            .file(".gitignore", format!("/no{level}\n"))
            .file(format!("no{level}"), "")
            .file("no", "");
        dir.push("d");
    }
    wide(source.join("wide"), 5_000);
    fs::write(source.join("wide/.gitignore"), "f?\n").unwrap();
    let before = Snapshot::of(&source, Attributes::NAMES).len();
    for limit in [20, 64] {
        let outcome = Run::new(CPZ)
            .args(["--gitignore", "s", &format!("d{limit}")])
            .current_dir(&scratch)
            .nofile_limit(limit)
            .output();
        assert_eq!(outcome.stderr_text(), "");
        outcome.assert_success();
        let copy = Snapshot::of(scratch.path().join(format!("d{limit}")), Attributes::NAMES);
        assert_eq!(copy.len(), before - DEPTH - 10);
    }
}

#[test]
fn cp_does_not_know_the_options() {
    let link = CP.link("cp");
    for option in ["--exclude=x", "--exclude-from=x", "--gitignore"] {
        let outcome = Run::new(link.path()).args([option, "s", "d"]).output();
        assert_eq!(outcome.status, Status::Exit(1));
        let lines = normal_lines(&outcome.stderr, &link.path());
        assert_eq!(lines[0], format!("CMD: unrecognized option '{option}'"));
    }
}

/// Files, and the `.gitignore` files of some directories.
#[derive(Clone, Debug)]
struct Repository {
    files: BTreeSet<Vec<u8>>,
    ignored: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
}

const NAMES: [&[u8]; 16] = [
    b"a",
    b"b",
    b"a.o",
    b"b.o",
    "é".as_bytes(),
    b"a b",
    b"[",
    b"]",
    b"-",
    b"!a",
    b"#a",
    b"{a,b}",
    b"\xff",
    b"\xc3",
    b"a\xe9.o",
    b"a\nb",
];
const PARTS: [&[u8]; 37] = [
    b"a",
    b"b",
    b".o",
    "é".as_bytes(),
    b"\xff",
    b"*",
    b"*",
    b"?",
    b"/",
    b"/",
    b"\\/",
    b"**",
    b"**/",
    b"/**",
    b"***",
    b"[ab]",
    b"[!a]",
    b"[^a-b]",
    b"[]-]",
    b"[\xc3\xa9]",
    b"[\xf0-\xff]",
    b"[b-\xff-]",
    b"[",
    b"]",
    b"-",
    b"[[:alpha:]]",
    b"[[:alpha:]b.]",
    b"[![:cntrl:]]",
    b"[\\]a]",
    b"\\*",
    b"\\a",
    b"{a,b}",
    b" ",
    b"\t",
    b"!",
    b"#",
    b",",
];

fn directory() -> impl Strategy<Value = Vec<u8>> {
    let names: Vec<&[u8]> = vec![b"a/", b"b/", "é/".as_bytes(), b"\xff/"];
    prop::collection::vec(prop::sample::select(names), 0..3).prop_map(|dirs| dirs.concat())
}

fn pattern() -> impl Strategy<Value = Vec<u8>> {
    let parts = prop::collection::vec(prop::sample::select(PARTS.to_vec()), 1..6);
    let end: Vec<&[u8]> = vec![b"", b"", b"", b"/", b"\\", b"\\ ", b"\r"];
    let begin: Vec<&[u8]> = vec![b"", b"", b"!"];
    (
        prop::sample::select(begin),
        parts,
        prop::sample::select(end),
    )
        .prop_map(|(begin, parts, end)| [begin, &parts.concat(), end].concat())
        .prop_filter("older git misreads it", |pattern| !is_misread(pattern))
}

/// Returns `true` if git before 2.52 does not match a pattern as its documentation says. It compares the part before
/// the first wildcard by itself. If `**` follows in the middle of a name, it then takes that for the beginning of
/// the name.
fn is_misread(pattern: &[u8]) -> bool {
    let is_wildcard = |byte: &u8| b"*?[\\".contains(byte);
    let before = pattern.iter().take_while(|byte| !is_wildcard(byte)).count();
    let (before, rest) = pattern.split_at(before);
    rest.starts_with(b"**") && !matches!(before, [] | [b'!'] | [.., b'/'])
}

fn repository() -> impl Strategy<Value = Repository> {
    let file = (directory(), prop::sample::select(NAMES.to_vec()));
    let file = file.prop_map(|(dir, name)| [&dir, name].concat());
    let files = prop::collection::btree_set(file, 1..20);
    let ignored = (directory(), prop::collection::vec(pattern(), 1..6));
    let ignored = prop::collection::vec(ignored, 1..4);
    (files, ignored).prop_map(|(files, ignored)| Repository { files, ignored })
}

impl Repository {
    fn build(&self, root: &Path) {
        fs::create_dir(root).unwrap();
        let files = self.files.iter().cloned().map(|file| (file, Vec::new()));
        let ignored = self.ignored.iter();
        let ignored = ignored.map(|(dir, lines)| {
            let path = [dir, &b".gitignore"[..]].concat();
            (path, lines.join(&b'\n'))
        });
        for (path, content) in files.chain(ignored) {
            let path = root.join(OsStr::from_bytes(&path));
            // A name may be both that of a file and of a directory. The first one stays.
            if fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.is_dir() {
                fs::write(path, content).unwrap();
            }
        }
    }

    /// Asserts that cpz copies what git does not ignore.
    #[track_caller]
    fn check(&self, git_dir: &Path) {
        let scratch = Scratch::in_memory();
        let root = scratch.path().join("s");
        self.build(&root);
        succeeds(&scratch, &["--gitignore", "s", "d"]);
        let dest = scratch.path().join("d");
        let mut copied = BTreeSet::new();
        files_in(&dest, &dest, &mut copied);
        let kept = not_ignored(git_dir, &root);
        let differing: Vec<_> = copied.symmetric_difference(&kept).collect();
        assert!(differing.is_empty(), "{differing:?} in {self:?}");
    }
}

/// Returns the files that git does not ignore.
fn not_ignored(git_dir: &Path, root: &Path) -> BTreeSet<PathBuf> {
    let listed = Command::new("git")
        .env("GIT_DIR", git_dir)
        .env("GIT_WORK_TREE", root)
        .args([
            "ls-files",
            "-z",
            "--others",
            "--exclude-per-directory=.gitignore",
        ])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let paths = listed.stdout.split(|byte| *byte == 0);
    paths
        .filter(|path| !path.is_empty())
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
        .collect()
}

fn files_in(root: &Path, dir: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files_in(root, &path, found),
            false => {
                found.insert(path.strip_prefix(root).unwrap().to_owned());
            }
        }
    }
}

/// Returns a directory for git's own files, or `None` if git is not installed.
fn git_dir() -> Option<Scratch> {
    if !has_program("git") {
        return None;
    }
    let git = Scratch::new();
    let made = Command::new("git")
        .args(["init", "-q", "--bare"])
        .arg(git.path())
        .status();
    assert!(made.unwrap().success());
    Some(git)
}

#[test]
fn copies_what_git_does_not_ignore() {
    let Some(git) = git_dir() else {
        skip!("git is not installed");
    };
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(200)
    };
    proptest!(config, |(repository in repository())| {
        repository.check(git.path());
    });
}

#[test]
fn each_byte_is_in_the_same_classes_as_in_git() {
    const CLASSES: [&[u8]; 20] = [
        b"[[:alnum:]]",
        b"[[:alpha:]]",
        b"[[:blank:]]",
        b"[[:cntrl:]]",
        b"[[:digit:]]",
        b"[[:graph:]]",
        b"[[:lower:]]",
        b"[[:print:]]",
        b"[[:punct:]]",
        b"[[:space:]]",
        b"[[:upper:]]",
        b"[[:xdigit:]]",
        b"[![:alnum:]]",
        b"[!a-\xfe]",
        b"[ -/]",
        b"[\x80-\xff]",
        b"[+--]",
        b"[[-\\]]",
        b"\xff",
        b"?",
    ];
    let Some(git) = git_dir() else {
        skip!("git is not installed");
    };
    let names = (1..=u8::MAX).filter(|byte| !b"./".contains(byte));
    let dirs = (0..CLASSES.len()).map(|number| format!("{number}/").into_bytes());
    let dirs: Vec<_> = dirs.collect();
    let files = dirs
        .iter()
        .flat_map(|dir| names.clone().map(|name| [&dir[..], &[name]].concat()));
    let repository = Repository {
        files: files.collect(),
        ignored: std::iter::zip(dirs.clone(), CLASSES.map(|class| vec![class.to_vec()])).collect(),
    };
    repository.check(git.path());
}

#[test]
fn a_pattern_that_begins_with_a_source_is_an_error_in_each_spelling() {
    let scratch = Scratch::new();
    Tree::at(scratch.path()).file("p/keep/x", "").dir("d");
    let run = |args: &[&str]| {
        let run = Run::new(CPZ).args(args).stdin("./p\0");
        run.current_dir(&scratch).output()
    };
    for args in [
        ["--exclude=p/keep", "./p", "d"],
        ["--exclude=p/keep", "--files0-from=-", "d"],
    ] {
        let outcome = run(&args);
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        let message = "cpz: invalid pattern 'p/keep': it is relative to './p'; write '/keep'\n";
        assert_eq!(outcome.stderr_text(), message);
    }
    let outcome = run(&["--exclude=p/keep", "p/keep", "d"]);
    let message = "cpz: invalid pattern 'p/keep': it is relative to each operand, \
                   and so does not exclude 'p/keep'\n";
    assert_eq!(outcome.stderr_text(), message);
    holds(scratch.path().join("d"), &[]);
}

#[test]
fn a_pattern_that_begins_with_a_dest_is_an_error_if_names_are_deleted() {
    let build = || {
        let scratch = Scratch::new();
        Tree::at(scratch.path())
            .file("src/f", "")
            .file("dst/keep", "")
            .file("dst/src/keep", "");
        scratch
    };
    let scratch = build();
    let absolute = scratch.path().join("dst").display().to_string();
    for (pattern, args, dest) in [
        ("dst/keep", &["-aT", "src", "dst"][..], "dst"),
        ("dst/keep", &["-aT", "src", &absolute], &absolute),
        (
            &format!("{absolute}/keep"),
            &["-aT", "src", "./dst"],
            "./dst",
        ),
        ("dst/src/keep", &["-a", "src", "dst"], "dst/src"),
        ("src/keep", &["-a", "src/.", "dst/src"], "src/."),
    ] {
        let exclude = format!("--exclude={pattern}");
        let run = |delete: &[&str]| {
            let args = [delete, &[&exclude], args].concat();
            Run::new(CPZ).args(args).current_dir(&scratch).output()
        };
        let outcome = run(&["--delete"]);
        assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
        let message = format!(
            "cpz: invalid pattern '{pattern}': it is relative to '{dest}'; write '/keep'\n"
        );
        assert_eq!(outcome.stderr_text(), message);
    }
    assert!(
        ["dst/keep", "dst/src/keep"]
            .iter()
            .all(|path| scratch.path().join(path).exists())
    );
    // Without deletions, patterns are only about sources.
    let outcome = Run::new(CPZ).args(["-aT", "--exclude=dst/keep", "src", "dst"]);
    outcome.current_dir(&scratch).output().assert_success();
}
