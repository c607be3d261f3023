//! Entries that another process replaces between the verdict of a filter and their processing.
//!
//! Here the filter itself, or the answer to a question, replaces the entry, so that every race takes place.

use std::{
    fs,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use fuc_engine::{
    Ask, Backup, Candidate, CopyOp, Error, Filter, Observer, Question, Refusal, RemoveOp, Verdict,
};
use testkit::{
    or_skip,
    probe::Skip,
    snapshot::{Attributes, Snapshot, assert_same_tree},
    tree::{Scratch, Tree, plant},
};

use crate::kit::{
    Failure, Limited as _, Told, assert_unchanged, can_exchange, exactly, exchange, paths,
};

/// A directory `s` with an entry `x`, and another entry `other` that takes its place.
struct Exchange {
    scratch: Scratch,
}

impl Exchange {
    fn new(build: impl FnOnce(&Tree)) -> Result<Self, Skip> {
        let scratch = Scratch::in_memory();
        can_exchange(&scratch)?;
        let tree = Tree::at(&scratch);
        build(&tree);
        Ok(Self { scratch })
    }

    fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// Returns a filter that gives the verdicts of `verdict`. After its first verdict about `x`, it exchanges `x` and
    /// `other`.
    fn filter(&self, verdict: fn(&Candidate<'_>) -> Verdict) -> impl Filter + use<> {
        let [x, other] = ["s/x", "other"].map(|name| self.path().join(name));
        let asked = AtomicUsize::new(0);
        move |entry: &Candidate<'_>| {
            let verdict = verdict(entry);
            if entry.name() == "x" && asked.fetch_add(1, Ordering::Relaxed) == 0 {
                exchange(&x, &other).expect("both exist");
            }
            verdict
        }
    }

    fn remove(&self, options: RemoveOp<'static>, verdict: fn(&Candidate<'_>) -> Verdict) -> Told {
        let removal = options.filtered_by(self.filter(verdict));
        let failures = Mutex::new(Vec::new());
        let summary = removal.run(paths([self.path().join("s")]), &failures);
        Told::new(summary, failures)
    }

    fn copy(&self, options: CopyOp<'static>, verdict: fn(&Candidate<'_>) -> Verdict) -> Told {
        let copy = options.filtered_by(self.filter(verdict));
        let failures = Mutex::new(Vec::new());
        let dest = exactly(self.path().join("d"));
        let summary = copy.run(paths([self.path().join("s")]), &dest, &failures);
        Told::new(summary, failures)
    }
}

fn without_directories(entry: &Candidate<'_>) -> Verdict {
    match entry.is_directory() {
        true => Verdict::Prune,
        false => Verdict::Take,
    }
}

fn directories_only(entry: &Candidate<'_>) -> Verdict {
    match entry.is_directory() {
        true => Verdict::Take,
        false => Verdict::Prune,
    }
}

fn files_only(entry: &Candidate<'_>) -> Verdict {
    match entry.is_file() {
        true => Verdict::Take,
        false => Verdict::Prune,
    }
}

/// Builds a file that becomes a directory.
fn file_and_directory(tree: &Tree) {
    tree.plant("s/x= other/precious=");
}

#[test]
fn a_file_that_becomes_a_directory_is_not_removed_without_a_verdict_about_the_directory() {
    for (number, ask) in [(1, Ask::Never), (4, Ask::Never), (4, Ask::IfWriteProtected)] {
        let race = or_skip!(Exchange::new(file_and_directory));
        let before = Snapshot::of(race.path().join("other"), Attributes::NAMES);
        let options = RemoveOp::new()
            .threads(number)
            .with(|removal| removal.ask = ask);
        let told = race.remove(options, without_directories);
        assert_eq!(told, Told::complete(0, 0), "{number} threads, {ask:?}");
        assert_unchanged(&before, race.path().join("s/x"), Attributes::NAMES);
    }
}

