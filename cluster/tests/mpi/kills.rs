//! Ranks that are killed while a job works. Each test then runs the command again.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use testkit::or_skip;
use testkit::probe::Skip;
use testkit::run::{Outcome, Run, Status};
use testkit::snapshot::{Attributes, assert_same_tree};
use testkit::tree::{Scratch, Tree, remove_for_sure};

use crate::cpz;
use crate::job::{CPZ, Numbers, PIDS, Program, RMZ, SLOW_THOUSANDS, build, count, signal};

/// The number of times that a rank of each command is killed. Every other time, the ranks have several threads.
const ROUNDS: usize = 16;
const RANKS: usize = 4;
/// The speed of every other round. In those between, a rank dies in mid-work on a busy machine, too.
const FAST: &str = "--max-rate=1000000000/s";
/// The fewest rounds of a test in which a rank must die while there is work left. Nearly all do.
const ENOUGH: usize = 6;

/// The moment at which a rank dies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    /// While the ranks start.
    Start,
    /// When as many entries have been processed.
    Entries(usize),
}

/// A rank that dies, and when.
#[derive(Debug)]
struct Death {
    rank: usize,
    moment: Moment,
    /// How fast the job works.
    speed: &'static str,
    threads: &'static str,
}

/// Returns the deaths of as many rounds as [`ROUNDS`], in a job that processes `entries`. They depend only on the seed.
fn deaths(seed: u64, entries: usize) -> Vec<Death> {
    let mut numbers = Numbers(seed);
    let rounds = (0..ROUNDS).map(|round| Death {
        rank: numbers.below(RANKS as u64) as usize,
        moment: match round {
            0 | 1 => Moment::Start,
            _ => Moment::Entries(1 + numbers.below(entries as u64) as usize),
        },
        speed: if round % 2 == 0 { FAST } else { SLOW_THOUSANDS },
        threads: ["--threads=1", "--threads=3"][round / 2 % 2],
    });
    rounds.collect()
}

/// Runs a job of 4 ranks, of which one dies, and asserts that no rank is left.
fn run_until(
    death: &Death,
    program: Program,
    arguments: &[&str],
    scratch: &Scratch,
    processed: impl Fn() -> usize,
) -> Result<Outcome, Skip> {
    let pid_file = |rank| scratch.at(format!("pid.{rank}"));
    let pid_files: Vec<_> = (0..RANKS).map(pid_file).collect();
    for file in &pid_files {
        let _ = fs::remove_file(file);
    }
    let mut job = program.job(RANKS, PIDS, arguments)?;
    if death.moment == Moment::Start {
        // `mpirun` 4.1.4 sometimes hangs then, but it heeds a signal.
        let limit = ["--foreground", "--kill-after=5", "20"];
        let words = program.words(RANKS, PIDS, arguments);
        job = Run::new("timeout").args(limit).args(words);
    }
    let mut live = job.current_dir(scratch).start();
    live.wait_for_effect(|| match death.moment {
        Moment::Start => {
            let pid = fs::read_to_string(&pid_files[death.rank]);
            pid.is_ok_and(|pid| pid.ends_with('\n'))
        }
        Moment::Entries(entries) => processed() >= entries,
    });
    signal(scratch, death.rank, "-KILL");
    let outcome = live.finish();
    for pid in pid_files.iter().flat_map(fs::read_to_string) {
        let executable = format!("/proc/{}/exe", pid.trim());
        let is_ours =
            || fs::read_link(&executable).is_ok_and(|path| path == Path::new(program.path));
        wait_until(|| !is_ours());
    }
    Ok(outcome)
}

/// Returns what the job has written. MPICH reports the death of a rank on stdout.
fn said(outcome: &Outcome) -> String {
    outcome.stderr_text() + &outcome.stdout_text()
}

fn wait_until(is_true: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "it did not happen for a minute"
        );
        thread::sleep(Duration::from_micros(200));
    }
}

