//! Tests of workers that run small jobs.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread::ThreadId;

/// A job whose tasks are numbers. The scratch counts the tasks that were slow for their work.
struct Numbers<S: Sync> {
    state: S,
    /// `None`: the limits must not be asked for.
    workers: Option<usize>,
    second: SecondWorker,
    max_batch: usize,
    run: fn(&S, u32, &mut Worker<'_, '_, Self>),
}

/// Makes a job for which a second worker pays.
fn numbers<S: Sync>(
    state: S,
    workers: usize,
    max_batch: usize,
    run: fn(&S, u32, &mut Worker<'_, '_, Numbers<S>>),
) -> Numbers<S> {
    Numbers {
        state,
        workers: Some(workers),
        second: SecondWorker::Pays,
        max_batch,
        run,
    }
}

impl<S: Sync> Numbers<S> {
    /// Queues a task, and runs it and those that it queues.
    fn run_from(&self, task: u32) {
        scope(self, |worker| {
            worker.push(task, When::Next);
            worker.run_all();
        });
    }
}

impl<S: Sync> Job for Numbers<S> {
    type Task = u32;
    type Scratch = usize;

    fn scratch(&self) -> usize {
        0
    }

    fn run_task(&self, task: u32, worker: &mut Worker<'_, '_, Self>) {
        (self.run)(&self.state, task, worker);
    }

    fn note_slow_task(&self, noted: &mut usize) {
        *noted += 1;
    }

    fn can_migrate(&self, _: &u32) -> bool {
        true
    }

    fn max_batch(&self) -> usize {
        self.max_batch
    }

    fn limits(&self) -> Limits {
        Limits::of(self.workers.expect("nothing is measured yet"))
    }

    fn second_worker(&self) -> SecondWorker {
        self.second
    }
}

/// Waits for a condition that another worker makes true.
fn wait_while<T>(state: &Mutex<T>, changed: &Condvar, condition: impl FnMut(&mut T) -> bool) {
    let limit = Duration::from_secs(60);
    let waited = changed.wait_timeout_while(state.lock().unwrap(), limit, condition);
    assert!(!waited.unwrap().1.timed_out(), "no other worker ran");
}

/// Each task of height n makes two of height n - 1.
fn double(leaves: &AtomicUsize, height: u32, worker: &mut Worker<'_, '_, Numbers<AtomicUsize>>) {
    worker.count_work(1);
    if height == 0 {
        leaves.fetch_add(1, Ordering::Relaxed);
    } else {
        worker.push(height - 1, When::Next);
        worker.push(height - 1, When::Next);
    }
}

#[test]
fn every_task_of_several_runs_is_run_once() {
    let job = numbers(AtomicUsize::new(0), 4, 8, double);
    scope(&job, |worker| {
        worker.run_all();
        for run in 1..=3 {
            worker.push(15, When::Next);
            worker.run_all();
            assert_eq!(job.state.load(Ordering::Relaxed), run << 15);
        }
    });
}

/// Records in which order tasks run. Task 0 queues tasks 7 and 8 for when all others are done.
fn record_order(
    order: &Mutex<Vec<u32>>,
    task: u32,
    worker: &mut Worker<'_, '_, Numbers<Mutex<Vec<u32>>>>,
) {
    order.lock().unwrap().push(task);
    if task == 0 {
        worker.push(7, When::Idle);
        worker.push(8, When::Idle);
        worker.push(1, When::Next);
    }
}

#[test]
fn a_task_for_when_all_are_idle_runs_last() {
    // If other processes delay the first task, a second worker would get one of the next two.
    let job = numbers(Mutex::default(), 1, 1, record_order);
    scope(&job, |worker| {
        worker.push(2, When::Next);
        worker.push(0, When::Next);
        worker.run_all();
    });
    assert_eq!(job.state.into_inner().unwrap(), [0, 1, 2, 7, 8]);
}

/// The number of parts of the other tasks, and whether one has run.
struct Slow {
    parts: usize,
    has_run: (Mutex<bool>, Condvar),
}

/// Task 0 queues others, and expects to be slow. Then it waits until another worker has run one of them,
/// which has many parts.
fn wait_for_another(slow: &Slow, task: u32, worker: &mut Worker<'_, '_, Numbers<Slow>>) {
    let (has_run, changed) = &slow.has_run;
    if task > 0 {
        for _ in 0..slow.parts {
            thread::sleep(Duration::from_millis(1));
            worker.count_work(1);
            worker.checkpoint();
        }
        *has_run.lock().unwrap() = true;
        changed.notify_all();
        return;
    }
    worker.push(1, When::Next);
    worker.push(2, When::Next);
    assert!(worker.is_at_start());
    worker.expect_slow_work();
    assert!(!worker.is_at_start());
    wait_while(has_run, changed, |has_run| !*has_run);
}

