//! Fails if a small tree costs more than before, by figures that noise can't change.
//!
//! The present sources and earlier commits are built here and now, because the figures depend on the compiler. All run on
//! the same trees:
//!
//! | compared with | system calls | instructions |
//! |---|---|---|
//! | the commit before this work | not one more of any name | at most 3 % more |
//! | the fixed base | at most 5 % more | at most 5 % more |
//!
//! The fixed base shows what many small changes cost together. `benches/guard-base` names its commit, which is moved only
//! on purpose.
//!
//! To spend calls or instructions on purpose, put a line `Accepts-cost: CASE, REASON` into the message of the commit. The
//! case is not compared with the fixed base then, until that is moved to the commit or a later one.
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
    /// The program and its arguments.
    words: &'static [&'static str],
    tree: Spread,
}

impl Case {
    const fn new(name: &'static str, words: &'static [&'static str], tree: Spread) -> Self {
        Self { name, words, tree }
    }

    /// Returns `true` if one thread does the work, so that every run costs the same.
    fn is_on_one_thread(&self) -> bool {
        self.words.contains(&"--threads=1")
    }
}

const RMZ: &[&str] = &["rmz", "--threads=1", "tree"];
const CPZ: &[&str] = &["cpz", "--threads=1", "tree", "copy"];
const TEN_FILES: Spread = Spread::new(1, 10, 0);

const CASES: [Case; 7] = [
    Case::new("rmz-ten-files", &["rmz", "tree"], TEN_FILES),
    Case::new("cpz-ten-files", &["cpz", "tree", "copy"], TEN_FILES),
    Case::new("rmz-files", RMZ, Spread::new(50, 2_000, 0)),
    Case::new("rmz-directories", RMZ, Spread::new(1_000, 1_000, 0)),
    Case::new("cpz-empty-files", CPZ, Spread::new(50, 2_000, 0)),
    Case::new("cpz-files-with-data", CPZ, Spread::new(50, 1_000, 4096)),
    Case::new("cpz-directories", CPZ, Spread::new(1_000, 1_000, 0)),
];

/// The costs of a case with one build of the commands. A cost is missing if it was not counted.
struct Costs {
    calls: Option<Counts>,
    instructions: Option<u64>,
}

impl Costs {
    /// Counts what can be counted here, with the programs in `programs`.
    fn of(case: &Case, programs: &Path, counter: &Counter) -> Result<Self> {
        // With several threads, instructions depend on the time.
        let counts_instructions = case.is_on_one_thread() && has_program("valgrind");
        let calls = || counter.calls(programs, case);
        let instructions = || counter.instructions(programs, case);
        Ok(Self {
            calls: has_program("strace").then(calls).transpose()?,
            instructions: counts_instructions.then(instructions).transpose()?,
        })
    }

    /// Returns words about what was counted.
    fn shown(&self) -> String {
        let calls = self.calls.as_ref().map(|counts| counts.values().sum());
        let costs = [(calls, "system calls"), (self.instructions, "instructions")];
        let costs = costs
            .iter()
            .filter_map(|(cost, name)| Some(format!("{} {name}", (*cost)?)));
        let costs: Vec<_> = costs.collect();
        costs.join(" and ")
    }
}

/// The growth of costs that is not yet an error, in per cent.
#[derive(Clone, Copy)]
struct Limits {
    /// The growth of all system calls together. Without it, no call may be made more often.
    calls: Option<f64>,
    instructions: f64,
}

impl Limits {
    const SINCE_BEFORE: Self = Self {
        calls: None,
        instructions: 3.0,
    };
    const SINCE_FIXED: Self = Self {
        calls: Some(5.0),
        instructions: 5.0,
    };

    /// Returns a line for each cost that has grown beyond these limits.
    fn exceeded(self, before: &Costs, now: &Costs) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some(before), Some(now)) = (&before.calls, &now.calls) {
            match self.calls {
                None => lines.extend(more_calls(before, now)),
                Some(most) => {
                    let [before, now] = [before, now].map(|counts| counts.values().sum());
                    lines.extend(growth("system calls", before, now, most));
                }
            }
        }
        if let (Some(before), Some(now)) = (before.instructions, now.instructions) {
            lines.extend(growth("instructions", before, now, self.instructions));
        }
        lines
    }
}

