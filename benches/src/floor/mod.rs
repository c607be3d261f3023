//! The floor: only the system calls that every tool needs, with every decision made before the clock starts.
//!
//! The [`plan`] has the names, the kinds and the parts of the threads before the clock starts, and the threads wait at
//! a barrier. The directories are still listed while the clock runs, since every tool must do that. A tool that takes
//! as long as the floor wastes nothing.
//!
//! A plan is a list of phases. All threads take jobs of one phase until it has no more, and then wait for each other.
//! Directories are made level by level on the way down, and removed level by level on the way up.

use std::{
    path::PathBuf,
    sync::{
        Barrier, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, anyhow};

use plan::Job;

mod perform;
mod plan;

/// The operation that the floor performs, with only the system calls that it needs.
#[derive(Debug, Clone, clap::Subcommand)]
pub(crate) enum Task {
    /// Removes TREE
    Remove {
        /// The tree, which no longer exists afterwards
        tree: PathBuf,
    },
    /// Copies TREE to DEST, which must not exist
    Copy {
        /// The tree
        tree: PathBuf,
        /// The new copy
        dest: PathBuf,
    },
}

/// Plans the task, then performs it on up to `threads` threads with the clock running. Returns the seconds.
pub(crate) fn run(task: &Task, threads: usize) -> Result<f64> {
    let dirs = plan::scan(task)?;
    let phases = plan::phases(task, &dirs);
    let widest = phases.iter().map(Vec::len).max().unwrap_or(0);
    let threads = threads.clamp(1, widest.max(1));
    let crew = Crew {
        next: phases.iter().map(|_| AtomicUsize::new(0)).collect(),
        phases,
        barrier: Barrier::new(threads),
        failure: Mutex::new(None),
    };
    let seconds = crew.work(threads);
    let panicked = |_| anyhow!("a thread of the floor panicked");
    match crew.failure.into_inner().map_err(panicked)? {
        Some(error) => Err(error),
        None => Ok(seconds),
    }
}

/// The state that the threads share.
struct Crew<'a> {
    phases: Vec<Vec<Job<'a>>>,
    /// The next job of each phase.
    next: Vec<AtomicUsize>,
    barrier: Barrier,
    /// The first failure. A thread that fails ends its phase, but still waits at the barriers.
    failure: Mutex<Option<anyhow::Error>>,
}

impl Crew<'_> {
    /// Performs all jobs, and returns the seconds that they took.
    fn work(&self, threads: usize) -> f64 {
        thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| {
                    self.barrier.wait();
                    self.all_phases();
                });
            }
            self.barrier.wait();
            let start = Instant::now();
            self.all_phases();
            start.elapsed().as_secs_f64()
        })
    }

    fn all_phases(&self) {
        for (jobs, next) in self.phases.iter().zip(&self.next) {
            if let Err(error) = self.one_phase(jobs, next) {
                next.store(jobs.len(), Ordering::Relaxed);
                if let Ok(mut failure) = self.failure.lock() {
                    failure.get_or_insert(error);
                }
            }
            self.barrier.wait();
        }
    }

    fn one_phase(&self, jobs: &[Job<'_>], next: &AtomicUsize) -> Result<()> {
        // Relaxed: the counter publishes nothing, because the jobs existed before the threads.
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            perform::perform(job)
                .with_context(|| format!("floor: {}", job.dir.source.to_string_lossy()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::Path};

    use super::*;

    /// Makes two directories of files with and without data, a link, and more entries than one job takes.
    fn tree(at: &Path) {
        fs::create_dir_all(at.join("a/b")).unwrap();
        for i in 0..600 {
            fs::write(at.join("a").join(i.to_string()), "x".repeat(i % 3)).unwrap();
        }
        symlink("nowhere", at.join("a/b/link")).unwrap();
    }

    fn content(at: &Path) -> Vec<String> {
        let names = fs::read_dir(at.join("a"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let mut lines: Vec<_> = names
            .filter(|name| name != "b")
            .map(|name| {
                format!(
                    "{name:?} {}",
                    fs::read_to_string(at.join("a").join(&name)).unwrap()
                )
            })
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn a_copy_is_the_same_and_a_removal_leaves_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        let (source, dest) = (scratch.path().join("s"), scratch.path().join("d"));
        tree(&source);

        run(
            &Task::Copy {
                tree: source.clone(),
                dest: dest.clone(),
            },
            3,
        )
        .unwrap();
        assert_eq!(content(&source), content(&dest));
        assert_eq!(
            fs::read_link(dest.join("a/b/link")).unwrap(),
            Path::new("nowhere")
        );

        run(&Task::Remove { tree: dest.clone() }, 2).unwrap();
        assert!(!dest.exists() && source.exists());
    }

    #[test]
    fn a_dest_that_exists_is_an_error_and_no_hang() {
        let scratch = tempfile::tempdir().unwrap();
        let (source, dest) = (scratch.path().join("s"), scratch.path().join("d"));
        tree(&source);
        fs::create_dir(&dest).unwrap();
        let error = run(&Task::Copy { tree: source, dest }, 2).unwrap_err();
        assert!(format!("{error:#}").contains("File exists"), "{error:#}");
    }
}
