//! Counts workers by state and decides which of them may run.
//!
//! Workers take its lock when they change their state or leave a spare task. Other busy workers only read flags.
//! [`super`] shows the protocol.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::sync::{AtomicBool, AtomicUsize, Condvar, Mutex, MutexGuard};

/// Counts of workers by state, and how many should be running.
#[derive(Debug)]
struct State {
    /// Running workers, plus batches under way to a worker that was idle.
    active: usize,
    /// How many should be active; at least 1.
    target: usize,
    /// Workers without tasks: they wait on the channel, and no batch is under way to them.
    idle: usize,
    /// Spares in the list: tasks for the next workers that run out of tasks.
    spares: usize,
    /// Batches from other processes, in the channel for the next workers that run out of tasks.
    deliveries: usize,
    /// Workers that wait, with tasks of their own, until they may go on.
    parked: usize,
    /// Workers that may go on and have not yet noticed. They count as active.
    permits: usize,
    /// Started threads and the main one. They never end before the scope does.
    threads: usize,
    /// How many threads there may be. It is not raised again after one was refused.
    most: usize,
    was_refused: bool,
    /// `true` once the scope ends or a worker has panicked. Then no worker is parked any more.
    is_over: bool,
    /// Tasks that other processes have, and that will come back.
    elsewhere: usize,
    /// Tasks that wait until no worker has another one.
    deferred: usize,
}

impl State {
    /// Returns how many workers that have no tasks should get some.
    fn wanted(&self) -> usize {
        let reachable = self.idle + (self.most - self.threads);
        self.target.saturating_sub(self.active).min(reachable)
    }

    fn outcome(&self) -> IdleOutcome {
        if self.active == 0 && self.elsewhere == 0 {
            IdleOutcome::AllDone
        } else {
            IdleOutcome::Wait
        }
    }
}

pub(super) struct Gate {
    state: Mutex<State>,
    unparked: Condvar,
    /// How many batches are wanted now. This is a hint: it is read without the lock and checked
    /// under it.
    starving: AtomicUsize,
    /// `true` if more workers are active than should be. This is a hint, too.
    surplus: AtomicBool,
    /// How many workers are active. This is a hint, too.
    active: AtomicUsize,
    /// `true` if another process asks for tasks, and no worker has claimed the request.
    request: AtomicBool,
    /// `true` if there are deliveries. This is a hint.
    delivery: AtomicBool,
}

/// Which worker gets a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Recipient {
    /// One that waits on the channel.
    Idle,
    /// None is idle: the sender starts a thread.
    NewThread,
}

/// The next step of a worker without tasks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum IdleOutcome {
    /// Wait on the channel. A batch may be there already.
    Wait,
    /// Run the spare that was left first.
    RunSpare,
    /// Run one of the deferred tasks, because no worker has another one.
    RunDeferred,
    /// No worker has any task left, and no other process has one.
    AllDone,
}

