//! Counts the system calls of a command by `strace -f -c`, on small uniform trees.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use super::{place::Scratch, programs::Programs, timing::Stopwatch};
use crate::host::command;

/// The number of calls by name.
pub(crate) type Counts = BTreeMap<String, u64>;

/// A tree of `dirs` directories of `files` files each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Uniform {
    pub(crate) dirs: u64,
    pub(crate) files: u64,
    pub(crate) file_bytes: usize,
}

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

impl Uniform {
    /// Makes the tree at `root`.
    pub(crate) fn make(self, root: &Path) -> Result<()> {
        for dir in 0..self.dirs {
            let dir = root.join(format!("d{dir:04}"));
            fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
            for file in 0..self.files {
                let file = dir.join(format!("f{file:04}"));
                fs::write(&file, vec![b'x'; self.file_bytes])
                    .with_context(|| format!("cannot make {}", file.display()))?;
            }
        }
        Ok(())
    }
}

/// Runs commands under strace, in a directory of its own.
pub(crate) struct Tracer<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) dir: PathBuf,
}

impl<'a> Tracer<'a> {
    pub(crate) fn new(programs: &'a Programs, scratch: &Scratch) -> Result<Self> {
        ensure!(programs.has("strace"), "strace is missing");
        Ok(Self {
            programs,
            dir: scratch.subdir("calls")?,
        })
    }

    /// Returns the calls of a command on a tree.
    pub(crate) fn trace(&self, line: &str, tree: Uniform) -> Result<Counts> {
        let stopwatch = self.fresh(tree)?;
        let summary = self.dir.join("strace");
        let mut strace = stopwatch.command("strace")?;
        strace
            .args(["-f", "-c", "-o"])
            .arg(&summary)
            .args(["sh", "-c", line]);
        command::run(&mut strace).with_context(|| line.to_owned())?;
        parse(&fs::read_to_string(&summary).context("strace wrote no summary")?)
    }

    /// Empties the directory, makes a new `tree`, and returns a stopwatch for commands on it.
    pub(crate) fn fresh(&self, tree: Uniform) -> Result<Stopwatch<'_>> {
        if self.dir.exists() {
            fs::remove_dir_all(&self.dir)
                .with_context(|| format!("cannot empty {}", self.dir.display()))?;
        }
        fs::create_dir_all(self.dir.join("empty"))?;
        tree.make(&self.dir.join("tree"))?;
        Ok(Stopwatch {
            programs: self.programs,
            dir: &self.dir,
            export: self.dir.join("export"),
        })
    }
}

/// Reads the summary of `strace -c`, without [`IGNORED`].
///
/// Its fourth column is the number, and its last one the name.
fn parse(summary: &str) -> Result<Counts> {
    let mut counts = Counts::new();
    let mut rules = 0;
    for line in summary.lines() {
        if line.starts_with("---") {
            rules += 1;
        } else if rules == 1 {
            // The column of errors may be empty.
            let columns: Vec<_> = line.split_whitespace().collect();
            let [_, _, _, calls, .., name] = columns.as_slice() else {
                anyhow::bail!("not a line of strace -c: {line:?}");
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
        let counts = parse(SUMMARY).unwrap();
        let expected = [("access", 1), ("getdents64", 4), ("unlinkat", 21)];
        assert_eq!(
            counts,
            expected.map(|(name, n)| (name.to_owned(), n)).into()
        );
    }

    #[test]
    fn text_that_is_not_a_summary_is_refused() {
        assert!(parse("strace: cannot find executable\n").is_err());
        assert!(parse("---\ngarbage\n---\n").is_err());
    }

    #[test]
    fn a_uniform_tree_has_what_it_says() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("tree");
        Uniform {
            dirs: 3,
            files: 2,
            file_bytes: 5,
        }
        .make(&root)
        .unwrap();
        let expected = crate::run::trees::Count {
            files: 6,
            dirs: 4,
            bytes: 30,
        };
        assert_eq!(crate::run::trees::count(&root).unwrap(), expected);
    }
}
