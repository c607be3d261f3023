//! Holds the queued tasks that belong to no worker, and decides which workers run.
//!
//! The invariant: each queue and each count changes under one lock. So a run has ended if, under the lock, no worker
//! has tasks, no queue has any, and none is elsewhere. [`super`] shows how tasks get from one worker to another.
//!
//! Workers take the lock when they change their state or hand tasks over. Other busy workers only read hints.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::sync::{AtomicU32, CachePadded, Condvar, Mutex, MutexGuard};

/// Time that a worker without tasks waits before it steals from other processes. It doubles each time.
const SHORTEST_WAIT: Duration = Duration::from_micros(100);
/// The longest such time.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// Number of the worker on the thread that has called [`scope`](super::scope).
pub(super) const MAIN: usize = 0;

pub(super) struct State<T> {
    /// The main thread, and those that were started or are about to be. They never end before the scope does.
    threads: usize,
    /// Workers without tasks.
    idle: usize,
    /// Workers that wait, with tasks of their own, because too many are active.
    parked: usize,
    /// How many workers should be active; at least 1.
    target: usize,
    /// Says whether another thread may be started: until the kernel has refused one, or the run is over.
    starts_threads: bool,
    /// The worker that stepped the governor last, until it runs out of tasks. It does not park: the others
    /// may be in slow operations, and then none would make progress. Without a leader, the next worker
    /// that should park becomes the leader.
    leader: Option<usize>,
    /// `true` once the scope ends or a worker has panicked. Then no worker is parked any more.
    is_over: bool,
    /// Tasks for idle workers. A batch for which no worker is idle goes to the next one that ends a task.
    pub(super) batches: VecDeque<VecDeque<T>>,
    /// Tasks for the next workers that run out of tasks. The busy workers that left them may need long.
    spares: VecDeque<T>,
    /// Tasks that wait until no worker has another one.
    when_idle: VecDeque<T>,
    /// How many times tasks will come back that other processes have.
    pub(super) elsewhere: usize,
}

impl<T> State<T> {
    /// Returns how many workers run, or are about to run a batch.
    fn active(&self) -> usize {
        let running = self.threads - self.idle - self.parked;
        running + self.batches.len().min(self.idle)
    }

    /// Returns how many workers are idle, and stay so if no other task comes.
    fn free(&self) -> usize {
        self.idle.saturating_sub(self.batches.len())
    }

    /// Returns how many workers that have no tasks should get some. Parked workers go on first.
    fn wanted(&self) -> usize {
        let missing = self.target.saturating_sub(self.active() + self.parked);
        match self.starts_threads {
            true => missing,
            false => missing.min(self.free()),
        }
    }

    /// Returns tasks for a worker that is counted as idle. It leaves spares to others if enough workers are active.
    fn take_for_idle(&mut self) -> Option<VecDeque<T>> {
        if let Some(batch) = self.batches.pop_front() {
            return Some(batch);
        }
        let task = if self.active() < self.target && !self.spares.is_empty() {
            self.spares.pop_front()
        } else if self.idle == self.threads {
            self.when_idle.pop_front()
        } else {
            None
        };
        task.map(|task| VecDeque::from([task]))
    }

    /// Returns `true` if no task is left in this process, and none will come back to it.
    pub(super) fn has_ended(&self) -> bool {
        let is_empty = self.batches.is_empty() && self.spares.is_empty();
        let is_idle = self.idle == self.threads && is_empty && self.when_idle.is_empty();
        is_idle && self.elsewhere == 0
    }

    /// Counts a thread that the caller must start, and that has no tasks at first.
    fn add_thread(&mut self) -> Recipient {
        let number = self.threads;
        self.threads += 1;
        self.idle += 1;
        Recipient::New(number)
    }
}

/// The worker for which a batch was queued. Another one may take it first.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Recipient {
    Idle,
    /// The caller must start a thread for the worker with this number, or [refuse](Gate::refuse_thread) it.
    New(usize),
}

pub(super) struct Gate<T> {
    state: Mutex<State<T>>,
    /// Wakes workers without tasks.
    pub(super) work: Condvar,
    unparked: Condvar,
    /// The [`hints`] that are true, and the number of active workers above them.
    hints: CachePadded<AtomicU32>,
}

/// Facts that busy workers read without the lock, and check under it.
mod hints {
    /// Another worker should get tasks and could.
    pub(super) const STARVING: u32 = 1;
    /// More workers are active than should be.
    pub(super) const SURPLUS: u32 = 2;
    /// There is a batch for which no worker is idle.
    pub(super) const DELIVERY: u32 = 4;
    /// The first bit of the number of active workers.
    pub(super) const ACTIVE_SHIFT: u32 = 3;
}

