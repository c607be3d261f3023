//! Other processes that work on the same job: they get tasks from the workers of this one, and give them some.
#![cfg(feature = "distribute")]

use std::collections::VecDeque;

use super::gate::Gate;
pub(crate) use super::gate::Thief;
use super::stack::Stack;
use super::worker::{Job, Worker};

/// The most tasks that another process gets at once.
const MOST_GIVEN: usize = 256;

/// The way by which tasks from other processes come to the workers.
pub(crate) struct Inlet<'e, T>(pub(super) &'e Gate<T>);

impl<T> Inlet<'_, T> {
    /// Hands tasks of another process to the workers. `expected` is the number of announced returns that this call fulfils:
    /// 0 for tasks that this process did not have before.
    pub(crate) fn put(&self, tasks: VecDeque<T>, expected: usize) {
        let mut state = self.0.lock();
        state.elsewhere -= expected;
        state.batches.push_back(tasks);
        self.0.rebalance(&state);
        self.0.wake_one(state);
    }

    /// Lets a run end when no task is left. Until then it goes on, because tasks may come from other processes.
    pub(crate) fn allow_end(&self) {
        let mut state = self.0.lock();
        state.elsewhere -= 1;
        if state.has_ended() {
            self.0.work.notify_all();
        }
    }
}

impl<T> Gate<T> {
    /// Counts how many times tasks will come back from another process. The caller is active, or no worker is yet.
    pub(super) fn expect_returns(&self, times: usize) {
        self.lock().elsewhere += times;
    }
}

impl<'s, 'e, J: Job> Worker<'s, 'e, J> {
    /// Calls `attend` on a thread of its own, with an inlet for tasks of other processes. It must
    /// [let the run end](Inlet::allow_end) once, and return after the run has ended or a worker has panicked.
    pub(crate) fn attend(&self, attend: impl FnOnce(&Inlet<'_, J::Task>) + Send + 's)
    where
        'e: 's,
    {
        let gate = &self.shared.gate;
        gate.expect_returns(1);
        self.scope.spawn(move || attend(&Inlet(gate)));
    }

    /// Counts how many times tasks will come back from another process, through [`Inlet::put`]. Called before it gets them.
    pub(crate) fn expect_returns(&self, times: usize) {
        self.shared.gate.expect_returns(times);
    }

    /// Returns `true` if a task that is queued here can be given to another process.
    pub(crate) fn has_one_to_give(&self, can_take: impl Fn(&J::Task) -> bool) -> bool {
        self.stack.tasks.iter().any(can_take)
    }

    /// Takes queued tasks to give them to another process, up to half of those that it can take. They begin with the oldest.
    pub(crate) fn take_to_give(&mut self, can_take: impl Fn(&J::Task) -> bool) -> Vec<J::Task> {
        let Stack { tasks, inherited } = &mut self.stack;
        let Some(first) = tasks.iter().position(&can_take) else {
            return Vec::new();
        };
        let half = (tasks.len() - first).div_ceil(2).min(MOST_GIVEN);
        let given = tasks.range(first..first + half);
        let end = first + given.take_while(|task| can_take(task)).count();
        *inherited -= end.min(*inherited).saturating_sub(first);
        tasks.drain(first..end).collect()
    }
}
