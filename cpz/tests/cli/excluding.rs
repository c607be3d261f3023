//! `--exclude`, `--exclude-from` and `--gitignore`, which GNU's cp does not have. The reference is git.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::Command,
};

use proptest::prelude::*;
use testkit::{
    probe::has_program,
    skip,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree, chain, wide},
};

use crate::support::{CP, cpz, succeeds};

#[test]
fn sources_without_what_is_excluded() {
    CP.rows(
        r"
        # Everything else is copied.
        s/top= s/d/{a.o,a.c}=x s/build/out= dest/
        cpz --exclude=*.o (-r|-a --threads=4|-a --verify|-rx --parents) s dest
        = dest/s/{top,build/out}= dest/s/d/a.c=x
        cpz --exclude=*.o -al s dest
        = dest/s/top==s/top dest/s/build/out==s/build/out dest/s/d/a.c==s/d/a.c
        cpz --exclude=/top --exclude=d (-r|-a --verify|-rx --parents) s dest
        = dest/s/build/out=
        cpz --exclude=b*/ --exclude=*.o --exclude=!/d/*.o (-r|-a --verify|-rx --parents) s dest
        = dest/s/top= dest/s/d/{a.o,a.c}=x
        cpz --exclude=d/** (-r|-a --verify|-rx --parents) s dest
        = dest/s/{top,build/out}= dest/s/d/
        cpz --exclude=* (-r|-a --verify|-rx --parents) s dest
        = dest/s/
        # A second name is copied if the first is excluded.
        s/a=content s/b==s/a s/c==s/a
        cpz -a --exclude=a s d
        = d/b=content d/c==d/b
        # A directory may be copied into itself if the copy is excluded.
        file= backup/
        cpz --exclude=/backup . backup
        = backup/file=
        # A source is excluded by a glob without a slash.
        a.o= b.c= d/c.o= dest/
        cpz --exclude=*.o a.o b.c d dest
        = dest/b.c= dest/d/
        # An excluded directory is not opened.
        s/secret/x= s/file= s/secret %0
        user cpz --exclude=secret s d
        = d/file=
        user cpz s d
        ! cannot access 's/secret': Permission denied
        = d/file= d/secret/ %0
        # A pattern that begins with a source is an error in each spelling.
        p/keep/x= d/ list=./p\0
        cpz --exclude=p/keep ./p d
        ! invalid pattern 'p/keep': it is relative to './p'; write '/keep'
        cpz --exclude=p/keep --files0-from=list d
        ! invalid pattern 'p/keep': it is relative to './p'; write '/keep'
        cpz --exclude=p/keep p/keep d
        ! invalid pattern 'p/keep': it is relative to each operand, and so does not exclude 'p/keep'
        # So is one that begins with a dest if names are deleted.
        src/f= dst/keep= dst/src/keep=
        cpz --delete --exclude=dst/keep -aT src dst
        ! invalid pattern 'dst/keep': it is relative to 'dst'; write '/keep'
        cpz --delete --exclude=dst/keep -aT src $PWD/dst
        ! invalid pattern 'dst/keep': it is relative to '$PWD/dst'; write '/keep'
        cpz --delete --exclude=$PWD/dst/keep -aT src ./dst
        ! invalid pattern '$PWD/dst/keep': it is relative to './dst'; write '/keep'
        cpz --delete --exclude=dst/src/keep -a src dst
        ! invalid pattern 'dst/src/keep': it is relative to 'dst/src'; write '/keep'
        cpz --delete --exclude=src/keep -a src/. dst/src
        ! invalid pattern 'src/keep': it is relative to 'src/.'; write '/keep'
        cpz --exclude=dst/keep -aT src dst
        = dst/f=",
    );
}

#[test]
fn gitignore_files() {
    CP.rows(
        r#"
        # They hold below their directories.
        s/.gitignore='*.o\n/target\n' s/.git/config= s/a.o= s/target/x= s/d/.gitignore='!keep.o\n/only-here\n'
        s/d/{a.o,keep.o,only-here,e/only-here,e/keep.o}= s/e/{keep.o,target}=
        cpz --gitignore s d
        = d/.gitignore='*.o\n/target\n' d/.git/config= d/d/.gitignore='!keep.o\n/only-here\n'
        = d/d/{keep.o,e/only-here,e/keep.o}= d/e/target=
        # The user's patterns come first.
        cpz --gitignore --exclude=!a.o --exclude=.git* s d
        = d/{a.o,d/a.o,d/keep.o,d/e/only-here,d/e/keep.o,e/target}=
        # A `.gitignore` that is not a regular file is ignored.
        s/list='*\n' s/link/.gitignore->../list s/fifo/.gitignore<fifo> s/dir/.gitignore/x= s/socket/.gitignore<socket>
        s/{link,fifo,dir,socket}/file=
        cpz --gitignore s d
        = d/list='*\n' d/link/.gitignore->../list d/fifo/.gitignore<fifo> d/dir/.gitignore/x= d/socket/.gitignore<socket>
        = d/{link,fifo,dir,socket}/file=
        # One that cannot be read is a failure.
        s/d/.gitignore='*\n' s/d/file= s/d/.gitignore %0
        user cpz --gitignore --exclude=.gitignore --stats=json s d
        ! cannot open 's/d/.gitignore' for reading: Permission denied
        > ..."failures":1,...
        = d/d/file="#,
    );
}

#[test]
#[ignore = "slow"]
fn gitignore_files_are_read_with_few_descriptors() {
    const DEPTH: usize = 500;
    let scratch = Scratch::in_memory();
    let source = scratch.at("s");
    chain(&source, DEPTH);
    let mut dir = source.clone();
    for level in 0..DEPTH {
        Tree::at(&dir).plant(format!(".gitignore='/no{level}\n' no{level}= no="));
        dir.push("d");
    }
    wide(source.join("wide"), 5_000);
    fs::write(source.join("wide/.gitignore"), "f?\n").unwrap();
    let before = Snapshot::of(&source, Attributes::NAMES).len();
    for limit in [20, 64] {
        let outcome = cpz(&scratch, ["--gitignore", "s", &format!("d{limit}")])
            .nofile_limit(limit)
            .output();
        assert_eq!(outcome.stderr_text(), "");
        outcome.assert_success();
        let copy = Snapshot::of(scratch.at(format!("d{limit}")), Attributes::NAMES);
        assert_eq!(copy.len(), before - DEPTH - 10);
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
        let root = scratch.at("s");
        self.build(&root);
        succeeds(&scratch, "--gitignore s d");
        let dest = scratch.at("d");
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
#[ignore = "slow"]
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
