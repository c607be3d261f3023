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
//!          | initial < cores                  | initial = cores, or 1
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
//! beginning, as in a tree that no cache holds, the governor begins with all of them, because
//! the latency of a disk varies too much to be judged in milliseconds. If they begin to
//! compute later, as many are as fast as fewer, so only a measurement makes them fewer.
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

/// Where there is a backlog after this, other workers are let in: starting a
/// thread costs about as much as removing thirty files, and a small tree is done by then.
pub(super) const FIRST: Duration = Duration::from_micros(400);
/// The shortest measurement.
const SHORTEST: Duration = Duration::from_millis(2);
/// However long the waits in it, it lasts no longer than this, or than is due.
const LONGEST: Duration = Duration::from_millis(40);
/// Where not enough has been told, it is looked at again after this.
const RETRY_DELAY: Duration = Duration::from_micros(500);
/// The longest wait is at most one of so many parts of a measurement's busy time ...
const PARTS: u32 = 6;
/// ... and so much of the workers' time is accounted for.
const ACCOUNTED: f64 = 0.6;
/// More workers are kept if the throughput rises by this factor.
const MORE: f64 = 1.1;
/// Fewer are kept if it rises by this one.
const FEWER: f64 = 1.05;
/// When it is looked whether the workers wait.
const PROBE_DELAY: Duration = Duration::from_millis(10);
/// They do if they use less of the processors that they could use. (It is three
/// quarters where two workers share one of two cores with somebody else.)
const LOAD: f64 = 0.7;
/// How long what is known to be good is left alone at first.
const INITIAL_HOLD: Duration = Duration::from_millis(192);
/// How long something else is, and how long anything at most, unless the tries take long.
const HOLD_RANGE: [Duration; 2] = [Duration::from_millis(24), Duration::from_millis(768)];
/// A try takes about one of so many parts of the time.
const TRIES: u32 = 24;

/// How many workers are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// While they compute.
    pub(crate) computing: usize,
    /// While they wait most of the time; at least as many.
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

/// What a trial has to prove.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Round {
    /// One win suffices.
    Climb,
    /// A win must be repeated.
    First,
    /// This is the repetition.
    Second,
}

/// The number of workers before a trial, and their throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Base {
    workers: usize,
    throughput: f64,
}

/// What a measurement has shown.
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
    /// Where the next trial goes, if both are possible.
    direction: Direction,
}

impl Governor {
    /// Begins with one worker, and after [`FIRST`] has `initial` ones, if so many are allowed.
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

    /// Returns how many there may ever be.
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

    /// Returns when to step it next, as time since the start; `None` if never.
    pub(super) fn due(&self) -> Option<Duration> {
        (self.limits.waiting > 1).then_some(self.due)
    }

