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
    let text = printed.stdout_text();
    let has_total = text.lines().next_back().is_some_and(is_total);
    assert!(real.outcome.stdout.is_empty() || has_total, "{printed}");
    printed
}

/// Returns `true` for a line that may have the totals of a dry run: a number follows.
fn is_total(line: &str) -> bool {
    let totals = ["would remove ", "would copy "];
    let counts = totals.map(|words| line.strip_prefix(words));
    let mut counts = counts.into_iter().flatten();
    counts.any(|count| count.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns what a real run with `--verbose` would print if it did what a dry run has printed.
#[must_use]
pub fn as_done(stdout: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(stdout);
    let mut lines: Vec<_> = text.split_inclusive('\n').collect();
    lines.pop_if(|last| is_total(last));
    let mut done = String::new();
    for line in lines {
        let words = [
            ("would remove ", "removed "),
            ("would skip ", "skipped "),
            ("would copy ", ""),
            ("would fail to copy ", ""),
        ];
        let mut words = words.iter();
        let found = words.find_map(|(plan, real)| Some((real, line.strip_prefix(plan)?)));
        let (real, rest) = found.unwrap_or((&"", line));
        done.extend([real, rest]);
    }
    done.into_bytes()
}
