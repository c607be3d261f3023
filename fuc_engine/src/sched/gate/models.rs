//! Models of a run: it ends once, when no task is left, and no worker waits forever.
//!
//! The workers here use the gate as those of `worker` do. Their channel is made of loom's parts.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize as Exact;

use loom::sync::atomic::AtomicBool as Seen;
use loom::thread;

use super::*;
use crate::sync::checker::{Model, check};

/// With so many, a worker that has gone idle is given another task.
const TASKS: usize = 6;

/// Something that changes what the workers do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setting {
    Plain,
    /// Each task is slow, so that its worker leaves spare tasks.
    Slow,
    /// Each task is slow, and then the governor wants a third worker.
    TargetRises,
    /// The same, but the kernel refuses the third thread.
    Refused,
    /// After each task, the governor wants a single worker.
    TargetFalls,
    /// The first worker with two tasks gives one to another process, from which it comes back.
    Stolen,
    /// The last task is deferred until no worker has another one.
    Deferred,
    /// Wrong: a worker sends a batch before the gate counts the recipient.
    SentBeforeCounted,
    /// Wrong: a worker leaves a spare task that the gate does not count.
    UncountedSpare,
    /// Wrong: a worker leaves a spare task after the gate has counted it.
    SpareLeftLater,
    /// Wrong: a worker receives a task that comes back after the gate has counted it.
    StolenAndReceivedLater,
    /// Wrong: a worker gives a task to another process, and the gate does not expect it back.
    StolenUnexpectedly,
}

enum Message {
    Task(usize),
    /// For the main thread: the run has ended on another worker.
    Done,
    /// For a started thread.
    End,
}

impl Message {
    fn task(self) -> Option<usize> {
        match self {
            Self::Task(task) => Some(task),
            Self::Done | Self::End => None,
        }
    }

