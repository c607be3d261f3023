//! Tests of the governor on simulated time.

use super::*;

/// Runs a governor for `time` on work that goes `speedup(n)` times as fast
/// on n workers. Returns the share of the time that each number of workers had.
fn shares(governor: Governor, time: Duration, mut speedup: impl FnMut(usize) -> f64) -> Vec<f64> {
    shares_with_load(governor, time, |n| (speedup(n), 1.0))
}

/// Returns the shares for work that may keep fewer processors busy. `work(n)` returns the speed and the number of
/// busy processors.
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
        // Without the limit on cores, the governor would use all eight.
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
    // Two workers worked for two milliseconds, most of it in one call.
    let now = FIRST + Duration::from_millis(2);
    let sample = Sample {
        work: 100,
        busy: Duration::from_millis(4),
        longest: Duration::from_millis(2),
        ..Sample::default()
    };
    assert!(!governor.step(now, sample));
    // One of the workers has not recorded anything in this window.
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
