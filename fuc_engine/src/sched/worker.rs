//! A worker: runs its tasks, and hands some of them to others.
//!
//! ```text
//!   push --> own stack --newest--> run --+-- after each task, and at each checkpoint of a long one:
//!              ^   |                     |
//!              |   | empty               +-- 1. takes a delivery              (only after a task)
//!              |   v                     +-- 2. records the interval, and steps the governor if it is due
//!              +-- waits in the gate     +-- 3. lets the job give tasks to another process
//!              |   for tasks             +-- 4. leaves the oldest task as a spare
//!              |                         +-- 5. hands a batch to a worker without tasks, or to a new one
//!              |                         +-- 6. parks
//!              +-------------------------+
//! ```
//!
//! A worker does each of these for one reason, and the measurement is at the constant or function that is named:
//!
//! | heuristic | a worker | because otherwise | measured at |
//! |---|---|---|---|
//! | small run | has no governor while little is done and little is known to be left | ten files would ask for limits | [`SMALL_RUN`] |
//! | slow work | lets a second worker in before a large file | that would wait for the first measurement | `SLOW_BYTES` |
//! | batch | hands over many tasks at once | the other one would be idle again soon | `MAX_BATCH` |
//! | spare | leaves its oldest task before a slow operation | a worker that goes idle during that would find nothing | [`Gate::leave_spare`] |
//! | fast parts | leaves no more spares after so many | each part would take the lock of the gate | [`FAST_PARTS`] |
//! | put-off | runs another task first if the zone is occupied | both workers would wait for each other | [`MOST_PUT_OFF`] |
//! | delivery | takes tasks that came unasked before its own | more would come than the job has | [`take_batch`](Worker::take_batch) |

use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread::{self, Scope};
use std::time::Duration;

use super::gate::{Gate, MAIN, Recipient, Thief};
use super::governor::{FIRST, Governor, Limits};
use super::meter::{Interval, Meter, Recorded};
use super::stack::Stack;
use super::zones::{Occupancy, Zones};
use crate::sys::{self, SecondWorker, Starter, ThreadUse, Usage};

/// Stack of a started thread, as the docs of [`Observer`](crate::Observer) promise. It holds
/// the frames of one task, and tasks do not recurse. Copying 100,000 empty files with 2 MiB takes
/// 1.00 of the time (cell copy-100k), so only the address space counts.
const STACK_BYTES: usize = 256 << 10;
/// An operation this slow costs about 1,000 hand-offs, so hand off queued work before starting
/// another one.
///
/// Removing ten files of 100 MB on tmpfs, two cores: with 20 ms it takes 1.67 of the time, since
/// the second worker gets files too late; with 0.05 ms 1.05 (9 rounds; cell remove-10-1gb).
const SLOW_OPERATION: Duration = Duration::from_millis(1);
/// After this many fast parts of tasks in a row, a worker no longer expects slow operations.
///
/// Removing six files of 86 to 152 MB in small directories on tmpfs: 1 takes 1.20 to 1.29 of the time. The small
/// directories between two large files are fast, so the worker would keep the second file (25 rounds; cell
/// remove-10-1gb).
const FAST_PARTS: u32 = 32;

/// Work from which a run is not small. The governor does not begin in a small run of fast operations.
///
/// Removing and copying ten empty files makes 64 and 79 system calls, and about twice as many if the governor begins, because
/// it asks for the limits and a thread is started (`strace -f -c`; the guard's cases `rmz-ten-files` and `cpz-ten-files`).
const SMALL_RUN: u64 = 32;

/// The most tasks that are put off one after the other. Each is queued below so many others.
///
/// Copying 50,000 files of 4 KB within an XFS of four groups, two cores, when a second worker was tried first: 4 takes 1.52
/// of the time, 64 1.00 (medians of 9 rounds). Cell: xfs-copy-data.
const MOST_PUT_OFF: usize = 16;

/// A kind of work that is divided into tasks.
pub(crate) trait Job: Sync {
    type Task: Send;
    /// State that each worker keeps from task to task.
    type Scratch;

    /// Makes the scratch of a new worker.
    fn scratch(&self) -> Self::Scratch;

