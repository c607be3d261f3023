//! Fails if a small tree costs more than before, by figures that noise can't change.
//!
//! Both the present sources and an earlier commit are built here and now, because the figures depend on the compiler.
//! Commands of both run on one thread on the same trees:
//!
//! - No system call may be made more often than before.
//! - Instructions may grow by at most 3 %.
//!
//! To spend calls or instructions on purpose, put a line `Accepts-cost: CASE, REASON` into the message of the commit.
//! A comparison is left out, with a line that says so, if strace, valgrind or the earlier commit is missing.

use std::path::Path;

use anyhow::{Result, ensure};
use testkit::probe::has_program;

use base::Base;
use count::{Counter, Counts};

use crate::{
    host::{command, interrupt, machine},
    run::place::Scratch,
    what::cell::Spread,
};

mod base;
mod count;

/// A command on one tree.
struct Case {
    /// The name that a commit's `Accepts-cost` line gives.
    name: &'static str,
    /// The program and its operands.
    words: &'static [&'static str],
    tree: Spread,
}

const RMZ: &[&str] = &["rmz", "tree"];
const CPZ: &[&str] = &["cpz", "tree", "copy"];

const fn case(name: &'static str, words: &'static [&'static str], tree: Spread) -> Case {
    Case { name, words, tree }
}

const CASES: [Case; 5] = [
    case("rmz-files", RMZ, Spread::new(50, 2_000, 0)),
    case("rmz-directories", RMZ, Spread::new(1_000, 1_000, 0)),
    case("cpz-empty-files", CPZ, Spread::new(50, 2_000, 0)),
    case("cpz-files-with-data", CPZ, Spread::new(50, 1_000, 4096)),
    case("cpz-directories", CPZ, Spread::new(1_000, 1_000, 0)),
];

/// The growth of instructions that is not yet an error, in per cent.
const MOST_GROWTH: f64 = 3.0;

/// Compares with the commit `base`, or with the default one, in a new directory in `dir`, or in the directory of temporary
/// files if `dir` is not a tmpfs.
pub(crate) fn run(dir: &Path, base: Option<&str>) -> Result<()> {
    interrupt::listen()?;
    command::build_commands(Path::new(command::repository()), &command::target_dir()?)?;
    let is_memory = machine::filesystem(dir).is_ok_and(|filesystem| filesystem == "tmpfs");
    let scratch = match is_memory.then(|| Scratch::new(dir)) {
        Some(Ok(scratch)) => scratch,
        _ => Scratch::new(&std::env::temp_dir())?,
    };
    let failures = match base::find_and_build(base) {
        Ok(base) => compare(&base, &Counter::new(&scratch)?)?,
        Err(error) => {
            interrupt::check()?;
            println!("guard: nothing compared: {error:#}");
            Vec::new()
        }
    };
    scratch.remove()?;
    ensure!(
        failures.is_empty(),
        "the costs have grown:\n{}",
        failures.join("\n")
    );
    Ok(())
}

/// Returns a line for each case that costs more than in `base` without a reason.
fn compare(base: &Base, counter: &Counter) -> Result<Vec<String>> {
    let built = command::built_commands(&command::target_dir()?);
    let mut failures = Vec::new();
    for case in &CASES {
        let mut grown = Vec::new();
        if has_program("strace") {
            let [before, now] = [&base.dir, &built].map(|dir| counter.calls(dir, case));
            grown.extend(more_calls(&before?, &now?));
        }
        if has_program("valgrind") {
            let [before, now] = [&base.dir, &built].map(|dir| counter.instructions(dir, case));
            let (before, now) = (before?, now?);
            let growth = growth_percent(before, now);
            let line = format!("{now} instructions, {growth:+.1} % since {}", base.name);
            println!("guard: {}: {line}", case.name);
            grown.extend((growth > MOST_GROWTH).then_some(line));
        }
        match base::reason(&base.accepted, case.name) {
            Some(reason) if !grown.is_empty() => {
                println!("guard: {}: accepted: {reason}", case.name);
            }
            _ => failures.extend(grown.iter().map(|line| format!("{}: {line}", case.name))),
        }
    }
    for program in ["strace", "valgrind"] {
        match has_program(program) {
            true => println!("guard: {} cases compared by {program}", CASES.len()),
            false => println!("guard: nothing compared by {program}, which is missing"),
        }
    }
    Ok(failures)
}

/// Returns a line for each call that is made more often than before.
fn more_calls(before: &Counts, now: &Counts) -> Vec<String> {
    let grown = now.iter().filter_map(|(name, &now)| {
        let before = before.get(name).copied().unwrap_or(0);
        (now > before).then(|| format!("{now} calls of {name}, {before} before"))
    });
    grown.collect()
}

fn growth_percent(before: u64, now: u64) -> f64 {
    (now as f64 / before as f64 - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_more_is_a_growth_and_one_less_is_not() {
        let counts = |name: &str, n| Counts::from([(name.to_owned(), n)]);
        let before = counts("unlinkat", 100);
        assert_eq!(
            more_calls(&before, &counts("unlinkat", 101)),
            ["101 calls of unlinkat, 100 before"]
        );
        assert_eq!(
            more_calls(&before, &counts("openat", 1)),
            ["1 calls of openat, 0 before"]
        );
        assert!(more_calls(&before, &counts("unlinkat", 99)).is_empty());
        assert!(more_calls(&before, &before).is_empty());
    }

    #[test]
    fn growth_is_relative_to_before() {
        assert!((growth_percent(200, 207) - 3.5).abs() < 1e-9);
    }
}
