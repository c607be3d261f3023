//! A worker: its stack, and how tasks get from one to another.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};

use super::gate::{Gate, IdleOutcome, Recipient};
use super::governor::{FIRST, Governor, Limits};
use super::meter::{Lap, Meter};

/// Stack of a started thread. It holds the frames of one task, and tasks do not recurse.
const STACK_BYTES: usize = 256 << 10;
/// How many of the oldest tasks are searched for one to give away.
const REACH: usize = 64;
/// An operation this slow costs about 1,000 hand-offs, so hand off queued work before starting another one.
pub(crate) const SLOW_OPERATION: Duration = Duration::from_millis(1);

/// What workers do.
pub(crate) trait Job: Sync {
    type Task: Send;
    /// What each worker keeps from task to task.
    type Scratch;

    fn scratch(&self) -> Self::Scratch;

    /// Runs one task, which may [`push`](Worker::push) others.
    fn run(&self, task: Self::Task, worker: &mut Worker<'_, '_, Self>)
    where
        Self: Sized;

    /// Returns `true` if another worker could run the task as cheaply as this one.
    fn can_migrate(&self, task: &Self::Task) -> bool;

    /// Returns the most tasks that are given away at once.
    fn max_batch(&self) -> usize;

    /// Returns how many threads there may be, the caller's included. Called once, when there
    /// is a backlog.
    fn limits(&self) -> Limits;

    /// Returns the number of workers to begin with when there is a backlog: one that is known to
    /// be faster than fewer. Called at most once, and only if more than one is allowed.
    fn initial_workers(&self) -> usize;
}

/// Sent to a worker that has run out of tasks.
enum Message<T> {
    Tasks(VecDeque<T>),
    /// There will be no more tasks: end the thread.
    End,
}

/// Both ends, which live as long as [`Shared`]: sending and receiving cannot fail.
struct Channel<T> {
    sender: Sender<T>,
    receiver: Receiver<T>,
}

impl<T> From<(Sender<T>, Receiver<T>)> for Channel<T> {
    fn from((sender, receiver): (Sender<T>, Receiver<T>)) -> Self {
        Self { sender, receiver }
    }
}

struct Shared<'j, J: Job> {
    job: &'j J,
    gate: Gate,
    /// Carries tasks to workers that have none.
    messages: Channel<Message<J::Task>>,
    /// Tells the main thread that a run has ended on another worker.
    done: Channel<()>,
    /// Tasks that run when no other task is queued or running.
    when_idle: Mutex<Vec<J::Task>>,
    meter: Meter,
    /// `None` until there is a backlog.
    governor: Mutex<Option<Governor>>,
}

impl<J: Job> Shared<'_, J> {
    fn when_idle(&self) -> MutexGuard<'_, Vec<J::Task>> {
        self.when_idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// One thread's share of a job.
pub(crate) struct Worker<'s, 'e, J: Job> {
    stack: VecDeque<J::Task>,
    pub(crate) scratch: J::Scratch,
    lap: Lap,
    shared: &'e Shared<'e, J>,
    scope: &'s Scope<'s, 'e>,
}

/// Ends the other threads when the main thread leaves the scope, even by a panic.
struct EndThreads<'a, 'j, J: Job>(&'a Shared<'j, J>);

impl<J: Job> Drop for EndThreads<'_, '_, J> {
    fn drop(&mut self) {
        self.0.gate.release_all();
        for _ in 1..self.0.gate.threads() {
            let _ = self.0.messages.sender.send(Message::End);
        }
    }
}

/// Lets the main thread go on, to propagate the panic, if this one panics.
struct ReportPanic<'a, 'j, J: Job>(&'a Shared<'j, J>);

impl<J: Job> Drop for ReportPanic<'_, '_, J> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.gate.release_all();
            let _ = self.0.done.sender.try_send(());
        }
    }
}

/// Calls `main` with a worker that runs on the calling thread. Others are started if they make
/// the job faster. Returns when all threads have ended.
pub(crate) fn scope<J: Job, R>(job: &J, main: impl FnOnce(&mut Worker<'_, '_, J>) -> R) -> R {
    let shared = Shared {
        job,
        gate: Gate::new(),
        messages: crossbeam_channel::unbounded().into(),
        done: crossbeam_channel::bounded(1).into(),
        when_idle: Mutex::default(),
        meter: Meter::new(FIRST),
        governor: Mutex::new(None),
    };
    std::thread::scope(|scope| {
        let _end = EndThreads(&shared);
        main(&mut Worker::new(&shared, scope))
    })
}

impl<'s, 'e, J: Job> Worker<'s, 'e, J> {
    fn new(shared: &'e Shared<'e, J>, scope: &'s Scope<'s, 'e>) -> Self {
        Self {
            stack: VecDeque::new(),
            scratch: shared.job.scratch(),
            lap: Lap::new(),
            shared,
            scope,
        }
    }

