//! Simulates many workers on one machine, to tell how evenly the hand-out feeds them.
//!
//! The gate and the stacks are real; workers, trees, the lock and time are simulated, and every run has the same result.
//! A worker does after each part of a task what [`worker`](crate::sched::worker) does. Nothing in the kernel makes workers
//! wait for each other here, and the governor wants all of them from the start: what is lost is lost by the hand-out.
//!
//! `cargo test --release -p fuc_engine simulation -- --nocapture` prints a line for each tree.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::*;
use crate::sched::stack::Stack;

/// A time, or the time since the start of the run, in nanoseconds.
type Nanos = u64;

/// Time to copy an empty file on tmpfs, and to remove it, on an AMD EPYC.
const ENTRY: Nanos = 2_200;
/// Time to open a directory, list it, and finish it.
const DIRECTORY: Nanos = 10_000;
/// Time for which a worker holds the lock of the gate.
const LOCK: Nanos = 200;
/// Time to wake another worker.
const WAKING: Nanos = 2_000;
/// Time until a worker that was woken runs.
const WAKE: Nanos = 20_000;
/// Time until a thread that was started runs, and that its starter needs.
const START: Nanos = 60_000;
/// Entries between two checkpoints, as in the walk.
const PART: u32 = 32;
/// The most directories that an idle worker gets at once, as in the walk.
const MAX_BATCH: usize = 256;
/// A listing pauses when it has queued so many directories for each worker, as in the walk.
const CHILDREN_PER_WORKER: u32 = 128;
/// The least number of queued directories at which it pauses.
const MANY_CHILDREN: u32 = 512;

/// A tree in which all directories of a level look alike.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    /// Number of subdirectories of each directory, level by level from the root.
    subdirectories: &'static [u32],
    /// Number of files in each directory.
    files: u32,
}

impl Shape {
    fn subdirectories_at(&self, level: usize) -> u32 {
        self.subdirectories.get(level).copied().unwrap_or(0)
    }

    fn entries(&self) -> u64 {
        let mut directories = 1;
        let mut entries = 0;
        for level in 0..=self.subdirectories.len() {
            entries += directories * u64::from(self.files + 1);
            directories *= u64::from(self.subdirectories_at(level));
        }
        entries
    }
}

/// The rest of the listing of a directory.
#[derive(Clone, Copy)]
struct Task {
    level: usize,
    files: u32,
    subdirectories: u32,
    is_open: bool,
}

struct Worker {
    stack: Stack<Task>,
    running: Option<Task>,
}

struct Simulation {
    shape: Shape,
    many_children: u32,
    gate: Gate<Task>,
    workers: Vec<Worker>,
    /// Workers that wait in the gate.
    idle: Vec<usize>,
    events: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// The time at which the last holder of the lock gives it back.
    lock: Nanos,
    now: Nanos,
    /// Time in which workers did something.
    busy: Nanos,
    entries: u64,
    /// Number of times that a worker took the lock of the gate.
    locked: u64,
}

impl Simulation {
    fn run(shape: Shape, workers: usize) -> Self {
        let gate = Gate::new();
        gate.set_target(workers, MAIN);
        let mut simulation = Self {
            shape,
            many_children: MANY_CHILDREN.max(CHILDREN_PER_WORKER * workers as u32),
            gate,
            workers: Vec::new(),
            idle: Vec::new(),
            events: BinaryHeap::new(),
            lock: 0,
            now: 0,
            busy: 0,
            entries: 0,
            locked: 0,
        };
        simulation.add_worker(0);
        let root = simulation.directory(0);
        simulation.workers[MAIN].stack.tasks.push_back(root);
        while let Some(Reverse((now, worker))) = simulation.events.pop() {
            simulation.now = now;
            simulation.step(worker);
        }
        simulation
    }

    fn directory(&self, level: usize) -> Task {
        Task {
            level,
            files: self.shape.files,
            subdirectories: self.shape.subdirectories_at(level),
            is_open: false,
        }
    }

    fn add_worker(&mut self, after: Nanos) {
        self.events
            .push(Reverse((self.now + after, self.workers.len())));
        self.workers.push(Worker {
            stack: Stack::new(),
            running: None,
        });
    }

    /// Takes the lock for so long. Returns when the caller gives it back.
    fn take_lock(&mut self, time: Nanos) -> Nanos {
        self.lock = self.lock.max(self.now) + time;
        self.locked += 1;
        self.lock
    }

    /// Lets a worker do what it does between two events: end a part of a task, and begin the next one.
    fn step(&mut self, number: usize) {
        let mut resumes = self.now;
        if let Some(task) = self.workers[number].running.take() {
            resumes = self.end_part(number, task);
        } else if self.workers[number].stack.tasks.is_empty() {
            resumes = self.take_lock(LOCK);
            match self.gate.poll() {
                Some(tasks) => self.workers[number].stack.tasks.extend(tasks),
                None => return self.idle.push(number),
            }
        }
        if self.workers[number].running.is_none() {
            self.workers[number].running = self.workers[number].stack.begin_newest();
        }
        if self.workers[number].running.is_some() {
            let part = self.begin_part(number);
            self.busy += part;
            self.events.push(Reverse((resumes + part, number)));
        } else {
            self.gate.go_idle();
            self.events.push(Reverse((resumes, number)));
        }
    }

