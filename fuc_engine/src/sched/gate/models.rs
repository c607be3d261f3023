//! Models of a run: it ends once, when no task is left, and no worker waits forever.
//!
//! Each worker runs its tasks on the real gate, as `worker` does, and after each does what the setting says.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize as Exact;

use loom::sync::atomic::AtomicBool as Seen;
use loom::thread;

use super::*;
use crate::sched::others::Inlet;
use crate::sync::models::{Model, check};

/// With so many, a worker that has gone idle is given another task.
const TASKS: usize = 6;

/// An action of the workers after each task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setting {
    Give,
    /// The worker waits until another one has run the task that it has given.
    GiveAndWait,
    /// Tasks are slow, so a worker leaves spare tasks.
    LeaveSpares,
    /// The same, and then the governor wants a third worker.
    TargetRises,
    /// The same, but the kernel refuses the third thread.
    Refused,
    /// The governor wants a single worker.
    TargetFalls,
    /// The first worker with two tasks gives one to another process, from which it comes back.
    Stolen,
    /// Another process may give tasks until the end.
    Shared,
    /// The last task is deferred until no worker has another one.
    DeferredUntilIdle,
    /// Wrong: a worker gives a task to another process, and the gate does not expect it back.
    StolenUnexpectedly,
}

struct Run {
    gate: Gate<usize>,
    setting: Setting,
    /// Another process asks for a task. Loom does not know it.
    is_asked: std::sync::atomic::AtomicBool,
    /// Set by each task. Relaxed: only the gate publishes it to the main thread.
    done: [Seen; TASKS],
    /// Counts the tasks that have run. Loom does not know it, and so it is never old.
    tasks_run: Exact,
    /// Says that a task has run, if a worker may wait for one.
    has_run: (loom::sync::Mutex<()>, loom::sync::Condvar),
}

impl Run {
    fn run_stack(self: &Arc<Self>, mut stack: VecDeque<usize>, worker: usize) {
        while let Some(task) = stack.pop_back() {
            let tasks_run = self.tasks_run.fetch_add(1, Relaxed);
            let is_deferred = self.setting == Setting::DeferredUntilIdle && task == TASKS - 1;
            assert!(
                !is_deferred || tasks_run == task,
                "a deferred task runs too early"
            );
            self.done[task].store(true, Relaxed);
            if self.setting == Setting::GiveAndWait {
                let _guard = self.has_run.0.lock().unwrap();
                self.has_run.1.notify_all();
            }
            if self.gate.has_delivery() {
                stack.extend(self.gate.take_batch().unwrap_or_default());
            }
            if !stack.is_empty() {
                self.adapt(&mut stack, worker);
            }
        }
    }

    fn adapt(self: &Arc<Self>, stack: &mut VecDeque<usize>, worker: usize) {
        let gate = &self.gate;
        if stack.len() > 1 {
            if self.is_asked.swap(false, Relaxed) {
                self.give_to_thief(stack.pop_front());
                return;
            }
            if gate.is_starving() {
                let oldest = stack[0];
                let share = match self.setting {
                    // A worker with one task would not park.
                    Setting::TargetFalls => 2,
                    _ => 1,
                };
                self.start(gate.hand_over(|_| stack.drain(..share).collect()));
                if self.setting == Setting::GiveAndWait && !stack.contains(&oldest) {
                    self.wait_for(oldest);
                }
            } else if self.leaves_spares() {
                gate.leave_spare(|| stack.pop_front());
            }
        }
        match self.setting {
            Setting::TargetFalls => {
                gate.set_target(1, MAIN);
            }
            Setting::TargetRises | Setting::Refused => {
                gate.set_target(3, MAIN);
                while let Some(recipient) = gate.hand_over_spare() {
                    self.start(Some(recipient));
                }
            }
            _ => {}
        }
        if gate.has_surplus() {
            gate.park(worker, || ());
        }
    }

    fn leaves_spares(&self) -> bool {
        let without = [Setting::Give, Setting::GiveAndWait, Setting::TargetFalls];
        !without.contains(&self.setting)
    }

