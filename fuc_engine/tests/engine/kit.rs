//! Runs operations and records their reports.

use std::{
    fs,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use fuc_engine::{
    Cause, CopyOp, Dest, Error, Event, Observer, Operation, Question, Refusal, RemoveOp, Summary,
};
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use testkit::{
    probe::Skip,
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree},
};

/// An [`Error`] in a form that tests can compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    pub(crate) path: PathBuf,
    pub(crate) other: Option<PathBuf>,
}

impl Failure {
    pub(crate) fn of(error: &Error) -> Self {
        Self {
            cause: error.cause(),
            path: error.path().to_owned(),
            other: error.other_path().map(Path::to_owned),
        }
    }

    pub(crate) fn failed(operation: Operation, path: impl Into<PathBuf>, errno: Errno) -> Self {
        Self {
            cause: failed(operation, errno),
            path: path.into(),
            other: None,
        }
    }

    pub(crate) fn refused(refusal: Refusal, path: impl Into<PathBuf>) -> Self {
        Self {
            cause: Cause::Refused(refusal),
            path: path.into(),
            other: None,
        }
    }

    pub(crate) fn and(mut self, other: impl Into<PathBuf>) -> Self {
        self.other = Some(other.into());
        self
    }
}

/// Returns the cause of a failure whose reason is `errno`.
pub(crate) fn failed(operation: Operation, errno: Errno) -> Cause {
    Cause::Failed(operation, errno.raw_os_error())
}

/// The numbers of a summary: entries, bytes, failures.
pub(crate) type Counts = (u64, u64, u64);

pub(crate) fn counts(summary: Summary) -> Counts {
    (summary.entries, summary.bytes, summary.failures)
}

/// The summary and the failures of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) counts: Counts,
    pub(crate) failures: Vec<Failure>,
}

impl Told {
    pub(crate) fn new(summary: Summary, failures: Mutex<Vec<Error>>) -> Self {
        let failures = failures.into_inner().expect("no observer panicked");
        let is_complete = summary.failures == 0 && !summary.cancelled;
        assert_eq!(summary.is_complete(), is_complete);
        Self {
            counts: counts(summary),
            failures: failures.iter().map(Failure::of).collect(),
        }
    }

    pub(crate) fn complete(entries: usize, bytes: u64) -> Self {
        Self {
            counts: (entries as u64, bytes, 0),
            failures: Vec::new(),
        }
    }

    /// Adds failures, which also count in the summary.
    pub(crate) fn with(mut self, failures: impl IntoIterator<Item = Failure>) -> Self {
        self.failures = failures.into_iter().collect();
        self.counts.2 = self.failures.len() as u64;
        self
    }

    pub(crate) fn causes(&self) -> Vec<Cause> {
        self.failures.iter().map(|it| it.cause).collect()
    }

    /// Sorts the failures, which come in any order if there are several threads.
    pub(crate) fn sorted(mut self) -> Self {
        self.failures.sort_by(|a, b| a.path.cmp(&b.path));
        self
    }
}

pub(crate) fn exactly(path: impl AsRef<Path>) -> Dest {
    Dest::Exactly(path.as_ref().to_owned())
}

/// Limits the threads of an operation.
pub(crate) trait Limited {
    fn threads(self, most: usize) -> Self;
}

impl Limited for CopyOp<'_> {
    fn threads(self, most: usize) -> Self {
        self.with(|copy| copy.threads = threads(most))
    }
}

impl Limited for RemoveOp<'_> {
    fn threads(self, most: usize) -> Self {
        self.with(|removal| removal.threads = threads(most))
    }
}

pub(crate) fn threads(number: usize) -> Option<NonZeroUsize> {
    NonZeroUsize::new(number)
}

/// Returns the operands of a run.
pub(crate) fn paths<P: AsRef<Path>>(paths: impl AsRef<[P]>) -> Vec<PathBuf> {
    let paths = paths.as_ref().iter();
    paths.map(|path| path.as_ref().to_owned()).collect()
}

