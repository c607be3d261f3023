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
//!     |                     | does not: back to n, other direction next
//!     +-------- Hold <------+ for a time that doubles while nothing changes
//! ```
//!
//! The throughput of n workers is n times the work per *busy* time: a worker
//! that is not there yet, since a thread takes its time to start, does not
//! count against the number that was asked for.

use std::time::Duration;

/// The first measurement: starting a thread costs about as much as removing
/// thirty files, and a small tree is done by then.
pub(super) const FIRST: Duration = Duration::from_micros(400);
/// Busy time that each worker should have had when a number is judged.
const ENOUGH: Duration = Duration::from_micros(1500);
/// When there is less, or nobody to be busy, it is looked at again after this.
const LATER: Duration = Duration::from_micros(500);
/// A number of workers is given up on if they have no tasks for this long.
const STARVED: Duration = Duration::from_millis(20);
/// More workers are kept if the throughput rises by this factor.
const GAIN: f64 = 1.1;
/// Fewer are kept if it falls by no more than this factor.
const LOSS: f64 = 0.95;
/// The shortest and the longest time between two tries, where the last one
/// left no doubt; a try that does not pay costs about a hundredth of the latter.
const PATIENCE: [Duration; 2] = [Duration::from_millis(24), Duration::from_millis(256)];

/// What workers did since the last step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    pub(super) work: u64,
    /// Summed over the workers.
    pub(super) busy: Duration,
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
        }
    }

    pub(super) fn workers(&self) -> usize {
        self.workers
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// When it wants to be stepped again, as time since the start; `None`: never.
    pub(super) fn due(&self) -> Option<Duration> {
        (self.most > 1).then_some(self.due)
    }

    /// Takes note of what was told since the last step that returned true;
    /// returns whether a new measurement begins.
    pub(super) fn step(&mut self, now: Duration, told: Told) -> bool {
        let enough = if self.began.is_zero() {
            FIRST / 2
        } else {
            ENOUGH * self.workers as u32
        };
        if told.busy < enough && self.phase != Phase::Hold {
            return self.wait(now);
        }
        let throughput = self.workers as f64 * told.work as f64 / told.busy.as_secs_f64().max(1e-9);
        self.began = now;
        self.due = now + ENOUGH;
        match self.phase {
            Phase::Base => self.try_another(throughput),
            Phase::Try { base, from } => self.judge(throughput / base, from),
            Phase::Hold => self.phase = Phase::Base,
        }
        true
    }

    /// There is not enough to judge by yet.
    fn wait(&mut self, now: Duration) -> bool {
        self.due = now + LATER;
        if now - self.began < STARVED || self.phase == Phase::Base {
            return false;
        }
        // There are no tasks for so many: then their number costs nothing.
        self.hold(now, PATIENCE[0]);
        true
    }

    fn hold(&mut self, now: Duration, time: Duration) {
        self.phase = Phase::Hold;
        self.began = now;
        self.due = now + time;
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
    }

    fn judge(&mut self, ratio: f64, from: usize) {
        let more = self.workers > from;
        let pays = ratio >= if more { GAIN } else { LOSS };
        if pays {
            self.patience = PATIENCE[0];
            if self.workers < self.most && more {
                // Straight on while it pays.
                self.phase = Phase::Base;
                return;
            }
        } else {
            self.workers = from;
            self.upward = !self.upward;
        }
        let (began, patience) = (self.began, self.patience);
        self.hold(began, patience);
        self.patience = (patience * 2).min(PATIENCE[1]);
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
    fn one_worker_needs_no_steps() {
        assert_eq!(Governor::new(1).due(), None);
    }
}
