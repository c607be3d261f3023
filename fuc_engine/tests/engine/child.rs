//! The engine in a process of its own, with limits that a test cannot set for itself. If it hangs, one process is
//! killed and not the whole suite.
//!
//! The process is this test binary, which runs [`program`] and nothing else. Environment variables say
//! what to do.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use fuc_engine::{Cause, CopyOp, Dest, Error, Event, Observer, Preserve, RemoveOp, Replace};
use testkit::run::Run;

use crate::kit::{self, Counts, counts, paths, threads};
use crate::{bases, sharing_copies};

const ACTION: &str = "FUC_ENGINE_TEST_ACTION";
const SOURCE: &str = "FUC_ENGINE_TEST_SOURCE";
const DEST: &str = "FUC_ENGINE_TEST_DEST";
const ARCHIVE: &str = "FUC_ENGINE_TEST_ARCHIVE";
const THREADS: &str = "FUC_ENGINE_TEST_THREADS";
const EXCHANGE_AT: &str = "FUC_ENGINE_TEST_EXCHANGE_AT";
const EXCHANGED: &str = "FUC_ENGINE_TEST_EXCHANGED";
/// Paths that the program looks at before and after the operation, to mark it in a trace.
pub(crate) const MARKS: [&str; 2] = ["/fuc-engine-test-begins", "/fuc-engine-test-ends"];

/// An operation to run in another process.
pub(crate) struct Child {
    current_dir: Option<PathBuf>,
    wrapper: Vec<OsString>,
    env: Vec<(&'static str, OsString)>,
    nofile: Option<u64>,
    time_limit: Duration,
}

/// The result of an operation in another process.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) counts: Counts,
    /// The failures, sorted. Each is `Operation errno "path"` or `Refusal "path"`.
    pub(crate) failures: Vec<String>,
    /// The number of pairs that were exchanged; see [`Child::exchanging`].
    pub(crate) exchanges: u64,
}

impl Report {
    #[track_caller]
    pub(crate) fn assert_complete(&self, entries: usize, bytes: u64) -> &Self {
        assert_eq!(self.failures, [""; 0]);
        assert_eq!(self.counts, (entries as u64, bytes, 0));
        self
    }
}

pub(crate) fn remove(path: impl AsRef<Path>) -> Child {
    Child::new("remove", path.as_ref())
}

/// Copies a path with two engines, and removes it with them.
pub(crate) fn share(source: impl AsRef<Path>, dest: impl AsRef<Path>) -> Child {
    Child::new("share", source.as_ref()).with(DEST, dest.as_ref())
}

pub(crate) fn copy(source: impl AsRef<Path>, dest: impl AsRef<Path>) -> Child {
    Child::new("copy", source.as_ref()).with(DEST, dest.as_ref())
}

/// Copies files that are newer than their dests.
pub(crate) fn update(source: impl AsRef<Path>, dest: impl AsRef<Path>) -> Child {
    Child::new("update", source.as_ref()).with(DEST, dest.as_ref())
}

/// Runs the [cases](bases::cases) of copies between open directories in trees below `root`.
pub(crate) fn copies_between_open_directories(root: impl AsRef<Path>) -> Child {
    Child::new("copies-between-open-directories", root.as_ref())
}

/// Prepares several copies, which run one after the other.
pub(crate) fn copies(pairs: impl IntoIterator<Item = (PathBuf, PathBuf)>) -> Child {
    let (sources, dests): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    Child::new("copy", list(&sources).as_ref()).with(DEST, list(&dests))
}

/// Joins paths as [`env::split_paths`] splits them.
fn list(paths: &[PathBuf]) -> OsString {
    env::join_paths(paths).expect("no path has a colon")
}

impl Child {
    fn new(action: &'static str, source: &Path) -> Self {
        Self {
            current_dir: None,
            wrapper: Vec::new(),
            env: vec![(ACTION, action.into()), (SOURCE, source.into())],
            nofile: None,
            time_limit: Duration::from_secs(60),
        }
    }

    fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    pub(crate) fn threads(self, number: usize) -> Self {
        self.with(THREADS, number.to_string())
    }

    /// Exchanges the paths of each pair as soon as an entry directly in `dir` is reported as done.
    pub(crate) fn exchanging(
        self,
        dir: &Path,
        pairs: impl IntoIterator<Item = (PathBuf, PathBuf)>,
    ) -> Self {
        let paths: Vec<_> = pairs.into_iter().flat_map(|(a, b)| [a, b]).collect();
        self.with(EXCHANGE_AT, dir).with(EXCHANGED, list(&paths))
    }

    /// Preserves all attributes.
    pub(crate) fn archive(self) -> Self {
        self.with(ARCHIVE, "1")
    }

    pub(crate) fn current_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.current_dir = Some(dir.as_ref().to_owned());
        self
    }

    pub(crate) fn nofile_limit(mut self, descriptors: u64) -> Self {
        self.nofile = Some(descriptors);
        self
    }

    /// Replaces the time limit, after which the process is killed.
    pub(crate) fn within(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Runs the process by another program. Its arguments are `wrapper`, then those of the process.
    pub(crate) fn under(mut self, wrapper: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.wrapper = wrapper.into_iter().map(Into::into).collect();
        self
    }

    #[track_caller]
    pub(crate) fn run(self) -> Report {
        let myself = env::current_exe().expect("a process has a program");
        let mut words = self.wrapper;
        words.push(myself.into());
        let only_program = ["--exact", "child::program"];
        let visibly = ["--nocapture", "--test-threads=1"];
        words.extend(only_program.into_iter().chain(visibly).map(Into::into));
        let mut run = Run::new(&words[0])
            .args(&words[1..])
            .time_limit(self.time_limit);
        for (name, value) in &self.env {
            run = run.env(name, value);
        }
        if let Some(dir) = &self.current_dir {
            run = run.current_dir(dir);
        }
        if let Some(descriptors) = self.nofile {
            run = run.nofile_limit(descriptors);
        }
        let outcome = run.output();
        outcome.assert_status(0);
        parse(&outcome.stdout_text())
    }
}

