//! Compares dry runs of our commands with real ones.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

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
    let run = |first| {
        let run = Run::new(program).arg(first).args(args);
        run.current_dir(&scratch).output()
    };
    let look = || {
        let snapshot = Snapshot::of(&scratch, Attributes::ALL - Attributes::ATIME);
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
