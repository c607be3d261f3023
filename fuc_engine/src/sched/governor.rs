//! Decides how many workers run.
//!
//! More workers are not faster everywhere: on some filesystems a second one doubles the time. So
//! the throughput decides. Workers record what they finished and how long it took; the first
//! one that records anything after the governor is due steps it. There is no thread and no timer.
//!
//! ```text
//!                         Start          one worker, until there is a backlog
//!                           |
//!          +----------------+-----------------+
//!          | 1 < initial < cores              | otherwise
//!          v                                  v
//!        Climb <----------+                 Probe        do the workers wait? (skipped
//!          |              |                   |          if no more than cores are allowed)
//!          v        pays, |                   v
//!     Trial(Climb) -------+   ends         Settled <------------------+---------+
//!          +----------------------------->    |                       |         |
//!                                             v         does not pay  |         |
//!                                        Trial(First) ----------------+         |
//!                                             | pays                            |
//!                                             v                                 |
//!                                          Recheck ------> Trial(Second) -------+
//!                                      (the old number)            pays: stay with the new number
//!                                                                  else: back to the old one
//! ```
//!
//! `Climb`, `Settled` and `Recheck` measure the present number of workers; a trial then measures
//! another one, twice or half as many, against it. Accepting a bad change costs more than retrying a
//! good one, and measurements on a busy machine are noisy. So a change must win twice, and
//! fewer workers must be faster, not just as fast. Only while climbing from a number that is
//! known to be good does one win suffice.
//!
//! Workers that compute gain nothing from more threads than cores. Workers that wait, for a
//! disk or a server, do: more requests are then under way. The processor time of the process
//! shows which of the two is the case, and limits the number. If the workers wait from the
//! beginning, as in a tree that no cache holds, the governor begins with all of them: the
//! latency of a disk varies too much to be judged in milliseconds. Workers that begin to compute
//! later are not slower for being many, so only a measurement makes them fewer.
//!
//! The throughput of n workers is n times the work per *busy* time. A thread takes time to start,
//! and until then it does not count against the number that was asked for.
//!
//! On filesystems with a log, throughput comes in bursts: one call may wait for as long as
//! hundreds of others take. So a measurement lasts until its longest wait is a small part of
//! it, and until most of the workers' time is accounted for: a waiting worker has not recorded
//! anything yet.

use std::time::Duration;

use super::meter::Sample;

use tuning::{
    ACCOUNTED, FEWER, HOLD_RANGE, INITIAL_HOLD, LOAD, LONGEST, MORE, PARTS, PROBE_DELAY, SHORTEST,
    TRIES,
};

pub(super) use tuning::FIRST;

/// The numbers of workers that are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The most workers while they compute.
    pub(crate) computing: usize,
    /// The most workers while they wait most of the time. This is never less than `computing`.
    pub(crate) waiting: usize,
}

impl Limits {
    /// Allows `most` workers, whether they compute or wait.
    pub(crate) fn of(most: usize) -> Self {
        Self {
            computing: most,
            waiting: most,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// One worker runs, and nothing has been decided.
    Start,
    /// The initial number runs, to find out whether the workers wait.
    Probe,
    /// The present number is measured before a trial of more: so far, more were faster each time.
    Climb,
    /// The present number is kept, and measured, until the next trial.
    Settled,
    /// The number before the first trial, which has won, is measured once more.
    Recheck,
    /// Another number is measured against `base`.
    Trial { round: Round, base: Base },
}

/// Says how often a trial must win, and which of these times it is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Round {
    /// One win suffices, because the governor climbs.
    Climb,
    /// A win is the first one, and must be repeated.
    First,
    /// A win repeats the first one, and decides.
    Second,
}

/// The number of workers before a trial, and their throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Base {
    workers: usize,
    throughput: f64,
}

/// The result of a measurement.
#[derive(Clone, Copy)]
struct Measured {
    throughput: f64,
    lasted: Duration,
    /// How many workers are allowed, judged by the processor time they used.
    most: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Direction {
    More,
    Fewer,
}

/// A hill climber over numbers of workers.
#[derive(Debug)]
pub(super) struct Governor {
    workers: usize,
    limits: Limits,
    /// The number to begin with.
    initial: usize,
    state: State,
    /// When the measurement began.
    began: Duration,
    due: Duration,
    /// How long to keep the number that the next trial confirms.
    hold: Duration,
    /// The direction of the next trial, if both are possible.
    direction: Direction,
}

impl Governor {
    /// Begins with one worker. After [`FIRST`] it has `initial` workers, or fewer if the limits are
    /// lower.
    pub(super) fn new(limits: Limits, initial: usize) -> Self {
        Self {
            workers: 1,
            limits,
            initial: initial.min(limits.computing),
            state: State::Start,
            began: Duration::ZERO,
            due: FIRST,
            hold: INITIAL_HOLD,
            direction: Direction::More,
        }
    }

    /// Returns how many workers should run now.
    pub(super) fn workers(&self) -> usize {
        self.workers
    }

    /// Returns the most workers that there may ever be.
    pub(super) fn most(&self) -> usize {
        self.limits.waiting
    }

    /// Lowers the limits to `most`: the kernel refused another thread.
    pub(super) fn limit(&mut self, most: usize) {
        if most < self.limits.waiting {
            self.limits.waiting = most;
            self.limits.computing = self.limits.computing.min(most);
            self.workers = self.workers.min(most);
            let is_climbing = matches!(
                self.state,
                State::Climb
                    | State::Trial {
                        round: Round::Climb,
                        ..
                    }
            );
            let state = if is_climbing {
                State::Climb
            } else {
                State::Settled
            };
            self.enter(state, self.hold);
        }
    }