    /// Processes entries until the next checkpoint. Returns how long it takes.
    fn begin_part(&mut self, number: usize) -> Nanos {
        let worker = &mut self.workers[number];
        let task = worker.running.as_mut().expect("BUG: it has begun a task");
        let opening = match task.is_open {
            true => 0,
            false => DIRECTORY,
        };
        self.entries += u64::from(!task.is_open);
        task.is_open = true;
        let files = task.files.min(PART);
        task.files -= files;
        self.entries += u64::from(files);
        opening + Nanos::from(files) * ENTRY
    }

    /// Queues the directories of a part, and hands out work. Returns when the worker goes on.
    fn end_part(&mut self, number: usize, mut task: Task) -> Nanos {
        let child = self.directory(task.level + 1);
        let worker = &mut self.workers[number];
        if task.files > 0 {
            worker.running = Some(task);
            return self.adapt(number, 0);
        }
        let queued = task.subdirectories.min(self.many_children);
        task.subdirectories -= queued;
        if task.subdirectories > 0 {
            worker.stack.tasks.push_back(task);
        }
        (0..queued).for_each(|_| worker.stack.tasks.push_back(child));
        match worker.stack.tasks.is_empty() {
            true => self.now,
            false => self.adapt(number, 1),
        }
    }

    fn adapt(&mut self, number: usize, keep: usize) -> Nanos {
        let stack = &mut self.workers[number].stack;
        if stack.tasks.len() <= keep || !self.gate.is_starving() {
            return self.now;
        }
        let recipient = self
            .gate
            .hand_over(|_| stack.take_share(keep, MAX_BATCH, |_| true));
        let wakes = recipient == Some(Recipient::Idle);
        let until = self.take_lock(LOCK) + if wakes { WAKING } else { 0 };
        let after = until - self.now;
        match recipient {
            Some(Recipient::New(_)) => {
                self.add_worker(after + START);
                until + START
            }
            Some(Recipient::Idle) => {
                let idle = self.idle.pop();
                self.events
                    .extend(idle.map(|idle| Reverse((until + WAKE, idle))));
                until
            }
            None => until,
        }
    }
}

/// Runs a simulation and prints a row of the table. Returns the share of idle time, and how often the lock was taken for 32
/// entries.
fn measure(shape: Shape, workers: usize) -> (f64, f64) {
    let outcome = Simulation::run(shape, workers);
    let name = shape.name;
    assert_eq!(outcome.entries, shape.entries(), "{name}: entries are lost");
    let idle = 1.0 - outcome.busy as f64 / (outcome.now as f64 * workers as f64);
    let locked = outcome.locked as f64 * 32.0 / outcome.entries as f64;
    let percent = idle * 100.0;
    println!("| {name} | {workers} | {percent:.1} % | {locked:.2} |");
    (idle, locked)
}

#[test]
fn many_workers_are_seldom_idle_and_seldom_take_the_lock() {
    let shape = |name, subdirectories, files| Shape {
        name,
        subdirectories,
        files,
    };
    // The most idle time with 8, 16 and 64 workers; and how often these 64 may take the lock for 32 entries. Starting 64
    // threads takes 1 ms of these runs. In the kernel, the last two trees make workers wait for each other in any case.
    let shapes = [
        (
            shape("100,000 files in 1,111 directories", &[10, 10, 10], 90),
            [0.04, 0.08, 0.30],
            0.5,
        ),
        (
            shape("1,000,000 files in 1,111 directories", &[10, 10, 10], 900),
            [0.03, 0.05, 0.18],
            0.1,
        ),
        (
            shape("98,040 files, 5 in each directory", &[7, 7, 7, 7, 7], 5),
            [0.02, 0.04, 0.15],
            1.0,
        ),
        (
            shape("10,000 directories of 10 files in one", &[10_000], 10),
            [0.03, 0.05, 0.18],
            1.0,
        ),
        (
            shape("100,000 directories in one", &[100_000], 0),
            [0.03, 0.05, 0.10],
            6.0,
        ),
    ];
    println!("| tree | workers | idle | locks per 32 entries |");
    for (shape, most_idle, most_locked) in shapes {
        for (workers, most_idle) in [8, 16, 64].into_iter().zip(most_idle) {
            let (idle, locked) = measure(shape, workers);
            let row = format!("{}, {workers} workers", shape.name);
            assert!(idle <= most_idle, "{row}: idle for {idle:.3} of the time");
            assert!(
                locked <= most_locked,
                "{row}: {locked:.2} locks for 32 entries"
            );
        }
    }
}
