//! Fails if a small tree costs more than before, by figures that noise can't change.
//!
//! - System calls per file and per directory must be exactly those in `benches/baseline.json`. To change them on
//!   purpose, run `guard --accept` and commit the new file.
//! - Instructions on one thread may grow by at most 3 % since an earlier commit. That commit is built here and now,
//!   because the number depends on the compiler. To spend instructions on purpose, put a line
//!   `Accepts-cost: CASE, REASON` into the message of the commit.
//!
//! A comparison is left out, with a line that says so, if strace, valgrind or the earlier commit is missing.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};

use cases::{CALLS, INSTRUCTIONS, InstructionsCase};

use crate::{
    Settings,
    host::{command, interrupt, machine},
    run::{
        place::Scratch,
        programs::Programs,
        tracer::{Counts, Tracer},
    },
};

mod base;
mod cases;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Writes the present system calls to benches/baseline.json
    #[arg(long)]
    accept: bool,
    /// The commit to compare instructions with [default: where HEAD left origin/main, or the one before HEAD]
    #[arg(long, value_name = "COMMIT")]
    base: Option<String>,
}

/// Filesystems on which cpz trusts a size of 0, so that it makes the calls of the baseline.
const TRUTHFUL: &[&str] = &["tmpfs", "ext2/ext3", "xfs", "btrfs"];

/// The growth that is not yet an error, in per cent.
const MOST_GROWTH: f64 = 3.0;

type Baseline = BTreeMap<String, Counts>;

pub(crate) fn run(settings: &Settings, options: &Options) -> Result<()> {
    interrupt::listen()?;
    command::build_commands(Path::new(command::repository()), &command::target_dir()?)?;
    let scratch = Scratch::new(Some(&place(settings)))?;
    let programs = Programs::link(scratch.path().join("bin"), &settings.peers())?;
    let failures = compare(&programs, &scratch, options);
    scratch.remove()?;
    let failures = failures?;
    ensure!(
        failures.is_empty(),
        "the costs have changed:\n{}",
        failures.join("\n")
    );
    Ok(())
}

/// Returns the place of the trees: a tmpfs if there is one, because it is fast and the same everywhere.
fn place(settings: &Settings) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let usable = machine::filesystem(memory).is_ok_and(|filesystem| filesystem == "tmpfs")
        && rustix::fs::access(memory, rustix::fs::Access::WRITE_OK).is_ok();
    settings.dir.clone().unwrap_or_else(|| {
        if usable {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        }
    })
}

fn compare(programs: &Programs, scratch: &Scratch, options: &Options) -> Result<Vec<String>> {
    let filesystem = machine::filesystem(scratch.path())?;
    let mut failures = Vec::new();
    if !programs.has("strace") {
        println!("guard: no system calls compared: there is no strace");
    } else if !TRUTHFUL.contains(&filesystem.as_str()) {
        println!("guard: no system calls compared: {filesystem} has its own");
    } else {
        let now = count_calls(&Tracer::new(programs, scratch)?)?;
        if options.accept {
            return accept(&now).map(|()| failures);
        }
        failures.extend(changes(&read_baseline()?, &now));
        println!("guard: system calls compared in {} cases", now.len());
    }
    ensure!(
        !options.accept,
        "nothing was counted, so there is nothing to accept"
    );
    match base::find_and_build(options.base.as_deref()) {
        Err(error) => {
            interrupt::check()?;
            println!("guard: no instructions compared: {error:#}");
        }
        Ok(_) if !programs.has("valgrind") => {
            println!("guard: no instructions compared: there is no valgrind");
        }
        Ok(base) => failures.extend(compare_instructions(
            &base,
            &Tracer::new(programs, scratch)?,
        )?),
    }
    Ok(failures)
}

fn count_calls(tracer: &Tracer<'_>) -> Result<Baseline> {
    let mut all = Baseline::new();
    for case in CALLS {
        let few = tracer.trace(case.command, case.few)?;
        let many = tracer.trace(case.command, case.many)?;
        all.insert(case.name.to_owned(), more(&few, &many));
    }
    Ok(all)
}

/// Returns the calls that `many` has in excess of `few`.
fn more(few: &Counts, many: &Counts) -> Counts {
    let grown = many.iter().map(|(name, count)| {
        let before = few.get(name).copied().unwrap_or(0);
        (name.clone(), count.saturating_sub(before))
    });
    grown.filter(|(_, count)| *count > 0).collect()
}

fn baseline_file() -> PathBuf {
    Path::new(command::repository()).join("benches/baseline.json")
}

fn read_baseline() -> Result<Baseline> {
    let file = baseline_file();
    let json =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&json).with_context(|| format!("{} is not a baseline", file.display()))
}

