//! Spreads started threads over the processors.
//!
//! Linux may queue a new thread on the processor of the thread that starts it, although another one is idle, and move it
//! only some milliseconds later. A virtual machine with two processors does so in nearly every run. Short runs then have
//! one processor: removing and copying 10,000 empty files takes 1.18 and 1.08 of the time if started threads do not move
//! by themselves (tmpfs, 21 rounds; cells remove-10k and copy-10k).

use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};

/// A processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processor(usize);

impl Processor {
    /// Returns the processor on which the calling thread runs now.
    pub(crate) fn of_this_thread() -> Self {
        Self(sched_getcpu())
    }

    /// Moves the calling thread to another processor if it runs on this one and may use others. Afterwards the thread
    /// may use the same processors as before. Does nothing if the kernel refuses the calls.
    pub(crate) fn leave(self) {
        if self.0 != sched_getcpu() {
            return;
        }
        let Ok(allowed) = sched_getaffinity(None) else {
            return;
        };
        let mut others = allowed;
        others.unset(self.0);
        if others.count() > 0 && sched_setaffinity(None, &others).is_ok() {
            let _ = sched_setaffinity(None, &allowed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `on_thread` on a new thread, so that the test harness's own threads keep their processors.
    fn on_a_thread<T: Send + 'static>(on_thread: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(on_thread)
            .join()
            .expect("the thread must not panic")
    }

    #[test]
    fn a_thread_leaves_a_processor_and_may_use_it_again() {
        let moved = on_a_thread(|| {
            let allowed = sched_getaffinity(None).expect("the affinity must be readable");
            if allowed.count() < 2 {
                return None;
            }
            // The thread stays on one processor until it leaves it.
            let here = sched_getcpu();
            let mut only_here = allowed;
            only_here.clear();
            only_here.set(here);
            sched_setaffinity(None, &only_here).expect("an allowed processor must be accepted");
            let refused = {
                Processor(here).leave();
                sched_getcpu()
            };
            sched_setaffinity(None, &allowed).expect("the old set must be accepted");
            let from = Processor::of_this_thread();
            from.leave();
            let after = sched_getaffinity(None).expect("the affinity must be readable");
            Some((here, refused, from.0, sched_getcpu(), after == allowed))
        });
        let Some((here, refused, from, to, keeps_allowed)) = moved else {
            testkit::skip!("this process may use one processor only");
        };
        assert_eq!(refused, here, "a thread with one processor must stay there");
        assert_ne!(to, from);
        assert!(keeps_allowed, "the allowed processors have changed");
    }
}