#[test]
fn a_file_that_becomes_a_skipped_directory_stays_without_its_entries() {
    let race = or_skip!(Exchange::new(file_and_directory));
    let told = race.remove(RemoveOp::new(), |entry| {
        match entry.name() == "x" && entry.is_directory() {
            true => Verdict::Skip,
            false => Verdict::Take,
        }
    });
    assert_eq!(told, Told::complete(1, 0));
    let left = Snapshot::of(race.path().join("s/x"), Attributes::NAMES);
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_directory_that_becomes_a_file_is_not_removed_without_a_verdict_about_the_file() {
    for ask in [Ask::Never, Ask::IfWriteProtected] {
        let race = or_skip!(Exchange::new(plant("s/x/ other=precious")));
        let options = RemoveOp::new().with(|options| options.ask = ask);
        let told = race.remove(options, directories_only);
        assert_eq!(told, Told::complete(0, 0), "{ask:?}");
        assert_eq!(fs::read(race.path().join("s/x")).unwrap(), b"precious");
    }
}

#[test]
fn a_directory_that_becomes_a_file_is_removed_if_the_filter_takes_that_too() {
    let race = or_skip!(Exchange::new(plant("s/x/ other=")));
    let told = race.remove(RemoveOp::new(), |_| Verdict::Take);
    assert_eq!(told, Told::complete(2, 0));
    assert!(!race.path().join("s").exists());
}

#[test]
fn a_file_that_becomes_a_directory_is_not_copied_without_a_verdict_about_the_directory() {
    for (case, options) in [
        ("plain", CopyOp::new()),
        ("rules", CopyOp::new().with(|o| o.rules.remove_first = true)),
        ("preserve", CopyOp::new().with(|o| o.preserve.links = true)),
    ] {
        let race = or_skip!(Exchange::new(file_and_directory));
        let told = race.copy(options, without_directories);
        assert_eq!(told, Told::complete(1, 0), "{case}");
        let copied = Snapshot::of(race.path().join("d"), Attributes::NAMES);
        assert_eq!(copied.len(), 1, "{case}: {copied:?}");
    }
}

#[test]
fn a_file_that_becomes_a_directory_is_copied_if_the_filter_takes_that_too() {
    let race = or_skip!(Exchange::new(file_and_directory));
    let told = race.copy(CopyOp::new(), |_| Verdict::Take);
    assert_eq!(told, Told::complete(3, 0));
    assert_same_tree(
        race.path().join("s"),
        race.path().join("d"),
        Attributes::NAMES,
    );
}

#[test]
fn a_file_that_becomes_a_link_is_not_copied_without_a_verdict_about_the_link() {
    for (case, options) in [
        ("plain", CopyOp::new()),
        ("rules", CopyOp::new().with(|o| o.rules.remove_first = true)),
    ] {
        let race = or_skip!(Exchange::new(plant("s/x=content other->/etc/passwd")));
        let told = race.copy(options, files_only);
        assert_eq!(told, Told::complete(1, 0), "{case}");
        assert!(race.path().join("d/x").symlink_metadata().is_err());
    }
}

/// Exchanges `s/x` and `other` when it is asked whether to overwrite a dest.
struct ExchangesWhenAsked<'a> {
    scratch: &'a Path,
    failures: Mutex<Vec<Error>>,
}

impl Observer for ExchangesWhenAsked<'_> {
    fn failed(&self, error: Error) {
        self.failures.failed(error);
    }

    fn confirm(&self, _: Question<'_>) -> bool {
        exchange(self.scratch.join("s/x"), self.scratch.join("other")).expect("both exist");
        true
    }
}

#[test]
fn a_dest_that_was_backed_up_gets_its_name_back_if_the_source_is_left_alone_then() {
    let scratch = Scratch::in_memory();
    or_skip!(can_exchange(&scratch));
    scratch.plant("s/x=new other/precious= d/x=old");
    let options = CopyOp::new().with(|options| {
        options.rules.ask = true;
        options.rules.backup = Some(Backup::Simple);
    });
    let observer = ExchangesWhenAsked {
        scratch: scratch.path(),
        failures: Mutex::default(),
    };
    let copy = options.filtered_by(without_directories);
    let [source, dest] = ["s", "d"].map(|name| scratch.at(name));
    let summary = copy.run(paths([&source]), &exactly(&dest), &observer);
    let told = Told::new(summary, observer.failures);
    let replaced = Failure::refused(Refusal::SourceReplaced, source.join("x"));
    assert_eq!(told, Told::complete(1, 0).with([replaced]));
    assert_eq!(fs::read(dest.join("x")).unwrap(), b"old");
    assert_eq!(Snapshot::of(&dest, Attributes::NAMES).len(), 2);
}
