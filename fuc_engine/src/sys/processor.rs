//! Moves threads to other processors.
//!
//! **New threads.** Linux may queue a new thread on the processor of the thread that starts it, although another one is
//! idle, and move it only some milliseconds later. A virtual machine with two processors does so in most runs. Short runs
//! then have one processor: if started threads do not move by themselves, removing 10,000 empty files takes 1.18 of the time, and
//! copying them 1.08 (tmpfs, 21 rounds; cells remove-10k and copy-10k).
//!
//! The kernel chooses the other processor, which need not be idle. Only machines with two processors were measured.
//!
//! **Running workers.** A worker that shares its processor with another one may move; see `placement` in [`sched`](crate::sched).

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use super::unshare;

/// The processor of a thread that starts another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StarterProcessor(usize);

impl StarterProcessor {
    /// Returns the processor on which the calling thread runs now. Returns `None` in a sandbox, because it may end the
    /// process for an unusual call.
    pub(crate) fn of_this_thread() -> Option<Self> {
        (!unshare::has_seccomp()).then(|| Self(sched_getcpu()))
    }

    /// Moves the calling thread to another processor if it runs on this one and may use others, as
    /// [`move_to_processor`] does.
    pub(crate) fn leave(self) {
        self.leave_and(|| {});
    }

    /// Does the same, and calls `on_other` while the thread cannot return.
    fn leave_and(self, on_other: impl FnOnce()) {
        if self.0 == sched_getcpu() {
            move_and(|processor| processor != self.0, on_other);
        }
    }
}

/// Returns the processor on which the calling thread runs now. Where the vDSO does not know it, as on aarch64, this is a system
/// call.
pub(crate) fn current_processor() -> usize {
    sched_getcpu()
}

/// Returns the processors that the calling thread may use, in ascending order. Returns none if the thread must not move,
/// because a sandbox may end the process for an unusual call.
pub(crate) fn movable_processors() -> Vec<usize> {
    if unshare::has_seccomp() {
        return Vec::new();
    }
    sched_getaffinity(None).map_or_else(|_| Vec::new(), |allowed| members(&allowed).collect())
}

fn members(set: &CpuSet) -> impl Iterator<Item = usize> {
    (0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor))
}

/// Moves the calling thread to a processor for which `is_wanted` returns `true`, if it may use one. Afterwards it may use
/// the same processors as before, but it does not get those that are added to its cpuset later. If another process changes the set
/// during the move, its change is lost. Returns `false` if the thread may use no such processor. Returns `false`, too, if
/// the kernel refuses the calls.
pub(crate) fn move_to_processor(is_wanted: impl Fn(usize) -> bool) -> bool {
    move_and(is_wanted, || {})
}

/// Moves the thread like [`move_to_processor`], and calls `on_other` while it cannot return.
fn move_and(is_wanted: impl Fn(usize) -> bool, on_other: impl FnOnce()) -> bool {
    let Ok(allowed) = sched_getaffinity(None) else {
        return false;
    };
    let mut wanted = CpuSet::new();
    for processor in members(&allowed).filter(|&processor| is_wanted(processor)) {
        wanted.set(processor);
    }
    let is_moved = wanted.count() > 0 && sched_setaffinity(None, &wanted).is_ok();
    if is_moved {
        on_other();
        // Fails only if all of them were taken from the cpuset. Then the kernel has set others already.
        let _ = sched_setaffinity(None, &allowed);
    }
    is_moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_without_a_wanted_processor_stays() {
        let allowed = sched_getaffinity(None).expect("the processors must be known");
        let mut calls = 0;
        assert!(!move_and(|_| false, || calls += 1));
        assert_eq!(calls, 0);
        let afterwards = sched_getaffinity(None).expect("the processors must be known");
        assert_eq!(afterwards, allowed);
    }

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
                let starter = StarterProcessor(sched_getcpu());
                let mut to = None;
                starter.leave_and(|| to = Some(sched_getcpu()));
                to.map(|to| (starter.0, to))
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