fn parse(stdout: &str) -> Report {
    let lines = |tag| {
        stdout
            .lines()
            .filter_map(move |line| line.strip_prefix(tag))
    };
    let numbers: Vec<u64> = lines("RESULT ")
        .flat_map(str::split_whitespace)
        .map(|number| number.parse().expect("a number"))
        .collect();
    let [entries, bytes, failed, exchanges] = numbers[..] else {
        panic!("no result in:\n{stdout}");
    };
    let mut failures: Vec<_> = lines("FAILED ").map(str::to_owned).collect();
    failures.sort();
    assert_eq!(failed, failures.len() as u64, "in:\n{stdout}");
    Report {
        counts: (entries, bytes, failed),
        failures,
        exchanges,
    }
}

/// Describes an error in the form of [`Report::failures`].
fn in_words(error: &Error) -> String {
    match error.cause() {
        Cause::Failed(operation, raw) => {
            format!("{operation:?} {raw} {:?}", error.path())
        }
        Cause::Refused(refusal) => format!("{refusal:?} {:?}", error.path()),
    }
}

/// Exchanges pairs of paths once, at the first event directly in a certain directory.
struct Exchange<'a> {
    dir: PathBuf,
    pairs: Vec<PathBuf>,
    is_done: AtomicBool,
    failures: &'a Mutex<Vec<Error>>,
}

impl<'a> Exchange<'a> {
    /// Returns the exchange that [`Child::exchanging`] requested, or `None`.
    fn wanted(failures: &'a Mutex<Vec<Error>>) -> Option<Self> {
        Some(Self {
            dir: env::var_os(EXCHANGE_AT)?.into(),
            pairs: env::split_paths(&env::var_os(EXCHANGED)?).collect(),
            is_done: AtomicBool::new(false),
            failures,
        })
    }

    /// Returns how many pairs were exchanged.
    fn count(&self) -> usize {
        match self.is_done.load(Ordering::Relaxed) {
            true => self.pairs.len() / 2,
            false => 0,
        }
    }
}

impl Observer for Exchange<'_> {
    fn failed(&self, error: Error) {
        self.failures.failed(error);
    }

    fn wants_events(&self) -> bool {
        true
    }

    fn on_event(&self, event: Event<'_>) {
        let (Event::Removed(path)
        | Event::RemovedDirectory(path)
        | Event::Copied { source: path, .. }) = event
        else {
            return;
        };
        if path.parent() == Some(&self.dir) && !self.is_done.swap(true, Ordering::Relaxed) {
            for pair in self.pairs.chunks(2) {
                kit::exchange(&pair[0], &pair[1]).expect("both paths exist");
            }
        }
    }
}

fn copy_options() -> fuc_engine::CopyOp<'static> {
    CopyOp::new().with(|options| {
        options.threads = threads_wanted();
        if env::var_os(ACTION).is_some_and(|action| action == "update") {
            options.rules.replace = Replace::Older;
        }
        if env::var_os(ARCHIVE).is_some() {
            options.preserve = Preserve::all();
        }
    })
}

fn threads_wanted() -> Option<std::num::NonZeroUsize> {
    let number = env::var(THREADS).ok()?;
    threads(number.parse().expect("a number"))
}

/// Does nothing unless another test runs it in a process of its own.
#[test]
fn program() {
    let Ok(action) = env::var(ACTION) else {
        return;
    };
    let source = env::var_os(SOURCE).expect("a test says what to do it with");
    let failures = Mutex::new(Vec::new());
    let exchange = Exchange::wanted(&failures);
    let observer: &dyn Observer = match &exchange {
        Some(exchange) => exchange,
        None => &failures,
    };
    let mark = |path| drop(std::fs::metadata(path));
    mark(MARKS[0]);
    let (entries, bytes, failed) = match &*action {
        "remove" => {
            let options = RemoveOp::new().with(|options| options.threads = threads_wanted());
            counts(options.run(paths([source]), observer))
        }
        "share" => {
            let dest = env::var_os(DEST).expect("a dest");
            sharing_copies::copy_and_remove_with_two(source.as_ref(), dest.as_ref())
        }
        "copy" | "update" => {
            let op = copy_options();
            let dests = env::var_os(DEST).expect("a dest");
            let pairs = env::split_paths(&source).zip(env::split_paths(&dests));
            pairs.fold((0, 0, 0), |total, (source, dest)| {
                let summary = op.run(paths([source]), &Dest::Exactly(dest), observer);
                let (entries, bytes, failed) = counts(summary);
                (total.0 + entries, total.1 + bytes, total.2 + failed)
            })
        }
        "copies-between-open-directories" => {
            bases::run_all(Path::new(&source), threads_wanted(), observer)
        }
        _ => panic!("no such action: {action}"),
    };
    mark(MARKS[1]);
    let exchanges = exchange.as_ref().map_or(0, Exchange::count);
    println!("\nRESULT {entries} {bytes} {failed} {exchanges}");
    for error in failures.lock().expect("no observer panicked").iter() {
        println!("FAILED {}", in_words(error));
    }
}
