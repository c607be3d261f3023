//! The tasks of one worker, which runs the newest first. Others get its oldest, or every other one of its newest.

use std::collections::VecDeque;

/// Its methods keep the number of inherited tasks right. All else is asked of the tasks themselves.
pub(super) struct Stack<T> {
    /// The oldest task is the first.
    pub(super) tasks: VecDeque<T>,
    /// Number of tasks that were there when the running task began. They are the oldest.
    pub(super) inherited: usize,
}

impl<T> Stack<T> {
    pub(super) fn new() -> Self {
        Self {
            tasks: VecDeque::new(),
            inherited: 0,
        }
    }

    /// Takes the newest task to run it. All others are inherited then.
    #[inline]
    pub(super) fn begin_newest(&mut self) -> Option<T> {
        let task = self.tasks.pop_back()?;
        self.inherited = self.tasks.len();
        Some(task)
    }

    /// Inserts a task below the `above` newest ones.
    pub(super) fn insert_below(&mut self, above: usize, task: T) {
        let position = self.tasks.len().saturating_sub(above);
        self.inherited += usize::from(position < self.inherited);
        self.tasks.insert(position, task);
    }

    /// Inserts a task below those that the running one has pushed.
    pub(super) fn insert_below_own(&mut self, task: T) {
        self.tasks.insert(self.inherited, task);
    }

    pub(super) fn insert_oldest(&mut self, task: T) {
        self.inherited += 1;
        self.tasks.push_front(task);
    }

    pub(super) fn pop_oldest(&mut self) -> Option<T> {
        self.inherited = self.inherited.saturating_sub(1);
        self.tasks.pop_front()
    }

    /// Takes at most `most` tasks for another worker, but keeps the `keep` newest: every other one of the newest, and the
    /// oldest.
    ///
    /// So neighbouring tasks run at the same time. Removing 50,000 empty files in 500 directories side by side from XFS
    /// with two workers, two cores: giving the oldest half takes 1.9 times as long (7 rounds). The oldest task may be a
    /// big one.
    pub(super) fn take_share(
        &mut self,
        keep: usize,
        most: usize,
        can_migrate: impl Fn(&T) -> bool,
    ) -> VecDeque<T> {
        let inherited = self.inherited;
        let end = self.tasks.len() - keep;
        let begin = end.saturating_sub(2 * (most - 1));
        let window = self.tasks.split_off(begin);
        let mut given = VecDeque::with_capacity(1 + window.len().div_ceil(2));
        if self.tasks.front().is_some_and(&can_migrate) {
            given.extend(self.pop_oldest());
        }
        for (position, task) in (begin..).zip(window) {
            let is_alternate = position < end && (end - position) % 2 == 1;
            if is_alternate && can_migrate(&task) {
                given.push_back(task);
                self.inherited -= usize::from(position < inherited);
            } else {
                self.tasks.push_back(task);
            }
        }
        given
    }
}
