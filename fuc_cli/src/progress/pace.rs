//! The processor time that a look-ahead may take.
//!
//! Counting takes 10.5 % of the processor time of a copy, and 4 % of that of a removal (400,000 files of 4 KiB in directories
//! of 50, tmpfs, two cores). On an idle core that costs nothing. If the look-ahead has to wait for a core, other threads wait
//! for it, too; then it takes [`EAGER`], and after that a part of what the whole run takes. A nice value would be no share of
//! the run: beside 60 busy processes, a copy of 80,000 files, which are counted in 0.35 s, had no percentage in 56 s.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use fuc_engine::{Cancel, Candidate, EnteredDirectory, Filter, Verdict};
use rustix::time::{ClockId, clock_gettime};

/// The processor time that a look-ahead takes in any case.
const EAGER: Duration = Duration::from_millis(300);

/// The look-ahead also takes one in so many parts of the processor time of the run.
const PARTS: u32 = 20;

/// The pace is looked at after so many entries, which take about a millisecond.
const PERIOD: u32 = 256;

/// The time from one look to the next while the look-ahead rests. The end of a run waits for one.
const REST: Duration = Duration::from_millis(5);

/// The filter of a look-ahead. It decides as another one, and rests between the entries if the look-ahead has taken its share.
pub struct Paced {
    filter: Option<Arc<dyn Filter>>,
    pace: Arc<Pace>,
}

impl Paced {
    /// Makes the filter of a look-ahead beside a run with this filter. The token ends the rest.
    #[must_use]
    pub fn new(filter: Option<impl Filter + 'static>, cancel: &Cancel) -> Self {
        Self {
            filter: filter.map(|filter| Arc::new(filter) as _),
            pace: Arc::new(Pace {
                cancel: cancel.clone(),
                last: Mutex::default(),
            }),
        }
    }
}

impl Filter for Paced {
    fn verdict(&self, entry: &Candidate<'_>) -> Verdict {
        self.pace.keep();
        let filter = self.filter.as_ref();
        filter.map_or(Verdict::Take, |filter| filter.verdict(entry))
    }

    fn for_directory(&self, directory: &EnteredDirectory<'_>) -> Option<Arc<dyn Filter>> {
        let filter = self.filter.as_ref()?.for_directory(directory)?;
        Some(Arc::new(Self {
            filter: Some(filter),
            pace: Arc::clone(&self.pace),
        }))
    }
}

struct Pace {
    cancel: Cancel,
    last: Mutex<Look>,
}

/// The entries since a look at the pace, and the times that the look has shown.
#[derive(Default)]
struct Look {
    entries: u32,
    taken: Duration,
    waited: Duration,
}

impl Pace {
    /// Rests if the look-ahead has taken its share, until it has not.
    fn keep(&self) {
        // Only the thread of the look-ahead locks it.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.entries += 1;
        if last.entries < PERIOD {
            return;
        }
        let taken = processor_time(ClockId::ThreadCPUTime);
        let waited = time_waited();
        let is_contended = has_to_wait(taken - last.taken, waited.saturating_sub(last.waited));
        *last = Look {
            entries: 0,
            taken,
            waited,
        };
        while is_contended
            && !is_within_share(taken, processor_time(ClockId::ProcessCPUTime))
            && !self.cancel.is_cancelled()
        {
            thread::sleep(REST);
        }
    }
}

/// Returns `true` if a thread that took so much processor time has waited long for it.
fn has_to_wait(taken: Duration, waited: Duration) -> bool {
    waited > taken / 10
}

/// Returns `true` if a look-ahead that has taken this processor time may go on beside a run that has taken `of_run`.
fn is_within_share(taken: Duration, of_run: Duration) -> bool {
    taken < EAGER + of_run / PARTS
}

fn processor_time(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

/// Returns the time that this thread has waited for a core. A kernel that does not know it says that it was none.
fn time_waited() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').nth(1).and_then(|time| time.parse().ok());
    nanoseconds.map_or(Duration::ZERO, Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_ahead_takes_a_share_of_the_run_if_it_has_to_wait_for_a_core() {
        let time = Duration::from_millis;
        for (taken, of_run, is_within) in [
            (299, 0, true),
            (300, 0, false),
            (350, 900, false),
            (350, 1_200, true),
            (1_000, 13_000, false),
            (1_000, 15_000, true),
        ] {
            assert_eq!(is_within_share(time(taken), time(of_run)), is_within);
        }
        assert!(!has_to_wait(time(10), time(1)));
        assert!(has_to_wait(time(10), time(2)));
    }
}
