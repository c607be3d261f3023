//! System calls per file and per directory, by `strace -f -c`.
//!
//! Three small trees of which each has more of one thing than the first: the differences are what one more file
//! or directory costs, and what a process costs by itself falls out.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::{
    cells::Work,
    interrupt,
    peers::{self, Peer, Programs},
    place::Scratch,
    timing::Stopwatch,
};

/// The calls by name.
pub(crate) type Counts = BTreeMap<String, u64>;

/// What one peer needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallsRow {
    pub(crate) work: String,
    pub(crate) peer: String,
    pub(crate) per_empty_file: f64,
    pub(crate) per_data_file: f64,
    pub(crate) per_dir: f64,
}

/// A tree of `dirs` directories of `files` files each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Uniform {
    pub(crate) dirs: u64,
    pub(crate) files: u64,
    pub(crate) file_bytes: usize,
}

/// They depend on the allocator and on who waits for whom.
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

/// What the trees of the table are compared with: large enough that who shares the work how hardly shows.
const TABLE: Uniform = Uniform {
    dirs: 40,
    files: 20,
    file_bytes: 0,
};

/// What the guard's trees are compared with.
pub(crate) const BASE: Uniform = Uniform {
    dirs: 20,
    files: 10,
    file_bytes: 0,
};

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

    /// The calls of a command on a tree.
    pub(crate) fn trace(&self, line: &str, tree: Uniform) -> Result<Counts> {
        let stopwatch = self.fresh(tree)?;
        let summary = self.dir.join("strace");
        let mut strace = stopwatch.command("strace")?;
        strace
            .args(["-f", "-c", "-o"])
            .arg(&summary)
            .args(["sh", "-c", line]);
        crate::command::run(&mut strace).with_context(|| line.to_owned())?;
        parse(&fs::read_to_string(&summary).context("strace wrote no summary")?)
    }

    /// A new `tree`, no `copy`.
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

    fn row(&self, work: Work, peer: &Peer) -> Result<CallsRow> {
        let total = |tree| {
            Ok::<_, anyhow::Error>(self.trace(peer.command, tree)?.values().sum::<u64>() as f64)
        };
        let base = total(TABLE)?;
        let more_files = total(Uniform {
            files: 2 * TABLE.files,
            ..TABLE
        })?;
        let more_dirs = total(Uniform {
            dirs: 2 * TABLE.dirs,
            ..TABLE
        })?;
        let data = total(Uniform {
            file_bytes: 4096,
            ..TABLE
        })?;
        let files = (TABLE.dirs * TABLE.files) as f64;
        let per_empty_file = (more_files - base) / files;
        Ok(CallsRow {
            work: if work == Work::Remove {
                "remove"
            } else {
                "copy"
            }
            .to_owned(),
            peer: peer.label.to_owned(),
            per_empty_file,
            per_data_file: per_empty_file + (data - base) / files,
            per_dir: (more_dirs - base) / TABLE.dirs as f64 - per_empty_file * TABLE.files as f64,
        })
    }
}

/// One row per peer that is there; what goes wrong becomes a note, and what would begin after `end`, too.
pub(crate) fn table(
    tracer: &Tracer<'_>,
    end: Option<Instant>,
) -> Result<(Vec<CallsRow>, Vec<String>)> {
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    for (work, set) in [(Work::Remove, peers::REMOVE), (Work::Copy, peers::COPY)] {
        for peer in set.iter().filter(|peer| tracer.programs.has(peer.program)) {
            if end.is_some_and(|end| Instant::now() >= end) {
                notes.push(format!("calls of {}: no time left", peer.label));
                continue;
            }
            match tracer.row(work, peer) {
                Ok(row) => rows.push(row),
                Err(error) => {
                    interrupt::check()?;
                    notes.push(format!("calls of {}: {error:#}", peer.label));
                }
            }
        }
    }
    Ok((rows, notes))
}

/// Reads the summary of `strace -c`, without [`IGNORED`]: columns of which the fourth is the number and the last
/// the name.
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
    fn what_is_no_summary_is_refused() {
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
        let expected = crate::trees::Count {
            files: 6,
            dirs: 4,
            bytes: 30,
        };
        assert_eq!(crate::trees::count(&root).unwrap(), expected);
    }
}
