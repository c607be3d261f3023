//! `--max-rate`: the most entries or bytes per second that all ranks process together.
//!
//! A worker takes a permit for each entry that it has found in a directory, or for each byte that it has copied. Rank 0
//! issues the permits. So ranks without work use none, and the others can have all.
//!
//! ```text
//!   worker                   main thread                   rank 0
//!   ------                   -----------                   ------
//!   finds no permit ───────▶ WantPermits ────────────────▶ queues the rank
//!   waits                                                  a portion is due
//!   takes one       ◀─────── adds the portion  ◀────────── Permits
//! ```

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_channel::Sender;
use fuc_cli::rate::MaxRate;
use fuc_engine::{Cancel, Throttle};

use crate::message::{Outgoing, Rank};

/// The time between two looks at the token of a worker that waits for a permit.
const CANCEL_INTERVAL: Duration = Duration::from_millis(100);

/// The time for which permits are saved while no rank wants any. It makes up for late ticks.
const MOST_SAVED: Duration = Duration::from_millis(100);

/// The permits of one rank.
#[derive(Debug)]
pub(crate) struct Pace {
    rate: MaxRate,
    permits: Mutex<Permits>,
    issued: Condvar,
    cancel: Cancel,
    outgoing: Sender<Outgoing>,
}

#[derive(Debug, Default)]
struct Permits {
    /// It is negative after a piece of content that was larger than what was left.
    left: i64,
    /// Says whether the rank has asked for more since the last portion.
    has_asked: bool,
}

impl Pace {
    pub(crate) fn new(rate: MaxRate, cancel: &Cancel, outgoing: Sender<Outgoing>) -> Self {
        Self {
            rate,
            permits: Mutex::default(),
            issued: Condvar::new(),
            cancel: cancel.clone(),
            outgoing,
        }
    }

    /// Adds a portion from rank 0.
    pub(crate) fn add(&self, portion: u64) {
        let mut permits = self.permits();
        permits.left = permits.left.saturating_add_unsigned(portion);
        permits.has_asked = false;
        drop(permits);
        self.issued.notify_all();
    }

    fn permits(&self) -> MutexGuard<'_, Permits> {
        // No change is left half done by a panic.
        self.permits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Throttle for Pace {
    /// Waits until a permit is left, and takes as many as the work needs. In a cancelled run it returns without any.
    fn wait(&self, entries: u64, bytes: u64) {
        let amount = self.rate.amount(entries, bytes);
        if amount == 0 {
            return;
        }
        let mut permits = self.permits();
        while permits.left <= 0 {
            if self.cancel.is_cancelled() {
                return;
            }
            if !permits.has_asked {
                permits.has_asked = true;
                // The main thread listens until the engine has ended.
                let _ = self.outgoing.send(Outgoing::WantPermits);
            }
            let waited = self.issued.wait_timeout(permits, CANCEL_INTERVAL);
            (permits, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        permits.left = permits.left.saturating_sub_unsigned(amount);
    }
}

/// Issues the permits of all ranks, on rank 0. Times are those since the start of the job.
#[derive(Debug)]
pub(crate) struct Issuer {
    /// The permits in one portion.
    portion: u64,
    /// The time that a portion stands for.
    interval: Duration,
    next: Duration,
    waiting: VecDeque<Rank>,
}

impl Issuer {
    /// Makes an issuer of `rate` permits per second. A portion lasts for half a second if all ranks want permits.
    pub(crate) fn new(rate: NonZeroU64, ranks: u32) -> Self {
        let rate = rate.get();
        let portion = (rate / (2 * u64::from(ranks))).max(1);
        Self {
            portion,
            interval: Duration::from_secs_f64(portion as f64 / rate as f64),
            next: Duration::ZERO,
            waiting: VecDeque::new(),
        }
    }

    /// Queues a rank that wants permits.
    pub(crate) fn queue(&mut self, rank: Rank) {
        self.waiting.push_back(rank);
    }

    /// Returns the rank that gets a portion now, and the portion.
    pub(crate) fn issue(&mut self, now: Duration) -> Option<(Rank, u64)> {
        if now < self.next {
            return None;
        }
        let rank = self.waiting.pop_front()?;
        self.next = self.next.max(now.saturating_sub(MOST_SAVED)) + self.interval;
        Some((rank, self.portion))
    }

    /// Returns the time of the next portion, if a rank waits.
    pub(crate) fn next_time(&self) -> Option<Duration> {
        (!self.waiting.is_empty()).then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets `hungry` of the ranks want permits all the time, for 10 seconds. Returns the number that each gets.
    fn issued(rate: u64, ranks: u32, hungry: u32) -> Vec<u64> {
        let mut issuer = Issuer::new(NonZeroU64::new(rate).unwrap(), ranks);
        let mut issued = vec![0; hungry as usize];
        (0..hungry).for_each(|rank| issuer.queue(rank));
        for millis in 0..10_000 {
            while let Some((rank, portion)) = issuer.issue(Duration::from_millis(millis)) {
                issued[rank as usize] += portion;
                issuer.queue(rank);
            }
        }
        issued
    }

    #[test]
    fn all_permits_are_issued_to_the_ranks_that_want_some() {
        for (rate, ranks, hungry) in [
            (1000, 4, 4),
            (1000, 64, 1),
            (50, 64, 64),
            (100_000, 1000, 3),
        ] {
            let issued = issued(rate, ranks, hungry);
            let sum: u64 = issued.iter().sum();
            let due = 10 * rate;
            // The first portion is issued at once, and some may be saved.
            let most = due + due / 20 + due / 100 + 1;
            let case = format!("{rate} {ranks} {hungry}: {sum}");
            assert!((due * 99 / 100..=most).contains(&sum), "{case}");
            let (least, most) = (issued.iter().min(), issued.iter().max());
            let portion = (rate / (2 * u64::from(ranks))).max(1);
            assert!(most.unwrap() - least.unwrap() <= portion, "{case}");
        }
    }

    #[test]
    fn permits_are_hardly_saved_while_no_rank_wants_any() {
        let mut issuer = Issuer::new(NonZeroU64::new(1000).unwrap(), 10);
        let later = Duration::from_secs(100);
        let mut sum = 0;
        (0..100).for_each(|_| issuer.queue(0));
        while let Some((_, portion)) = issuer.issue(later) {
            sum += portion;
        }
        assert!(sum <= 150, "{sum}");
    }
}