impl Gate {
    pub(super) fn new() -> Self {
        let state = State {
            active: 1,
            target: 1,
            idle: 0,
            spares: 0,
            deliveries: 0,
            parked: 0,
            permits: 0,
            threads: 1,
            most: usize::MAX,
            was_refused: false,
            is_over: false,
            elsewhere: 0,
            deferred: 0,
        };
        Self {
            state: Mutex::new(state),
            unparked: Condvar::new(),
            starving: AtomicUsize::new(0),
            surplus: AtomicBool::new(false),
            active: AtomicUsize::new(1),
            request: AtomicBool::new(false),
            delivery: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets parked workers go on while there is room for them, then updates the hints.
    fn rebalance(&self, state: &mut State) {
        while state.parked > 0 && state.active < state.target {
            state.parked -= 1;
            state.permits += 1;
            state.active += 1;
            self.unparked.notify_one();
        }
        // Relaxed: hints that are checked again under the lock.
        self.starving.store(state.wanted(), Ordering::Relaxed);
        self.surplus
            .store(state.active > state.target, Ordering::Relaxed);
        self.active.store(state.active, Ordering::Relaxed);
    }

    /// Returns `true` if another worker should get tasks and could.
    pub(super) fn is_starving(&self) -> bool {
        self.starving.load(Ordering::Relaxed) > 0
    }

    /// Returns `true` if more workers than the caller are active. This is a hint: it may be out of date.
    pub(super) fn has_company(&self) -> bool {
        self.active() > 1
    }

    /// Returns how many workers are active. This is a hint, too.
    pub(super) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Returns `true` if a worker should [`park`](Self::park).
    pub(super) fn has_surplus(&self) -> bool {
        self.surplus.load(Ordering::Relaxed)
    }

    /// Sets how many workers should be active, and how many threads there may be. Returns how
    /// many there can be, which is less if the kernel has refused one.
    pub(super) fn set_target(&self, target: usize, most: usize) -> usize {
        let mut state = self.lock();
        if !state.is_over {
            state.target = target.max(1);
            if !state.was_refused {
                state.most = most.max(state.threads);
            }
            self.rebalance(&mut state);
        }
        state.most
    }

    /// Lets every worker go on for good: the scope ends, or a worker has panicked.
    pub(super) fn release_all(&self) {
        let mut state = self.lock();
        state.is_over = true;
        state.target = usize::MAX;
        state.most = state.threads;
        self.rebalance(&mut state);
    }

    /// Returns `true` once the scope ends or a worker has panicked.
    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Returns how many threads have been started, plus one for the main thread.
    pub(super) fn threads(&self) -> usize {
        self.lock().threads
    }

    /// Reserves a recipient for one batch, which the caller must send. It counts as active at once.
    pub(super) fn permit_batch(&self) -> Option<Recipient> {
        self.reserve_recipient(&mut self.lock())
    }

    fn reserve_recipient(&self, state: &mut State) -> Option<Recipient> {
        if state.active >= state.target || state.parked > 0 {
            return None;
        }
        let recipient = if state.idle > 0 {
            state.idle -= 1;
            Recipient::Idle
        } else if state.threads < state.most {
            state.threads += 1;
            Recipient::NewThread
        } else {
            return None;
        };
        state.active += 1;
        self.rebalance(state);
        Some(recipient)
    }

    /// Calls `leave` if other workers are active, and there are fewer spares than active workers. `leave` must add one
    /// task to the list of spares. If a worker that waits for tasks could get the task instead, nothing is left.
    ///
    /// Copying 1,500 files in 256 directories to a server that answers after 1 ms: allowing twice as many spares takes
    /// 1.26 of the time (5 rounds; cell slow-1ms-copy-256). Removing six files of 86 to 152 MB in small directories on
    /// tmpfs: allowing a single spare takes 1.03 to 1.20 of the time, because a small directory may be that spare, and
    /// then a large file waits (21 rounds; cell remove-10-1gb).
    pub(super) fn leave_spare(&self, leave: impl FnOnce()) {
        let mut state = self.lock();
        let others_run = state.active > 1 && state.parked == 0;
        let has_room = state.spares < state.active && state.active <= state.target;
        if others_run && has_room && state.wanted() == 0 {
            // The task is added under the lock, before it is counted: a worker that finds it counted takes it at once.
            leave();
            state.spares += 1;
        }
    }

    /// Claims a spare task, and reserves a recipient for it, to which the caller must send it. The recipient counts
    /// as active at once.
    pub(super) fn claim_spare(&self) -> Option<Recipient> {
        let mut state = self.lock();
        if state.spares == 0 {
            return None;
        }
        let recipient = self.reserve_recipient(&mut state)?;
        state.spares -= 1;
        Some(recipient)
    }

    /// Takes back a permission for a new thread that the kernel has refused, because the caller keeps the
    /// batch. No other thread will be started.
    pub(super) fn thread_refused(&self) {
        self.start_no_more(&mut self.lock());
    }

    /// Returns a claimed spare, which is still in the list, because the kernel has refused the thread. No other thread
    /// will be started.
    pub(super) fn give_spare_back(&self) {
        let mut state = self.lock();
        state.spares += 1;
        self.start_no_more(&mut state);
    }

    /// Stops counting a thread that the kernel has refused, and starts no other one.
    fn start_no_more(&self, state: &mut State) {
        state.active -= 1;
        state.threads -= 1;
        state.most = state.threads;
        state.was_refused = true;
        self.rebalance(state);
    }

    /// Counts a task that waits until no worker has another one. The caller is active.
    pub(super) fn defer(&self) {
        self.lock().deferred += 1;
    }

    /// Counts a worker without tasks as idle, unless there is a delivery or a spare, which it then takes. It leaves
    /// spares to others if too many workers are active. The last active worker takes a deferred task instead.
    pub(super) fn go_idle(&self) -> IdleOutcome {
        let mut state = self.lock();
        if state.deliveries > 0 {
            state.deliveries -= 1;
            return IdleOutcome::Wait;
        }
        if state.spares > 0 && state.active <= state.target {
            state.spares -= 1;
            return IdleOutcome::RunSpare;
        }
        let is_last = state.active == 1 && state.parked == 0;
        if is_last && state.deferred > 0 {
            state.deferred -= 1;
            return IdleOutcome::RunDeferred;
        }
        state.active -= 1;
        state.idle += 1;
        self.rebalance(&mut state);
        state.outcome()
    }

    /// Counts the main thread, which goes on after a run, as active again.
    pub(super) fn wake_main(&self) {
        let mut state = self.lock();
        state.idle -= 1;
        state.active += 1;
        self.rebalance(&mut state);
    }

    /// Waits while more workers are active than should be.
    #[cold]
    pub(super) fn park(&self) {
        let mut state = self.lock();
        if state.active <= state.target {
            return;
        }
        state.active -= 1;
        state.parked += 1;
        self.rebalance(&mut state);
        while state.permits == 0 {
            state = self
                .unparked
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.permits -= 1;
    }
}

/// The exchange of tasks with other processes; see [`super`].
impl Gate {
    /// Asks the workers for tasks. The first one that has some to give claims the request.
    pub(super) fn request(&self) {
        // Relaxed: the request publishes nothing but itself.
        self.request.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if another process asks for tasks.
    pub(super) fn has_request(&self) -> bool {
        self.request.load(Ordering::Relaxed)
    }

    /// Claims the request. Returns `false` if another worker has claimed it.
    pub(super) fn claim_request(&self) -> bool {
        self.request.swap(false, Ordering::Relaxed)
    }

    /// Counts tasks that will come back from another process. The caller is active, or no worker is yet.
    pub(super) fn expect(&self, tasks: usize) {
        self.lock().elsewhere += tasks;
    }

    /// Reserves a recipient for a batch from another process, which the caller must send. With it, `back` tasks
    /// come back that were expected.
    pub(super) fn admit(&self, back: usize) {
        let mut state = self.lock();
        state.elsewhere -= back;
        if state.idle > 0 {
            state.idle -= 1;
            state.active += 1;
            self.rebalance(&mut state);
        } else {
            state.deliveries += 1;
            self.delivery.store(true, Ordering::Relaxed);
        }
    }

    /// Returns `true` if a batch from another process may wait for a worker.
    pub(super) fn has_delivery(&self) -> bool {
        self.delivery.load(Ordering::Relaxed)
    }

    /// Takes a delivery for a worker that may have other tasks, too. `receive` receives it, and must not
    /// wait: it may be counted, but not sent yet.
    ///
    /// It is received under the lock. Otherwise a worker could go idle in between and receive it, although it does not
    /// count. Then the run could end before the tasks of the caller.
    #[cold]
    pub(super) fn take_delivery<T>(&self, receive: impl FnOnce() -> Option<T>) -> Option<T> {
        let mut state = self.lock();
        let taken = match state.deliveries {
            0 => None,
            _ => receive(),
        };
        state.deliveries -= usize::from(taken.is_some());
        // Stored under the lock, as in `admit`, so that no delivery is overlooked.
        self.delivery.store(state.deliveries > 0, Ordering::Relaxed);
        taken
    }

    /// Expects `tasks` tasks less. If no task is left then, the caller must wake the main thread.
    pub(super) fn expect_no_more(&self, tasks: usize) -> IdleOutcome {
        let mut state = self.lock();
        state.elsewhere -= tasks;
        state.outcome()
    }
}

#[cfg(all(test, fuc_loom))]
mod models;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_batch_is_permitted_before_the_governor_wants_a_second_worker() {
        let gate = Gate::new();
        assert_eq!(gate.permit_batch(), None);
        gate.set_target(2, 2);
        assert!(gate.is_starving());
        assert_eq!(gate.permit_batch(), Some(Recipient::NewThread));
        assert_eq!(gate.permit_batch(), None);
        assert!(!gate.is_starving());
    }

    #[test]
    fn the_worker_that_goes_idle_last_finds_all_done() {
        let gate = Gate::new();
        gate.set_target(2, 2);
        gate.permit_batch();
        assert_eq!(gate.go_idle(), IdleOutcome::Wait);
        assert_eq!(gate.permit_batch(), Some(Recipient::Idle));
        assert_eq!(gate.go_idle(), IdleOutcome::Wait);
        assert_eq!(gate.go_idle(), IdleOutcome::AllDone);
    }

    #[test]
    fn workers_without_tasks_take_spares_and_stay_active() {
        let gate = Gate::new();
        gate.set_target(2, 2);
        gate.leave_spare(|| panic!("no other worker runs"));
        gate.permit_batch();
        let mut left = 0;
        for _ in 0..20 {
            gate.leave_spare(|| left += 1);
        }
        assert_eq!(left, 2, "one for each worker");
        for _ in 0..left {
            assert_eq!(gate.go_idle(), IdleOutcome::RunSpare);
        }
        assert!(!gate.is_starving());
        assert_eq!(gate.go_idle(), IdleOutcome::Wait);
        assert!(gate.is_starving());
        assert_eq!(gate.go_idle(), IdleOutcome::AllDone);
    }

    #[test]
    fn a_spare_waits_for_a_running_worker_even_if_another_one_is_idle() {
        let gate = Gate::new();
        gate.set_target(3, 3);
        gate.permit_batch();
        gate.permit_batch();
        assert_eq!(gate.go_idle(), IdleOutcome::Wait);
        gate.set_target(2, 3);
        let mut left = 0;
        gate.leave_spare(|| left += 1);
        gate.leave_spare(|| left += 1);
        assert_eq!(left, 2);
        assert_eq!(gate.claim_spare(), None, "two workers are enough");
        assert_eq!(gate.go_idle(), IdleOutcome::RunSpare);
        gate.set_target(3, 3);
        assert_eq!(gate.claim_spare(), Some(Recipient::Idle));
        assert_eq!(gate.claim_spare(), None, "there is none");
    }

    #[test]
    fn no_spare_is_left_if_an_idle_worker_should_get_the_task() {
        let gate = Gate::new();
        gate.set_target(3, 3);
        gate.permit_batch();
        gate.permit_batch();
        assert_eq!(gate.go_idle(), IdleOutcome::Wait);
        gate.leave_spare(|| panic!("a worker is idle"));
        assert!(gate.is_starving());
    }

    #[test]
    fn a_worker_too_many_leaves_spares_to_others() {
        let gate = Gate::new();
        gate.set_target(2, 2);
        gate.permit_batch();
        gate.leave_spare(|| ());
        gate.set_target(1, 2);
        gate.leave_spare(|| panic!("too many workers are active"));
        assert_eq!(gate.go_idle(), IdleOutcome::Wait);
        assert_eq!(gate.go_idle(), IdleOutcome::RunSpare);
        assert_eq!(gate.go_idle(), IdleOutcome::AllDone);
    }

    #[test]
    fn a_parked_worker_goes_on_when_an_active_one_goes_idle() {
        let gate = Gate::new();
        gate.set_target(2, 2);
        gate.permit_batch();
        gate.set_target(1, 2);
        assert!(gate.has_surplus());
        std::thread::scope(|scope| {
            let parked = scope.spawn(|| gate.park());
            while gate.has_surplus() {
                std::thread::yield_now();
            }
            assert_eq!(gate.go_idle(), IdleOutcome::Wait);
            parked.join().unwrap();
        });
        assert_eq!(gate.go_idle(), IdleOutcome::AllDone);
    }

    #[test]
    fn a_run_goes_on_while_another_process_has_tasks() {
        let gate = Gate::new();
        gate.expect(2);
        assert_eq!(gate.go_idle(), IdleOutcome::Wait);
        gate.admit(1);
        assert_eq!(gate.go_idle(), IdleOutcome::Wait);
        gate.admit(1);
        assert_eq!(gate.go_idle(), IdleOutcome::AllDone);
    }

    #[test]
    fn a_busy_worker_takes_a_batch_from_another_process_when_it_has_no_other() {
        let gate = Gate::new();
        gate.admit(0);
        assert_eq!(gate.go_idle(), IdleOutcome::Wait);
        assert_eq!(gate.go_idle(), IdleOutcome::AllDone);
    }

    #[test]
    fn the_last_active_worker_takes_the_deferred_tasks_one_by_one() {
        let gate = Gate::new();
        gate.set_target(2, 2);
        gate.permit_batch();
        gate.defer();
        gate.defer();
        assert_eq!(gate.go_idle(), IdleOutcome::Wait, "the other worker runs");
        assert_eq!(gate.go_idle(), IdleOutcome::RunDeferred);
        assert_eq!(gate.permit_batch(), Some(Recipient::Idle));
        assert_eq!(gate.go_idle(), IdleOutcome::Wait);
        assert_eq!(gate.go_idle(), IdleOutcome::RunDeferred);
        assert_eq!(gate.go_idle(), IdleOutcome::AllDone);
    }

    #[test]
    fn deferred_tasks_do_not_wait_for_another_process() {
        let gate = Gate::new();
        gate.expect(1);
        gate.defer();
        assert_eq!(gate.go_idle(), IdleOutcome::RunDeferred);
        assert_eq!(gate.go_idle(), IdleOutcome::Wait);
        gate.admit(1);
        assert_eq!(gate.go_idle(), IdleOutcome::AllDone);
    }

    #[test]
    fn a_busy_worker_takes_each_delivery_once() {
        let gate = Gate::new();
        assert!(!gate.has_delivery());
        gate.admit(0);
        gate.admit(0);
        for _ in 0..2 {
            assert!(gate.has_delivery());
            assert_eq!(gate.take_delivery(|| Some(())), Some(()));
        }
        assert!(!gate.has_delivery());
        assert_eq!(gate.take_delivery(|| Some(())), None);
        assert_eq!(gate.go_idle(), IdleOutcome::AllDone);
    }

    #[test]
    fn a_delivery_that_is_not_sent_yet_stays_counted() {
        let gate = Gate::new();
        gate.admit(0);
        assert_eq!(gate.take_delivery(|| None::<()>), None);
        assert!(gate.has_delivery());
        assert_eq!(gate.go_idle(), IdleOutcome::Wait);
        assert_eq!(gate.go_idle(), IdleOutcome::AllDone);
    }

    #[test]
    fn a_run_that_no_more_tasks_can_come_to_has_ended() {
        let gate = Gate::new();
        gate.expect(1);
        assert_eq!(gate.go_idle(), IdleOutcome::Wait);
        assert_eq!(gate.expect_no_more(1), IdleOutcome::AllDone);
    }

    #[test]
    fn one_worker_claims_a_request() {
        let gate = Gate::new();
        assert!(!gate.claim_request());
        gate.request();
        assert!(gate.has_request() && gate.claim_request());
        assert!(!gate.claim_request());
    }

    #[test]
    fn no_thread_is_started_after_one_was_refused() {
        let gate = Gate::new();
        gate.set_target(4, 4);
        assert_eq!(gate.permit_batch(), Some(Recipient::NewThread));
        gate.thread_refused();
        assert_eq!(gate.set_target(4, 4), 1);
        assert_eq!(gate.permit_batch(), None);
        assert_eq!(gate.go_idle(), IdleOutcome::AllDone);
    }
}