    /// Runs one task, which may [`push`](Worker::push) others.
    fn run_task(&self, task: Self::Task, worker: &mut Worker<'_, '_, Self>)
    where
        Self: Sized;

    /// Called on a started thread before its first task. The result is dropped when the thread ends.
    fn begin_thread(&self, starter: Starter) -> ThreadUse {
        starter.begin_thread(None)
    }

    /// Called after a task in which the units of work were slow on average.
    fn note_slow_task(&self, _scratch: &mut Self::Scratch) {}

    /// Called each time a worker has run out of tasks.
    fn out_of_tasks(&self, _scratch: &mut Self::Scratch) {}

    /// Returns `true` if another worker could run the task as cheaply as this one.
    fn can_migrate(&self, task: &Self::Task) -> bool;

    /// Returns the most tasks that are given away at once, at least one.
    fn max_batch(&self) -> usize;

    /// Returns how many threads there may be, the caller's included. Called once, when there
    /// is a backlog.
    fn limits(&self) -> Limits;

    /// Returns what is known about a second worker. Called until there is a governor: when there is a backlog and more
    /// than one is allowed, and before slow work.
    fn second_worker(&self) -> SecondWorker;

    /// Returns the way to tasks of other processes that work on the same job, if there are any.
    fn thief(&self) -> Option<&dyn Thief> {
        None
    }

    /// Returns `true` if another process asks for tasks, and none that is queued on the worker can be given to it. The next
    /// checkpoint drops the request then, and the other process asks again.
    fn is_asked(_worker: &Worker<'_, '_, Self>) -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Called when a worker has tasks that it could give away. Gives some to another process that has asked for them.
    fn give(_worker: &mut Worker<'_, '_, Self>)
    where
        Self: Sized,
    {
    }
}

/// The time at which a queued task runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Before all others of its worker.
    Next,
    /// After the one queued last. No checkpoint may lie between the two.
    AfterNewest,
    /// After all that the running task has queued.
    AfterOwn,
    /// After the [`MOST_PUT_OFF`] ones queued last. The running task is queued again.
    PutOff,
    /// After all others of its worker. Another worker gets it at once if one is idle, or else when it runs out of
    /// tasks.
    Last,
    /// When no other task is queued or running on any worker of this process. Several such tasks run one after the
    /// other, in the order in which they were queued. They do not wait for tasks that other processes have, because
    /// those may wait for them.
    Idle,
}

/// The state that all workers of a scope share.
pub(super) struct Shared<T> {
    pub(super) gate: Gate<T>,
    meter: Meter,
    occupancy: Occupancy,
    /// The governor, and what the process had used when the window of the meter began. `None` until there is a backlog.
    governor: Mutex<Option<(Governor, Usage)>>,
}

/// Guard that ends all threads when the main thread leaves the scope, or any thread panics.
struct EndScope<'a, T>(&'a Gate<T>);

impl<T> Drop for EndScope<'_, T> {
    fn drop(&mut self) {
        self.0.release_all();
    }
}

/// One thread's share of a job.
pub(crate) struct Worker<'s, 'e, J: Job> {
    number: usize,
    pub(super) stack: Stack<J::Task>,
    /// Number of parts of tasks since the last one that took at least [`SLOW_OPERATION`], or since the beginning.
    fast_parts: u32,
    /// Number of tasks that were put off since this worker was in zones.
    put_off: usize,
    /// `true` if a run that has done little is not small, because many entries are known.
    expects_many: bool,
    /// The zones in which this worker is counted.
    zones: Zones,
    /// `true` while other workers may wait for a part of the running task. Then this worker does not wait for them.
    pub(crate) is_awaited: bool,
    pub(crate) scratch: J::Scratch,
    interval: Interval,
    pub(crate) job: &'e J,
    pub(super) shared: &'e Shared<J::Task>,
    pub(super) scope: &'s Scope<'s, 'e>,
}