    /// Queues a task; the one queued last runs first.
    pub(crate) fn push(&mut self, task: J::Task) {
        self.stack.push_back(task);
    }

    /// Queues a task to run after the `above` ones queued last.
    pub(crate) fn push_under(&mut self, above: usize, task: J::Task) {
        self.stack
            .insert(self.stack.len().saturating_sub(above), task);
    }

    /// Reverses the order of the `above` tasks queued last.
    pub(crate) fn reverse_top(&mut self, above: usize) {
        if above > 1 {
            let below = self.stack.len().saturating_sub(above);
            self.stack.make_contiguous()[below..].reverse();
        }
    }

    /// Returns how many tasks are queued on this worker.
    pub(crate) fn backlog(&self) -> usize {
        self.stack.len()
    }

    /// Returns `true` if another worker would take a task now.
    pub(crate) fn has_idle_worker(&self) -> bool {
        self.shared.gate.is_starving()
    }

    /// Queues a task to run when no other task is queued or running on any worker. Several
    /// such tasks run one after the other, the one queued last first.
    pub(crate) fn push_when_idle(&mut self, task: J::Task) {
        self.shared.when_idle().push(task);
    }

    /// Runs all queued tasks, and the tasks that these queue, until no worker has any left.
    pub(crate) fn run_all(&mut self) {
        self.run_until_idle();
        loop {
            // The guard must not live while the task runs.
            let task = self.shared.when_idle().pop();
            let Some(task) = task else { return };
            self.push(task);
            self.run_until_idle();
        }
    }

    fn run_until_idle(&mut self) {
        loop {
            self.run_stack();
            if self.shared.gate.go_idle() == IdleOutcome::AllDone {
                break;
            }
            crossbeam_channel::select! {
                recv(self.shared.messages.receiver) -> message => match message {
                    Ok(Message::Tasks(tasks)) => self.stack = tasks,
                    // The main thread itself sends the end, and later.
                    Ok(Message::End) | Err(_) => {}
                },
                recv(self.shared.done.receiver) -> _ => break,
            }
        }
        self.shared.gate.wake_main();
    }

    /// Runs what other workers give away, until the scope ends.
    fn serve(mut self) {
        let _panic = ReportPanic(self.shared);
        while let Ok(Message::Tasks(tasks)) = self.shared.messages.receiver.recv() {
            self.stack = tasks;
            self.run_stack();
            if self.shared.gate.go_idle() == IdleOutcome::AllDone {
                // There is room: the main thread receives it before it begins another run.
                let _ = self.shared.done.sender.try_send(());
            }
        }
    }

    fn run_stack(&mut self) {
        self.shared.meter.start_lap(&mut self.lap);
        while let Some(task) = self.stack.pop_back() {
            self.shared.job.run(task, self);
            let has_more = !self.stack.is_empty();
            let time = self.record(has_more);
            if has_more {
                self.adapt(1, time);
            }
        }
    }

    /// Hands out work, or waits if there are too many workers. A long task calls it between its
    /// parts. Returns how long the part took, or zero if no other worker is allowed.
    pub(crate) fn checkpoint(&mut self) -> Duration {
        // The rest of the task may be worth another worker.
        let time = self.record(true);
        self.adapt(0, time);
        time
    }

    /// Counts work for the governor: one for each entry, more for large ones.
    pub(crate) fn count(&mut self, work: u64) {
        self.lap.count(work);
    }

    /// Records the work since the last call, and steps the governor if it is due. The governor
    /// does not begin before there is a backlog. Returns how long the work took, or zero if
    /// nothing is measured.
    // Inlined, it takes registers from the loop over entries: 6 more instructions an entry.
    #[inline(never)]
    fn record(&mut self, has_backlog: bool) -> Duration {
        let Some(lap) = self.shared.meter.record(&mut self.lap) else {
            return Duration::ZERO;
        };
        if lap.is_due {
            self.step_governor(lap.ended_nanos, has_backlog);
        }
        lap.time
    }

    #[cold]
    fn step_governor(&self, now_nanos: u64, has_backlog: bool) {
        let Shared { gate, meter, .. } = self.shared;
        // If another worker is stepping it, this one need not.
        let Ok(mut governor) = self.shared.governor.try_lock() else {
            return;
        };
        let was_stepped = !meter.is_due(now_nanos);
        if was_stepped || governor.is_none() && !has_backlog {
            return;
        }
        let governor = governor.get_or_insert_with(|| self.appoint_governor());
        if governor.due().is_some() {
            let sample = meter.sample();
            if governor.step(Duration::from_nanos(now_nanos), sample) {
                meter.start_window(now_nanos, &sample);
                governor.limit(gate.set_target(governor.workers(), governor.most()));
            }
        }
        meter.set_due(governor.due());
    }

    fn appoint_governor(&self) -> Governor {
        let limits = self.shared.job.limits();
        let initial = if limits.waiting > 1 {
            self.shared.job.initial_workers()
        } else {
            1
        };
        Governor::new(limits, initial)
    }

