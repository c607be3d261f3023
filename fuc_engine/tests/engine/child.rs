//! The engine in a process of its own: with limits, or as a user, that a test cannot give itself, and
//! where a hang ends one process and not the whole suite.
//!
//! The process is this very test binary, told by its environment to run [`program`] and nothing else.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use fuc_engine::{Cause, CopyOp, Dest, Error, Preserve, RemoveOp, Replace};
use testkit::run::{Run, Status};

use crate::kit::{self, Counts, counts, threads};

const ACTION: &str = "FUC_ENGINE_TEST_ACTION";
const SOURCE: &str = "FUC_ENGINE_TEST_SOURCE";
const DEST: &str = "FUC_ENGINE_TEST_DEST";
const ARCHIVE: &str = "FUC_ENGINE_TEST_ARCHIVE";
const THREADS: &str = "FUC_ENGINE_TEST_THREADS";
/// Two paths that are looked at before and after the operation, to be found in a trace.
pub(crate) const MARKS: [&str; 2] = ["/fuc-engine-test-begins", "/fuc-engine-test-ends"];

/// An operation to run in another process.
pub(crate) struct Child {
    wrapper: Vec<OsString>,
    env: Vec<(&'static str, OsString)>,
    nofile: Option<u64>,
    uid: Option<u32>,
    time_limit: Duration,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) counts: Counts,
    /// Each as `Operation errno "path"` or `Refusal "path"`, sorted.
    pub(crate) failures: Vec<String>,
    /// The most memory that was resident, all of the test harness included.
    pub(crate) peak_kib: u64,
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

pub(crate) fn copy(source: impl AsRef<Path>, dest: impl AsRef<Path>) -> Child {
    Child::new("copy", source.as_ref()).with(DEST, dest.as_ref())
}

/// A copy of what is newer than its dest.
pub(crate) fn update(source: impl AsRef<Path>, dest: impl AsRef<Path>) -> Child {
    Child::new("update", source.as_ref()).with(DEST, dest.as_ref())
}

/// Several copies, one after the other.
pub(crate) fn copies(pairs: impl IntoIterator<Item = (PathBuf, PathBuf)>) -> Child {
    let (mut sources, mut dests) = (OsString::new(), OsString::new());
    for (source, dest) in pairs {
        for (list, path) in [(&mut sources, source), (&mut dests, dest)] {
            if !list.is_empty() {
                list.push(":");
            }
            list.push(path);
        }
    }
    Child::new("copy", sources.as_ref()).with(DEST, dests)
}

impl Child {
    fn new(action: &'static str, source: &Path) -> Self {
        Self {
            wrapper: Vec::new(),
            env: vec![(ACTION, action.into()), (SOURCE, source.into())],
            nofile: None,
            uid: None,
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

    /// Keeps all attributes.
    pub(crate) fn archive(self) -> Self {
        self.with(ARCHIVE, "1")
    }

    pub(crate) fn nofile_limit(mut self, descriptors: u64) -> Self {
        self.nofile = Some(descriptors);
        self
    }

    pub(crate) fn uid(mut self, uid: u32) -> Self {
        self.uid = Some(uid);
        self
    }

    /// Longer is a hang.
    pub(crate) fn within(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// A program, with arguments, that is given this one to run.
    pub(crate) fn under(mut self, wrapper: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.wrapper = wrapper.into_iter().map(Into::into).collect();
        self
    }

    #[track_caller]
    pub(crate) fn run(self) -> Report {
        let myself = env::current_exe().expect("a process has a program");
        let mut words = self.wrapper;
        words.push(myself.into());
        words.extend(
            [
                "--exact",
                "child::program",
                "--nocapture",
                "--test-threads=1",
            ]
            .map(Into::into),
        );
        let mut run = Run::new(&words[0])
            .args(&words[1..])
            .time_limit(self.time_limit);
        for (name, value) in &self.env {
            run = run.env(name, value);
        }
        if let Some(descriptors) = self.nofile {
            run = run.nofile_limit(descriptors);
        }
        if let Some(uid) = self.uid {
            run = run.uid(uid);
        }
        let outcome = run.output();
        assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
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
    let [entries, bytes, failed, peak_kib] = numbers[..] else {
        panic!("no result in:\n{stdout}");
    };
    let mut failures: Vec<_> = lines("FAILED ").map(str::to_owned).collect();
    failures.sort();
    assert_eq!(failed, failures.len() as u64, "in:\n{stdout}");
    Report {
        counts: (entries, bytes, failed),
        failures,
        peak_kib,
    }
}

/// As in [`Report::failures`].
fn in_words(error: &Error) -> String {
    match error.cause() {
        Cause::Failed(operation, errno) => {
            format!("{operation:?} {} {:?}", errno.raw_os_error(), error.path())
        }
        Cause::Refused(refusal) => format!("{refusal:?} {:?}", error.path()),
    }
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

/// No test, unless the environment says what to do.
#[test]
fn program() {
    let (Some(action), Some(source)) = (env::var_os(ACTION), env::var_os(SOURCE)) else {
        return;
    };
    let threads = env::var(THREADS)
        .ok()
        .and_then(|number| threads(number.parse().expect("a number")));
    let failures = Mutex::new(Vec::new());
    let mark = |path| drop(std::fs::metadata(path));
    mark(MARKS[0]);
    let (entries, bytes, failed) = match action.to_str() {
        Some("remove") => {
            let options = kit::remove_options(|options| options.threads = threads);
            counts(RemoveOp::new(options).run([source], &failures))
        }
        Some(action @ ("copy" | "update")) => {
            let options = kit::copy_options(|options| {
                options.threads = threads;
                if action == "update" {
                    options.rules.replace = Replace::Older;
                }
                if env::var_os(ARCHIVE).is_some() {
                    options.preserve = Preserve::all();
                }
            });
            let op = CopyOp::new(options);
            let dests = env::var_os(DEST).expect("a dest");
            let pairs = env::split_paths(&source).zip(env::split_paths(&dests));
            pairs.fold((0, 0, 0), |total, (source, dest)| {
                let summary = op.run([source], &Dest::Exactly(dest), &failures);
                let (entries, bytes, failed) = counts(summary);
                (total.0 + entries, total.1 + bytes, total.2 + failed)
            })
        }
        _ => panic!("no such action: {action:?}"),
    };
    mark(MARKS[1]);
    println!("\nRESULT {entries} {bytes} {failed} {}", peak_kib());
    for error in failures.into_inner().expect("no observer panicked") {
        println!("FAILED {}", in_words(&error));
    }
}