#[test]
fn another_worker_runs_before_slow_work_is_done() {
    // With many parts, the governor tries a single worker in the meantime, but the one that makes progress does not park.
    for parts in [0, 300] {
        let slow = Slow {
            parts,
            has_run: Default::default(),
        };
        numbers(slow, 2, 8, wait_for_another).run_from(0);
    }
}

#[test]
fn slow_work_changes_nothing_unless_a_second_worker_pays() {
    for second in [SecondWorker::Unknown, SecondWorker::SeldomPays] {
        let job = Numbers {
            state: (),
            workers: None,
            second,
            max_batch: 8,
            run: |(), _, worker| {
                worker.push(0, When::Next);
                worker.expect_slow_work();
                assert!(worker.is_at_start());
                while worker.stack.begin_newest().is_some() {}
            },
        };
        job.run_from(0);
    }
}

/// Returns `true` if there is a governor after so many fast tasks. It is due from the beginning.
fn has_governor_after(tasks: u64) -> bool {
    let job = numbers((), 1, 1, |(), _, worker| worker.count_work(1));
    scope(&job, |worker| {
        worker.shared.meter.set_due(Some(Duration::ZERO));
        (0..tasks).for_each(|_| worker.push(0, When::Next));
        worker.run_all();
        worker.shared.governor.lock().unwrap().is_some()
    })
}

#[test]
fn the_limits_are_not_asked_for_in_a_small_run() {
    // Beside other processes, even one of these tasks may be slow.
    assert!((0..100).any(|_| !has_governor_after(10)));
    assert!(has_governor_after(SMALL_RUN + 2));
}

/// Another worker seems to be in zone 0, until task 199 runs. Even tasks are in this zone, and odd ones in zone 1.
fn record_zones(
    order: &Mutex<Vec<u32>>,
    task: u32,
    worker: &mut Worker<'_, '_, Numbers<Mutex<Vec<u32>>>>,
) {
    let zones = Zones::NONE.plus(u64::from(task % 2));
    if worker.should_put_off(zones) {
        return worker.push(task, When::PutOff);
    }
    worker.enter_zones(zones);
    assert!(worker.shared.occupancy.is_occupied(zones));
    if task == 199 {
        worker.shared.occupancy.count_out(Zones::NONE.plus(0));
    }
    order.lock().unwrap().push(task);
    worker.leave_zones();
}

#[test]
fn a_task_is_put_off_behind_a_few_others_only() {
    let job = numbers(Mutex::default(), 1, 1, record_zones);
    scope(&job, |worker| {
        worker.shared.occupancy.count_in(Zones::NONE.plus(0));
        let odd = (0..100).map(|task| 2 * task + 1);
        odd.chain([0])
            .for_each(|task| worker.push(task, When::Next));
        worker.run_all();
    });
    let order = job.state.into_inner().unwrap();
    assert_eq!(order.iter().position(|&task| task == 0), Some(MOST_PUT_OFF));
    assert_eq!(order.len(), 101);
}

/// Calls `check` with a worker that should park, because one more than the target is active.
fn with_surplus(check: impl FnOnce(&mut Worker<'_, '_, Numbers<()>>)) {
    let job = numbers((), 1, 1, |(), _, _| {});
    scope(&job, |worker| {
        let gate = &worker.shared.gate;
        gate.set_target(2, MAIN);
        let other = 1;
        assert_eq!(gate.hand_over(|_| [0].into()), Some(Recipient::New(other)));
        assert!(gate.await_first_tasks(other, None).is_some());
        // The leader would not park.
        gate.set_target(1, other);
        check(worker);
    });
}

#[test]
fn a_parked_worker_is_in_no_zone() {
    with_surplus(|worker| {
        let (gate, occupancy) = (&worker.shared.gate, &worker.shared.occupancy);
        let zones = Zones::NONE.plus(0);
        thread::scope(|threads| {
            let other = threads.spawn(|| {
                while gate.has_surplus() {
                    thread::yield_now();
                }
                let is_occupied = occupancy.is_occupied(zones);
                gate.release_all();
                is_occupied
            });
            worker.enter_zones(zones);
            worker.park();
            assert!(!other.join().unwrap());
            assert!(occupancy.is_occupied(zones), "the worker goes on there");
        });
        worker.leave_zones();
    });
}