fn accept(now: &Baseline) -> Result<()> {
    let file = baseline_file();
    fs::write(&file, serde_json::to_string_pretty(now)? + "\n")
        .with_context(|| format!("cannot write {}", file.display()))?;
    println!("guard: wrote {}", file.display());
    Ok(())
}

/// Returns a line for each case that differs. Fewer calls are a difference too, so that the baseline stays true.
fn changes(baseline: &Baseline, now: &Baseline) -> Vec<String> {
    let names: std::collections::BTreeSet<_> = baseline.keys().chain(now.keys()).collect();
    let differing = names
        .into_iter()
        .filter(|name| baseline.get(*name) != now.get(*name));
    let lines = differing.map(|name| {
        let show = |counts: Option<&Counts>| {
            counts.map_or_else(|| "nothing".to_owned(), |counts| format!("{counts:?}"))
        };
        format!(
            "{name}: {} now, {} in the baseline",
            show(now.get(name)),
            show(baseline.get(name))
        )
    });
    lines.collect()
}

fn compare_instructions(base: &base::Base, tracer: &Tracer<'_>) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    let built = command::built_commands(&command::target_dir()?);
    for case in INSTRUCTIONS {
        let name = case.name;
        let before = instructions(tracer, &base.dir, case)?;
        let now = instructions(tracer, &built, case)?;
        let growth = growth_percent(before, now);
        println!(
            "guard: {name}: {now} instructions, {growth:+.1} % since {}",
            base.name
        );
        if growth <= MOST_GROWTH {
            continue;
        }
        match base.accepted(name) {
            Some(reason) => println!("guard: {name}: accepted: {reason}"),
            None => failures.push(format!(
                "{name}: {growth:+.1} % instructions, {before} before, {now} now"
            )),
        }
    }
    Ok(failures)
}

fn growth_percent(before: u64, now: u64) -> f64 {
    (now as f64 / before as f64 - 1.0) * 100.0
}

/// Counts the instructions of a case, with the program in `dir`.
fn instructions(tracer: &Tracer<'_>, dir: &Path, case: &InstructionsCase) -> Result<u64> {
    let stopwatch = tracer.fresh(case.tree)?;
    // The length of argv[0] changes the state of the allocator, and with it up to a third of the instructions.
    symlink(dir.join(case.program), tracer.dir.join(case.program))?;
    let mut valgrind = stopwatch.command("valgrind")?;
    let log = tracer.dir.join("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    // valgrind wants the option and its value in one word.
    valgrind.arg(format!("--log-file={}", log.display()));
    command::run(
        valgrind
            .arg(Path::new(".").join(case.program))
            .args(case.args.split(' ')),
    )?;
    collected(&fs::read_to_string(&log).context("valgrind wrote no log")?)
}

/// Returns the number in callgrind's line `Collected : N`.
fn collected(log: &str) -> Result<u64> {
    let line = log.lines().find_map(|line| line.split_once("Collected :"));
    let Some((_, number)) = line else {
        bail!("callgrind did not say what it collected")
    };
    number
        .trim()
        .parse()
        .context("not a number of instructions")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(calls: &[(&str, u64)]) -> Counts {
        calls
            .iter()
            .map(|(name, n)| ((*name).to_owned(), *n))
            .collect()
    }

    #[test]
    fn the_cost_of_a_process_cancels_out() {
        let few = counts(&[("execve", 1), ("unlinkat", 20)]);
        let many = counts(&[("execve", 1), ("unlinkat", 30)]);
        assert_eq!(more(&few, &many), counts(&[("unlinkat", 10)]));
    }

    #[test]
    fn one_call_more_or_less_is_a_change() {
        let baseline: Baseline = [("rmz".to_owned(), counts(&[("unlinkat", 100)]))].into();
        for n in [99, 101] {
            let now = [("rmz".to_owned(), counts(&[("unlinkat", n)]))].into();
            assert_eq!(changes(&baseline, &now).len(), 1);
        }
        assert_eq!(changes(&baseline, &baseline), Vec::<String>::new());
        assert_eq!(changes(&baseline, &Baseline::new()).len(), 1);
    }

    #[test]
    fn the_committed_baseline_has_every_case() {
        let baseline = read_baseline().unwrap();
        let mut names: Vec<_> = CALLS.iter().map(|case| case.name).collect();
        names.sort_unstable();
        assert_eq!(baseline.keys().collect::<Vec<_>>(), names);
    }

    #[test]
    fn instructions_are_read_from_callgrinds_log() {
        let log = "==7== Events    : Ir\n==7== Collected : 1304563\n==7== \n";
        assert_eq!(collected(log).unwrap(), 1_304_563);
        assert!(collected("==7== nothing").is_err());
        assert!((growth_percent(200, 207) - 3.5).abs() < 1e-9);
    }
}
