//! Simulates workers on a machine, to tell how much the governor's decisions cost.
//!
//! `FUC_MODEL_RUNS=20 cargo test --release -p fuc_engine governor::tests::model -- --nocapture` prints, for each
//! machine, the throughput of governed runs as a share of the best fixed number's. The figures
//! in the comments of the governor's constants come from it. They are the same on each
//! computer: to see what a constant is worth, change it and print the table again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::sched::governor::{Governor, Limits};
use crate::sched::meter::{Sample, is_slow_interval};
use crate::sys::SecondWorker;

/// The speed of work on a machine, as measured for the benchmark's cells.
#[derive(Clone, Copy)]
pub(super) struct Machine {
    pub(super) name: &'static str,
    pub(super) limits: Limits,
    pub(super) second: SecondWorker,
    /// Time from one checkpoint to the next, with one worker.
    pub(super) interval: Duration,
    /// Throughput of n workers; that of one is 1.
    pub(super) speedup: fn(usize) -> f64,
    /// Other processes take up to this share of each worker's speed, and another share every 5 ms.
    pub(super) noise: f64,
    pub(super) stalls: Stalls,
    pub(super) waits: Waits,
}

/// The reason why workers do not compute.
#[derive(Clone, Copy)]
pub(super) enum Waits {
    Never,
    /// They wait for each other. This is the number of busy processors if n run.
    Lock(fn(usize) -> f64),
    /// They wait for a disk during most of an interval, whatever their number.
    Disk,
    /// They wait for a server during most of an interval, whatever their number.
    Server,
}

/// Waits for a full log. They begin every 40 ms and last for this long.
#[derive(Clone, Copy)]
pub(super) enum Stalls {
    None,
    /// All workers wait.
    All(Duration),
    /// If there are several workers, one of them waits.
    One(Duration),
}

const STALL_PERIOD: Duration = Duration::from_millis(40);
const LAP: Duration = Duration::from_micros(80);

/// As many workers as cores, or more if they wait.
pub(super) const fn cores(cores: usize) -> Limits {
    Limits {
        computing: cores,
        waiting: 128,
    }
}

/// Two cores without disturbances. Each of two workers is as fast as one alone.
pub(super) const TWO_CORES: Machine = Machine {
    name: "two cores",
    limits: cores(2),
    second: SecondWorker::Pays,
    interval: LAP,
    speedup: |n| n.min(2) as f64,
    noise: 0.0,
    stalls: Stalls::None,
    waits: Waits::Never,
};

/// Workers wait for a server that answers after 1 ms.
const SERVER: Machine = Machine {
    interval: Duration::from_millis(1),
    speedup: |n| n as f64,
    noise: 0.1,
    waits: Waits::Server,
    ..TWO_CORES
};

/// Workers wait for a log, and for each other.
const CONTENDED: Machine = Machine {
    interval: Duration::from_micros(300),
    noise: 0.3,
    stalls: Stalls::One(Duration::from_millis(8)),
    ..TWO_CORES
};

