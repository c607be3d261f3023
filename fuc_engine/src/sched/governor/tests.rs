//! Tests of the governor on simulated time.

use super::*;
use crate::sys::Usage;

mod model;

use model::{Machine, Run, TWO_CORES, Waits, cores};

/// Runs a governor on a machine. Returns the share of the time that each number of workers had.
fn shares(machine: Machine, time: Duration) -> Vec<f64> {
    Run::new(&machine, None, 1).shares(&machine, time)
}

const TWO_WORSE: Machine = Machine {
    speedup: |n| 1.0 / n as f64,
    ..TWO_CORES
};

/// Up to 128 workers add throughput, and wait for a server.
const SERVER: Machine = Machine {
    lap: Duration::from_millis(1),
    speedup: |n| n as f64,
    waits: Waits::Server,
    ..TWO_CORES
};

const ANY: [SecondWorker; 3] = [
    SecondWorker::SeldomPays,
    SecondWorker::Unknown,
    SecondWorker::Pays,
];

#[test]
fn stays_with_one_worker_if_two_are_slower() {
    for second in [SecondWorker::SeldomPays, SecondWorker::Unknown] {
        let machine = Machine {
            second,
            ..TWO_WORSE
        };
        let shares = shares(machine, Duration::from_millis(300));
        assert!(shares[1] > 0.95, "{second:?}: {shares:?}");
    }
}

#[test]
fn goes_back_to_one_worker_if_two_turn_out_slower() {
    let shares = shares(TWO_WORSE, Duration::from_secs(1));
    assert!(shares[1] > 0.75, "{shares:?}");
}

#[test]
fn soon_uses_a_second_worker_of_which_nothing_is_known() {
    let machine = Machine {
        second: SecondWorker::Unknown,
        ..TWO_CORES
    };
    let shares = shares(machine, Duration::from_millis(300));
    assert!(shares[2] > 0.95, "{shares:?}");
}

#[test]
fn soon_uses_all_workers_if_each_adds_throughput() {
    for (second, seconds) in ANY.into_iter().zip([7, 2, 2]) {
        let machine = Machine {
            limits: cores(16),
            second,
            speedup: |n| n as f64,
            ..TWO_CORES
        };
        let shares = shares(machine, Duration::from_secs(seconds));
        assert!(shares[16] > 0.85, "{second:?}: {shares:?}");
    }
}

#[test]
fn finds_the_number_above_which_throughput_does_not_rise() {
    let machine = Machine {
        limits: cores(16),
        speedup: |n| n.min(4) as f64,
        ..TWO_CORES
    };
    let shares = shares(machine, Duration::from_millis(500));
    assert!(shares[4] > 0.85, "{shares:?}");
}

#[test]
fn lowers_the_number_when_the_work_changes() {
    let mut run = Run::new(&TWO_CORES, None, 1);
    let before = run.shares(&TWO_CORES, Duration::from_millis(500));
    assert!(before[2] > 0.9, "{before:?}");
    let after = run.shares(&TWO_WORSE, Duration::from_millis(500));
    assert!(after[1] > 0.2, "{after:?}");
}

#[test]
fn soon_uses_all_workers_if_they_wait_for_a_disk_or_a_server() {
    for waits in [Waits::Disk, Waits::Server] {
        for second in ANY {
            let machine = Machine {
                second,
                waits,
                ..SERVER
            };
            let shares = shares(machine, Duration::from_millis(500));
            assert!(shares[128] > 0.85, "{second:?}: {shares:?}");
        }
    }
}

#[test]
fn stops_at_the_number_above_which_a_server_is_not_faster() {
    let machine = Machine {
        speedup: |n| n.min(16) as f64,
        ..SERVER
    };
    let shares = shares(machine, Duration::from_millis(500));
    assert!(shares[16] + shares[32] > 0.75, "{shares:?}");
    assert_eq!(shares[128], 0.0, "{shares:?}");
}

/// From 16 workers on, each doubling makes them faster by this factor.
fn speed_with_gain(n: usize, gain: f64) -> f64 {
    match n {
        0..16 => n as f64,
        _ => 16.0 * f64::powf(gain, (n as f64 / 16.0).log2()),
    }
}

#[test]
fn pauses_a_climb_of_many_workers_that_gains_little() {
    let much: fn(usize) -> f64 = |n| speed_with_gain(n, 1.9);
    let little: fn(usize) -> f64 = |n| speed_with_gain(n, 1.3);
    for (speedup, goes_on) in [(much, true), (little, false)] {
        let machine = Machine {
            lap: Duration::from_micros(450),
            speedup,
            ..SERVER
        };
        let short = shares(machine, Duration::from_millis(30));
        assert_eq!(short[64] + short[128] > 0.0, goes_on, "{short:?}");
        let long = shares(machine, Duration::from_secs(1));
        assert!(long[128] > 0.8, "{long:?}");
    }
}

