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
    snapshot::Snapshot,
    tree::{Scratch, Tree, plant, remove_for_sure},
};

use crate::kit::{
    Failure, Limited as _, Told, can_exchange, entries_of, exactly, exchange, paths, plain, told,
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
        told(|observer| removal.run(paths([self.path().join("s")]), observer))
    }

    fn copy(&self, options: CopyOp<'static>, verdict: fn(&Candidate<'_>) -> Verdict) -> Told {
        let copy = options.filtered_by(self.filter(verdict));
        let dest = exactly(self.path().join("d"));
        told(|observer| copy.run(paths([self.path().join("s")]), &dest, observer))
    }

    /// Asserts what is left beside `other`, and beside the source `s` of a copy.
    #[track_caller]
    fn assert_left(&self, sources: &[&str], left: &str, row: &str) {
        for name in sources {
            remove_for_sure(self.path().join(name)).expect("it is there");
        }
        let expected = Snapshot::of(Scratch::with(left), plain());
        let difference = expected.diff(&Snapshot::of(self.path(), plain()));
        assert!(difference.is_empty(), "{row}:\n{difference}");
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

fn skips_x(entry: &Candidate<'_>) -> Verdict {
    match entry.name() == "x" && entry.is_directory() {
        true => Verdict::Skip,
        false => Verdict::Take,
    }
}

fn takes_all(_: &Candidate<'_>) -> Verdict {
    Verdict::Take
}

/// A file that becomes a directory.
const FILE: &str = "s/x= other/precious=";
/// A directory that becomes a file.
const DIRECTORY: &str = "s/x/ other=precious";

type Verdicts = fn(&Candidate<'_>) -> Verdict;

#[test]
fn an_entry_that_changes_its_type_is_not_removed_without_a_verdict_about_what_it_has_become() {
    let asking = |ask| RemoveOp::new().with(|removal| removal.ask = ask);
    let by = |number| RemoveOp::new().threads(number);
    let if_protected = || asking(Ask::IfWriteProtected);
    let rows: [(_, _, _, Verdicts, _, _); 7] = [
        (
            "a directory, 1 thread",
            FILE,
            by(1),
            without_directories,
            0,
            "s/x/precious=",
        ),
        (
            "a directory, 4 threads",
            FILE,
            by(4),
            without_directories,
            0,
            "s/x/precious=",
        ),
        (
            "a directory, asking",
            FILE,
            if_protected().threads(4),
            without_directories,
            0,
            "s/x/precious=",
        ),
        ("a skipped directory", FILE, by(1), skips_x, 1, "s/x/"),
        (
            "a file",
            DIRECTORY,
            by(1),
            directories_only,
            0,
            "s/x=precious",
        ),
        (
            "a file, asking",
            DIRECTORY,
            if_protected(),
            directories_only,
            0,
            "s/x=precious",
        ),
        ("a file is taken, too", DIRECTORY, by(1), takes_all, 2, ""),
    ];
    for (row, build, options, verdict, removed, left) in rows {
        let race = or_skip!(Exchange::new(plant(build)));
        let told = race.remove(options, verdict);
        assert_eq!(told, Told::complete(removed, 0), "{row}");
        race.assert_left(&["other"], left, row);
    }
}

#[test]
fn a_file_that_changes_its_type_is_not_copied_without_a_verdict_about_what_it_has_become() {
    let removing_first = || CopyOp::new().with(|copy| copy.rules.remove_first = true);
    let with_links = || CopyOp::new().with(|copy| copy.preserve.links = true);
    let link = "s/x=content other->/etc/passwd";
    let rows: [(_, _, _, Verdicts, _, _); 6] = [
        (
            "a directory",
            FILE,
            CopyOp::new(),
            without_directories,
            1,
            "d/",
        ),
        (
            "a directory, rules",
            FILE,
            removing_first(),
            without_directories,
            1,
            "d/",
        ),
        (
            "a directory, preserve",
            FILE,
            with_links(),
            without_directories,
            1,
            "d/",
        ),
        (
            "a directory is taken, too",
            FILE,
            CopyOp::new(),
            takes_all,
            3,
            "d/x/precious=",
        ),
        ("a link", link, CopyOp::new(), files_only, 1, "d/"),
        ("a link, rules", link, removing_first(), files_only, 1, "d/"),
    ];
    for (row, build, options, verdict, copied, dest) in rows {
        let race = or_skip!(Exchange::new(plant(build)));
        let told = race.copy(options, verdict);
        assert_eq!(told, Told::complete(copied, 0), "{row}");
        race.assert_left(&["other", "s"], dest, row);
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
    assert_eq!(told, Told::complete(0, 0).with([replaced]));
    assert_eq!(fs::read(dest.join("x")).unwrap(), b"old");
    assert_eq!(entries_of(&dest), 2);
}