    /// Takes note of what the workers have done since the last step that returned `true`.
    /// Returns `true` if it has decided; a new measurement then begins.
    pub(super) fn step(&mut self, now: Duration, sample: Sample) -> bool {
        // A worker may have read the clock before another one stepped the governor.
        let lasted = now.saturating_sub(self.began);
        if !self.is_enough(lasted, sample) {
            self.due = now + RETRY_DELAY;
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
    /// lasts as long as several of the longest waits do.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a governor for `time` on work that goes `speedup(n)` times as fast
    /// on n workers. Returns the share of the time that each number of workers had.
    fn shares(
        governor: Governor,
        time: Duration,
        mut speedup: impl FnMut(usize) -> f64,
    ) -> Vec<f64> {
        shares_with_load(governor, time, |n| (speedup(n), 1.0))
    }

    /// Does the same for work that keeps fewer processors busy: `work(n)` returns both figures.
    fn shares_with_load(
        mut governor: Governor,
        time: Duration,
        mut work: impl FnMut(usize) -> (f64, f64),
    ) -> Vec<f64> {
        let mut now = Duration::ZERO;
        let mut sample = Sample::default();
        let mut shares = vec![0.0; governor.most() + 1];
        let tick = Duration::from_micros(100);
        while now < time {
            now += tick;
            let workers = governor.workers();
            shares[workers] += tick.as_secs_f64() / time.as_secs_f64();
            sample.busy += tick * workers as u32;
            let (speedup, processors) = work(workers);
            sample.work += (1000.0 * speedup) as u64;
            sample.cpu += tick.mul_f64(processors);
            sample.longest = tick / 2;
            if governor.due().is_some_and(|due| now >= due) && governor.step(now, sample) {
                sample = Sample::default();
            }
        }
        shares
    }

    #[test]
    fn stays_with_one_worker_if_two_are_slower() {
        let time = Duration::from_millis(300);
        let shares = shares(Governor::new(Limits::of(2), 1), time, |n| 1.0 / n as f64);
        assert!(shares[1] > 0.95, "{shares:?}");
    }

    #[test]
    fn goes_back_to_one_worker_if_two_turn_out_slower() {
        let time = Duration::from_secs(1);
        let shares = shares(Governor::new(Limits::of(2), 2), time, |n| 1.0 / n as f64);
        assert!(shares[1] > 0.75, "{shares:?}");
    }

    #[test]
    fn soon_uses_all_workers_if_each_adds_throughput() {
        for initial in [1, 2] {
            let time = Duration::from_secs(2);
            let shares = shares(Governor::new(Limits::of(16), initial), time, |n| n as f64);
            assert!(shares[16] > 0.85, "{initial}: {shares:?}");
        }
    }

    #[test]
    fn finds_the_number_above_which_throughput_does_not_rise() {
        let time = Duration::from_millis(500);
        let shares = shares(Governor::new(Limits::of(16), 2), time, |n| n.min(4) as f64);
        assert!(shares[4] > 0.85, "{shares:?}");
    }

    #[test]
    fn lowers_the_number_when_the_work_changes() {
        let mut calls = 0;
        let shares = shares(
            Governor::new(Limits::of(2), 2),
            Duration::from_secs(1),
            |n| {
                calls += 1;
                if calls < 5000 {
                    n as f64
                } else {
                    1.0 / n as f64
                }
            },
        );
        assert!((0.2..0.7).contains(&shares[1]), "{shares:?}");
    }

    const TWO_CORES: Limits = Limits {
        computing: 2,
        waiting: 8,
    };

    #[test]
    fn runs_more_workers_than_cores_if_they_wait() {
        let time = Duration::from_millis(500);
        let shares = shares_with_load(Governor::new(TWO_CORES, 2), time, |n| {
            (n as f64, 0.1 * n as f64)
        });
        assert!(shares[8] > 0.85, "{shares:?}");
    }

    #[test]
    fn runs_no_more_workers_than_cores_if_they_compute() {
        let time = Duration::from_secs(2);
        let shares = shares_with_load(Governor::new(TWO_CORES, 2), time, |n| {
            // Only the limit on cores keeps it from using all eight.
            (n as f64, n.min(2) as f64)
        });
        assert!(shares[2] > 0.9, "{shares:?}");
        assert_eq!(shares[3..], [0.0; 6]);
    }

    #[test]
    fn an_initial_single_worker_stays_alone_even_if_it_waits() {
        let time = Duration::from_millis(150);
        let shares = shares_with_load(Governor::new(TWO_CORES, 1), time, |n| (n as f64, 0.0));
        assert!(shares[1] > 0.99, "{shares:?}");
    }

    /// Returns pseudo-random numbers from 0 to 1, the same ones in each run.
    fn noise() -> impl FnMut() -> f64 {
        let mut state = 1_u64;
        move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / (1_u64 << 24) as f64
        }
    }

    #[test]
    fn keeps_both_workers_on_a_noisy_machine() {
        // Every three milliseconds, the second worker has another share of a core.
        let (mut noise, mut calls, mut luck) = (noise(), 0, 0.0);
        let shares = shares(
            Governor::new(Limits::of(2), 2),
            Duration::from_secs(2),
            |n| {
                calls += 1;
                if calls % 30 == 1 {
                    luck = noise();
                }
                1.0 + luck * 0.6 * (n - 1) as f64
            },
        );
        assert!(shares[2] > 0.9, "{shares:?}");
    }

    #[test]
    fn a_stall_during_a_trial_does_not_delay_the_next_trial_for_long() {
        let mut governor = Governor::new(Limits::of(2), 2);
        let sample = |busy| Sample {
            work: 1000,
            busy,
            longest: Duration::from_micros(10),
            ..Sample::default()
        };
        governor.step(FIRST, Sample::default());
        let tried = FIRST + INITIAL_HOLD;
        assert!(governor.step(tried, sample(2 * INITIAL_HOLD)));
        assert_eq!(governor.workers(), 1);
        // No worker makes progress during this trial.
        let stalled = tried + Duration::from_secs(10);
        assert!(governor.step(stalled, sample(Duration::from_secs(10))));
        assert_eq!(governor.workers(), 2);
        let due = governor.due().unwrap();
        assert!(due <= stalled + LONGEST * TRIES, "{due:?}");
    }

    #[test]
    fn slow_operations_delay_the_first_trial() {
        let mut governor = Governor::new(Limits::of(2), 2);
        let sample = |busy| Sample {
            work: 1000,
            busy,
            longest: Duration::from_millis(4),
            ..Sample::default()
        };
        governor.step(FIRST, Sample::default());
        assert!(!governor.step(FIRST + INITIAL_HOLD, sample(2 * INITIAL_HOLD)));
        assert_eq!(governor.workers(), 2);
        let due = governor.due().unwrap();
        assert_eq!(due, FIRST + Duration::from_millis(576));
        assert!(governor.step(due, sample(2 * due)));
        assert_eq!(governor.workers(), 1);
    }

    #[test]
    fn half_of_three_workers_is_two() {
        let mut governor = Governor::new(Limits::of(3), 3);
        governor.step(FIRST, Sample::default());
        let sample = Sample {
            work: 1000,
            busy: 3 * INITIAL_HOLD,
            ..Sample::default()
        };
        assert!(governor.step(FIRST + INITIAL_HOLD, sample));
        assert_eq!(governor.workers(), 2);
    }

    #[test]
    fn a_measurement_with_one_long_wait_is_prolonged() {
        let mut governor = Governor::new(Limits::of(4), 2);
        assert!(governor.step(FIRST, Sample::default()));
        assert_eq!(governor.workers(), 2);
        // Two milliseconds of two workers, most of it in one call.
        let now = FIRST + Duration::from_millis(2);
        let sample = Sample {
            work: 100,
            busy: Duration::from_millis(4),
            longest: Duration::from_millis(2),
            ..Sample::default()
        };
        assert!(!governor.step(now, sample));
        // One of the workers has not recorded anything since.
        let sample = Sample {
            work: 4000,
            busy: Duration::from_millis(6),
            longest: Duration::from_micros(10),
            ..Sample::default()
        };
        assert!(!governor.step(FIRST + Duration::from_millis(6), sample));
    }

    #[test]
    fn a_step_with_an_older_clock_changes_nothing() {
        let mut governor = Governor::new(Limits::of(4), 2);
        governor.step(FIRST, Sample::default());
        assert!(!governor.step(FIRST / 2, Sample::default()));
    }

    #[test]
    fn is_never_due_if_only_one_worker_is_allowed() {
        assert_eq!(Governor::new(Limits::of(1), 2).due(), None);
    }
}