#[test]
fn runs_no_more_workers_than_cores_if_they_contend_for_a_lock() {
    for second in ANY {
        let machine = Machine {
            second,
            speedup: |n| [1.0, 1.2, 0.9, 0.7][n.min(4) - 1],
            waits: Waits::Lock(|_| 0.9),
            ..TWO_CORES
        };
        let shares = shares(machine, Duration::from_millis(500));
        let many: f64 = shares[3..].iter().sum();
        assert!(many < 0.1, "{second:?}: {shares:?}");
    }
}

#[test]
fn runs_no_more_workers_than_cores_if_they_compute() {
    // Without the limit on cores, the governor would use all of them.
    let machine = Machine {
        speedup: |n| n as f64,
        ..TWO_CORES
    };
    let shares = shares(machine, Duration::from_secs(2));
    assert!(shares[2] > 0.9, "{shares:?}");
    assert_eq!(shares[3..].iter().sum::<f64>(), 0.0);
}

#[test]
fn goes_back_to_the_number_of_cores_when_the_workers_compute() {
    let mut run = Run::new(&SERVER, None, 1);
    run.shares(&SERVER, Duration::from_millis(200));
    assert!(run.governor().workers() > 2);
    let computing = Machine {
        lap: Duration::from_micros(8),
        ..TWO_CORES
    };
    let shares = run.shares(&computing, Duration::from_secs(1));
    assert!(shares[2] > 0.5, "{shares:?}");
}

#[test]
fn returns_at_once_from_a_number_that_has_won_by_chance() {
    let mut governor = Governor::new(Limits::of(4), SecondWorker::Pays);
    governor.step(FIRST, first_lap());
    let began = measure(&mut governor, FIRST, 2.0, Duration::ZERO);
    let began = measure(&mut governor, began, 4.0, Duration::ZERO);
    assert_eq!((governor.workers(), governor.state), (4, State::Settled));
    assert_eq!(governor.due(), Some(began + HOLD_RANGE[0]));
    measure(&mut governor, began, 1.0, Duration::ZERO);
    assert_eq!((governor.workers(), governor.state), (2, State::Settled));
}

#[test]
fn long_waits_do_not_delay_the_check_of_a_number_that_has_won() {
    let mut governor = Governor::new(Limits::of(2), SecondWorker::SeldomPays);
    let mut began = Duration::ZERO;
    // Two workers win a trial.
    for speed in [1.0, 1.0, 1.0, 2.0] {
        began = measure(&mut governor, began, speed, Duration::ZERO);
    }
    assert_eq!((governor.workers(), governor.state), (2, State::Settled));
    let kept = governor.due().unwrap() - began;
    assert_eq!(kept, HOLD_RANGE[0]);
    let longest = kept * 2 / PARTS;

    // They turn out slower, because calls now wait for the log.
    let mut slower = Governor { ..governor };
    measure(&mut slower, began, 0.7, longest);
    assert_eq!((slower.workers(), slower.state), (1, State::Settled));

    // They are as fast as before. With such waits, the next trial is late, but checks go on.
    let began = measure(&mut governor, began, 2.0, longest);
    assert_eq!((governor.workers(), governor.state), (2, State::Settled));
    assert_eq!(governor.due(), Some(began + HOLD_RANGE[0] * 2));
    measure(&mut governor, began, 0.7, longest);
    assert_eq!((governor.workers(), governor.state), (1, State::Settled));
}

/// Returns what is known when the governor steps for the first time, if entries are fast.
fn first_lap() -> Sample {
    Sample {
        work: 32.0,
        busy: FIRST,
        longest: FIRST,
        ..Sample::default()
    }
}

/// Steps a governor as soon as it is due, after work that went `speed` times as fast as one worker
/// and whose longest wait was `longest`. Returns the time of the step.
fn measure(governor: &mut Governor, began: Duration, speed: f64, longest: Duration) -> Duration {
    let now = governor.due().unwrap();
    let lasted = now - began;
    let sample = Sample {
        work: 1e6 * speed * lasted.as_secs_f64(),
        busy: lasted * governor.workers() as u32,
        longest,
        ..Sample::default()
    };
    assert!(governor.step(now, sample));
    now
}

#[test]
fn climbs_above_the_number_of_cores_only_if_the_workers_wait_for_requests() {
    for (waits, climbs) in [(Waits::Lock(|_| 0.1), false), (Waits::Server, true)] {
        let machine = Machine {
            second: SecondWorker::Unknown,
            waits,
            ..SERVER
        };
        let shares = shares(machine, HOLD_RANGE[0]);
        let many: f64 = shares[3..].iter().sum();
        assert_eq!(many > 0.0, climbs, "{shares:?}");
    }
}

#[test]
fn keeps_both_workers_on_a_noisy_machine() {
    let machine = Machine {
        speedup: |n| [1.0, 1.4][n.min(2) - 1],
        noise: 0.6,
        ..TWO_CORES
    };
    let shares = shares(machine, Duration::from_secs(2));
    assert!(shares[2] > 0.9, "{shares:?}");
}

