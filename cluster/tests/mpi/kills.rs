//! Ranks that are killed while a job works. Each test then runs the command again.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use testkit::run::{Outcome, Run, Status};
use testkit::snapshot::assert_same_tree;
use testkit::tree::{Scratch, Tree, remove_for_sure};

use crate::job::{CPZ, PIDS, Program, RMZ, signal};
use crate::trees::{Numbers, archived, build, count};

const RANKS: usize = 4;
/// The numbers of the jobs of each command in which a rank is killed. Those of one thread run while those of the others do,
/// because most of the time `mpirun` waits.
const ROUNDS: [Range<usize>; 2] = [0..8, 8..16];
/// The speeds of a job in turn. With the lower one, a rank dies in mid-work on a busy machine, too.
const SPEEDS: [&str; 2] = ["1000000000/s", "4000/s"];
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
    /// The speed of the job and the threads of each rank.
    options: String,
}

/// Returns the deaths of all rounds in a job that processes `entries`. They depend only on the seed.
fn deaths(seed: u64, entries: usize) -> Vec<Death> {
    let mut numbers = Numbers(seed);
    let rounds = (0..ROUNDS[1].end).map(|round| Death {
        rank: numbers.below(RANKS as u64) as usize,
        moment: match round {
            0 | 1 => Moment::Start,
            _ => Moment::Entries(1 + numbers.below(entries as u64) as usize),
        },
        options: format!(
            "--max-rate={} --threads={}",
            SPEEDS[round % 2],
            [1, 3][round / 2 % 2]
        ),
    });
    rounds.collect()
}

/// Runs a job of 4 ranks, of which one dies, and asserts that no rank is left.
fn run_until(
    death: &Death,
    program: Program,
    arguments: &str,
    scratch: &Scratch,
    processed: impl Fn() -> usize,
) -> Outcome {
    let pid_file = |rank| scratch.at(format!("pid.{rank}"));
    let pid_files: Vec<_> = (0..RANKS).map(pid_file).collect();
    for file in &pid_files {
        let _ = fs::remove_file(file);
    }
    let arguments = format!("{} {arguments}", death.options);
    let mut job = program.job(RANKS, PIDS, &arguments);
    if death.moment == Moment::Start {
        // `mpirun` 4.1.4 sometimes hangs then, but it heeds a signal.
        let limit = ["--foreground", "--kill-after=5", "20"];
        let words = program.words(RANKS, PIDS, &arguments);
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
    outcome
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

/// The work of a job, and how to do it again.
struct Work {
    program: Program,
    /// Builds what a job works on, and returns the number of its entries.
    build: fn(&Tree) -> usize,
    arguments: &'static str,
    /// Returns how many entries are done.
    processed: fn(&Scratch, usize) -> usize,
    /// The arguments that complete the work.
    again: &'static str,
    /// Asserts that the work is complete, and undoes it.
    undo: fn(&Scratch),
}

impl Work {
    /// Does the work once for each death of some rounds, and completes it after each. Returns how many ranks have died in
    /// mid-work.
    fn complete_after_deaths(&self, seed: u64, rounds: Range<usize>) -> usize {
        let scratch = Scratch::in_memory();
        let entries = (self.build)(&Tree::at(&scratch));
        let mut in_mid_work = 0;
        for death in &deaths(seed, entries)[rounds] {
            let processed = || (self.processed)(&scratch, entries);
            let outcome = run_until(death, self.program, self.arguments, &scratch, processed);
            if outcome.status == Status::Exit(0) {
                // The rank had ended, or had nothing left to do.
                assert_eq!(processed(), entries, "{death:?}");
            } else {
                assert_ne!(said(&outcome), "", "{death:?}");
                in_mid_work += usize::from((1..entries).contains(&processed()));
            }
            let again = self.program.run(RANKS, self.again, &scratch);
            assert_eq!(again.status, Status::Exit(0), "{death:?} {again}");
            (self.undo)(&scratch);
        }
        in_mid_work
    }

    fn assert_completed_after_deaths(&self, seed: u64) {
        let in_mid_work: usize = thread::scope(|scope| {
            let rounds =
                ROUNDS.map(|rounds| scope.spawn(|| self.complete_after_deaths(seed, rounds)));
            rounds.map(|rounds| rounds.join().unwrap()).iter().sum()
        });
        assert!(in_mid_work >= ENOUGH, "only {in_mid_work}");
    }
}

fn build_removed(tree: &Tree) -> usize {
    (0..12).for_each(|number| build(tree, &format!("t/{number}"), number, b'a'));
    count(tree.path()) - 1
}

#[test]
fn a_killed_rank_ends_the_removal_and_the_same_command_completes_it() {
    let work = Work {
        program: RMZ,
        build: build_removed,
        arguments: "t",
        processed: |scratch, entries| entries - count(&scratch.at("t")),
        again: "-f t",
        undo: |scratch| {
            assert!(!scratch.at("t").exists());
            build_removed(&Tree::at(scratch));
        },
    };
    work.assert_completed_after_deaths(1);
}

#[test]
fn a_killed_rank_ends_the_copy_and_the_same_command_with_resume_completes_it() {
    let work = Work {
        program: CPZ,
        build: |tree| {
            for number in 0..6 {
                build(tree, &format!("s/{number}"), number, b'a');
                tree.file(format!("s/{number}/large"), vec![1; 5 << 20]);
            }
            count(tree.path()) - 1
        },
        arguments: "-a s d",
        processed: |scratch, _| count(&scratch.at("d")),
        again: "-a --resume -T s d",
        undo: |scratch| {
            assert_same_tree(scratch.at("s"), scratch.at("d"), archived());
            remove_for_sure(scratch.at("d")).unwrap();
        },
    };
    work.assert_completed_after_deaths(3);
}

/// The rank dies while all copy parts of a file.
#[test]
fn a_killed_rank_leaves_no_part_of_a_large_file_that_counts_as_complete() {
    let scratch = Scratch::in_memory();
    let [source, dest] = ["s", "d"].map(|name| scratch.at(name));
    Tree::at(&source).file("large", vec![1; 40 << 20]);
    for rank in [0, RANKS - 1] {
        let job = CPZ.job(RANKS, PIDS, "-a --reflink=never --max-rate=8M s d");
        let mut live = job.current_dir(&scratch).start();
        // The hidden name.
        live.wait_for_effect(|| count(&dest) > 0);
        signal(&scratch, rank, "-KILL");
        assert_ne!(live.finish().status, Status::Exit(0));
        assert!(!dest.join("large").exists(), "rank {rank}");
        let again = "-a --reflink=never --resume -T s d";
        CPZ.run(RANKS, again, &scratch).assert_success();
        assert_same_tree(source.join("large"), dest.join("large"), archived());
        let names = fs::read_dir(&dest)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        for name in names.filter(|name| name != "large") {
            assert!(name.as_encoded_bytes().starts_with(b".cpz-"));
        }
        remove_for_sure(&dest).unwrap();
    }
}
