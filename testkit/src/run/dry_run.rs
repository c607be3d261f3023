//! Compares dry runs of our commands with real ones.

use std::{
    collections::BTreeMap,
    fs::{self, FileTimes},
    io,
    os::unix::fs::{MetadataExt as _, symlink},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use proptest::{
    collection::vec,
    prelude::*,
    sample::{select, subsequence},
    strategy::ValueTree as _,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{Outcome, Run};
use crate::{
    snapshot::{Attributes, Snapshot},
    tree::{Scratch, Tree},
};

/// Runs `program` with `--dry-run` and then without, in the same tree. Returns the dry run.
///
/// # Panics
/// If the dry run changes anything, or if its lines, its messages or its status differ from those of the real run
/// with `--verbose`. Lines may come in another order.
#[track_caller]
pub fn check_dry_run(program: &str, args: &[&str], build: impl Fn(&Tree)) -> Outcome {
    let scratch = Scratch::in_memory();
    build(&Tree::at(scratch.path()));
    compare(program, args, &scratch)
}

/// Says which operands a random command line may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// An operand may lie in another one.
    Any,
    /// The last operand neither lies in another one, nor contains one.
    Apart,
}

fn overlap(paths: &[String]) -> bool {
    let paths: Vec<&Path> = paths.iter().map(Path::new).collect();
    let (last, others) = paths.split_last().expect("BUG: there are operands");
    let mut others = others.iter();
    others.any(|other| other.starts_with(last) || last.starts_with(other))
}

/// Does the same in `cases` random trees, each time with some of the `options` and two to four operands.
#[track_caller]
pub fn check_dry_runs(program: &str, options: &[&'static str], operands: Operands, cases: u64) {
    for number in 0..cases {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&number.to_le_bytes());
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let mut runner = TestRunner::new_with_rng(Config::default(), random);
        let few = subsequence(options.to_vec(), 0..=options.len().min(3));
        let strategy = (
            few,
            vec(path(), 2..=4),
            vec((path(), kind(), 0..3_u64), 0..16),
        );
        let case = strategy.new_tree(&mut runner).expect("BUG: no filters");
        let (mut args, paths, entries) = case.current();
        if operands == Operands::Apart && overlap(&paths) {
            continue;
        }
        args.extend(paths.iter().map(String::as_str));
        let scratch = Scratch::in_memory();
        for (at, kind, seconds) in &entries {
            let dest = paths.last().expect("BUG: there are operands");
            // A dry run does not follow a link in the dest to what would be new there.
            let dangling = Kind::Symlink("/nowhere".to_owned());
            let kind = match kind {
                Kind::Symlink(_) if operands == Operands::Apart && at.starts_with(dest) => {
                    &dangling
                }
                kind => kind,
            };
            // An entry is left out if its place is taken.
            let _ = make(scratch.path(), at, kind, *seconds);
        }
        compare(program, &args, &scratch);
    }
}

#[track_caller]
fn compare(program: &str, args: &[&str], scratch: &Scratch) -> Outcome {
    let run = |first| {
        let run = Run::new(program).arg(first).args(args);
        run.current_dir(scratch).output()
    };
    let look = || {
        let snapshot = Snapshot::of(scratch, Attributes::ALL - Attributes::ATIME);
        (snapshot, changes_below(scratch.path()))
    };
    let (before, changes_before) = look();
    let dry = run("--dry-run");
    let (after, changes_after) = look();
    assert_eq!(
        before.diff(&after),
        "",
        "a dry run changed the tree: {args:?}"
    );
    assert_eq!(
        changes_before, changes_after,
        "a dry run changed files: {args:?}"
    );
    let real = run("--verbose");
    let has_no_total = planned_total(&dry.stdout).is_empty();
    let (planned, done) = (lines(&as_done(&dry.stdout)), lines(&real.stdout));
    let told = |told: &[String], outcome: &Outcome| {
        (told.to_vec(), lines(&outcome.stderr), outcome.status)
    };
    assert_eq!(
        told(&planned, &dry),
        told(&done, &real),
        "dry run, real run: {args:?} in\n{before:?}"
    );
    assert!(done.is_empty() || !has_no_total, "{dry}");
    dry
}

/// Returns the last line of a dry run, if it has one with totals.
fn planned_total(stdout: &[u8]) -> &[u8] {
    let end = stdout.strip_suffix(b"\n").unwrap_or_default();
    let start = end.iter().rposition(|&byte| byte == b'\n');
    let last = &stdout[start.map_or(0, |at| at + 1)..];
    let totals = [&b"would remove "[..], b"would copy "];
    let is_total = totals.iter().any(|words| {
        let count = last.strip_prefix(*words).and_then(<[u8]>::first);
        count.is_some_and(u8::is_ascii_digit)
    });
    if is_total { last } else { b"" }
}

/// Returns what a real run with `--verbose` would print if it did what a dry run has printed.
#[must_use]
pub fn as_done(stdout: &[u8]) -> Vec<u8> {
    let planned = &stdout[..stdout.len() - planned_total(stdout).len()];
    let mut done = Vec::new();
    for line in planned.split_inclusive(|&byte| byte == b'\n') {
        let words = [
            ("would remove ", "removed "),
            ("would skip ", "skipped "),
            ("would copy ", ""),
            ("would fail to copy ", ""),
        ];
        let mut words = words.iter();
        let found =
            words.find_map(|(plan, real)| Some((real, line.strip_prefix(plan.as_bytes())?)));
        let (real, rest) = found.unwrap_or((&"", line));
        done.extend_from_slice(real.as_bytes());
        done.extend_from_slice(rest);
    }
    done
}

fn lines(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// Returns the inode and the last status change of each file. Any change of a file changes the latter.
fn changes_below(top: &Path) -> BTreeMap<PathBuf, (u64, i64, i64)> {
    let mut found = BTreeMap::new();
    let mut left = vec![top.to_owned()];
    while let Some(path) = left.pop() {
        let stat = fs::symlink_metadata(&path).expect("a file that was listed");
        if stat.is_dir() {
            let entries = fs::read_dir(&path).expect("a directory that may be read");
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
        }
        found.insert(path, (stat.ino(), stat.ctime(), stat.ctime_nsec()));
    }
    found
}

#[derive(Clone, Debug)]
enum Kind {
    File(usize),
    Dir,
    Symlink(String),
    HardLink(String),
    Fifo,
}

/// Generates paths from few names, so that many lead to the same entry.
fn path() -> impl Strategy<Value = String> {
    let name = select(vec!["a", "b", "c", "d"]);
    vec(name, 1..4).prop_map(|names| names.join("/"))
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        5 => (0..5_usize).prop_map(Kind::File),
        4 => Just(Kind::Dir),
        2 => path().prop_map(Kind::Symlink),
        2 => path().prop_map(Kind::HardLink),
        1 => Just(Kind::Fifo),
    ]
}

fn make(top: &Path, at: &str, kind: &Kind, seconds: u64) -> io::Result<()> {
    let path = top.join(at);
    let above = path.parent().expect("BUG: the path is below top");
    fs::create_dir_all(above)?;
    if fs::symlink_metadata(&path).is_ok()
        || !above.canonicalize()?.starts_with(top.canonicalize()?)
    {
        return Ok(());
    }
    match kind {
        Kind::File(bytes) => {
            fs::write(&path, vec![b'x'; *bytes])?;
            let time = UNIX_EPOCH + Duration::from_secs(1_000_000_000 + seconds);
            let times = FileTimes::new().set_modified(time);
            fs::File::options()
                .write(true)
                .open(&path)?
                .set_times(times)
        }
        Kind::Dir => fs::create_dir(&path),
        Kind::Symlink(target) => symlink(target, &path),
        Kind::HardLink(other) => fs::hard_link(top.join(other), &path),
        Kind::Fifo => Ok(mknodat(
            CWD,
            &path,
            FileType::Fifo,
            Mode::from_raw_mode(0o644),
            0,
        )?),
    }
}