/// Calls `main` with a worker that runs on the calling thread. Other workers are started if they
/// make the job faster. Returns when all threads have ended.
pub(crate) fn scope<J: Job, R>(job: &J, main: impl FnOnce(&mut Worker<'_, '_, J>) -> R) -> R {
    let shared = Shared {
        gate: Gate::new(),
        meter: Meter::new(FIRST),
        occupancy: Occupancy::new(),
        governor: Mutex::new(None),
    };
    thread::scope(|scope| {
        let _end = EndScope(&shared.gate);
        main(&mut Worker::new(MAIN, job, &shared, scope))
    })
}

impl<'s, 'e, J: Job> Worker<'s, 'e, J> {
    fn new(
        number: usize,
        job: &'e J,
        shared: &'e Shared<J::Task>,
        scope: &'s Scope<'s, 'e>,
    ) -> Self {
        Self {
            number,
            stack: Stack::new(),
            is_awaited: false,
            fast_parts: 0,
            put_off: 0,
            expects_many: false,
            zones: Zones::NONE,
            scratch: job.scratch(),
            interval: Interval::begun_at(0),
            job,
            shared,
            scope,
        }
    }

    /// Queues a task.
    #[inline]
    pub(crate) fn push(&mut self, task: J::Task, when: When) {
        match when {
            When::Next => self.stack.tasks.push_back(task),
            When::AfterNewest => self.stack.insert_below(1, task),
            When::AfterOwn => self.stack.insert_below_own(task),
            When::PutOff => {
                self.put_off += 1;
                self.stack.insert_below(MOST_PUT_OFF, task);
            }
            When::Last => {
                self.stack.insert_oldest(task);
                self.offer_oldest();
            }
            When::Idle => self.shared.gate.defer_until_idle(task),
        }
    }

    /// Returns `true` if the running task should be [put off](When::PutOff), because another worker is in one of its
    /// zones, and a queued task may be in others.
    pub(crate) fn should_put_off(&self, zones: Zones) -> bool {
        self.put_off < MOST_PUT_OFF.min(self.stack.tasks.len())
            && self.shared.occupancy.is_occupied(zones)
    }

    /// Counts this worker, which is in no zone, in `zones`.
    pub(crate) fn enter_zones(&mut self, zones: Zones) {
        self.put_off = 0;
        self.zones = zones;
        self.shared.occupancy.count_in(zones);
    }

    /// Counts this worker in no zone any more.
    #[inline]
    pub(crate) fn leave_zones(&mut self) {
        if self.zones != Zones::NONE {
            self.shared.occupancy.count_out(self.zones);
            self.zones = Zones::NONE;
        }
    }

    /// Returns `true` if this worker is counted in some zones.
    pub(crate) fn is_in_zones(&self) -> bool {
        self.zones != Zones::NONE
    }

    /// Returns how many tasks are queued on this worker.
    pub(crate) fn queued_tasks(&self) -> usize {
        self.stack.tasks.len()
    }

    /// Returns `true` if another worker would take a task now.
    pub(crate) fn has_idle_worker(&self) -> bool {
        self.shared.gate.is_starving()
    }

    /// Returns `true` if other workers run, would take a task now, or may soon be started.
    pub(crate) fn has_company(&self) -> bool {
        self.is_at_start() || self.has_idle_worker() || self.shared.gate.has_company()
    }

    /// Returns how many workers are active, or were a moment ago.
    pub(crate) fn active_workers(&self) -> usize {
        self.shared.gate.active_workers()
    }

    /// Runs all queued tasks, and the tasks that these queue, until no worker has any left, and no other process has one.
    /// Runs none if a worker has panicked.
    pub(crate) fn run_all(&mut self) {
        while !self.shared.gate.is_over() {
            self.run_stack();
            match self.shared.gate.await_tasks(self.number, self.job.thief()) {
                Some(tasks) => self.stack.tasks.extend(tasks),
                None => return,
            }
        }
    }

    /// Runs what other workers give away, until the scope ends.
    fn serve(mut self) {
        let (gate, number, thief) = (&self.shared.gate, self.number, self.job.thief());
        let _end = EndScope(gate);
        let mut tasks = gate.await_first_tasks(number, thief);
        while let Some(next) = tasks {
            self.stack.tasks.extend(next);
            self.run_stack();
            tasks = gate.await_tasks(number, thief);
        }
    }

