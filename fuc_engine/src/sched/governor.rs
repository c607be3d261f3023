//! How many workers pay.
//!
//! More are not faster everywhere: on some filesystems a second one doubles
//! the time. So the throughput decides. Workers tell what they finished and
//! how long they were at it; whoever tells it after a measurement is due
//! steps the governor. There is no thread and no timer.
//!
//! ```text
//!   Base: n work, for a time that doubles while nothing changes
//!    |^
//!    v|  does not pay: back to n, next time the other direction
//!   Try: 2n work, or n/2
//!    |^
//!    v|  pays: back to n and once more; the second time stay with it
//!   Base
//! ```
//!
//! Where workers compute, more than there are cores are no use, and are not tried;
//! where most of their time they wait, for a disk or a server, more requests are
//! under way with more of them. So the processor time of the process tells
//! how many there may be. Where they wait from the beginning, as in a tree that is in
//! no cache, it begins with all of them: what a disk does in some milliseconds
//! differs by more than can be judged. If they begin to compute, they are as fast as
//! fewer would be, so only a measurement makes them fewer.
//!
//! A try that is wrongly believed costs far more than one that has to be made
//! again, and on a busy machine every measurement is a draw: so it takes two,
//! and fewer workers have to be faster, not just as fast. Nor does it begin
//! from nothing, but with the number that is known to be good, and climbs from there.
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

/// Workers at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Where they compute.
    pub(crate) computing: usize,
    /// Where most of the time they wait; no less.
    pub(crate) waiting: usize,
}

