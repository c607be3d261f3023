//! Who may run: the one lock of the scheduler, taken only when a worker
//! changes its state, and the two flags that busy workers read instead.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Counts of workers by state, and how many should be running.
#[derive(Debug)]
struct State {
    /// Running workers, plus messages in the channel that one is for.
    active: usize,
    /// How many should be active; at least 1.
    target: usize,
    /// Blocked on the channel, with no message for them in it.
    idle: usize,
    /// Whether there is another message in it, for whoever rests first.
    has_spare: bool,
    /// Waiting with tasks of their own until they may go on.
    parked: usize,
    /// Parked workers that have been let go on and have not noticed yet.
    permits: usize,
    /// Threads, the main one included; they never end before the scope does.
    threads: usize,
    /// Threads at most; not raised again once one was refused.
    most: usize,
    was_refused: bool,
    /// A worker has panicked, or the main one is through: nobody waits for anybody.
    is_over: bool,
}

pub(super) struct Gate {
    state: Mutex<State>,
    unparked: Condvar,
    /// Messages wanted now. Read without the lock: a hint, checked again under it.
    starving: AtomicUsize,
    /// More are active than should be.
    surplus: AtomicBool,
}

/// How a message that was permitted reaches a worker.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Recipient {
    /// An idle worker takes it from the channel.
    Idle,
    /// Nobody is idle: start a thread for it.
    NewThread,
}

/// What a worker without tasks does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum IdleOutcome {
    /// For a message, which may be there.
    Wait,
    /// There is no task left anywhere.
    AllDone,
}