const MACHINES: &[Machine] = &[
    Machine {
        name: "two cores, tmpfs",
        speedup: |n| [1.0, 1.9][n.min(2) - 1],
        noise: 0.1,
        ..TWO_CORES
    },
    Machine {
        name: "two cores, busy",
        speedup: |n| [1.0, 1.4][n.min(2) - 1],
        noise: 0.9,
        ..TWO_CORES
    },
    Machine {
        name: "two cores, large files",
        interval: Duration::from_millis(3),
        speedup: |n| [1.0, 1.9][n.min(2) - 1],
        noise: 0.1,
        ..TWO_CORES
    },
    Machine {
        name: "two cores, a log, two worse",
        second: SecondWorker::SeldomPays,
        speedup: |n| [1.0, 1.3][n.min(2) - 1],
        noise: 0.2,
        stalls: Stalls::One(Duration::from_millis(30)),
        ..TWO_CORES
    },
    Machine {
        name: "two cores, a log, two better",
        speedup: |n| [1.0, 1.5][n.min(2) - 1],
        noise: 0.2,
        stalls: Stalls::All(Duration::from_millis(12)),
        ..TWO_CORES
    },
    Machine {
        name: "two cores, two worse than believed",
        speedup: |n| [1.0, 0.77][n.min(2) - 1],
        noise: 0.3,
        ..TWO_CORES
    },
    Machine {
        name: "16 cores, all useful",
        limits: cores(16),
        speedup: |n| (n as f64).powf(0.9),
        noise: 0.1,
        ..TWO_CORES
    },
    Machine {
        name: "16 cores, four useful",
        limits: cores(16),
        speedup: |n| [1.0, 1.9, 2.6, 3.2][n.min(4) - 1] / 1.1_f64.powi(n.max(4) as i32 - 4),
        noise: 0.1,
        ..TWO_CORES
    },
    Machine {
        name: "two cores, contention for a log",
        speedup: |n| [1.0, 1.25, 0.95, 0.7, 0.6][n.min(5) - 1],
        waits: Waits::Lock(|n| [0.9, 1.2, 1.2, 1.3, 1.3][n.min(5) - 1]),
        ..CONTENDED
    },
    // Copies to XFS, as measured on one processor and on another.
    Machine {
        name: "two cores, XFS, two worse",
        second: SecondWorker::Unknown,
        speedup: |n| [1.0, 0.7, 0.6][n.min(3) - 1],
        waits: Waits::Lock(|n| [0.9, 1.2, 1.2][n.min(3) - 1]),
        ..CONTENDED
    },
    Machine {
        name: "two cores, XFS, two better",
        second: SecondWorker::Unknown,
        interval: Duration::from_micros(600),
        speedup: |n| [1.0, 1.75, 1.5][n.min(3) - 1],
        waits: Waits::Lock(|n| [0.9, 1.7, 1.7][n.min(3) - 1]),
        ..CONTENDED
    },
    Machine {
        name: "two cores, a server, 1 ms",
        ..SERVER
    },
    Machine {
        name: "two cores, a server, 16 useful",
        speedup: |n| n.min(16) as f64,
        ..SERVER
    },
    Machine {
        name: "two cores, a server, 0.1 ms",
        interval: Duration::from_micros(1200),
        speedup: |n| n.min(40) as f64,
        noise: 0.2,
        waits: Waits::Server,
        ..TWO_CORES
    },
    Machine {
        name: "two cores, a server, 70 ms",
        interval: Duration::from_millis(70),
        ..SERVER
    },
    Machine {
        name: "two cores, a server, 70 ms, 16 useful",
        interval: Duration::from_millis(70),
        speedup: |n| n.min(16) as f64,
        ..SERVER
    },
    Machine {
        name: "16 cores, slow calls",
        limits: cores(16),
        interval: Duration::from_millis(100),
        speedup: |n| n.min(16) as f64,
        noise: 0.1,
        ..TWO_CORES
    },
    Machine {
        name: "16 cores, contention for a log",
        limits: cores(16),
        speedup: |n| [1.0, 1.8, 2.4, 2.8][n.min(4) - 1] * (4.0 / n.max(4) as f64).sqrt(),
        waits: Waits::Lock(|n| 1.0 + (n.min(8) as f64) / 4.0),
        ..CONTENDED
    },
];

/// Numbers from 0 to 1, the same ones for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1_u64 << 24) as f64
    }
}

/// A run of workers on a machine, which may change.
pub(super) struct Run {
    /// `None`: the number is fixed.
    governor: Option<Governor>,
    workers: usize,
    /// The intervals of the workers that run: when each one ends, its worker, and when it began. The next end comes first.
    intervals: BinaryHeap<Reverse<(Duration, usize, Duration)>>,
    is_running: Vec<bool>,
    sample: Sample,
    window: Duration,
    now: Duration,
    done: u64,
    /// The time that each number of workers had.
    times: Vec<Duration>,
    random: Random,
    slice: u64,
    /// The share of its speed that noise leaves to each worker in this slice of time.
    speed: Vec<f64>,
    /// The time that has passed of the first stall period when the run begins.
    phase: Duration,
}

impl Run {
    /// Begins a run on machines with the limits of `machine`.
    pub(super) fn new(machine: &Machine, fixed: Option<usize>, seed: u64) -> Self {
        let governor = Governor::new(machine.limits, machine.second);
        let mut is_running = vec![false; machine.limits.waiting];
        is_running[0] = true;
        let mut random = Random(seed);
        random.next();
        let phase = STALL_PERIOD.mul_f64(random.next());
        Self {
            governor: fixed.is_none().then_some(governor),
            workers: fixed.unwrap_or(1),
            intervals: BinaryHeap::from([Reverse((Duration::ZERO, 0, Duration::ZERO))]),
            is_running,
            sample: Sample::default(),
            window: Duration::ZERO,
            now: Duration::ZERO,
            done: 0,
            times: vec![Duration::ZERO; machine.limits.waiting + 1],
            random,
            slice: u64::MAX,
            speed: vec![1.0; machine.limits.waiting],
            phase,
        }
    }

    /// Goes on for `time`. Returns the share of it that each number of workers had.
    pub(super) fn shares(&mut self, machine: &Machine, time: Duration) -> Vec<f64> {
        self.times.fill(Duration::ZERO);
        self.run(machine, self.now + time);
        let times = self.times.iter();
        times
            .map(|t| t.as_secs_f64() / time.as_secs_f64())
            .collect()
    }

    pub(super) fn governor(&self) -> &Governor {
        self.governor.as_ref().expect("the number is not fixed")
    }

