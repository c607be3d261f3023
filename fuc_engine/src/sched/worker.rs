//! A worker: its stack, and how tasks get from one to another.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};

use super::gate::{Gate, IdleOutcome, Recipient};
use super::governor::{FIRST, Governor, Limits, Sample};
use crate::sys;

/// A started thread needs room for the frames of one task, which does not recurse.
const STACK_BYTES: usize = 256 << 10;
/// How far into the stack a task to give away is looked for.
const REACH: usize = 64;
/// What takes so long is a thousand times as long as it costs to give a task away:
/// others had better not wait until it is over.
pub(crate) const SLOW_OPERATION: Duration = Duration::from_millis(1);
/// The governor rules over a single worker.
const NEVER: u64 = u64::MAX;

/// What workers do.
pub(crate) trait Job: Sync {
    type Task: Send;
    /// What each worker keeps from task to task.
    type Scratch;

    fn scratch(&self) -> Self::Scratch;

    /// Runs one task; it may [`push`](Worker::push) others.
    fn run(&self, task: Self::Task, worker: &mut Worker<'_, '_, Self>)
    where
        Self: Sized;

    /// Whether another worker could run the task as cheaply as this one.
    fn can_migrate(&self, task: &Self::Task) -> bool;

    /// Tasks at most that are given away at once.
    fn max_batch(&self) -> usize;

    /// Threads at most, the caller's included. Asked once, when there is a backlog.
    fn limits(&self) -> Limits;

    /// Threads that are known to be better than fewer, where there is a backlog:
    /// the number to begin with, if there can be so many. Asked at most once.
    fn initial_workers(&self) -> usize;
}

/// What is sent to an idle worker; `None`: there will be no more.
type Batch<J> = Option<VecDeque<<J as Job>::Task>>;

struct Shared<'j, J: Job> {
    job: &'j J,
    gate: Gate,
    tasks: (Sender<Batch<J>>, Receiver<Batch<J>>),
    /// To the main thread: a run has ended.
    done: (Sender<()>, Receiver<()>),
    /// What was told since the governor began to measure, as of [`Sample`].
    work: AtomicU64,
    busy_nanos: AtomicU64,
    longest_nanos: AtomicU64,
    /// When that was, in nanoseconds since `start`.
    measured_since: AtomicU64,
    /// The processor time that the process had used by then, in nanoseconds.
    cpu_before: AtomicU64,
    start: Instant,
    /// When the governor is due, in nanoseconds since `start`; `u64::MAX` if it rules nothing.
    due: AtomicU64,
    /// `None` until there is a backlog.
    governor: Mutex<Option<Governor>>,
}

/// One thread's share of a job.
pub(crate) struct Worker<'s, 'e, J: Job> {
    stack: VecDeque<J::Task>,
    pub(crate) scratch: J::Scratch,
    /// Counted but not yet told to the governor.
    work: u64,
    /// Since when, in nanoseconds since the start of the scope.
    since: u64,
    shared: &'e Shared<'e, J>,
    scope: &'s Scope<'s, 'e>,
}

/// Ends the other threads when the main one is through, even by a panic.
struct EndThreads<'a, 'j, J: Job>(&'a Shared<'j, J>);

impl<J: Job> Drop for EndThreads<'_, '_, J> {
    fn drop(&mut self) {
        self.0.gate.release_all();
        for _ in 1..self.0.gate.threads() {
            // The receiver lives as long as `Shared`.
            let _ = self.0.tasks.0.send(None);
        }
    }
}

/// Lets the main thread go on, to propagate the panic, if this one panics.
struct ReportPanic<'a, 'j, J: Job>(&'a Shared<'j, J>);

impl<J: Job> Drop for ReportPanic<'_, '_, J> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.gate.release_all();
            let _ = self.0.done.0.try_send(());
        }
    }
}

