//! Tests of the governor on simulated time.

use super::*;
use crate::sys::Usage;

mod model;

use model::{Machine, Run, TWO_CORES, Waits, cores};

const TWO_WORSE: Machine = Machine {
    speedup: |n| 1.0 / n as f64,
    ..TWO_CORES
};

/// Up to 128 workers add throughput, and wait for a server.
const SERVER: Machine = Machine {
    interval: Duration::from_millis(1),
    speedup: |n| n as f64,
    waits: Waits::Server,
    ..TWO_CORES
};

const SELDOM: SecondWorker = SecondWorker::SeldomPays;
const UNKNOWN: SecondWorker = SecondWorker::Unknown;
const PAYS: SecondWorker = SecondWorker::Pays;
const ANY: &[SecondWorker] = &[SELDOM, UNKNOWN, PAYS];

/// A reason, what is known of a second worker, a machine, the milliseconds of a run, and what must be true of its shares.
type Row = (
    &'static str,
    &'static [SecondWorker],
    Machine,
    u64,
    fn(&[f64]) -> bool,
);

#[test]
fn the_number_of_workers_suits_the_machine() {
    let cores_16 = |speedup| Machine {
        limits: cores(16),
        interval: Duration::from_micros(400),
        speedup,
        ..TWO_CORES
    };
    let on_server = |speedup| Machine { speedup, ..SERVER };
    let waiting = |waits| Machine { waits, ..SERVER };
    let three_cores = Machine {
        limits: Limits::of(3),
        speedup: |n| n as f64,
        ..TWO_CORES
    };
    // From 16 workers on, each doubling makes them faster by 1.3.
    let little = Machine {
        interval: Duration::from_micros(450),
        speedup: |n| match n {
            0..16 => n as f64,
            _ => 16.0 * f64::powf(1.3, (n as f64 / 16.0).log2()),
        },
        ..SERVER
    };
    let rows: &[Row] = &[
        ("two are slower", &[SELDOM, UNKNOWN], TWO_WORSE, 300, |s| {
            s[1] > 0.95
        }),
        ("two are faster", &[UNKNOWN], TWO_CORES, 300, |s| {
            s[2] > 0.95
        }),
        (
            "16 are useful",
            &[SELDOM],
            cores_16(|n| n as f64),
            7_000,
            |s| s[16] > 0.85,
        ),
        (
            "four are useful",
            &[PAYS],
            cores_16(|n| n.min(4) as f64),
            500,
            |s| s[4] > 0.85,
        ),
        ("half of three is two", &[PAYS], three_cores, 1_000, |s| {
            s[3] > 0.9 && s[1] < 0.01
        }),
        (
            "they wait for a disk",
            ANY,
            waiting(Waits::Disk),
            500,
            |s| s[128] > 0.85,
        ),
        (
            "they wait for a server",
            ANY,
            waiting(Waits::Server),
            500,
            |s| s[128] > 0.85,
        ),
        (
            "the server serves 16",
            &[PAYS],
            on_server(|n| n.min(16) as f64),
            500,
            |s| s[16] + s[32] > 0.75 && s[128] == 0.0,
        ),
        ("a doubling gains little", &[PAYS], little, 30, |s| {
            s[64] + s[128] == 0.0
        }),
        ("even that pays later", &[PAYS], little, 1_000, |s| {
            s[128] > 0.8
        }),
        (
            "only locks make them wait",
            &[UNKNOWN],
            waiting(Waits::Lock(|_| 0.1)),
            24,
            |s| s[3..].iter().sum::<f64>() == 0.0,
        ),
    ];
    for &(reason, seconds, machine, millis, is_right) in rows {
        for &second in seconds {
            let machine = Machine { second, ..machine };
            let mut run = Run::new(&machine, None, 1);
            let shares = run.shares(&machine, Duration::from_millis(millis));
            assert!(is_right(&shares), "{reason}, {second:?}: {shares:?}");
        }
    }
}

#[test]
fn the_number_of_workers_is_lowered_when_the_work_changes() {
    let mut run = Run::new(&TWO_CORES, None, 1);
    let before = run.shares(&TWO_CORES, Duration::from_millis(500));
    assert!(before[2] > 0.9, "{before:?}");
    let after = run.shares(&TWO_WORSE, Duration::from_millis(500));
    assert!(after[1] > 0.2, "{after:?}");

    let mut run = Run::new(&SERVER, None, 1);
    run.shares(&SERVER, Duration::from_millis(200));
    assert!(run.governor().workers() > 2);
    let computing = Machine {
        interval: Duration::from_micros(8),
        ..TWO_CORES
    };
    let shares = run.shares(&computing, Duration::from_secs(1));
    assert!(shares[2] > 0.5, "{shares:?}");
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
fn first_interval() -> Sample {
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
fn a_step_with_an_older_clock_changes_nothing_and_one_worker_needs_none() {
    let mut governor = Governor::new(Limits::of(4), SecondWorker::Pays);
    governor.step(FIRST, first_interval());
    assert!(!governor.step(FIRST / 2, Sample::default()));
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
fn a_stall_of_both_workers_is_not_taken_for_a_slow_server() {
    let mut governor = Governor::new(cores(2), SecondWorker::Pays);
    governor.step(FIRST, first_interval());
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