    /// Gives all but `keep` tasks to an idle worker, if there is one, and parks this worker if
    /// too many are active. The last part of the work took `time`.
    fn adapt(&mut self, keep: usize, time: Duration) {
        if self.stack.len() > keep {
            if self.shared.gate.is_starving() {
                self.give_work(keep);
            } else if time >= SLOW_OPERATION {
                self.offer_spare();
            }
        }
        if self.shared.gate.has_surplus() {
            self.shared.gate.park();
            self.shared.meter.start_lap(&mut self.lap);
        }
    }

    /// Gives away half of the tasks that need not stay here.
    #[cold]
    fn give_work(&mut self, keep: usize) {
        let half = (self.stack.len() + 1 - keep).div_ceil(2);
        let Some(batch) = self.oldest(half.min(self.shared.job.max_batch())) else {
            return;
        };
        let Some(recipient) = self.shared.gate.permit_batch() else {
            return;
        };
        if recipient == Recipient::NewThread && !self.start_thread() {
            self.shared.gate.thread_refused();
            return;
        }
        self.send(batch);
    }

    /// Leaves one task for the next worker that runs out of tasks while this one is busy.
    #[cold]
    fn offer_spare(&mut self) {
        if let Some(batch) = self.oldest(1)
            && self.shared.gate.reserve_spare()
        {
            self.send(batch);
        }
    }

    /// Finds the oldest task that can migrate and those that follow it, `most` in all.
    fn oldest(&self, most: usize) -> Option<Range<usize>> {
        let job = self.shared.job;
        let mut near = self.stack.iter().take(REACH);
        let first = near.position(|task| job.can_migrate(task))?;
        // The first one goes in any case: asked again, the job might refuse it, and an empty
        // batch would reach a worker that was promised tasks.
        let others = self.stack.iter().skip(first + 1).take(most - 1);
        let count = 1 + others.take_while(|task| job.can_migrate(task)).count();
        Some(first..first + count)
    }

    fn send(&mut self, batch: Range<usize>) {
        let tasks = self.stack.drain(batch).collect();
        let _ = self.shared.messages.sender.send(Message::Tasks(tasks));
    }

    /// Returns `false` if the kernel refuses another thread.
    fn start_thread(&self) -> bool {
        let (shared, scope) = (self.shared, self.scope);
        std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, move || Worker::new(shared, scope).serve())
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Each task of height n makes two of height n - 1.
    struct Doubling {
        leaves: AtomicUsize,
    }

    impl Job for Doubling {
        type Task = u32;
        type Scratch = ();

        fn scratch(&self) {}

        fn run(&self, height: u32, worker: &mut Worker<'_, '_, Self>) {
            worker.count(1);
            if height == 0 {
                self.leaves.fetch_add(1, Ordering::Relaxed);
            } else {
                worker.push(height - 1);
                worker.push(height - 1);
            }
        }

        fn can_migrate(&self, _: &u32) -> bool {
            true
        }

        fn max_batch(&self) -> usize {
            8
        }

        fn limits(&self) -> Limits {
            Limits::of(4)
        }

        fn initial_workers(&self) -> usize {
            2
        }
    }

    /// Records in which order its tasks run. Task 0 queues task 9 for when all others are done.
    struct InOrder(Mutex<Vec<u32>>);

    impl Job for InOrder {
        type Task = u32;
        type Scratch = ();

        fn scratch(&self) {}

        fn run(&self, task: u32, worker: &mut Worker<'_, '_, Self>) {
            self.0.lock().unwrap().push(task);
            if task == 0 {
                worker.push_when_idle(9);
                worker.push(1);
            }
        }

        fn can_migrate(&self, _: &u32) -> bool {
            true
        }

        fn max_batch(&self) -> usize {
            1
        }

        fn limits(&self) -> Limits {
            Limits::of(2)
        }

        fn initial_workers(&self) -> usize {
            2
        }
    }

    #[test]
    fn a_task_for_when_all_are_idle_runs_last() {
        let job = InOrder(Mutex::default());
        scope(&job, |worker| {
            worker.push(2);
            worker.push(0);
            worker.run_all();
        });
        assert_eq!(job.0.into_inner().unwrap(), [0, 1, 2, 9]);
    }

    #[test]
    fn every_task_of_several_runs_is_run_once() {
        let job = Doubling {
            leaves: AtomicUsize::new(0),
        };
        scope(&job, |worker| {
            for run in 1..=3 {
                worker.push(18);
                worker.run_all();
                assert_eq!(job.leaves.load(Ordering::Relaxed), run << 18);
            }
        });
    }

    #[test]
    fn a_run_without_tasks_ends() {
        scope(
            &Doubling {
                leaves: AtomicUsize::new(0),
            },
            |worker| {
                worker.run_all();
            },
        );
    }
}