/// Removes the same tree once for each death, and again by the same command.
fn remove_with_deaths() -> Result<(), Skip> {
    let scratch = Scratch::in_memory();
    let tree = scratch.at("t");
    let build = || (0..12).for_each(|number| build(&tree.join(number.to_string()), number));
    build();
    let entries = count(&tree);
    let mut in_mid_work = 0;
    for death in deaths(1, entries) {
        let removed = || entries - count(&tree);
        let arguments = [death.threads, death.speed, "t"];
        let outcome = run_until(&death, RMZ, &arguments, &scratch, removed)?;
        let left = count(&tree);
        if outcome.status == Status::Exit(0) {
            // The rank had ended, or had nothing left to do.
            assert!(!tree.exists(), "{death:?}");
        } else {
            assert_ne!(said(&outcome), "", "{death:?}");
            in_mid_work += usize::from(0 < left && left < entries);
        }
        RMZ.run(RANKS, &["-f", "t"], &scratch)?.assert_success();
        assert!(!tree.exists(), "{death:?}");
        build();
    }
    assert!(in_mid_work >= ENOUGH, "only {in_mid_work}");
    Ok(())
}

#[test]
fn a_killed_rank_ends_the_removal_and_the_same_command_completes_it() {
    or_skip!(remove_with_deaths());
}

/// Copies a tree once for each death, and completes the copy by the same command with `--resume`.
fn copy_with_deaths() -> Result<(), Skip> {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.at(name));
    let tree = Tree::at(scratch.path());
    for number in 0..6 {
        cpz::build(&tree, &format!("s/{number}"), number, b'a');
        tree.file(format!("s/{number}/large"), vec![1; 5 << 20]);
    }
    let entries = count(&source);
    let mut in_mid_work = 0;
    for death in deaths(3, entries) {
        let arguments = [death.threads, death.speed, "-a", "s", "d"];
        let outcome = run_until(&death, CPZ, &arguments, &scratch, || count(&dest))?;
        let copied = count(&dest);
        if outcome.status != Status::Exit(0) {
            assert_ne!(said(&outcome), "", "{death:?}");
            in_mid_work += usize::from(0 < copied && copied < entries);
        }
        let again = ["-a", "--resume", "-T", "s", "d"];
        CPZ.run(RANKS, &again, &scratch)?.assert_success();
        assert_same_tree(&source, &dest, cpz::archived());
        remove_for_sure(&dest).unwrap();
    }
    assert!(in_mid_work >= ENOUGH, "only {in_mid_work}");
    Ok(())
}

/// The rank dies while all copy parts of a file.
#[test]
fn a_killed_rank_leaves_no_part_of_a_large_file_that_counts_as_complete() {
    const BYTES: usize = 40 << 20;
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.at(name));
    Tree::at(&source).file("large", vec![1; BYTES]);
    let divides = ["--reflink=never", "-a"];
    for rank in [0, RANKS - 1] {
        let arguments = [&divides[..], &["--max-rate=8M", "s", "d"]].concat();
        let job = or_skip!(CPZ.job(RANKS, PIDS, &arguments));
        let mut live = job.current_dir(&scratch).start();
        // The hidden name.
        live.wait_for_effect(|| count(&dest) > 0);
        signal(&scratch, rank, "-KILL");
        assert_ne!(live.finish().status, Status::Exit(0));
        assert!(!dest.join("large").exists(), "rank {rank}");
        let again = [&divides[..], &["--resume", "-T", "s", "d"]].concat();
        or_skip!(CPZ.run(RANKS, &again, &scratch)).assert_success();
        let left = fs::read_dir(&dest).unwrap().map(|entry| entry.unwrap());
        for entry in left.filter(|entry| entry.file_name() != "large") {
            assert!(entry.file_name().as_encoded_bytes().starts_with(b".cpz-"));
            fs::remove_file(entry.path()).unwrap();
        }
        assert_same_tree(&source, &dest, cpz::archived() - Attributes::MTIME);
        let modified = |path: &Path| {
            fs::metadata(path.join("large"))
                .unwrap()
                .modified()
                .unwrap()
        };
        assert_eq!(modified(&source), modified(&dest));
        remove_for_sure(&dest).unwrap();
    }
}

#[test]
fn a_killed_rank_ends_the_copy_and_the_same_command_with_resume_completes_it() {
    or_skip!(copy_with_deaths());
}
