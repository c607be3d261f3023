//! Keeps one core busy while commands are measured, as another program on the machine would.

use std::{
    hint, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
};

use anyhow::{Context as _, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The name of the thread.
const NAME: &str = "busy-core";

/// A thread that keeps the first core busy until it is dropped.
///
/// It is a thread of the runner, so that it ends with the runner in any case. The measured commands are other processes
/// and may still use all cores.
pub(super) struct BusyCore {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BusyCore {
    /// Starts the thread.
    ///
    /// # Errors
    /// If it can't be started, or can't be bound to a core.
    pub(super) fn start() -> Result<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let (report, bound) = mpsc::channel();
        let thread = thread::Builder::new().name(NAME.to_owned()).spawn({
            let ended = Arc::clone(&ended);
            move || {
                let result = bind_to_first_core();
                let is_bound = result.is_ok();
                // Relaxed: the flag publishes nothing.
                if report.send(result).is_ok() && is_bound {
                    while !ended.load(Ordering::Relaxed) {
                        hint::spin_loop();
                    }
                }
            }
        });
        let busy = Self {
            ended,
            thread: Some(thread.context("cannot start a thread")?),
        };
        let bound = bound.recv().context("the busy thread ended")?;
        bound.context("cannot bind a thread to a core")?;
        Ok(busy)
    }
}

impl Drop for BusyCore {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread cannot panic.
            let _ = thread.join();
        }
    }
}

/// Binds this thread to the first of the cores that it may use.
fn bind_to_first_core() -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let first = (0..CpuSet::MAX_CPU).find(|&core| allowed.is_set(core));
    let mut one = CpuSet::new();
    one.set(first.unwrap_or(0));
    Ok(sched_setaffinity(None, &one)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns the names of this process's threads that may use only one core.
    fn bound_threads() -> Vec<String> {
        let tasks = fs::read_dir("/proc/self/task").unwrap();
        let statuses = tasks
            .flatten()
            .flat_map(|task| fs::read_to_string(task.path().join("status")));
        let bound = statuses.filter(|status| {
            let cores = status
                .lines()
                .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            cores.is_some_and(|cores| !cores.contains(['-', ',']))
        });
        bound
            .map(|status| status.lines().next().unwrap_or("").replace("Name:\t", ""))
            .collect()
    }

    #[test]
    fn one_thread_is_bound_to_a_core_until_the_end() {
        let name = NAME.to_owned();
        let before = sched_getaffinity(None).unwrap();
        let busy = BusyCore::start().unwrap();
        assert!(bound_threads().contains(&name));
        assert!(
            sched_getaffinity(None).unwrap() == before,
            "this thread is bound, too"
        );
        drop(busy);
        assert!(!bound_threads().contains(&name));
    }
}