/// Compares with the commit `before`, or with the default one, and with the fixed base. Works in a new directory in `dir`,
/// or in the directory of temporary files if `dir` is not a tmpfs.
pub(crate) fn run(dir: &Path, before: Option<&str>) -> Result<()> {
    interrupt::listen()?;
    command::build_commands(Path::new(command::repository()), &command::target_dir()?)?;
    let is_memory = machine::filesystem(dir).is_ok_and(|filesystem| filesystem == "tmpfs");
    let scratch = match is_memory.then(|| Scratch::new(dir)) {
        Some(Ok(scratch)) => scratch,
        _ => Scratch::new(&std::env::temp_dir())?,
    };
    let mut bases = Vec::new();
    for (base, limits) in [
        (Base::before(before), Limits::SINCE_BEFORE),
        (Base::fixed(), Limits::SINCE_FIXED),
    ] {
        match base {
            Ok(base) => bases.push((base, limits)),
            Err(error) => {
                interrupt::check()?;
                println!("guard: a comparison is left out: {error:#}");
            }
        }
    }
    let failures = compare(&bases, &Counter::new(&scratch)?)?;
    scratch.remove()?;
    ensure!(
        failures.is_empty(),
        "the costs have grown:\n{}",
        failures.join("\n")
    );
    Ok(())
}

/// Returns a line for each cost that has grown too much since one of `bases` without a reason.
fn compare(bases: &[(Base, Limits)], counter: &Counter) -> Result<Vec<String>> {
    let built = command::built_commands(&command::target_dir()?);
    let mut failures = Vec::new();
    for case in CASES.iter().filter(|_| !bases.is_empty()) {
        let now = Costs::of(case, &built, counter)?;
        println!("guard: {}: {}", case.name, now.shown());
        for (base, limits) in bases {
            let before = Costs::of(case, &base.dir, counter)?;
            println!("guard:     {} before, in {}", before.shown(), base.name);
            let grown = limits.exceeded(&before, &now);
            match base::reason(&base.accepted, case.name) {
                Some(reason) if !grown.is_empty() => println!("guard:     accepted: {reason}"),
                _ => {
                    let line = |line| format!("{}: {line}, since {}", case.name, base.name);
                    failures.extend(grown.into_iter().map(line));
                }
            }
        }
    }
    for program in ["strace", "valgrind"] {
        if !has_program(program) {
            println!("guard: nothing compared by {program}, which is missing");
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

/// Returns a line about a cost if it has grown by more than `most` per cent.
fn growth(cost: &str, before: u64, now: u64, most: f64) -> Option<String> {
    let percent = (now as f64 - before as f64) * 100.0 / before as f64;
    let line = || format!("{now} {cost}, {before} before, {percent:+.1} %");
    (percent > most).then(line)
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
    fn costs_may_grow_by_a_few_per_cent_since_the_fixed_base() {
        let costs = |calls, instructions| Costs {
            calls: Some(Counts::from([("unlinkat".to_owned(), calls)])),
            instructions: Some(instructions),
        };
        let exceeded = |now| Limits::SINCE_FIXED.exceeded(&costs(100, 200), &now);
        assert_eq!(exceeded(costs(105, 210)), [""; 0]);
        assert_eq!(
            exceeded(costs(106, 211)),
            [
                "106 system calls, 100 before, +6.0 %",
                "211 instructions, 200 before, +5.5 %"
            ]
        );
        let uncounted = Costs {
            calls: None,
            instructions: None,
        };
        assert_eq!(exceeded(uncounted), [""; 0]);
    }

    #[test]
    fn the_instructions_of_several_threads_are_not_compared() {
        let names = CASES.iter().filter(|case| !case.is_on_one_thread());
        let names: Vec<_> = names.map(|case| case.name).collect();
        assert_eq!(names, ["rmz-ten-files", "cpz-ten-files"]);
    }
}