/// Returns the summary and the failures of a run.
pub(crate) fn told(run: impl FnOnce(&dyn Observer) -> Summary) -> Told {
    let failures = Mutex::new(Vec::new());
    let summary = run(&failures);
    Told::new(summary, failures)
}

pub(crate) fn remove_with<P: AsRef<Path>>(
    options: RemoveOp<'static>,
    operands: impl AsRef<[P]>,
) -> Told {
    told(|observer| options.run(paths(operands), observer))
}

pub(crate) fn remove(path: impl AsRef<Path>) -> Told {
    remove_with(RemoveOp::new(), [path])
}

pub(crate) fn copy_with<P: AsRef<Path>>(
    options: CopyOp<'static>,
    sources: impl AsRef<[P]>,
    dest: &Dest,
) -> Told {
    told(|observer| options.run(paths(sources), dest, observer))
}

pub(crate) fn copy(source: impl AsRef<Path>, dest: impl AsRef<Path>) -> Told {
    let dest = Dest::Exactly(dest.as_ref().to_owned());
    copy_with(CopyOp::new(), [source], &dest)
}

/// Returns the attributes that a plain copy keeps. Hard links are not among them: they become separate files.
pub(crate) fn plain() -> Attributes {
    Attributes::CONTENT - Attributes::LINKS
}

/// Returns a mode that denies writing to a directory, unless the process could not remove its entries then.
pub(crate) fn unwritable() -> u32 {
    if testkit::probe::is_root() {
        0o555
    } else {
        0o755
    }
}

/// Returns the attributes of a source that a copy leaves unchanged. Reading changes the atime.
pub(crate) fn all_but_atime() -> Attributes {
    Attributes::ALL - Attributes::ATIME
}

/// Returns how many entries a tree has, with its root.
#[track_caller]
pub(crate) fn entries_of(root: impl AsRef<Path>) -> usize {
    Snapshot::of(root, Attributes::NAMES).len()
}

#[track_caller]
pub(crate) fn assert_nothing_in(dir: impl AsRef<Path>) {
    let left = Snapshot::of(dir, Attributes::NAMES);
    assert_eq!(left.len(), 1, "left behind:\n{left:?}");
}

#[track_caller]
pub(crate) fn assert_unchanged(before: &Snapshot, path: impl AsRef<Path>, attributes: Attributes) {
    let difference = before.diff(&Snapshot::of(path, attributes));
    assert!(difference.is_empty(), "it changed:\n{difference}");
}

/// Waits until `condition` is true.
///
/// # Panics
/// If that takes two minutes, with `reason`.
#[track_caller]
pub(crate) fn until(reason: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < end, "{reason}");
        thread::yield_now();
    }
}

/// Repeats `round`, which returns how many races took place in it, until at least `wanted` took place in at
/// least as many rounds.
///
/// # Panics
/// If too few took place within ten minutes. Other processes may keep two threads from running together for long.
#[track_caller]
pub(crate) fn until_raced(wanted: usize, mut round: impl FnMut() -> usize) {
    let begin = Instant::now();
    let (mut rounds, mut races) = (0, 0);
    while rounds < wanted || races < wanted {
        let is_late = begin.elapsed() > Duration::from_secs(600);
        assert!(!is_late, "only {races} races in {rounds} rounds");
        races += round();
        rounds += 1;
    }
}

/// Exchanges two names.
pub(crate) fn exchange(a: impl AsRef<Path>, b: impl AsRef<Path>) -> Result<(), Errno> {
    renameat_with(CWD, a.as_ref(), CWD, b.as_ref(), RenameFlags::EXCHANGE)
}