impl Limits {
    /// As many as `most` in any case.
    pub(crate) fn of(most: usize) -> Self {
        Self {
            computing: most,
            waiting: most,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Not begun.
    Start,
    /// Finding out whether the workers wait.
    Probe,
    /// Left alone, and measured, before a try.
    Base,
    /// Measuring another number against the throughput that `from` workers had.
    Try { base: f64, from: usize },
}

/// A hill climber over numbers of workers.
#[derive(Debug)]
pub(super) struct Governor {
    workers: usize,
    limits: Limits,
    /// What to begin with.
    good: usize,
    phase: Phase,
    began: Duration,
    due: Duration,
    hold: Duration,
    /// Whether the next try is of more workers (else of fewer).
    upward: bool,
    /// Whether the last try has paid, and is to be made once more.
    has_paid: bool,
    /// Whether more have paid each time so far: one measurement is then enough.
    is_climbing: bool,
}

impl Governor {
    /// Begins with one worker, and after [`FIRST`] has `good` ones, if so many may be.
    pub(super) fn new(limits: Limits, good: usize) -> Self {
        let most = limits.computing;
        Self {
            workers: 1,
            limits,
            good: good.min(most),
            phase: Phase::Start,
            began: Duration::ZERO,
            due: FIRST,
            hold: INITIAL_HOLD,
            upward: true,
            has_paid: false,
            is_climbing: good > 1 && good < most,
        }
    }

    pub(super) fn workers(&self) -> usize {
        self.workers
    }

    pub(super) fn most(&self) -> usize {
        self.limits.waiting
    }

    /// No more than `most` workers can be had after all.
    pub(super) fn limit(&mut self, most: usize) {
        if most < self.limits.waiting {
            self.limits.waiting = most;
            self.limits.computing = self.limits.computing.min(most);
            self.workers = self.workers.min(most);
            self.has_paid = false;
            self.measure_base(self.hold);
        }
    }

    /// When it wants to be stepped again, as time since the start; `None`: never.
    pub(super) fn due(&self) -> Option<Duration> {
        (self.limits.waiting > 1).then_some(self.due)
    }

    /// Takes note of what was told since the last step that returned true;
    /// returns whether a new measurement begins.
    pub(super) fn step(&mut self, now: Duration, sample: Sample) -> bool {
        // Who steps may have looked at the clock before another one stepped.
        let lasted = now.saturating_sub(self.began);
        if !self.is_enough(lasted, sample) {
            self.due = now + RETRY_DELAY;
            return false;
        }
        let worth_a_try = self.worth_a_try(sample);
        if lasted < worth_a_try {
            self.due = self.began + worth_a_try;
            return false;
        }
        let throughput =
            self.workers as f64 * sample.work as f64 / sample.busy.as_secs_f64().max(1e-9);
        let most = self.most_while(lasted, sample.cpu);
        self.began = now.max(self.began);
        match self.phase {
            Phase::Start => self.begin(),
            Phase::Probe => {
                if self.good > 1 {
                    self.workers = most;
                }
                self.measure_base(self.hold);
            }
            Phase::Base => self.try_another(throughput, lasted, most),
            Phase::Try { base, from } => self.judge(throughput / base, (from, most), lasted),
        }
        true
    }

    /// Workers at most, to judge by the processor time that was used meanwhile.
    fn most_while(&self, lasted: Duration, cpu: Duration) -> usize {
        let usable = lasted * self.workers.min(self.limits.computing) as u32;
        let load = cpu.as_secs_f64() / usable.as_secs_f64().max(1e-9);
        if load < LOAD {
            self.limits.waiting
        } else {
            self.limits.computing
        }
    }

    fn is_enough(&self, lasted: Duration, sample: Sample) -> bool {
        if self.phase == Phase::Start || lasted >= LONGEST {
            return true;
        }
        let all = (lasted * self.workers as u32).as_secs_f64();
        let accounted = sample.busy.as_secs_f64() / all.max(1e-9);
        accounted >= ACCOUNTED && sample.busy >= sample.longest * PARTS
    }

    /// How long to leave alone what seems good, so that a try, which lasts as long
    /// as some of the longest waits do, is still a small part of the time.
    fn worth_a_try(&self, sample: Sample) -> Duration {
        let try_lasts = sample.longest * PARTS;
        let is_free = self.phase == Phase::Base && !self.is_climbing && !self.has_paid;
        if is_free && try_lasts > SHORTEST {
            (try_lasts * TRIES).min(HOLD_RANGE[1])
        } else {
            Duration::ZERO
        }
    }

    fn begin(&mut self) {
        self.workers = self.good;
        if !self.is_climbing && self.limits.computing < self.limits.waiting {
            self.phase = Phase::Probe;
            self.due = self.began + PROBE_DELAY;
            return;
        }
        let time = if self.is_climbing {
            SHORTEST
        } else {
            self.hold
        };
        self.measure_base(time);
    }

    fn measure_base(&mut self, time: Duration) {
        self.phase = Phase::Base;
        self.due = self.began + time;
    }

    fn try_another(&mut self, base: f64, lasted: Duration, most: usize) {
        let from = self.workers;
        if from == 1 {
            self.upward = true;
        } else if from >= most {
            self.upward = false;
        }
        self.workers = if self.upward {
            (from * 2).min(most)
        } else {
            from.div_ceil(2)
        };
        self.phase = Phase::Try { base, from };
        self.due = self.began + (lasted / TRIES).clamp(SHORTEST, LONGEST);
    }

    fn judge(&mut self, ratio: f64, (from, most): (usize, usize), lasted: Duration) {
        let more = self.workers > from;
        let pays = ratio >= if more { MORE } else { FEWER };
        let is_sure = self.has_paid || self.is_climbing;
        self.has_paid = pays && !is_sure;
        if self.has_paid {
            self.workers = from;
            return self.measure_base(lasted.min(LONGEST));
        }
        if pays || self.is_climbing {
            self.hold = HOLD_RANGE[0];
        }
        if pays && more && self.workers < most {
            return self.measure_base(SHORTEST);
        }
        self.is_climbing = false;
        let mut rest = self.hold;
        if !pays {
            self.workers = from;
            self.upward = !self.upward;
            // However long a stall made it.
            rest = rest.max(lasted.min(LONGEST) * TRIES);
        }
        self.hold = (self.hold * 2).min(HOLD_RANGE[1]);
        self.measure_base(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a governor for `time` on work that goes `speedup(n)` times as fast
    /// on n workers; returns the share of the time for each number.
    fn shares(
        governor: Governor,
        time: Duration,
        mut speedup: impl FnMut(usize) -> f64,
    ) -> Vec<f64> {
        shares_with_load(governor, time, |n| (speedup(n), 1.0))
    }

    /// The same, where that also takes some processors.
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
    fn stays_with_one_worker_where_two_are_slower() {
        let time = Duration::from_millis(300);
        let shares = shares(Governor::new(Limits::of(2), 1), time, |n| 1.0 / n as f64);
        assert!(shares[1] > 0.95, "{shares:?}");
    }

    #[test]
    fn goes_back_to_one_where_two_were_thought_better() {
        let time = Duration::from_secs(1);
        let shares = shares(Governor::new(Limits::of(2), 2), time, |n| 1.0 / n as f64);
        assert!(shares[1] > 0.75, "{shares:?}");
    }

    #[test]
    fn uses_all_workers_soon_where_they_pay() {
        for good in [1, 2] {
            let time = Duration::from_secs(2);
            let shares = shares(Governor::new(Limits::of(16), good), time, |n| n as f64);
            assert!(shares[16] > 0.85, "{good}: {shares:?}");
        }
    }

    #[test]
    fn finds_the_number_above_which_nothing_is_gained() {
        let time = Duration::from_millis(500);
        let shares = shares(Governor::new(Limits::of(16), 2), time, |n| n.min(4) as f64);
        assert!(shares[4] > 0.85, "{shares:?}");
    }

    #[test]
    fn follows_when_the_work_changes() {
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
    fn has_more_workers_than_cores_where_they_wait() {
        let time = Duration::from_millis(500);
        let shares = shares_with_load(Governor::new(TWO_CORES, 2), time, |n| {
            (n as f64, 0.1 * n as f64)
        });
        assert!(shares[8] > 0.85, "{shares:?}");
    }

    #[test]
    fn has_no_more_workers_than_cores_where_they_compute() {
        let time = Duration::from_secs(2);
        let shares = shares_with_load(Governor::new(TWO_CORES, 2), time, |n| {
            // As if more of them could take from others.
            (n as f64, n.min(2) as f64)
        });
        assert!(shares[2] > 0.9, "{shares:?}");
        assert_eq!(shares[3..], [0.0; 6]);
    }

    #[test]
    fn what_is_best_alone_is_not_climbed_from_however_long_it_waits() {
        let time = Duration::from_millis(150);
        let shares = shares_with_load(Governor::new(TWO_CORES, 1), time, |n| (n as f64, 0.0));
        assert!(shares[1] > 0.99, "{shares:?}");
    }

    /// Numbers from 0 to 1, the same each time.
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
    fn is_not_led_astray_by_a_busy_machine() {
        // Each few milliseconds the second worker has a core, or has none.
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
    fn one_stall_does_not_make_it_deaf() {
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
        // Nobody gets anywhere in this try.
        let stalled = tried + Duration::from_secs(10);
        assert!(governor.step(stalled, sample(Duration::from_secs(10))));
        assert_eq!(governor.workers(), 2);
        let due = governor.due().unwrap();
        assert!(due <= stalled + LONGEST * TRIES, "{due:?}");
    }

    #[test]
    fn what_is_long_at_one_thing_is_left_alone_for_longer() {
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
    fn of_three_workers_two_are_tried() {
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
    fn a_single_long_wait_decides_nothing() {
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
        // One of them has not told since.
        let sample = Sample {
            work: 4000,
            busy: Duration::from_millis(6),
            longest: Duration::from_micros(10),
            ..Sample::default()
        };
        assert!(!governor.step(FIRST + Duration::from_millis(6), sample));
    }

    #[test]
    fn a_step_from_before_the_last_one_is_no_step() {
        let mut governor = Governor::new(Limits::of(4), 2);
        governor.step(FIRST, Sample::default());
        assert!(!governor.step(FIRST / 2, Sample::default()));
    }

    #[test]
    fn one_worker_needs_no_steps() {
        assert_eq!(Governor::new(Limits::of(1), 2).due(), None);
    }
}
