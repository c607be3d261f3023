//! Counts the system calls of a command by `strace -f -c`, and its instructions by callgrind.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};

use super::Case;
use crate::{
    host::command,
    run::{place::Scratch, trees},
};

/// The number of calls by name.
pub(super) type Counts = BTreeMap<String, u64>;

/// Calls that depend on the allocator and on the order in which threads wait.
const IGNORED: &[&str] = &[
    "brk",
    "futex",
    "madvise",
    "mmap",
    "mprotect",
    "mremap",
    "munmap",
    "sched_yield",
];

/// The runs of a case with several threads. On a machine with other work, five runs of ten files all started a second one.
const RUNS: usize = 25;

/// Runs commands in a directory of its own.
pub(super) struct Counter {
    dir: PathBuf,
}

impl Counter {
    pub(super) fn new(scratch: &Scratch) -> Result<Self> {
        let dir = scratch.subdir("counts")?;
        Ok(Self { dir })
    }

    /// Counts the calls of a case, with the program in `programs`. If more than one thread may work, it is the run with the
    /// fewest calls that counts: in the others, the machine has stalled for so long that a second thread seemed to pay.
    pub(super) fn calls(&self, programs: &Path, case: &Case) -> Result<Counts> {
        let runs = match case.is_on_one_thread() {
            true => 1,
            false => RUNS,
        };
        let counts = (0..runs).map(|_| self.calls_of_run(programs, case));
        let counts = counts.collect::<Result<Vec<_>>>()?;
        let fewest = counts
            .into_iter()
            .min_by_key(|counts| counts.values().sum::<u64>());
        fewest.context("no run")
    }

    fn calls_of_run(&self, programs: &Path, case: &Case) -> Result<Counts> {
        let summary = self.dir.join("strace");
        let mut strace = Command::new("strace");
        strace.args(["-f", "-c", "-o"]).arg(&summary);
        self.run(strace, programs, case)?;
        parse_calls(&fs::read_to_string(&summary).context("strace wrote no summary")?)
    }

    /// Counts the instructions of a case, with the program in `programs`.
    pub(super) fn instructions(&self, programs: &Path, case: &Case) -> Result<u64> {
        let log = self.dir.join("valgrind");
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        // valgrind wants the option and its value in one word.
        valgrind.arg(format!("--log-file={}", log.display()));
        self.run(valgrind, programs, case)?;
        parse_instructions(&fs::read_to_string(&log).context("valgrind wrote no log")?)
    }

    /// Runs a case below `tool`, on a new tree in an empty directory.
    fn run(&self, mut tool: Command, programs: &Path, case: &Case) -> Result<()> {
        let empty = || format!("cannot empty {}", self.dir.display());
        fs::remove_dir_all(&self.dir).with_context(empty)?;
        fs::create_dir(&self.dir)?;
        trees::spread(&case.tree, &self.dir.join("tree"))?;
        // The length of argv[0] changes the state of the allocator, and with it up to a third of the instructions.
        let (program, arguments) = (case.words[0], &case.words[1..]);
        symlink(programs.join(program), self.dir.join(program))?;
        tool.current_dir(&self.dir)
            .arg(Path::new(".").join(program))
            .args(arguments);
        command::run(&mut tool).map(drop)
    }
}

/// Reads the summary of `strace -c`, without [`IGNORED`].
///
/// Its fourth column is the number, and its last one the name.
fn parse_calls(summary: &str) -> Result<Counts> {
    let mut counts = Counts::new();
    let mut rules = 0;
    for line in summary.lines() {
        if line.starts_with("---") {
            rules += 1;
        } else if rules == 1 {
            // The column of errors may be empty.
            let columns: Vec<_> = line.split_whitespace().collect();
            let [_, _, _, calls, .., name] = columns.as_slice() else {
                bail!("not a line of strace -c: {line:?}");
            };
            let calls: u64 = calls.parse().context("not a number of calls")?;
            if !IGNORED.contains(name) {
                *counts.entry((*name).to_owned()).or_default() += calls;
            }
        }
    }
    ensure!(rules > 0, "not a summary of strace -c");
    Ok(counts)
}

/// Returns the number in callgrind's line `Collected : N`.
fn parse_instructions(log: &str) -> Result<u64> {
    let (_, rest) = log
        .split_once("Collected :")
        .context("callgrind did not say what it collected")?;
    let number = rest.split_whitespace().next().unwrap_or_default();
    number.parse().context("not a number of instructions")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMARY: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 61.54    0.000008           0        21           unlinkat
 38.46    0.000005           5         1         1 access
  0.00    0.000000           0         4           getdents64
  0.00    0.000000           0         2         1 futex
------ ----------- ----------- --------- --------- ----------------
100.00    0.000013           0        26         1 total
";

    #[test]
    fn a_summary_is_read_without_its_total_and_the_futexes() {
        let counts = parse_calls(SUMMARY).unwrap();
        let expected = [("access", 1), ("getdents64", 4), ("unlinkat", 21)];
        assert_eq!(
            counts,
            expected.map(|(name, n)| (name.to_owned(), n)).into()
        );
    }

    #[test]
    fn text_that_is_not_a_summary_is_refused() {
        assert!(parse_calls("strace: cannot find executable\n").is_err());
        assert!(parse_calls("---\ngarbage\n---\n").is_err());
    }

    #[test]
    fn instructions_are_read_from_callgrinds_log() {
        let log = "==7== Events    : Ir\n==7== Collected : 1304563\n==7== \n";
        assert_eq!(parse_instructions(log).unwrap(), 1_304_563);
        assert!(parse_instructions("==7== nothing").is_err());
    }
}