    fn is_for(&self, receiver: Receiver) -> bool {
        match self {
            Message::Task(_) => true,
            Message::Done => receiver == Receiver::Main,
            Message::End => receiver == Receiver::Started,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Receiver {
    Main,
    Started,
}

struct Run {
    gate: Gate,
    setting: Setting,
    messages: loom::sync::Mutex<Vec<Message>>,
    sent: loom::sync::Condvar,
    spares: loom::sync::Mutex<Vec<usize>>,
    /// Set by each task. Relaxed: only the gate and the channel publish it to the main thread.
    done: [Seen; TASKS],
    /// Counts the tasks that have run. Loom does not know it, and so it is never old.
    tasks_run: Exact,
    ends: Exact,
}

impl Run {
    fn send(&self, message: Message) {
        self.messages.lock().unwrap().push(message);
        self.sent.notify_all();
    }

    fn receive(&self, receiver: Receiver) -> Message {
        let mut messages = self.messages.lock().unwrap();
        loop {
            if let Some(index) = messages.iter().position(|message| message.is_for(receiver)) {
                return messages.remove(index);
            }
            messages = self.sent.wait(messages).unwrap();
        }
    }

    fn take_delivery(&self) -> Option<usize> {
        if self.setting == Setting::StolenAndReceivedLater {
            self.gate.take_delivery(|| Some(()))?;
            return self.receive(Receiver::Started).task();
        }
        self.gate.take_delivery(|| {
            let mut messages = self.messages.lock().unwrap();
            let is_task = |message: &Message| matches!(message, Message::Task(_));
            let index = messages.iter().position(is_task)?;
            messages.remove(index).task()
        })
    }

    /// Runs the tasks of a worker, and a deferred one if it is the last worker. Counts it as idle.
    fn run_own(self: &Arc<Self>, mut stack: Vec<usize>) -> IdleOutcome {
        loop {
            self.run_stack(stack);
            stack = match self.go_idle() {
                IdleOutcome::RunSpare => vec![self.take_spare()],
                IdleOutcome::RunDeferred => {
                    let tasks_run = self.tasks_run.load(Ordering::Relaxed);
                    assert_eq!(tasks_run, TASKS - 1, "a deferred task runs too early");
                    vec![TASKS - 1]
                }
                outcome => return outcome,
            };
        }
    }

    fn run_stack(self: &Arc<Self>, mut stack: Vec<usize>) {
        while let Some(task) = stack.pop() {
            self.done[task].store(true, Ordering::Relaxed);
            self.tasks_run.fetch_add(1, Ordering::Relaxed);
            if self.gate.has_delivery() {
                stack.extend(self.take_delivery());
            }
            if !stack.is_empty() {
                self.adapt(&mut stack);
            }
        }
    }

    fn adapt(self: &Arc<Self>, stack: &mut Vec<usize>) {
        if stack.len() > 1 {
            if self.gate.has_request() && self.gate.claim_request() {
                self.give_to_thief(stack.remove(0));
                return;
            }
            if self.gate.is_starving() {
                self.give_task(stack);
            } else {
                self.offer_spare(stack);
            }
        }
        match self.setting {
            Setting::TargetFalls => {
                self.gate.set_target(1, 2);
            }
            Setting::TargetRises | Setting::Refused => self.send_spares(),
            _ => {}
        }
        if self.gate.has_surplus() {
            self.gate.park();
        }
    }

    fn give_task(self: &Arc<Self>, stack: &mut Vec<usize>) {
        if self.setting == Setting::SentBeforeCounted {
            self.send(Message::Task(stack.remove(0)));
        }
        let Some(recipient) = self.gate.permit_batch() else {
            return;
        };
        if recipient == Recipient::NewThread {
            let run = Arc::clone(self);
            thread::spawn(move || run.serve());
        }
        if self.setting != Setting::SentBeforeCounted {
            self.send(Message::Task(stack.remove(0)));
        }
    }

    fn give_to_thief(self: &Arc<Self>, task: usize) {
        let is_expected = self.setting != Setting::StolenUnexpectedly;
        if is_expected {
            self.gate.expect(1);
        }
        let run = Arc::clone(self);
        thread::spawn(move || {
            run.gate.admit(usize::from(is_expected));
            run.send(Message::Task(task));
        });
    }

    fn send_spares(self: &Arc<Self>) {
        self.gate.set_target(3, 3);
        while let Some(recipient) = self.gate.claim_spare() {
            if recipient == Recipient::NewThread {
                if self.setting == Setting::Refused {
                    self.gate.give_spare_back();
                    continue;
                }
                let run = Arc::clone(self);
                thread::spawn(move || run.serve());
            }
            self.send(Message::Task(self.take_spare()));
        }
    }

    fn take_spare(&self) -> usize {
        self.spares.lock().unwrap().remove(0)
    }

    fn offer_spare(&self, stack: &mut Vec<usize>) {
        let mut leave = || self.spares.lock().unwrap().push(stack.remove(0));
        match self.setting {
            Setting::Slow | Setting::TargetRises | Setting::Refused => self.gate.leave_spare(leave),
            Setting::UncountedSpare => leave(),
            Setting::SpareLeftLater => {
                let mut is_counted = false;
                self.gate.leave_spare(|| is_counted = true);
                if is_counted {
                    leave();
                }
            }
            _ => {}
        }
    }

    fn serve(self: &Arc<Self>) {
        while let Message::Task(task) = self.receive(Receiver::Started) {
            if self.run_own(vec![task]) == IdleOutcome::AllDone {
                self.send(Message::Done);
            }
        }
    }

    fn run_until_done(self: &Arc<Self>) {
        let queued = match self.setting {
            Setting::Deferred => {
                self.gate.defer();
                TASKS - 1
            }
            _ => TASKS,
        };
        let mut stack = (0..queued).collect();
        loop {
            if self.run_own(stack) == IdleOutcome::AllDone {
                break;
            }
            match self.receive(Receiver::Main) {
                Message::Task(task) => stack = vec![task],
                Message::Done | Message::End => break,
            }
        }
        self.gate.wake_main();
    }

    fn go_idle(&self) -> IdleOutcome {
        let outcome = self.gate.go_idle();
        if outcome == IdleOutcome::AllDone {
            let tasks_run = self.tasks_run.load(Ordering::Relaxed);
            assert_eq!(tasks_run, TASKS, "a run ends before its tasks");
            self.ends.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }
}

fn run(workers: usize, setting: Setting) {
    let run = Arc::new(Run {
        gate: Gate::new(),
        setting,
        messages: loom::sync::Mutex::default(),
        sent: loom::sync::Condvar::new(),
        spares: loom::sync::Mutex::default(),
        done: Default::default(),
        tasks_run: Exact::new(0),
        ends: Exact::new(0),
    });
    run.gate.set_target(workers, workers);
    if matches!(
        setting,
        Setting::Stolen | Setting::StolenAndReceivedLater | Setting::StolenUnexpectedly
    ) {
        run.gate.request();
    }
    run.run_until_done();
    assert!(
        run.done.iter().all(|done| done.load(Ordering::Relaxed)),
        "the main thread does not see what a task has done"
    );
    assert_eq!(run.ends.load(Ordering::Relaxed), 1, "a run ends once");
    run.gate.release_all();
    for _ in 1..run.gate.threads() {
        run.send(Message::End);
    }
}

#[test]
fn a_run_ends_once_and_when_no_task_is_left() {
    check(
        "src/sched/gate.rs",
        &[
            Model::new("one worker is given tasks", 3, || run(2, Setting::Plain)),
            Model::new("two workers are given tasks", 2, || run(3, Setting::Plain)),
            Model::new("a spare task is taken", 3, || run(2, Setting::Slow)),
            Model::new("a new worker takes a spare task", 2, || {
                run(2, Setting::TargetRises);
            }),
            Model::new("no new worker takes a spare task", 2, || {
                run(2, Setting::Refused);
            }),
            Model::new("another process gives a task back", 2, || {
                run(2, Setting::Stolen);
            }),
            Model::new("a parked worker goes on", 3, || {
                run(2, Setting::TargetFalls);
            }),
            Model::new("the last worker takes a deferred task", 2, || {
                run(2, Setting::Deferred);
            }),
        ],
    );
}

#[test]
fn workers_that_break_the_protocol_end_a_run_early_or_never() {
    const EARLY: &str = "a run ends before its tasks";
    const NEVER: &str = "deadlock";
    for (model, expected) in [
        (
            Model::new("a batch is sent before it is counted", 3, || {
                run(2, Setting::SentBeforeCounted);
            }),
            EARLY,
        ),
        (
            Model::new("a spare task is not counted", 3, || {
                run(2, Setting::UncountedSpare);
            }),
            EARLY,
        ),
        (
            Model::new("a spare task is left after it is counted", 3, || {
                run(2, Setting::SpareLeftLater);
            }),
            "removal index",
        ),
        (
            Model::new("a given task is not expected back", 3, || {
                run(1, Setting::StolenUnexpectedly);
            }),
            EARLY,
        ),
        (
            Model::new(
                "a task that comes back is counted before it is received",
                2,
                || {
                    run(2, Setting::StolenAndReceivedLater);
                },
            ),
            NEVER,
        ),
    ] {
        let failure = model.failure().expect(model.protocol);
        assert!(failure.contains(expected), "{failure}");
    }
}