    /// Returns how long the next interval of `worker` takes.
    fn interval(&mut self, machine: &Machine, worker: usize, now: Duration) -> Duration {
        let slice = now.as_millis() as u64 / 5;
        if slice != self.slice {
            self.slice = slice;
            for speed in &mut self.speed {
                *speed = 1.0 - machine.noise * self.random.next();
            }
        }
        let running = self.intervals.len() + 1;
        let each = (machine.speedup)(running) / running as f64;
        let interval = machine
            .interval
            .div_f64(each * self.speed[worker])
            .mul_f64(0.7 + 0.6 * self.random.next());
        let at = self.phase + now;
        let stall = match machine.stalls {
            Stalls::None => Duration::ZERO,
            Stalls::All(stall) => stall,
            Stalls::One(stall) if running > 1 => {
                let period = at.as_nanos() / STALL_PERIOD.as_nanos();
                let is_hit = period as usize % running == worker;
                if is_hit { stall } else { Duration::ZERO }
            }
            Stalls::One(_) => Duration::ZERO,
        };
        let in_period = Duration::from_nanos((at.as_nanos() % STALL_PERIOD.as_nanos()) as u64);
        if in_period + interval > STALL_PERIOD - stall {
            interval + (STALL_PERIOD - in_period).min(stall)
        } else {
            interval
        }
    }

    fn start_interval(&mut self, machine: &Machine, worker: usize, now: Duration) {
        let interval = self.interval(machine, worker, now);
        self.intervals.push(Reverse((now + interval, worker, now)));
        self.is_running[worker] = true;
    }

    /// Goes on until `end`.
    fn run(&mut self, machine: &Machine, end: Duration) {
        loop {
            let &Reverse((now, worker, began)) = self.intervals.peek().expect("a worker runs");
            self.times[self.workers] += now.min(end).saturating_sub(self.now);
            self.now = now.min(end);
            if now > end {
                return;
            }
            self.record(machine, began, now);
            self.intervals.pop();
            self.is_running[worker] = false;
            if self.intervals.len() < self.workers {
                self.start_interval(machine, worker, now);
            }
            self.start_workers(machine, now);
        }
    }

    fn record(&mut self, machine: &Machine, began: Duration, now: Duration) {
        self.done += 1;
        let within = now - began.max(self.window).min(now);
        let share = within.as_secs_f64() / (now - began).as_secs_f64().max(1e-9);
        let running = self.intervals.len();
        let (entries, processors) = match machine.waits {
            Waits::Never => (32.0, running as f64),
            Waits::Lock(processors) => (32.0, processors(running)),
            Waits::Disk => (32.0, 0.02 * running as f64),
            Waits::Server => (8.0, 0.02 * running as f64),
        };
        let work = entries * share;
        self.sample.work += work;
        if is_slow_interval((now - began).as_nanos() as u64, entries as u64) {
            self.sample.slow_work += work;
        }
        self.sample.busy += within;
        self.sample.usage.cpu = (now - self.window).mul_f64(processors);
        if !matches!(machine.waits, Waits::Never) {
            self.sample.usage.voluntary_switches += work as u64;
        }
        if matches!(machine.waits, Waits::Disk) {
            self.sample.usage.blocks_read += work as u64;
        }
        self.sample.longest = self.sample.longest.max(now - began);
        let Some(governor) = &mut self.governor else {
            return;
        };
        if governor.due().is_some_and(|due| now >= due) && governor.step(now, self.sample) {
            self.sample = Sample::default();
            self.window = now;
            self.workers = governor.workers();
        }
    }

    /// Starting a worker takes 60 µs.
    fn start_workers(&mut self, machine: &Machine, now: Duration) {
        let now = now + Duration::from_micros(60);
        for worker in 0..self.is_running.len() {
            if self.intervals.len() >= self.workers {
                return;
            }
            if !self.is_running[worker] {
                self.start_interval(machine, worker, now);
            }
        }
    }
}

/// Returns the throughput of governed runs as a share of that of the best fixed number.
fn share_of_best(machine: &Machine, time: Duration, runs: u64) -> f64 {
    let total = |fixed| -> u64 {
        let done = (0..runs).map(|seed| {
            let mut run = Run::new(machine, fixed, seed + 1);
            run.run(machine, time);
            run.done
        });
        done.sum()
    };
    let most = match machine.waits {
        Waits::Never => machine.limits.computing,
        Waits::Lock(_) | Waits::Disk | Waits::Server => machine.limits.waiting,
    };
    let numbers = [1, 2, 4, 16, 128].into_iter().filter(|&n| n <= most);
    let best = numbers.map(|n| total(Some(n))).max();
    total(None) as f64 / best.expect("there is a worker") as f64
}

#[test]
fn a_governed_run_is_nearly_as_fast_as_the_best_fixed_number() {
    let runs = std::env::var("FUC_MODEL_RUNS").map(|runs| runs.parse().expect("a number"));
    let times = [50, 250, 1000, 4000].map(Duration::from_millis);
    println!("{:36} {times:8.0?}", "governed / best, in runs of");
    for machine in MACHINES {
        let share = share_of_best(
            machine,
            machine.interval * 60 + Duration::from_millis(150),
            1,
        );
        assert!(share > 0.7, "{}: {share:.3}", machine.name);
        if let Ok(runs) = runs {
            let shares = times.map(|time| share_of_best(machine, time, runs));
            println!("{:36} {shares:8.3?}", machine.name);
        }
    }
}