#[test]
fn a_stall_during_a_trial_does_not_delay_the_next_trial_for_long() {
    let mut governor = Governor::new(Limits::of(2), SecondWorker::Pays);
    let sample = |busy| Sample {
        work: 1000.0,
        busy,
        longest: Duration::from_micros(10),
        ..Sample::default()
    };
    governor.step(FIRST, first_lap());
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
    let mut governor = Governor::new(Limits::of(2), SecondWorker::Pays);
    let sample = |busy| Sample {
        work: 1000.0,
        busy,
        longest: Duration::from_millis(4),
        ..Sample::default()
    };
    governor.step(FIRST, first_lap());
    assert!(!governor.step(FIRST + INITIAL_HOLD, sample(2 * INITIAL_HOLD)));
    assert_eq!(governor.workers(), 2);
    let due = governor.due().unwrap();
    assert_eq!(due, FIRST + Duration::from_millis(576));
    assert!(governor.step(due, sample(2 * due)));
    assert_eq!(governor.workers(), 1);
}

#[test]
fn half_of_three_workers_is_two() {
    let machine = Machine {
        limits: Limits::of(3),
        speedup: |n| n as f64,
        ..TWO_CORES
    };
    let shares = shares(machine, Duration::from_secs(1));
    assert!(shares[3] > 0.9 && shares[1] < 0.01, "{shares:?}");
}

#[test]
fn a_measurement_with_one_long_wait_is_prolonged() {
    let mut governor = Governor::new(Limits::of(4), SecondWorker::Pays);
    assert!(governor.step(FIRST, first_lap()));
    assert_eq!(governor.workers(), 2);
    // Two workers worked for two milliseconds, most of it in one call.
    let now = FIRST + Duration::from_millis(2);
    let sample = Sample {
        work: 100.0,
        busy: Duration::from_millis(4),
        longest: Duration::from_millis(2),
        ..Sample::default()
    };
    assert!(!governor.step(now, sample));
    // One of the workers has not recorded anything in this window.
    let sample = Sample {
        work: 4000.0,
        busy: Duration::from_millis(6),
        longest: Duration::from_micros(10),
        ..Sample::default()
    };
    assert!(!governor.step(FIRST + Duration::from_millis(6), sample));
}

#[test]
fn a_step_with_an_older_clock_changes_nothing() {
    let mut governor = Governor::new(Limits::of(4), SecondWorker::Pays);
    governor.step(FIRST, first_lap());
    assert!(!governor.step(FIRST / 2, Sample::default()));
}

#[test]
fn is_never_due_if_only_one_worker_is_allowed() {
    assert_eq!(Governor::new(Limits::of(1), SecondWorker::Pays).due(), None);
}

fn usage(cpu: Duration, voluntary_switches: u64) -> Usage {
    Usage {
        cpu,
        voluntary_switches,
        blocks_read: 0,
    }
}

#[test]
fn a_stall_is_not_taken_for_waiting_workers() {
    let mut governor = Governor::new(cores(2), SecondWorker::Pays);
    governor.step(FIRST, first_lap());
    let probe = governor.due().unwrap();
    // Both workers waited for a full log once, and had not done much before.
    let stall = Duration::from_millis(54);
    let sample = Sample {
        work: 66.0,
        busy: stall + Duration::from_millis(4),
        longest: stall,
        usage: usage(Duration::from_millis(1), 6),
        ..Sample::default()
    };
    assert!(!governor.step(probe + stall, sample));
    assert_eq!(governor.workers(), 2);
    let later = probe + stall * 3;
    let sample = Sample {
        work: 30_000.0,
        busy: stall * 6,
        usage: usage(stall * 4, 6),
        ..sample
    };
    assert!(governor.step(later, sample));
    assert_eq!((governor.workers(), governor.state), (2, State::Settled));
}

#[test]
fn a_stall_of_both_workers_is_not_taken_for_a_slow_server() {
    let mut governor = Governor::new(cores(2), SecondWorker::Pays);
    governor.step(FIRST, first_lap());
    // A copy to an XFS whose log was full: both workers waited for 43 ms.
    let sample = Sample {
        work: 377.0,
        slow_work: 64.0,
        busy: Duration::from_millis(88),
        longest: Duration::from_millis(43),
        usage: usage(Duration::from_millis(3), 14),
    };
    assert!(!governor.step(Duration::from_millis(45), sample));
    assert_eq!(governor.workers(), 2);
    let sample = Sample {
        work: 7_000.0,
        busy: Duration::from_millis(200),
        usage: usage(Duration::from_millis(110), 300),
        ..sample
    };
    assert!(governor.step(Duration::from_millis(101), sample));
    assert_eq!((governor.workers(), governor.state), (2, State::Settled));
}