    // Inlined into the loop around it, it takes 16 more instructions for each task. The guard's case
    // `cpz-directories` counts them.
    #[inline(never)]
    fn run_stack(&mut self) {
        self.shared.meter.start_interval(&mut self.interval);
        while let Some(task) = self.stack.begin_newest() {
            self.job.run_task(task, self);
            if self.shared.gate.has_delivery() {
                self.take_batch();
            }
            let has_more = !self.stack.tasks.is_empty();
            // Short tasks are recorded together, because each record writes to memory that all workers
            // share.
            let recorded = match has_more && self.shared.meter.continues(&self.interval) {
                true => Recorded::SHORT,
                false => self.record(has_more),
            };
            self.count_part(recorded.time);
            if recorded.is_slow {
                self.job.note_slow_task(&mut self.scratch);
            }
            if has_more {
                self.adapt(1);
            }
        }
        self.job.out_of_tasks(&mut self.scratch);
    }

    /// Takes a batch to run it before its own tasks. Otherwise, tasks that other processes give unasked could become as
    /// many as the job has.
    #[cold]
    #[inline(never)]
    fn take_batch(&mut self) {
        let batch = self.shared.gate.take_batch();
        self.stack.tasks.extend(batch.unwrap_or_default());
    }

    /// Hands out work, or waits if there are too many workers. A long task calls it between its
    /// parts. Returns how long the part took, or zero if no other worker is allowed.
    pub(crate) fn checkpoint(&mut self) -> Duration {
        // The rest of the task counts, because it may be worth another worker.
        let has_backlog = true;
        let Recorded { time, .. } = self.record(has_backlog);
        self.count_part(time);
        self.adapt(0);
        time
    }

    /// Returns `true` if this worker is the only one, and its speed has not been measured yet.
    pub(crate) fn is_at_start(&self) -> bool {
        self.shared.meter.is_at_start()
    }

    /// Lets other workers in without waiting for a measurement, because the next entry takes long.
    /// Does nothing after the first measurement, or unless a second worker [pays](SecondWorker::Pays): asking for the limits
    /// takes 0.1 ms, which may be longer than the work.
    pub(crate) fn expect_slow_work(&mut self) {
        if self.is_at_start() && self.job.second_worker() == SecondWorker::Pays {
            self.shared.meter.set_due(Some(Duration::ZERO));
            self.expect_many();
            self.checkpoint();
        }
    }

    /// Notes that the run is not small, however little it has done.
    pub(crate) fn expect_many(&mut self) {
        self.expects_many = true;
    }

    /// Counts work for the governor: one for each entry, more for large ones.
    pub(crate) fn count_work(&mut self, work: u64) {
        self.interval.count_work(work);
    }

    /// Records the work since the last call, and steps the governor if it is due. The governor does not begin before
    /// there is a backlog, and not in a [small](SMALL_RUN) run of fast operations. The interval is short if nothing is measured.
    // Inlined, it takes registers from the loop over entries: 6 more instructions an entry.
    #[inline(never)]
    fn record(&mut self, has_backlog: bool) -> Recorded {
        sys::close_orphans();
        let recorded = self.shared.meter.record(&mut self.interval);
        if self.shared.meter.is_due(recorded.ended_nanos) {
            let is_large = self.expects_many || self.shared.meter.has_recorded(SMALL_RUN);
            let may_begin = has_backlog && (is_large || recorded.time >= SLOW_OPERATION);
            self.step_governor(recorded.ended_nanos, may_begin);
        }
        recorded
    }

    #[cold]
    fn step_governor(&self, now_nanos: u64, may_begin: bool) {
        let Shared { gate, meter, .. } = self.shared;
        // Another worker is stepping the governor now, so this one need not.
        let Ok(mut guard) = self.shared.governor.try_lock() else {
            return;
        };
        let was_stepped = !meter.is_due(now_nanos);
        if was_stepped || guard.is_none() && !may_begin {
            return;
        }
        let appoint = || (self.appoint_governor(), Usage::default());
        let (governor, used_before) = guard.get_or_insert_with(appoint);
        if governor.due().is_some() {
            let used = sys::usage();
            let sample = meter.sample(used.since(*used_before));
            if governor.step(Duration::from_nanos(now_nanos), sample) {
                *used_before = used;
                meter.start_window(now_nanos);
                gate.set_target(governor.workers(), self.number);
            }
        }
        meter.set_due(governor.due());
        drop(guard);
        while let Some(recipient) = gate.hand_over_spare() {
            self.start_if_new(recipient);
        }
    }