/// Gives `main` a worker that runs on the calling thread, and others as they
/// pay; returns when all threads have ended.
pub(crate) fn scope<J: Job, R>(job: &J, main: impl FnOnce(&mut Worker<'_, '_, J>) -> R) -> R {
    let shared = Shared {
        job,
        gate: Gate::new(),
        tasks: crossbeam_channel::unbounded(),
        done: crossbeam_channel::bounded(1),
        work: AtomicU64::new(0),
        busy_nanos: AtomicU64::new(0),
        longest_nanos: AtomicU64::new(0),
        measured_since: AtomicU64::new(0),
        cpu_before: AtomicU64::new(0),
        start: Instant::now(),
        due: AtomicU64::new(FIRST.as_nanos() as u64),
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
            work: 0,
            since: 0,
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

    /// Turns round the order of the `above` tasks queued last.
    pub(crate) fn reverse_top(&mut self, above: usize) {
        if above > 1 {
            let below = self.stack.len().saturating_sub(above);
            self.stack.make_contiguous()[below..].reverse();
        }
    }

    /// Tasks queued on this worker.
    pub(crate) fn backlog(&self) -> usize {
        self.stack.len()
    }

    /// Whether another worker would take a task now.
    pub(crate) fn has_idle_worker(&self) -> bool {
        self.shared.gate.is_starving()
    }

    /// Runs what is queued, and what that queues, until nothing is left on any worker.
    pub(crate) fn run_all(&mut self) {
        loop {
            self.run_stack();
            if self.shared.gate.rest() == IdleOutcome::AllDone {
                break;
            }
            crossbeam_channel::select! {
                recv(self.shared.tasks.1) -> tasks => self.stack = tasks.ok().flatten().unwrap_or_default(),
                recv(self.shared.done.1) -> _ => break,
            }
        }
        self.shared.gate.wake_main();
    }

    fn serve(mut self) {
        let _panic = ReportPanic(self.shared);
        while let Ok(Some(tasks)) = self.shared.tasks.1.recv() {
            self.stack = tasks;
            self.run_stack();
            if self.shared.gate.rest() == IdleOutcome::AllDone {
                // There is room: the main thread takes it before another run begins.
                let _ = self.shared.done.0.try_send(());
            }
        }
    }

    fn run_stack(&mut self) {
        self.start_sample();
        while let Some(task) = self.stack.pop_back() {
            self.shared.job.run(task, self);
            let has_more = !self.stack.is_empty();
            let time = self.record(has_more);
            if has_more {
                self.adapt(1, time);
            }
        }
    }

    /// To be called by a long task between its parts: other workers may be
    /// fed, or this one may have to wait. Returns how long the part took; zero
    /// where there will be no other worker.
    pub(crate) fn checkpoint(&mut self) -> Duration {
        // The rest of the task may be worth another worker.
        let time = self.record(true);
        self.adapt(0, time);
        time
    }

    /// Counts work for the governor: one for each entry, more for large ones.
    pub(crate) fn count(&mut self, work: u64) {
        self.work += work;
    }

    fn now(&self) -> u64 {
        self.shared.start.elapsed().as_nanos() as u64
    }

    /// What was done, or waited for, until now is not told.
    fn start_sample(&mut self) {
        if self.shared.due.load(Ordering::Relaxed) != NEVER {
            self.work = 0;
            self.since = self.now();
        }
    }

    /// Tells the governor of the work since the last time, and steps it if it
    /// is due. It does not begin before there is a backlog. Returns how long
    /// the work took; zero where nobody wants to know.
    fn record(&mut self, has_backlog: bool) -> Duration {
        // All of this is Relaxed: statistics, of which a little may be lost.
        let shared = self.shared;
        let due = shared.due.load(Ordering::Relaxed);
        if due == NEVER {
            return Duration::ZERO;
        }
        let now = self.now();
        let time = now - self.since;
        // Of what began before the measurement did, it gets its share.
        let began = shared
            .measured_since
            .load(Ordering::Relaxed)
            .clamp(self.since, now);
        let (within, work) = if began > self.since {
            let within = now - began;
            (
                within,
                (self.work as f64 * within as f64 / time as f64) as u64,
            )
        } else {
            (time, self.work)
        };
        shared.work.fetch_add(work, Ordering::Relaxed);
        shared.busy_nanos.fetch_add(within, Ordering::Relaxed);
        if time > shared.longest_nanos.load(Ordering::Relaxed) {
            shared.longest_nanos.fetch_max(time, Ordering::Relaxed);
        }
        self.work = 0;
        self.since = now;
        if now >= due {
            self.step_governor(now, has_backlog);
        }
        Duration::from_nanos(time)
    }

    #[cold]
    fn step_governor(&mut self, now: u64, has_backlog: bool) {
        let shared = self.shared;
        // Somebody else is at it already: that is as good.
        let Ok(mut governor) = shared.governor.try_lock() else {
            return;
        };
        let was_stepped = now < shared.due.load(Ordering::Relaxed);
        if was_stepped || governor.is_none() && !has_backlog {
            return;
        }
        let job = shared.job;
        let governor = governor.get_or_insert_with(|| {
            let limits = job.limits();
            let good = if limits.waiting > 1 {
                job.initial_workers()
            } else {
                1
            };
            Governor::new(limits, good)
        });
        if governor.due().is_none() {
            shared.due.store(NEVER, Ordering::Relaxed);
            return;
        }
        let cpu = sys::processor_time();
        let sample = Sample {
            work: shared.work.load(Ordering::Relaxed),
            busy: Duration::from_nanos(shared.busy_nanos.load(Ordering::Relaxed)),
            longest: Duration::from_nanos(shared.longest_nanos.load(Ordering::Relaxed)),
            cpu: cpu.saturating_sub(Duration::from_nanos(
                shared.cpu_before.load(Ordering::Relaxed),
            )),
        };
        if governor.step(Duration::from_nanos(now), sample) {
            shared.measured_since.store(now, Ordering::Relaxed);
            shared
                .cpu_before
                .store(cpu.as_nanos() as u64, Ordering::Relaxed);
            shared.work.store(0, Ordering::Relaxed);
            shared.busy_nanos.store(0, Ordering::Relaxed);
            shared.longest_nanos.store(0, Ordering::Relaxed);
            let most = shared.gate.set_target(governor.workers(), governor.most());
            governor.limit(most);
        }
        let due = governor.due().map_or(NEVER, |due| due.as_nanos() as u64);
        shared.due.store(due, Ordering::Relaxed);
    }

    /// Feeds the hungry, with all but `keep` tasks at most, and parks if there
    /// are too many workers. The last part of the work took `time`.
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
            self.start_sample();
        }
    }

    #[cold]
    fn give_work(&mut self, keep: usize) {
        let most = (self.stack.len() + 1 - keep).div_ceil(2);
        let most = most.min(self.shared.job.max_batch());
        let Some(max_batch) = self.oldest(most) else {
            return;
        };
        let Some(give_work) = self.shared.gate.permit_work() else {
            return;
        };
        if give_work == Recipient::NewThread && !self.start_thread() {
            self.shared.gate.thread_refused();
            return;
        }
        self.send(max_batch);
    }

    /// Leaves a task for whoever runs out of them while this worker is busy with another.
    #[cold]
    fn offer_spare(&mut self) {
        if let Some(one) = self.oldest(1)
            && self.shared.gate.reserve_spare()
        {
            self.send(one);
        }
    }

    /// The oldest task that may go, and what came after it, `most` in all.
    fn oldest(&self, most: usize) -> Option<Range<usize>> {
        let job = self.shared.job;
        let mut near = self.stack.iter().take(REACH);
        let first = near.position(|task| job.can_migrate(task))?;
        // That one goes in any case, though asked again it may say no.
        let others = self.stack.iter().skip(first + 1).take(most - 1);
        let count = 1 + others.take_while(|task| job.can_migrate(task)).count();
        Some(first..first + count)
    }

    fn send(&mut self, max_batch: Range<usize>) {
        let tasks = self.stack.drain(max_batch).collect();
        // The receiver lives as long as `Shared`.
        let _ = self.shared.tasks.0.send(Some(tasks));
    }

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
    use std::sync::atomic::AtomicUsize;

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