    /// Waits until another worker has run the task.
    fn wait_for(&self, task: usize) {
        let mut guard = self.has_run.0.lock().unwrap();
        while !self.done[task].load(Relaxed) {
            guard = self.has_run.1.wait(guard).unwrap();
        }
    }

    fn start(self: &Arc<Self>, recipient: Option<Recipient>) {
        match recipient {
            Some(Recipient::New(2)) if self.setting == Setting::Refused => {
                self.gate.refuse_thread();
            }
            Some(Recipient::New(number)) => {
                let run = Arc::clone(self);
                thread::spawn(move || run.serve(number));
            }
            Some(Recipient::Idle) | None => {}
        }
    }

    fn give_to_thief(self: &Arc<Self>, task: Option<usize>) {
        let expected = usize::from(self.setting != Setting::StolenUnexpectedly);
        self.gate.expect_returns(expected);
        let run = Arc::clone(self);
        thread::spawn(move || {
            let task = task.expect("BUG: there are two");
            Inlet(&run.gate).put([task].into(), expected);
        });
    }

    fn serve(self: &Arc<Self>, worker: usize) {
        let mut tasks = self.gate.await_first_tasks(worker, None);
        while let Some(stack) = tasks {
            self.run_stack(stack, worker);
            tasks = self.gate.await_tasks(worker, None);
        }
    }

    fn run_all(self: &Arc<Self>) {
        let last = TASKS - 1;
        let queued = match self.setting {
            Setting::DeferredUntilIdle => {
                self.gate.defer_until_idle(last);
                last
            }
            _ => TASKS,
        };
        if self.setting == Setting::Shared {
            self.gate.expect_returns(1);
            let run = Arc::clone(self);
            thread::spawn(move || Inlet(&run.gate).allow_end());
        }
        let mut tasks = Some((0..queued).collect());
        while let Some(stack) = tasks {
            self.run_stack(stack, MAIN);
            tasks = self.gate.await_tasks(MAIN, None);
        }
    }
}

fn run(workers: usize, setting: Setting) {
    let run = Arc::new(Run {
        gate: Gate::new(),
        setting,
        is_asked: matches!(setting, Setting::Stolen | Setting::StolenUnexpectedly).into(),
        done: Default::default(),
        tasks_run: Exact::new(0),
        has_run: Default::default(),
    });
    // The leader does not park, so it is none of the workers that do.
    run.gate.set_target(workers, MAIN);
    run.run_all();
    let tasks_run = run.tasks_run.load(Relaxed);
    assert_eq!(tasks_run, TASKS, "a run ends before its tasks");
    assert!(
        run.done.iter().all(|done| done.load(Relaxed)),
        "the main thread does not see what a task has done"
    );
    run.gate.release_all();
}

#[test]
fn a_run_ends_once_and_when_no_task_is_left() {
    check(
        "src/sched/gate.rs",
        &[
            Model::new("one worker is given tasks", 2, || run(2, Setting::Give)),
            Model::new("two workers are given tasks", 2, || run(3, Setting::Give)),
            Model::new("a worker waits for another one", 2, || {
                run(2, Setting::GiveAndWait);
            }),
            Model::new("a spare task is taken", 3, || run(2, Setting::LeaveSpares)),
            Model::new("a new worker takes a spare task", 2, || {
                run(2, Setting::TargetRises);
            }),
            Model::new("no new worker takes a spare task", 2, || {
                run(2, Setting::Refused);
            }),
            Model::new("another process gives a task back", 2, || {
                run(2, Setting::Stolen);
            }),
            Model::new("another process may give tasks", 3, || {
                run(1, Setting::Shared);
            }),
            Model::new("a parked worker goes on", 3, || {
                run(2, Setting::TargetFalls);
            }),
            Model::new("the last worker takes a deferred task", 2, || {
                run(2, Setting::DeferredUntilIdle);
            }),
        ],
    );
}

#[test]
fn a_run_that_does_not_expect_a_task_back_ends_early() {
    let model = Model::new("a given task is not expected back", 3, || {
        run(1, Setting::StolenUnexpectedly);
    });
    let failure = model.failure().expect(model.protocol);
    assert!(failure.contains("a run ends before its tasks"), "{failure}");
}