impl<T> Gate<T> {
    pub(super) fn new() -> Self {
        let state = State {
            threads: 1,
            idle: 0,
            parked: 0,
            target: 1,
            starts_threads: true,
            leader: None,
            is_over: false,
            batches: VecDeque::new(),
            spares: VecDeque::new(),
            when_idle: VecDeque::new(),
            elsewhere: 0,
        };
        Self {
            state: Mutex::new(state),
            work: Condvar::new(),
            unparked: Condvar::new(),
            hints: CachePadded(AtomicU32::new(0)),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the hints after a change of `state`. Wakes a parked worker if one should go on. It calls this function in
    /// its turn, and so wakes the next one.
    pub(super) fn rebalance(&self, state: &State<T>) {
        let active = state.active();
        let hints = [
            (state.wanted() > 0, hints::STARVING),
            (active > state.target, hints::SURPLUS),
            (state.batches.len() > state.idle, hints::DELIVERY),
        ];
        let hints = hints.map(|(is_true, hint)| u32::from(is_true) * hint);
        let active_hint = (active as u32) << hints::ACTIVE_SHIFT;
        // Relaxed: hints publish nothing.
        let hints = hints.into_iter().sum::<u32>() | active_hint;
        self.hints.0.store(hints, Relaxed);
        if state.parked > 0 && active < state.target {
            self.unparked.notify_one();
        }
    }

    /// Wakes a worker without tasks, for a batch that was queued.
    ///
    /// Waking takes ten times as long as the change of the queues, so no other worker waits for it. With 64 workers in a
    /// directory of 100,000 others, waking under the lock takes 3.3 times as long (`tests::simulation`).
    pub(super) fn wake_one(&self, state: MutexGuard<'_, State<T>>) {
        drop(state);
        self.work.notify_one();
    }

    fn has(&self, hint: u32) -> bool {
        self.hints.0.load(Relaxed) & hint != 0
    }

    /// Returns `true` if another worker should get tasks and could.
    pub(super) fn is_starving(&self) -> bool {
        self.has(hints::STARVING)
    }

    /// Returns how many workers are active, or were a moment ago.
    pub(super) fn active_workers(&self) -> usize {
        (self.hints.0.load(Relaxed) >> hints::ACTIVE_SHIFT) as usize
    }

    /// Returns `true` if more workers than the caller are active.
    pub(super) fn has_company(&self) -> bool {
        self.active_workers() > 1
    }

    /// Returns `true` if a worker should [`park`](Self::park).
    pub(super) fn has_surplus(&self) -> bool {
        self.has(hints::SURPLUS)
    }

    /// Returns `true` if a worker should [take a batch](Self::take_batch), although it has other tasks.
    pub(super) fn has_delivery(&self) -> bool {
        self.has(hints::DELIVERY)
    }

    /// Sets how many workers should be active. The worker with the number `leader` does not park.
    pub(super) fn set_target(&self, target: usize, leader: usize) {
        let mut state = self.lock();
        if !state.is_over {
            state.target = target.max(1);
            state.leader = Some(leader);
            self.rebalance(&state);
        }
    }

    /// Lets every worker go on for good, because the scope ends or a worker has panicked. Idle workers end.
    pub(super) fn release_all(&self) {
        let mut state = self.lock();
        state.is_over = true;
        state.target = usize::MAX;
        state.starts_threads = false;
        self.rebalance(&state);
        self.work.notify_all();
    }

    /// Returns `true` once the scope ends or a worker has panicked.
    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Hands the first spare to a worker without tasks, if one should get some.
    pub(super) fn hand_over_spare(&self) -> Option<Recipient> {
        self.hand_over(|spares| spares.pop_front().into_iter().collect())
    }

    /// Hands the tasks that `take` returns, perhaps from the spares, to a worker without tasks, if one should get some.
    pub(super) fn hand_over(
        &self,
        take: impl FnOnce(&mut VecDeque<T>) -> VecDeque<T>,
    ) -> Option<Recipient> {
        let mut state = self.lock();
        if state.wanted() == 0 {
            return None;
        }
        let tasks = take(&mut state.spares);
        if tasks.is_empty() {
            return None;
        }
        let recipient = match state.free() {
            0 => state.add_thread(),
            _ => Recipient::Idle,
        };
        state.batches.push_back(tasks);
        self.rebalance(&state);
        self.wake_one(state);
        Some(recipient)
    }

    /// Stops counting a thread that was to be started, because the kernel has refused it. No other thread will be
    /// started.
    pub(super) fn refuse_thread(&self) {
        let mut state = self.lock();
        state.threads -= 1;
        state.idle -= 1;
        state.starts_threads = false;
        self.rebalance(&state);
    }

    /// Leaves the task that `take` returns as a spare, if other workers are active, and there are fewer spares than
    /// active workers. If a worker that waits for tasks could get the task instead, nothing is left.
    ///
    /// Copying 1,500 files in 256 directories to a server that answers after 1 ms: allowing twice as many spares takes
    /// 1.26 of the time (5 rounds; cell slow-1ms-copy-256). Removing six files of 86 to 152 MB in small directories on
    /// tmpfs: allowing a single spare takes 1.03 to 1.20 of the time, because a small directory may be that spare, and
    /// then a large file waits (21 rounds; cell remove-10-1gb).
    pub(super) fn leave_spare(&self, take: impl FnOnce() -> Option<T>) {
        let mut state = self.lock();
        let active = state.active();
        let others_run = active > 1 && state.parked == 0;
        let has_room = state.spares.len() < active && active <= state.target;
        if others_run && has_room && state.wanted() == 0 {
            state.spares.extend(take());
        }
    }

    /// Queues a task to run when no worker has another one.
    pub(super) fn defer_until_idle(&self, task: T) {
        self.lock().when_idle.push_back(task);
    }

    /// Counts the worker with this number as idle, and waits for tasks. Returns `None` if the scope ends. Returns
    /// `None` to the main thread, too, when the run has ended. If the wait is long and tasks are wanted, steals from
    /// other processes. The leader takes a spare instead of waiting, if there is one.
    pub(super) fn await_tasks(
        &self,
        worker: usize,
        thief: Option<&dyn Thief>,
    ) -> Option<VecDeque<T>> {
        let mut state = self.lock();
        // The others may be in slow operations, and then nothing else would be done.
        if state.leader == Some(worker)
            && !state.is_over
            && let Some(spare) = state.spares.pop_front()
        {
            return Some([spare].into());
        }
        state.idle += 1;
        state.leader.take_if(|leader| *leader == worker);
        if worker != MAIN && state.has_ended() {
            // The main thread waits among the others.
            self.work.notify_all();
        }
        self.wait(state, worker, thief)
    }

    /// Does the same for a new thread, which is counted as idle already.
    pub(super) fn await_first_tasks(
        &self,
        worker: usize,
        thief: Option<&dyn Thief>,
    ) -> Option<VecDeque<T>> {
        self.wait(self.lock(), worker, thief)
    }

    fn wait<'g>(
        &'g self,
        mut state: MutexGuard<'g, State<T>>,
        worker: usize,
        thief: Option<&dyn Thief>,
    ) -> Option<VecDeque<T>> {
        let mut patience = SHORTEST_WAIT;
        loop {
            if state.is_over {
                return None;
            }
            let has_ended = worker == MAIN && state.has_ended();
            let tasks = state.take_for_idle();
            if tasks.is_some() || has_ended {
                state.idle -= 1;
                self.rebalance(&state);
                return tasks;
            }
            self.rebalance(&state);
            let Some(thief) = thief else {
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let waited = self.work.wait_timeout(state, patience);
            let timeout;
            (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            if timeout.timed_out() {
                patience = LONGEST_WAIT.min(patience * 2);
                // Otherwise, the governor wants no more workers than are active.
                if state.wanted() > 0 {
                    drop(state);
                    thief.steal();
                    state = self.lock();
                }
            }
        }
    }

    /// Waits while more workers are active than should be, unless the worker with this number is the leader. Returns
    /// `true` if it has waited. Calls `begin` first then.
    #[cold]
    pub(super) fn park(&self, worker: usize, begin: impl FnOnce()) -> bool {
        let mut state = self.lock();
        let is_leader = *state.leader.get_or_insert(worker) == worker;
        if is_leader || state.active() <= state.target {
            return false;
        }
        begin();
        state.parked += 1;
        while state.active() >= state.target {
            self.rebalance(&state);
            state = self
                .unparked
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.parked -= 1;
        self.rebalance(&state);
        true
    }

    /// Takes a batch for which no worker is idle, for a worker that may have other tasks.
    #[cold]
    pub(super) fn take_batch(&self) -> Option<VecDeque<T>> {
        let mut state = self.lock();
        if state.batches.len() <= state.idle {
            return None;
        }
        let batch = state.batches.pop_front();
        self.rebalance(&state);
        batch
    }
}

/// Gets tasks from other processes that work on the same job.
pub(crate) trait Thief: Sync {
    /// Asks another process for tasks, because a worker of this one has waited for some. Returns at once.
    fn steal(&self);
}

#[cfg(all(test, fuc_loom))]
mod models;

#[cfg(test)]
mod tests;
