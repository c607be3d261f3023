//! Lets the kernel read a large source ahead, if reads wait for a server.
//!
//! By itself the kernel has one or two small requests under way, so a read takes as long as several of them. With
//! more under way, the content is there when the worker asks for it.
//!
//! ```text
//!   Unaided --slow--> Trial --fast--> Helps
//!      | fast           | slow
//!      +----> Off <-----+
//! ```
//!
//! Some filesystems read past the page cache, so that what the kernel has read ahead is read again. The trial finds
//! them.
//!
//! Copying 100 MB within the filesystem of a server that answers after 0.1, 1 and 10 ms: 0.85, 0.45 and 0.26 of the
//! time without it. To a tmpfs, with 1 ms: 0.19. Several threads that have ranges of one file are hardly faster,
//! because the kernel lets one of them at a time write to it: 4 threads with ranges of 8 MiB took 0.90 of the
//! time at 1 ms and 1.27 at 10 ms (medians of 3 to 5 on two cores, where the server is `benches serve`).

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::sys;

/// Bytes that are read ahead.
///
/// Copying 100 MB with 1 ms: 1 MiB takes 1.34 of the time, 2 MiB 0.99, 8 and 16 MiB 1.01. With 10 ms, 1 MiB takes
/// 1.80 and 8 MiB 1.00.
const AHEAD_BYTES: u64 = 4 << 20;
/// Bytes for which the kernel is asked at once. Without notice, it leaves out what exceeds the `read_ahead_kb` of the
/// filesystem, which is 128 KiB by default.
const REQUEST_BYTES: u64 = 128 << 10;
/// Time of a read from which it probably waits for a server. As many bytes in memory take a tenth of it.
const SLOW_READ: Duration = Duration::from_millis(1);
/// Number of reads in a trial, one of which must take half of the time. The first one waits for the first request.
const TRIAL_READS: u32 = 4;

/// Reading ahead of a copy from front to back.
pub(super) struct ReadAhead {
    state: State,
    /// Position up to which the kernel was asked to read.
    asked_to: u64,
    /// Size of the source.
    size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The next read shows how long reads take.
    Unaided,
    /// The reads that are left must show that it helps.
    Trial {
        unaided: Duration,
        reads_left: u32,
    },
    Helps,
    Off,
}

impl ReadAhead {
    pub(super) fn new(size: u64) -> Self {
        Self {
            state: State::Unaided,
            asked_to: 0,
            size,
        }
    }

    /// Reads the source from position `at` by `read`, and lets the kernel read on.
    pub(super) fn read(
        &mut self,
        source: BorrowedFd<'_>,
        at: u64,
        buffer: &mut [u8],
        read: impl FnOnce(&mut [u8]) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        self.ask(source, at);
        let started = Instant::now();
        let read = read(buffer)?;
        if read == buffer.len() {
            self.note(started.elapsed());
        }
        Ok(read)
    }

    /// Asks the kernel for the content behind position `at`, which is read next.
    fn ask(&mut self, source: BorrowedFd<'_>, at: u64) {
        if matches!(self.state, State::Unaided | State::Off) {
            return;
        }
        self.asked_to = self.asked_to.max(at);
        let end = self.size.min(at.saturating_add(AHEAD_BYTES));
        while self.asked_to < end {
            sys::read_ahead(source, self.asked_to, REQUEST_BYTES);
            self.asked_to += REQUEST_BYTES;
        }
    }

    /// Notes how long a read of a whole buffer took.
    fn note(&mut self, time: Duration) {
        self.state = match self.state {
            State::Unaided if time >= SLOW_READ => State::Trial {
                unaided: time,
                reads_left: TRIAL_READS,
            },
            State::Trial { unaided, .. } if time < unaided / 2 => State::Helps,
            State::Trial {
                unaided,
                reads_left: reads_left @ 2..,
            } => State::Trial {
                unaided,
                reads_left: reads_left - 1,
            },
            State::Unaided | State::Trial { .. } => State::Off,
            decided => decided,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(times_micros: &[u64]) -> State {
        let mut ahead = ReadAhead::new(1 << 30);
        for &time in times_micros {
            ahead.note(Duration::from_micros(time));
        }
        ahead.state
    }

    #[test]
    fn fast_reads_are_left_to_the_kernel() {
        assert_eq!(after(&[999]), State::Off);
        assert_eq!(after(&[999, 5_000, 5_000]), State::Off);
    }

    #[test]
    fn one_fast_read_shows_that_it_helps() {
        assert_eq!(after(&[4_000, 2_100, 1_999]), State::Helps);
        assert_eq!(after(&[4_000, 3_000, 3_000, 3_000, 100]), State::Helps);
        assert_eq!(after(&[4_000, 100, 9_000, 9_000]), State::Helps);
    }

    #[test]
    fn it_ends_if_reads_stay_slow() {
        assert_eq!(after(&[4_000, 2_000, 4_000, 4_000, 4_000]), State::Off);
        assert!(matches!(after(&[4_000, 4_000]), State::Trial { .. }));
    }

    #[test]
    fn the_kernel_is_asked_once_for_each_part() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let source = std::os::fd::AsFd::as_fd(&file);
        let mut ahead = ReadAhead::new(6 << 20);
        ahead.ask(source, 0);
        assert_eq!(ahead.asked_to, 0);
        ahead.note(SLOW_READ);
        let mut asked_to = |at| {
            ahead.ask(source, at);
            ahead.asked_to
        };
        assert_eq!(asked_to(1 << 20), 5 << 20);
        assert_eq!(asked_to(2 << 20), 6 << 20);
        assert_eq!(asked_to(6 << 20), 6 << 20);
    }
}