#[test]
fn a_worker_for_which_others_wait_does_not_park() {
    with_surplus(|worker| {
        let gate = &worker.shared.gate;
        let has_gone_on = AtomicBool::new(false);
        thread::scope(|threads| {
            threads.spawn(|| {
                while gate.has_surplus() && !has_gone_on.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                gate.release_all();
            });
            worker.is_awaited = true;
            worker.adapt(0);
            let has_surplus = gate.has_surplus();
            has_gone_on.store(true, Ordering::Relaxed);
            assert!(has_surplus, "the worker has parked");
        });
    });
}

/// The tasks that the two workers have run, in order.
struct Paused {
    caller: ThreadId,
    ran: Mutex<[Vec<u32>; 2]>,
    changed: Condvar,
}

impl Paused {
    fn record(&self, task: u32) {
        let is_other = thread::current().id() != self.caller;
        self.ran.lock().unwrap()[usize::from(is_other)].push(task);
        self.changed.notify_all();
    }

    fn wait_while(&self, condition: impl Fn(&[Vec<u32>; 2]) -> bool) {
        wait_while(&self.ran, &self.changed, |ran| condition(ran));
    }
}

/// Tasks 0 to 2 are older than task 3, which queues tasks 11 to 16, gives some away, and then queues task 10 to run
/// after those. The other worker gets task 0, and waits in it until the caller has run the rest.
fn pause(paused: &Paused, task: u32, worker: &mut Worker<'_, '_, Numbers<Paused>>) {
    paused.record(task);
    match task {
        3 => {
            (11..=16).for_each(|task| worker.push(task, When::Next));
            worker.checkpoint();
            paused.wait_while(|[_, other]| other.len() < 3);
            worker.push(10, When::AfterOwn);
        }
        0 => paused.wait_while(|[caller, _]| caller.len() < 8),
        _ => {}
    }
}

#[test]
fn a_task_queued_under_those_of_the_running_one_stays_above_older_ones_if_some_are_given_away() {
    let state = Paused {
        caller: thread::current().id(),
        ran: Mutex::default(),
        changed: Condvar::new(),
    };
    let job = numbers(state, 2, 3, pause);
    scope(&job, |worker| {
        // If other processes delay the run, the governor would try a single worker.
        let _governor = worker.shared.governor.lock().unwrap();
        worker.shared.gate.set_target(2, MAIN);
        (0..=3).for_each(|task| worker.push(task, When::Next));
        worker.run_all();
    });
    let [caller, other] = job.state.ran.into_inner().unwrap();
    assert_eq!(other, [16, 14, 0]);
    // The two oldest became spares, because operations may be slow at the beginning.
    assert_eq!(caller, [3, 15, 13, 12, 11, 10, 1, 2]);
}

#[test]
fn a_task_that_is_slow_for_its_work_is_noted() {
    let is_noted = |millis| {
        let job = Numbers {
            second: SecondWorker::SeldomPays,
            ..numbers((), 2, 1, |(), millis, worker| {
                thread::sleep(Duration::from_millis(millis.into()));
                worker.count_work(1);
            })
        };
        scope(&job, |worker| {
            worker.push(millis, When::Next);
            worker.run_all();
            worker.scratch == 1
        })
    };
    assert!(is_noted(1));
    // Beside other processes, even this task may be slow.
    assert!((0..100).any(|_| !is_noted(0)));
}

struct Panic {
    caller: ThreadId,
    has_begun: Mutex<bool>,
    begins: Condvar,
}

/// Panics in a task 1 on a started thread, while task 0 runs.
fn panic_elsewhere(panic: &Panic, task: u32, worker: &mut Worker<'_, '_, Numbers<Panic>>) {
    match task {
        0 => {
            worker.push(1, When::Next);
            worker.push(1, When::Next);
            worker.expect_slow_work();
            wait_while(&panic.has_begun, &panic.begins, |has_begun| !*has_begun);
        }
        1 if thread::current().id() != panic.caller => {
            *panic.has_begun.lock().unwrap() = true;
            panic.begins.notify_all();
            panic!("as it should");
        }
        _ => {}
    }
}

#[test]
fn a_panic_on_another_thread_ends_all_runs() {
    let (send, ended) = crossbeam_channel::bounded(1);
    // Do not use a scoped thread, so that this test ends even if the scope does not.
    thread::spawn(move || {
        let state = Panic {
            caller: thread::current().id(),
            has_begun: Mutex::default(),
            begins: Condvar::new(),
        };
        let job = numbers(state, 2, 1, panic_elsewhere);
        let runs = || {
            scope(&job, |worker| {
                for task in [0, 2] {
                    worker.push(task, When::Next);
                    worker.run_all();
                }
            });
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(runs));
        send.send(result.is_err()).unwrap();
    });
    assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(true));
}
