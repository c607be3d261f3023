//! Removals of the entries of directories that stay.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::sync::Mutex;

use fuc_engine::{Ask, Error, Observer, Question, RemoveOp, remove_contents};
use testkit::snapshot::{Attributes, Snapshot};
use testkit::tree::{Scratch, Tree, wide};

use crate::kit::{all_but_atime, assert_nothing_in, assert_unchanged, paths};

#[test]
fn a_directory_that_is_emptied_stays_itself() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path().join("d"));
    tree.file("a/b/c", "content").symlink("l", "a").fifo("p");
    wide(tree.path().join("wide"), 2_000);
    let inode = fs::metadata(tree.path()).unwrap().ino();
    let summary = remove_contents(tree.path()).expect("all can be removed");
    assert_eq!((summary.files, summary.directories), (2_001, 3));
    assert_eq!((summary.symlinks, summary.other), (1, 1));
    assert_nothing_in(tree.path());
    assert_eq!(fs::metadata(tree.path()).unwrap().ino(), inode);
    assert_eq!(remove_contents(tree.path()).unwrap().entries, 0);
}

#[test]
fn several_directories_are_emptied_and_each_failure_is_reported() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.file("a/f", "").file("b/sub/f", "").file("file", "");
    let operands = ["a", "missing", "file", "b"].map(|name| tree.path().join(name));
    let failures = Mutex::new(Vec::new());
    let summary = RemoveOp::new()
        .contents_only()
        .run(paths(&operands), &failures);
    assert_eq!((summary.entries, summary.failures), (3, 2));
    let failures = failures.into_inner().unwrap();
    let kinds: Vec<_> = failures.iter().map(|e| (e.path(), e.kind())).collect();
    assert_eq!(
        kinds,
        [
            (&*operands[1], ErrorKind::NotFound),
            (&*operands[2], ErrorKind::NotADirectory)
        ]
    );
    let left = Snapshot::of(&scratch, Attributes::NAMES);
    assert_eq!(left.len(), 4, "the three operands, and their parent");
}

#[test]
fn a_directory_behind_a_symlink_is_not_emptied() {
    let scratch = Scratch::new();
    let tree = Tree::at(&scratch);
    tree.file("d/f", "").symlink("l", "d");
    let before = Snapshot::of(&scratch, all_but_atime());
    let error = remove_contents(tree.path().join("l")).expect_err("it is a link");
    assert_eq!(error.kind(), ErrorKind::NotADirectory);
    assert_unchanged(&before, &scratch, all_but_atime());
    let summary = remove_contents(tree.path().join("l/")).expect("the slash follows the link");
    assert_eq!(summary.entries, 1);
    assert_eq!(
        fs::read_link(tree.path().join("l")).unwrap().to_str(),
        Some("d")
    );
}

#[test]
fn missing_directories_are_ignored_on_request() {
    let scratch = Scratch::new();
    let emptying = RemoveOp::new().with(|removal| removal.ignore_missing = true);
    let emptied = emptying
        .contents_only()
        .remove(scratch.path().join("missing"));
    assert!(emptied.expect("it is ignored").is_complete());
}

#[test]
fn the_root_directory_is_refused() {
    // Nothing but one directory may be entered, in case that the root is not refused.
    let emptying = RemoveOp::new().with(|removal| removal.ask = Ask::Always);
    let error = emptying
        .contents_only()
        .remove("/")
        .expect_err("it is the root");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

/// Answers yes, except about names that contain `keep`. Records each question.
#[derive(Default)]
struct Answers(Mutex<Vec<String>>);

impl Observer for Answers {
    fn failed(&self, error: Error) {
        panic!("{error}");
    }

    fn confirm(&self, question: Question<'_>) -> bool {
        let (Question::Remove(target) | Question::Descend(target)) = question else {
            return false;
        };
        let name = target.path.file_name().unwrap().to_string_lossy();
        self.0.lock().unwrap().push(name.to_string());
        !name.contains("keep")
    }
}

#[test]
fn questions_are_about_entries_and_not_about_the_directory() {
    let scratch = Scratch::new();
    let tree = Tree::at(scratch.path().join("d"));
    tree.file("keep", "").file("f", "");
    let answers = Answers::default();
    let summary = RemoveOp::new()
        .with(|removal| removal.ask = Ask::Always)
        .contents_only()
        .run(paths([tree.path()]), &answers);
    assert_eq!((summary.entries, summary.failures), (1, 0));
    let mut asked = answers.0.into_inner().unwrap();
    asked.sort();
    assert_eq!(asked, ["f", "keep"]);
    assert!(tree.path().join("keep").exists());
}
