//! Holds what all workers of a scope share: the gate, the channels, the meter and the governor. It knows no job.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crossbeam_channel::{Receiver, Sender};

use super::gate::{Gate, IdleOutcome};
use super::governor::{FIRST, Governor};
use super::meter::Meter;
use super::zones::Occupancy;

/// Sent to a worker that has run out of tasks.
pub(super) enum Message<T> {
    Tasks(VecDeque<T>),
    /// There will be no more tasks: end the thread.
    End,
}

/// Both ends, which live as long as [`Hub`]: sending and receiving cannot fail.
pub(super) struct Channel<T> {
    pub(super) sender: Sender<T>,
    pub(super) receiver: Receiver<T>,
}

impl<T> From<(Sender<T>, Receiver<T>)> for Channel<T> {
    fn from((sender, receiver): (Sender<T>, Receiver<T>)) -> Self {
        Self { sender, receiver }
    }
}

/// The state that all workers of a scope share, whose tasks are `T`.
pub(super) struct Hub<T> {
    pub(super) gate: Gate,
    /// Carries tasks to workers that have none.
    pub(super) messages: Channel<Message<T>>,
    /// Tells the main thread that a run has ended on another worker.
    pub(super) done: Channel<()>,
    /// Tasks for workers that run out of tasks, while the worker that has left them is busy. They are in the order in
    /// which they were left.
    spares: Mutex<VecDeque<T>>,
    /// Tasks that run when no other task is queued or running in this process.
    deferred: Mutex<VecDeque<T>>,
    /// Tasks that run when no other task is queued or running in any process.
    when_done: Mutex<VecDeque<T>>,
    pub(super) meter: Meter,
    pub(super) occupancy: Occupancy,
    /// `None` until there is a backlog.
    pub(super) governor: Mutex<Option<Governor>>,
    /// The thread that stepped the governor last, until it runs out of tasks. It does not park: the others
    /// may be in slow operations, and then none would make progress. Without a leader, the next worker
    /// that should park becomes the leader.
    leader: Mutex<Option<ThreadId>>,
}

impl<T> Hub<T> {
    pub(super) fn new() -> Self {
        Self {
            gate: Gate::new(),
            messages: crossbeam_channel::unbounded().into(),
            done: crossbeam_channel::bounded(1).into(),
            spares: Mutex::default(),
            deferred: Mutex::default(),
            when_done: Mutex::default(),
            meter: Meter::new(FIRST),
            occupancy: Occupancy::new(),
            governor: Mutex::new(None),
            leader: Mutex::default(),
        }
    }

    /// Lets the main thread go on, because a run has ended.
    pub(super) fn wake_main(&self) {
        // The channel has room, because the main thread receives each message before it begins another
        // run.
        let _ = self.done.sender.try_send(());
    }

    pub(super) fn spares(&self) -> MutexGuard<'_, VecDeque<T>> {
        locked(&self.spares)
    }

    pub(super) fn deferred(&self) -> MutexGuard<'_, VecDeque<T>> {
        locked(&self.deferred)
    }

    pub(super) fn when_done(&self) -> MutexGuard<'_, VecDeque<T>> {
        locked(&self.when_done)
    }

    pub(super) fn leader(&self) -> MutexGuard<'_, Option<ThreadId>> {
        locked(&self.leader)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Guard that ends the other threads when the main thread leaves the scope, even by a panic.
pub(super) struct EndThreads<'a, T>(pub(super) &'a Hub<T>);

impl<T> Drop for EndThreads<'_, T> {
    fn drop(&mut self) {
        self.0.gate.release_all();
        for _ in 1..self.0.gate.threads() {
            let _ = self.0.messages.sender.send(Message::End);
        }
    }
}

/// Guard that lets the main thread go on, to propagate the panic, if this thread panics.
pub(super) struct ReportPanic<'a, T>(pub(super) &'a Hub<T>);

impl<T> Drop for ReportPanic<'_, T> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.gate.release_all();
            let _ = self.0.done.sender.try_send(());
        }
    }
}

/// The way by which tasks from other processes come to the workers.
pub(crate) struct Inlet<'e, T>(pub(super) &'e Hub<T>);

impl<T> Inlet<'_, T> {
    /// Asks the workers for tasks that another process wants.
    pub(crate) fn request(&self) {
        self.0.gate.request();
    }

    /// Hands tasks of another process to the workers.
    pub(crate) fn put(&self, tasks: VecDeque<T>) {
        self.put_counted(tasks, 0);
    }

    /// Hands a task to the workers with which `given` tasks come back that were [given](super::Thieves::give).
    pub(crate) fn put_back(&self, task: T, given: usize) {
        self.put_counted(VecDeque::from([task]), given);
    }

    fn put_counted(&self, tasks: VecDeque<T>, back: usize) {
        self.0.gate.admit(back);
        let _ = self.0.messages.sender.send(Message::Tasks(tasks));
    }

    /// Lets a run end when no task is left. Until then it goes on, because tasks may come from other processes.
    pub(crate) fn close(&self) {
        if self.0.gate.expect_no_more(1) == IdleOutcome::AllDone {
            self.0.wake_main();
        }
    }
}
