//! Rules for existing dests, as far as tests of the commands cannot cover them.

use std::fs;
use std::sync::Mutex;
use std::time::Duration;

use fuc_engine::{Backup, CopyOp, Dest, Error, Observer, Question, Replace, Summary};
use testkit::tree::{Scratch, Tree};

use crate::kit::{counts, paths, threads};

/// Answers each question about a dest, and records the names.
struct Person {
    agrees: bool,
    asked: Mutex<Vec<String>>,
}

impl Observer for Person {
    fn failed(&self, error: Error) {
        panic!("{error}");
    }

    fn confirm(&self, question: Question<'_>) -> bool {
        let Question::Overwrite {
            path,
            is_write_protected: false,
            ..
        } = question
        else {
            panic!("what is {question:?}?");
        };
        let name = path.file_name().expect("a file has a name");
        let name = name.to_str().expect("names are UTF-8 here").to_owned();
        self.asked.lock().expect("no thread panicked").push(name);
        self.agrees
    }
}

/// Copies `s` to `d`, both in `scratch`.
fn copy(scratch: &Scratch, options: CopyOp<'static>, observer: &dyn Observer) -> Summary {
    let dest = Dest::Exactly(scratch.path().join("d"));
    options.run(paths([scratch.path().join("s")]), &dest, observer)
}

fn text(scratch: &Scratch, name: &str) -> String {
    fs::read_to_string(scratch.path().join(name)).expect("a file")
}

fn overlapping(files: usize) -> Scratch {
    let scratch = Scratch::in_memory();
    let tree = Tree::at(scratch.path());
    for number in 0..files {
        tree.file(format!("s/{number}"), "new")
            .file(format!("d/{number}"), "old");
    }
    scratch
}

fn asked(agrees: bool) -> (Summary, Vec<String>, Scratch) {
    let scratch = overlapping(30);
    let person = Person {
        agrees,
        asked: Mutex::default(),
    };
    let options = CopyOp::new().with(|options| {
        options.rules.ask = true;
        options.threads = threads(8);
    });
    let summary = copy(&scratch, options, &person);
    let asked = person.asked.into_inner().expect("no thread panicked");
    (summary, asked, scratch)
}

#[test]
fn declined_dests_are_counted_and_are_no_failures() {
    let (summary, asked, scratch) = asked(false);
    assert_eq!((summary.declined, asked.len()), (30, 30));
    assert!(summary.is_complete());
    assert_eq!(text(&scratch, "d/7"), "old");
}

#[test]
fn agreed_dests_are_asked_about_in_the_order_of_the_listing() {
    let (summary, asked, scratch) = asked(true);
    assert_eq!(summary.declined, 0);
    let listed: Vec<_> = fs::read_dir(scratch.path().join("s"))
        .expect("it is there")
        .map(|entry| entry.expect("it is listed").file_name().into_string())
        .map(|name| name.expect("names are UTF-8 here"))
        .collect();
    assert_eq!(asked, listed);
    assert_eq!(text(&scratch, "d/7"), "new");
}

fn backups(backup: Backup) -> CopyOp<'static> {
    CopyOp::new().with(|options| {
        options.rules.backup = Some(backup);
        options.rules.backup_suffix = ".bak".into();
        options.threads = threads(4);
    })
}

#[test]
fn several_threads_number_the_backups_of_one_directory() {
    let scratch = overlapping(3_000);
    let failures = Mutex::new(Vec::new());
    for _ in 0..3 {
        let summary = copy(&scratch, backups(Backup::Numbered), &failures);
        assert_eq!(counts(summary), (3_001, 9_000, 0));
    }
    assert_eq!(
        fs::read_dir(scratch.path().join("d"))
            .expect("it is there")
            .count(),
        12_000
    );
    assert_eq!(text(&scratch, "d/2999.~1~"), "old");
    assert_eq!(text(&scratch, "d/2999.~3~"), "new");
}

#[test]
fn one_numbered_backup_makes_more_of_them() {
    let scratch = overlapping(2);
    Tree::at(scratch.path()).file("d/0.~4~", "");
    let failures = Mutex::new(Vec::new());
    let summary = copy(&scratch, backups(Backup::NumberedIfAny), &failures);
    assert!(summary.is_complete());
    assert_eq!(text(&scratch, "d/0.~5~"), "old");
    assert_eq!(text(&scratch, "d/1.bak"), "old");
}

/// Updates a file whose dest has timestamps of whole seconds, and returns whether it was replaced.
fn is_updated(times_are_kept: bool) -> bool {
    let scratch = Scratch::in_memory();
    Tree::at(scratch.path())
        .file("d", "old")
        .mtime(Duration::from_secs(1_000))
        .file("s", "new")
        .mtime(Duration::from_millis(1_000_500));
    let options = CopyOp::new().with(|options| {
        options.rules.replace = Replace::Older;
        options.preserve.timestamps = times_are_kept;
    });
    let failures = Mutex::new(Vec::new());
    assert!(copy(&scratch, options, &failures).is_complete());
    text(&scratch, "d") == "new"
}

#[test]
fn fractions_of_seconds_count_if_the_dest_can_store_them() {
    // The ctime has a fraction of a second, which shows that the filesystem can store one.
    assert!(is_updated(false));
    assert!(is_updated(true));
}