    /// Returns the time of the next step, counted from the start; `None` if there is none.
    pub(super) fn due(&self) -> Option<Duration> {
        (self.limits.waiting > 1).then_some(self.due)
    }

    /// Judges the work that was done since the last step that returned `true`. Returns `true` if
    /// that was enough to decide; then a new measurement begins.
    pub(super) fn step(&mut self, now: Duration, sample: Sample) -> bool {
        // A worker may have read the clock before another one stepped the governor.
        let lasted = now.saturating_sub(self.began);
        if !self.is_enough(lasted, sample) {
            self.due = now + SHORTEST;
            return false;
        }
        let worth_a_trial = self.worth_a_trial(sample);
        if lasted < worth_a_trial {
            self.due = self.began + worth_a_trial;
            return false;
        }
        let busy = sample.busy.as_secs_f64().max(1e-9);
        let measured = Measured {
            throughput: self.workers as f64 * sample.work as f64 / busy,
            lasted,
            most: self.most_while(lasted, sample.cpu),
        };
        self.began = now.max(self.began);
        match self.state {
            State::Start => self.begin(),
            State::Probe => {
                if self.initial > 1 {
                    self.workers = measured.most;
                }
                self.enter(State::Settled, self.hold);
            }
            State::Climb => self.start_trial(Round::Climb, measured),
            State::Settled => self.start_trial(Round::First, measured),
            State::Recheck => self.start_trial(Round::Second, measured),
            State::Trial { round, base } => self.judge(round, base, measured),
        }
        true
    }

    /// Returns how many workers are allowed, given the processor time that they used.
    fn most_while(&self, lasted: Duration, cpu: Duration) -> usize {
        let usable = lasted * self.workers.min(self.limits.computing) as u32;
        let load = cpu.as_secs_f64() / usable.as_secs_f64().max(1e-9);
        if load < LOAD {
            self.limits.waiting
        } else {
            self.limits.computing
        }
    }

    /// Returns `true` if a measurement has lasted long enough to be believed.
    fn is_enough(&self, lasted: Duration, sample: Sample) -> bool {
        if self.state == State::Start || lasted >= LONGEST {
            return true;
        }
        let all = (lasted * self.workers as u32).as_secs_f64();
        let accounted = sample.busy.as_secs_f64() / all.max(1e-9);
        accounted >= ACCOUNTED && sample.busy >= sample.longest * PARTS
    }

    /// Returns how long to stay settled so that a trial is a small part of the time. A trial
    /// lasts several times as long as the longest wait.
    fn worth_a_trial(&self, sample: Sample) -> Duration {
        let trial = sample.longest * PARTS;
        if self.state == State::Settled && trial > SHORTEST {
            (trial * TRIES).min(HOLD_RANGE[1])
        } else {
            Duration::ZERO
        }
    }

    fn begin(&mut self) {
        self.workers = self.initial;
        if self.initial > 1 && self.initial < self.limits.computing {
            self.enter(State::Climb, SHORTEST);
        } else if self.limits.computing < self.limits.waiting {
            self.enter(State::Probe, PROBE_DELAY);
        } else {
            self.enter(State::Settled, self.hold);
        }
    }

    /// Begins a measurement that lasts for `time` or longer.
    fn enter(&mut self, state: State, time: Duration) {
        self.state = state;
        self.due = self.began + time;
    }

    fn start_trial(&mut self, round: Round, measured: Measured) {
        let base = Base {
            workers: self.workers,
            throughput: measured.throughput,
        };
        if base.workers == 1 {
            self.direction = Direction::More;
        } else if base.workers >= measured.most {
            self.direction = Direction::Fewer;
        }
        self.workers = match self.direction {
            Direction::More => (base.workers * 2).min(measured.most),
            Direction::Fewer => base.workers.div_ceil(2),
        };
        let time = (measured.lasted / TRIES).clamp(SHORTEST, LONGEST);
        self.enter(State::Trial { round, base }, time);
    }

    /// Ends a trial.
    fn judge(&mut self, round: Round, base: Base, measured: Measured) {
        let is_more = self.workers > base.workers;
        let needed = if is_more { MORE } else { FEWER };
        let pays = measured.throughput / base.throughput >= needed;
        let may_grow = is_more && self.workers < measured.most;
        match (round, pays) {
            (Round::First, true) => {
                self.workers = base.workers;
                self.enter(State::Recheck, measured.lasted.min(LONGEST));
            }
            (Round::Climb, true) if may_grow => self.grow(State::Climb),
            (Round::Second, true) if may_grow => self.grow(State::Settled),
            (Round::Climb | Round::Second, true) => {
                self.hold = HOLD_RANGE[0];
                self.settle(Duration::ZERO);
            }
            (Round::Climb, false) => {
                self.hold = HOLD_RANGE[0];
                self.go_back(base, measured.lasted);
            }
            (Round::First | Round::Second, false) => self.go_back(base, measured.lasted),
        }
    }

    /// Measures the new number only briefly, since still more may be faster.
    fn grow(&mut self, state: State) {
        self.hold = HOLD_RANGE[0];
        self.enter(state, SHORTEST);
    }

    /// Returns to the number before the trial. The next one goes the other way.
    fn go_back(&mut self, base: Base, lasted: Duration) {
        self.workers = base.workers;
        self.direction = match self.direction {
            Direction::More => Direction::Fewer,
            Direction::Fewer => Direction::More,
        };
        // A stall may have made the trial very long: it counts as LONGEST.
        self.settle(lasted.min(LONGEST) * TRIES);
    }

    /// Keeps the present number for `least` or longer, and the next one for twice as long.
    fn settle(&mut self, least: Duration) {
        self.enter(State::Settled, self.hold.max(least));
        self.hold = (self.hold * 2).min(HOLD_RANGE[1]);
    }
}

mod tuning;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
