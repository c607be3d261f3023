//! How many workers pay.
//!
//! More are not faster everywhere: on some filesystems a second one doubles
//! the time. So the throughput decides. Workers tell what they finished and
//! how long they were at it; whoever tells it after a measurement is due
//! steps the governor. There is no thread and no timer.
//!
//! ```text
//!   Base: measure n ----> Try: measure 2n, or n/2
//!     ^                     | pays: stay with it, and straight on if it was more
//!     |                     | does not: back to n, next time the other direction
//!     +-------- Hold <------+ for a time that doubles while nothing changes
//! ```
//!
//! The throughput of n workers is n times the work per *busy* time: a worker
//! that is not there yet, since a thread takes its time to start, does not
//! count against the number that was asked for.
//!
//! Throughput comes in bursts on filesystems with a log: a single call may wait
//! for longer than hundreds of others take. So a measurement lasts until the
//! longest wait in it is a small part of it, and until most of the time of all
//! workers has been accounted for: who waits has not told yet.

use std::time::Duration;

/// The first measurement: starting a thread costs about as much as removing
/// thirty files, and a small tree is done by then.
pub(super) const FIRST: Duration = Duration::from_micros(400);
/// The shortest other one.
const SHORTEST: Duration = Duration::from_micros(1500);
/// The longest, however long the waits in it.
const LONGEST: Duration = Duration::from_millis(80);
/// Where not enough has been told, it is looked at again after this.
const LATER: Duration = Duration::from_micros(500);
/// The longest wait is at most one of so many parts of a measurement's busy time ...
const PARTS: u32 = 6;
/// ... and so much of the workers' time is accounted for.
const ACCOUNTED: f64 = 0.6;
/// More workers are kept if the throughput rises by this factor.
const GAIN: f64 = 1.1;
/// Fewer are kept if it falls by no more than this factor.
const LOSS: f64 = 0.95;
/// The first and the longest time between two tries.
const PATIENCE: [Duration; 2] = [Duration::from_millis(24), Duration::from_millis(256)];
/// A try takes at most one of so many parts of the time.
const TRIES: u32 = 8;

/// What workers did since the measurement began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    pub(super) work: u64,
    /// Summed over the workers.
    pub(super) busy: Duration,
    /// The longest time between two calls of one worker.
    pub(super) longest: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Measuring the number of workers in use, before a try.
    Base,
    /// Measuring another number against the throughput that `from` workers had.
    Try { base: f64, from: usize },
    /// Nothing to learn before the step is due.
    Hold,
}

/// A hill climber over numbers of workers.
#[derive(Debug)]
pub(super) struct Governor {
    workers: usize,
    most: usize,
    phase: Phase,
    began: Duration,
    due: Duration,
    patience: Duration,
    /// Whether the next try is of more workers (else of fewer).
    upward: bool,
    is_first_try: bool,
}

impl Governor {
    pub(super) fn new(most: usize) -> Self {
        Self {
            workers: 1,
            most,
            phase: Phase::Base,
            began: Duration::ZERO,
            due: FIRST,
            patience: PATIENCE[0],
            upward: true,
            is_first_try: true,
        }
    }