/// Skips a test if the kernel or the filesystem of `dir` cannot exchange two names.
pub(crate) fn can_exchange(dir: impl AsRef<Path>) -> Result<(), Skip> {
    let [a, b] = ["exchange-a", "exchange-b"].map(|name| dir.as_ref().join(name));
    Tree::at(dir).dir(&a).dir(&b);
    let exchanged = exchange(&a, &b);
    for dir in [a, b] {
        fs::remove_dir(dir).expect("it is empty");
    }
    exchanged.map_err(|errno| Skip(format!("two names cannot be exchanged here: {errno}")))
}

/// Returns a directory in memory, and the paths of a source and of a dest in it.
pub(crate) fn places() -> (Scratch, PathBuf, PathBuf) {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.at(name));
    (scratch, source, dest)
}

/// Calls a closure at each event. A failure is a panic.
pub(crate) struct OnEvent<F>(pub(crate) F);

impl<F: Fn(Event<'_>) + Sync> Observer for OnEvent<F> {
    fn failed(&self, error: Error) {
        panic!("{error}");
    }

    fn wants_events(&self) -> bool {
        true
    }

    fn on_event(&self, event: Event<'_>) {
        (self.0)(event);
    }
}

/// Agrees to all questions but those about the names in `declined`. A failure is a panic.
#[derive(Default)]
pub(crate) struct Person {
    declined: Vec<&'static str>,
    asked: Mutex<Vec<String>>,
}

impl Person {
    pub(crate) fn declining(names: impl Into<Vec<&'static str>>) -> Self {
        let declined = names.into();
        Self {
            declined,
            ..Self::default()
        }
    }

    /// Returns the questions in order. Each is what may be done, a type, and a name.
    pub(crate) fn asked(self) -> Vec<String> {
        self.asked.into_inner().unwrap()
    }
}

impl Observer for Person {
    fn failed(&self, error: Error) {
        panic!("{error}");
    }

    fn confirm(&self, question: Question<'_>) -> bool {
        let (what, path) = match question {
            Question::Remove(target) => (format!("remove {:?}", target.kind), target.path),
            Question::Descend(target) => (format!("descend {:?}", target.kind), target.path),
            Question::Overwrite { path, .. } => ("overwrite".to_owned(), path),
            other => panic!("a new question: {other:?}"),
        };
        let name = path.file_name().unwrap().to_str().unwrap();
        self.asked.lock().unwrap().push(format!("{what} {name}"));
        !self.declined.contains(&name)
    }
}

/// Collects failures, and calls a closure at each event, so that a race takes place at a known moment.
pub(crate) struct Meddler<F> {
    meddle: F,
    failures: Mutex<Vec<Error>>,
}

impl<F: Fn(Event<'_>) + Sync> Meddler<F> {
    pub(crate) fn new(meddle: F) -> Self {
        let failures = Mutex::default();
        Self { meddle, failures }
    }

    /// Returns the summary of a run with this observer, and its failures.
    pub(crate) fn told(self, summary: Summary) -> Told {
        Told::new(summary, self.failures)
    }

    pub(crate) fn remove(self, options: RemoveOp<'static>, root: &Path) -> Told {
        let summary = options.run(paths([root]), &self);
        self.told(summary)
    }

    pub(crate) fn copy(self, options: CopyOp<'static>, source: &Path, dest: &Path) -> Told {
        let summary = options.run(paths([source]), &exactly(dest), &self);
        self.told(summary)
    }

    pub(crate) fn copy_into(
        self,
        options: CopyOp<'static>,
        sources: &[PathBuf],
        target: &Path,
    ) -> Told {
        let dest = Dest::Into(target.to_owned());
        let summary = options.run(paths(sources), &dest, &self);
        self.told(summary)
    }
}

impl<F: Fn(Event<'_>) + Sync> Observer for Meddler<F> {
    fn failed(&self, error: Error) {
        self.failures.failed(error);
    }

    fn wants_events(&self) -> bool {
        true
    }

    fn on_event(&self, event: Event<'_>) {
        (self.meddle)(event);
    }
}
