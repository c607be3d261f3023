//! Begins a thread that the engine has started: with a descriptor table, and away from the processor of its starter.
//!
//! Linux may queue a new thread on the processor of the thread that starts it, although another one is
//! idle, and move it only some milliseconds later. A virtual machine with two processors does so in most runs. Short runs
//! then have one processor: if started threads do not move by themselves, removing 10,000 empty files takes 1.18 of the time, and
//! copying them 1.08 (tmpfs, 21 rounds; cells remove-10k and copy-10k).
//!
//! The kernel chooses the other processor, which need not be idle. Only machines with two processors were measured.

use std::os::fd::BorrowedFd;

use rustix::thread::{sched_getaffinity, sched_setaffinity};

use super::calls::processor;
use super::fd::{InheritedTable, PrivateTables, ThreadUse};
use super::process::has_seccomp;

/// A thread that starts another one.
pub(crate) struct Starter {
    table: InheritedTable,
    /// The processor on which it runs, if the kernel reports it. `None` in a sandbox, because that may end the process for an
    /// unusual call.
    processor: Option<usize>,
}

impl Starter {
    /// Returns the calling thread.
    pub(crate) fn of_this_thread() -> Self {
        Self {
            table: InheritedTable::of_this_thread(),
            processor: (!has_seccomp()).then(processor).flatten(),
        }
    }

    /// Returns `true` if the new thread moves itself when it begins. It may be queued behind its starter.
    pub(crate) fn is_left(&self) -> bool {
        self.processor.is_some()
    }

    /// Begins the calling thread, which this one has started. With a permission, it gets a private table with the
    /// descriptors beside it, if that is possible. It must end after the result is dropped.
    pub(crate) fn begin_thread(
        self,
        tables: Option<(PrivateTables, Vec<BorrowedFd<'_>>)>,
    ) -> ThreadUse {
        if let Some(processor) = self.processor {
            leave_processor(processor, || {});
        }
        match tables {
            Some((permit, kept)) => self.table.replace_table(permit, &kept),
            None => self.table.share_table(),
        }
    }
}

/// Moves the calling thread to another processor if it runs on `left` and may use others. Afterwards it may use
/// the same processors as before, but it does not get those that are added to its cpuset later. If another process
/// changes the set during the move, its change is lost. Does nothing if the kernel refuses the calls. Calls `on_other` while
/// the thread cannot return.
fn leave_processor(left: usize, on_other: impl FnOnce()) {
    if processor() != Some(left) {
        return;
    }
    let Ok(allowed) = sched_getaffinity(None) else {
        return;
    };
    let mut others = allowed;
    others.unset(left);
    if others.count() > 0 && sched_setaffinity(None, &others).is_ok() {
        on_other();
        // Fails only if all of them were taken from the cpuset. Then the kernel has set others already.
        let _ = sched_setaffinity(None, &allowed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_leaves_a_processor_and_may_use_it_again() {
        // A thread of its own, because the harness may reuse this one.
        let test = std::thread::spawn(|| {
            let allowed = sched_getaffinity(None).expect("the processors must be known");
            if allowed.count() < 2 {
                return None;
            }
            // The kernel may move the thread just before it leaves. Then it has nothing to do.
            let moved = (0..1_000).find_map(|_| {
                let from = processor()?;
                let mut to = None;
                leave_processor(from, || to = processor());
                to.map(|to| (from, to))
            });
            let afterwards = sched_getaffinity(None).expect("the processors must be known");
            Some((moved, afterwards == allowed))
        });
        let Some((moved, is_as_before)) = test.join().expect("the thread must not panic") else {
            testkit::skip!("this process may use one processor only");
        };
        let (from, to) = moved.expect("the thread must have left once");
        assert_ne!(from, to);
        assert!(is_as_before, "the thread may use other processors now");
    }
}
