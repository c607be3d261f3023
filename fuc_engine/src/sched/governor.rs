//! How many workers pay.
//!
//! More are not faster everywhere: on some filesystems a second one doubles
//! the time. So the rate of finished work decides. Workers count what they
//! finish; whoever finishes a task after the end of a window reads the count
//! and steps the governor. There is no thread and no timer.

use std::time::Duration;

/// The first window: starting a thread costs about as much as removing thirty files.
pub(super) const FIRST_WINDOW: Duration = Duration::from_micros(300);
/// What one measurement lasts.
const WINDOW: Duration = Duration::from_millis(2);
/// A new number of workers is given this long before it is measured.
const WARM_UP: Duration = Duration::from_micros(300);
/// More workers are kept if the rate rises by this factor.
const GAIN: f64 = 1.1;
/// Fewer are kept if the rate falls by no more than this factor.
const LOSS: f64 = 0.95;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Measuring the number of workers in use, before a try.
    Base,
    /// A new number is in place; what it does meanwhile is not counted.
    WarmUp { base: f64, from: usize },
    /// Measuring the new number against the old one's rate.
    Try { base: f64, from: usize },
    /// Nothing to learn before this is over.
    Hold,
}

/// A hill climber over numbers of workers, fed with (time, work done).
#[derive(Debug)]
pub(super) struct Governor {
    workers: usize,
    most: usize,
    phase: Phase,
    /// When the window began, and the work done by then.
    since: (Duration, u64),
    window: Duration,
    /// How long to hold after the next try that does not pay.
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
            since: (Duration::ZERO, 0),
            window: FIRST_WINDOW,
            patience: 2 * WINDOW,
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
        (self.most > 1).then(|| self.since.0 + self.window)
    }

    /// Takes note of the work `done` until `now`; returns whether the number
    /// of workers changed. `fed`: all of the workers it wants have tasks;
    /// where they have not, their number decides nothing.
    pub(super) fn step(&mut self, now: Duration, done: u64, fed: bool) -> bool {
        let (then, before) = self.since;
        let rate = (done - before) as f64 / (now - then).as_secs_f64().max(1e-9);
        self.since = (now, done);
        let workers = self.workers;
        match self.phase {
            Phase::Base => self.try_another(rate),
            Phase::WarmUp { base, from } => {
                self.phase = Phase::Try { base, from };
                self.window = WINDOW;
            }
            Phase::Try { base, from } if fed => self.judge(rate / base, from),
            Phase::Try { base, from } => self.phase = Phase::WarmUp { base, from },
            Phase::Hold => {
                self.phase = Phase::Base;
                self.window = WINDOW;
            }
        }
        self.workers != workers
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
        self.phase = Phase::WarmUp { base, from };
        self.window = WARM_UP;
    }

    fn judge(&mut self, ratio: f64, from: usize) {
        let pays = if self.workers > from {
            ratio >= GAIN
        } else {
            ratio >= LOSS
        };
        if pays {
            self.patience = 2 * WINDOW;
            // Straight on in the same direction while it pays.
            if self.upward && self.workers < self.most {
                self.phase = Phase::Base;
                self.window = WINDOW;
                return;
            }
        } else {
            self.workers = from;
            self.upward = !self.upward;
        }
        self.phase = Phase::Hold;
        self.window = self.patience;
        self.patience = (self.patience * 2).min(Duration::from_secs(1));
    }
}
