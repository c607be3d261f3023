//! Compares dry runs of our commands with real ones.

use super::{Outcome, Parity, difference};
use crate::{
    snapshot::Attributes,
    tree::{Tree, memory},
};

/// Runs `program` with `--dry-run` and then without, in the same tree. Returns the dry run.
///
/// # Panics
/// If the dry run changes anything, or if its lines, its messages or its status differ from those of the real run
/// with `--verbose`. Lines may come in another order.
#[track_caller]
pub fn check_dry_run(program: &str, args: &[&str], build: impl Fn(&Tree)) -> Outcome {
    let counted = (Attributes::ALL - Attributes::ATIME) | Attributes::CHANGE;
    let parity = Parity::new(program, "").args(args).attributes(counted);
    let [mut dry, real] = parity.on(memory()).observe_dry_run(build);
    let printed = dry.outcome.clone();
    dry.outcome.stdout = as_done(&printed.stdout);
    let difference = difference(&dry, &real);
    assert!(
        difference.is_empty(),
        "dry run, real run: {args:?}\n{difference}"
    );
    let has_no_total = planned_total(&printed.stdout).is_empty();
    assert!(real.outcome.stdout.is_empty() || !has_no_total, "{printed}");
    printed
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