impl Gate {
    pub(super) fn new() -> Self {
        let state = State {
            active: 1,
            target: 1,
            idle: 0,
            has_spare: false,
            parked: 0,
            permits: 0,
            threads: 1,
            most: usize::MAX,
            was_refused: false,
            is_over: false,
        };
        Self {
            state: Mutex::new(state),
            unparked: Condvar::new(),
            starving: AtomicUsize::new(0),
            surplus: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets parked workers go on while there is room, then publishes what is wanted.
    fn settle(&self, state: &mut State) {
        while state.parked > 0 && state.active < state.target {
            state.parked -= 1;
            state.permits += 1;
            state.active += 1;
            self.unparked.notify_one();
        }
        let reachable = state.idle + (state.most - state.threads);
        let starving = state.target.saturating_sub(state.active).min(reachable);
        // Relaxed: hints that are checked again under the lock.
        self.starving.store(starving, Ordering::Relaxed);
        self.surplus
            .store(state.active > state.target, Ordering::Relaxed);
    }

    pub(super) fn is_starving(&self) -> bool {
        self.starving.load(Ordering::Relaxed) > 0
    }

    pub(super) fn has_surplus(&self) -> bool {
        self.surplus.load(Ordering::Relaxed)
    }

    /// How many workers should be active from now on, of at most `most`
    /// threads; returns how many threads there can be.
    pub(super) fn set_target(&self, target: usize, most: usize) -> usize {
        let mut state = self.lock();
        if !state.is_over {
            state.target = target.max(1);
            if !state.was_refused {
                state.most = most.max(state.threads);
            }
            self.settle(&mut state);
        }
        state.most
    }

    /// Unparks every worker for good: the scope ends, perhaps by a panic.
    pub(super) fn release_all(&self) {
        let mut state = self.lock();
        state.is_over = true;
        state.target = usize::MAX;
        state.most = state.threads;
        self.settle(&mut state);
    }

    /// Threads started, the main one included.
    pub(super) fn threads(&self) -> usize {
        self.lock().threads
    }

    /// Asks to send one message; if permitted, it already counts as active.
    pub(super) fn permit_work(&self) -> Option<Recipient> {
        let mut state = self.lock();
        if state.active >= state.target || state.parked > 0 {
            return None;
        }
        let give_work = if state.idle > 0 {
            state.idle -= 1;
            Recipient::Idle
        } else if state.threads < state.most {
            state.threads += 1;
            Recipient::NewThread
        } else {
            return None;
        };
        state.active += 1;
        self.settle(&mut state);
        Some(give_work)
    }

    /// Asks to send a message that nobody waits for yet.
    pub(super) fn reserve_spare(&self) -> bool {
        let mut state = self.lock();
        let all_run = state.active > 1 && state.idle == 0 && state.parked == 0;
        let is_permitted = all_run && !state.has_spare;
        state.has_spare |= is_permitted;
        is_permitted
    }

    /// The message permitted last is not sent, and no thread is started again.
    pub(super) fn thread_refused(&self) {
        let mut state = self.lock();
        state.active -= 1;
        state.threads -= 1;
        state.most = state.threads;
        state.was_refused = true;
        self.settle(&mut state);
    }

    /// A worker has run out of tasks.
    pub(super) fn rest(&self) -> IdleOutcome {
        let mut state = self.lock();
        if state.has_spare {
            state.has_spare = false;
            return IdleOutcome::Wait;
        }
        state.active -= 1;
        state.idle += 1;
        self.settle(&mut state);
        if state.active == 0 {
            IdleOutcome::AllDone
        } else {
            IdleOutcome::Wait
        }
    }

    /// The main thread goes on by itself after a run: it is active, not idle.
    pub(super) fn wake_main(&self) {
        let mut state = self.lock();
        state.idle -= 1;
        state.active += 1;
        self.settle(&mut state);
    }

    /// If there are too many active workers, waits until there are not.
    #[cold]
    pub(super) fn park(&self) {
        let mut state = self.lock();
        if state.active <= state.target {
            return;
        }
        state.active -= 1;
        state.parked += 1;
        self.settle(&mut state);
        while state.permits == 0 {
            state = self
                .unparked
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.permits -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_fed_before_more_than_one_is_wanted() {
        let gate = Gate::new();
        assert_eq!(gate.permit_work(), None);
        gate.set_target(2, 2);
        assert!(gate.is_starving());
        assert_eq!(gate.permit_work(), Some(Recipient::NewThread));
        assert_eq!(gate.permit_work(), None);
        assert!(!gate.is_starving());
    }

    #[test]
    fn the_last_to_rest_learns_that_all_is_done() {
        let gate = Gate::new();
        gate.set_target(2, 2);
        gate.permit_work();
        assert_eq!(gate.rest(), IdleOutcome::Wait);
        assert_eq!(gate.permit_work(), Some(Recipient::Idle));
        assert_eq!(gate.rest(), IdleOutcome::Wait);
        assert_eq!(gate.rest(), IdleOutcome::AllDone);
    }

    #[test]
    fn a_spare_message_is_for_the_first_to_rest() {
        let gate = Gate::new();
        gate.set_target(2, 2);
        assert!(!gate.reserve_spare(), "nobody else runs");
        gate.permit_work();
        assert!(gate.reserve_spare());
        assert!(!gate.reserve_spare(), "there is one");
        assert_eq!(gate.rest(), IdleOutcome::Wait);
        assert!(!gate.is_starving(), "who rested has work");
        assert_eq!(gate.rest(), IdleOutcome::Wait);
        assert!(gate.is_starving());
        assert_eq!(gate.rest(), IdleOutcome::AllDone);
    }

    #[test]
    fn a_parked_worker_goes_on_when_an_active_one_rests() {
        let gate = Gate::new();
        gate.set_target(2, 2);
        gate.permit_work();
        gate.set_target(1, 2);
        assert!(gate.has_surplus());
        std::thread::scope(|scope| {
            let parked = scope.spawn(|| gate.park());
            while gate.has_surplus() {
                std::thread::yield_now();
            }
            assert_eq!(gate.rest(), IdleOutcome::Wait);
            parked.join().unwrap();
        });
        assert_eq!(gate.rest(), IdleOutcome::AllDone);
    }

    #[test]
    fn a_refused_thread_is_not_tried_again() {
        let gate = Gate::new();
        gate.set_target(4, 4);
        assert_eq!(gate.permit_work(), Some(Recipient::NewThread));
        gate.thread_refused();
        assert_eq!(gate.set_target(4, 4), 1);
        assert_eq!(gate.permit_work(), None);
        assert_eq!(gate.rest(), IdleOutcome::AllDone);
    }
}