    pub(super) fn workers(&self) -> usize {
        self.workers
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// No more than `most` workers can be had after all.
    pub(super) fn limit(&mut self, most: usize) {
        if most < self.most {
            self.most = most;
            self.workers = self.workers.min(most);
            self.phase = Phase::Base;
        }
    }

    /// When it wants to be stepped again, as time since the start; `None`: never.
    pub(super) fn due(&self) -> Option<Duration> {
        (self.most > 1).then_some(self.due)
    }

    /// Takes note of what was told since the last step that returned true;
    /// returns whether a new measurement begins.
    pub(super) fn step(&mut self, now: Duration, told: Told) -> bool {
        // Who steps may have looked at the clock before another one stepped.
        let lasted = now.saturating_sub(self.began);
        if !self.is_enough(lasted, told) {
            self.due = now + LATER;
            return false;
        }
        let throughput = self.workers as f64 * told.work as f64 / told.busy.as_secs_f64().max(1e-9);
        self.began = now.max(self.began);
        match self.phase {
            Phase::Base => self.try_another(throughput),
            Phase::Try { base, from } => self.judge(throughput / base, from, lasted),
            Phase::Hold => self.measure_base(),
        }
        true
    }

    fn is_enough(&self, lasted: Duration, told: Told) -> bool {
        if self.phase == Phase::Hold || lasted >= LONGEST {
            return true;
        }
        let all = (lasted * self.workers as u32).as_secs_f64();
        let accounted = told.busy.as_secs_f64() / all.max(1e-9);
        // The first one only starts a thread; what it costs to be wrong is little.
        self.began.is_zero() || accounted >= ACCOUNTED && told.busy >= told.longest * PARTS
    }

    fn try_another(&mut self, base: f64) {
        let from = self.workers;
        if from == 1 {
            self.upward = true;
        } else if from == self.most {
            self.upward = false;
        }
        self.workers = if self.upward {
            (from * 2).min(self.most)
        } else {
            from / 2
        };
        self.phase = Phase::Try { base, from };
        self.due = self.began + SHORTEST;
    }

    fn judge(&mut self, ratio: f64, from: usize, lasted: Duration) {
        let more = self.workers > from;
        if ratio >= if more { GAIN } else { LOSS } {
            self.patience = PATIENCE[0];
            if more && self.workers < self.most {
                return self.measure_base();
            }
        } else {
            self.workers = from;
            self.upward = !self.upward;
        }
        self.phase = Phase::Hold;
        // The first try is judged by a measurement that was cold and short: not for long.
        let earned = if self.is_first_try {
            Duration::ZERO
        } else {
            lasted * TRIES
        };
        self.is_first_try = false;
        self.due = self.began + self.patience.max(earned);
        self.patience = (self.patience * 2).min(PATIENCE[1]);
    }

    fn measure_base(&mut self) {
        self.phase = Phase::Base;
        self.due = self.began + SHORTEST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a governor for `time` on work that goes `speedup(n)` times as fast
    /// on n workers; returns the share of the time for each number.
    fn shares(most: usize, time: Duration, speedup: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut governor = Governor::new(most);
        let mut now = Duration::ZERO;
        let mut told = Told::default();
        let mut shares = vec![0.0; most + 1];
        let tick = Duration::from_micros(100);
        while now < time {
            now += tick;
            let workers = governor.workers();
            shares[workers] += tick.as_secs_f64() / time.as_secs_f64();
            told.busy += tick * workers as u32;
            told.work += (1000.0 * speedup(workers)) as u64;
            told.longest = tick / 2;
            if governor.due().is_some_and(|due| now >= due) && governor.step(now, told) {
                told = Told::default();
            }
        }
        shares
    }

    #[test]
    fn stays_with_one_worker_where_two_are_slower() {
        let shares = shares(2, Duration::from_millis(300), |n| 1.0 / n as f64);
        assert!(shares[1] > 0.95, "{shares:?}");
    }

    #[test]
    fn uses_all_workers_soon_where_they_pay() {
        let shares = shares(16, Duration::from_millis(300), |n| n as f64);
        assert!(shares[16] > 0.9, "{shares:?}");
    }

    #[test]
    fn finds_the_number_above_which_nothing_is_gained() {
        let shares = shares(16, Duration::from_millis(500), |n| n.min(4) as f64);
        assert!(shares[4] > 0.85, "{shares:?}");
    }

    #[test]
    fn follows_when_the_work_changes() {
        let calls = std::cell::Cell::new(0);
        let shares = shares(2, Duration::from_secs(1), |n| {
            calls.set(calls.get() + 1);
            if calls.get() < 5000 {
                n as f64
            } else {
                1.0 / n as f64
            }
        });
        assert!((0.35..0.7).contains(&shares[1]), "{shares:?}");
    }

    #[test]
    fn a_single_long_wait_decides_nothing() {
        let mut governor = Governor::new(2);
        let first = Told {
            work: 100,
            busy: FIRST,
            longest: FIRST / 10,
        };
        assert!(governor.step(FIRST, first));
        assert_eq!(governor.workers(), 2);
        // Two milliseconds of two workers, most of it in one call.
        let now = FIRST + Duration::from_millis(2);
        let told = Told {
            work: 100,
            busy: Duration::from_millis(4),
            longest: Duration::from_millis(2),
        };
        assert!(!governor.step(now, told));
        // One of them has not told since.
        let told = Told {
            work: 4000,
            busy: Duration::from_millis(6),
            longest: Duration::from_micros(10),
        };
        assert!(!governor.step(FIRST + Duration::from_millis(6), told));
    }

    #[test]
    fn a_step_from_before_the_last_one_is_no_step() {
        let mut governor = Governor::new(2);
        governor.step(FIRST, Told::default());
        assert!(!governor.step(FIRST / 2, Told::default()));
    }

    #[test]
    fn one_worker_needs_no_steps() {
        assert_eq!(Governor::new(1).due(), None);
    }
}