    fn appoint_governor(&self) -> Governor {
        let limits = self.job.limits();
        let second = if limits.waiting > 1 {
            self.job.second_worker()
        } else {
            SecondWorker::SeldomPays
        };
        Governor::new(limits, second)
    }

    /// Counts a part of a task that took `time`.
    fn count_part(&mut self, time: Duration) {
        self.fast_parts = match time >= SLOW_OPERATION {
            true => 0,
            false => self.fast_parts.saturating_add(1),
        };
    }

    /// Gives tasks to an idle worker, if there is one, but keeps at least `keep` of them. If none is idle, and slow
    /// operations are expected, leaves the oldest task as a spare. Parks this worker if too many are active.
    #[inline(always)]
    fn adapt(&mut self, keep: usize) {
        if self.stack.tasks.len() > keep {
            J::give(self);
            let gate = &self.shared.gate;
            if self.fast_parts < FAST_PARTS && gate.has_company() && !gate.is_starving() {
                self.leave_spare();
            }
            if self.shared.gate.is_starving() {
                self.hand_over_share(keep);
            }
        }
        if self.shared.gate.has_surplus() && !self.is_awaited {
            self.park();
        }
    }

    /// Waits while more workers are active than should be, unless this one is the leader.
    #[cold]
    fn park(&mut self) {
        let Shared {
            gate, occupancy, ..
        } = self.shared;
        // Others must not keep out of zones in which nothing is done.
        if gate.park(self.number, || occupancy.count_out(self.zones)) {
            occupancy.count_in(self.zones);
            self.shared.meter.start_interval(&mut self.interval);
        }
    }

    /// Gives away [`max_batch`](Job::max_batch) tasks at once, but keeps the `keep` newest.
    #[cold]
    fn hand_over_share(&mut self, keep: usize) {
        let (job, most) = (self.job, self.job.max_batch());
        self.hand_over(|stack| stack.take_share(keep, most, |task| job.can_migrate(task)));
    }

    /// Hands the tasks that `take` takes to another worker, if one should get some.
    fn hand_over(&mut self, take: impl FnOnce(&mut Stack<J::Task>) -> VecDeque<J::Task>) {
        let stack = &mut self.stack;
        if let Some(recipient) = self.shared.gate.hand_over(|_| take(stack)) {
            self.start_if_new(recipient);
        }
    }

    /// Gives the oldest task to an idle worker, or else leaves it for the next worker that runs out of tasks.
    fn offer_oldest(&mut self) {
        if !self.has_idle_worker() {
            self.leave_spare();
        }
        if self.has_idle_worker() && self.can_give_oldest() {
            self.hand_over(|stack| stack.pop_oldest().into_iter().collect());
        }
    }

    /// Leaves the oldest task for the next worker that runs out of tasks while this one is busy.
    #[cold]
    fn leave_spare(&mut self) {
        if self.can_give_oldest() {
            self.shared.gate.leave_spare(|| self.stack.pop_oldest());
        }
    }

    fn can_give_oldest(&self) -> bool {
        let oldest = self.stack.tasks.front();
        oldest.is_some_and(|task| self.job.can_migrate(task))
    }

    /// Starts the thread of a recipient that has none.
    fn start_if_new(&self, recipient: Recipient) {
        let Recipient::New(number) = recipient else {
            return;
        };
        if number == MAIN + 1 {
            sys::prepare_for_threads();
        }
        let (job, shared, scope) = (self.job, self.shared, self.scope);
        let starter = Starter::of_this_thread();
        let is_left = starter.is_left();
        let serve = move || {
            let _thread = job.begin_thread(starter);
            Worker::new(number, job, shared, scope).serve();
        };
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        let is_started = thread.spawn_scoped(scope, serve).is_ok();
        if !is_started {
            shared.gate.refuse_thread();
        } else if is_left {
            thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests;
