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
//! time without it. To a tmpfs, with 1 ms: 0.19 (medians of 3 to 5 on two cores, with the server of the benchmarks).
//! Copying 200 MiB within the filesystem of a server, at 50 MB/s in each direction: 0.58 of cp's time, because the next
//! buffer is read while the last one is written.
//!
//! Two threads that have parts of one file are not faster: 0.98 of the time in the last case. The kernel lets one of them
//! at a time write to the file.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::sys;

/// The most bytes that are read ahead.
///
/// Copying 100 MB with 1 and with 10 ms: 8 MiB takes 1.01 and 1.00 of the time.
const MOST_AHEAD_BYTES: u64 = 4 << 20;
/// Bytes that are read ahead at first, and that are added as long as reads wait.
///
/// FUSE leaves out what exceeds about as many bytes under way. If 4 MiB were asked for at once, the trial would fail where
/// the bandwidth is the limit.
const STEP_BYTES: u64 = 1 << 20;
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
    /// Time of a read without help.
    unaided: Duration,
    /// Bytes that are read ahead.
    window: u64,
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
        reads_left: u32,
    },
    Helps,
    Off,
}

impl ReadAhead {
    pub(super) fn new(size: u64) -> Self {
        Self {
            state: State::Unaided,
            unaided: Duration::ZERO,
            window: STEP_BYTES,
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
        let started = Instant::now();
        let read = read(buffer)?;
        if read == buffer.len() {
            self.note_time(started.elapsed());
        }
        self.ask(source, at.saturating_add(read as u64));
        Ok(read)
    }

    /// Asks the kernel for the content behind position `at`, which is read next.
    fn ask(&mut self, source: BorrowedFd<'_>, at: u64) {
        if matches!(self.state, State::Unaided | State::Off) {
            return;
        }
        self.asked_to = self.asked_to.max(at);
        let end = self.size.min(at.saturating_add(self.window));
        while self.asked_to < end {
            sys::read_ahead(source, self.asked_to, REQUEST_BYTES);
            self.asked_to += REQUEST_BYTES;
        }
    }

    /// Notes how long a read of a whole buffer took.
    fn note_time(&mut self, time: Duration) {
        let unaided = self.unaided;
        match &mut self.state {
            State::Unaided if time >= SLOW_READ => {
                self.unaided = time;
                self.state = State::Trial {
                    reads_left: TRIAL_READS,
                };
            }
            State::Trial { .. } if time < unaided / 2 => self.state = State::Helps,
            State::Trial {
                reads_left: left @ 2..,
            } => *left -= 1,
            State::Unaided | State::Trial { .. } => self.state = State::Off,
            State::Helps if time >= unaided / 8 => {
                self.window = MOST_AHEAD_BYTES.min(self.window + STEP_BYTES);
            }
            State::Helps | State::Off => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(times_micros: &[u64]) -> State {
        let mut ahead = ReadAhead::new(1 << 30);
        for &time in times_micros {
            ahead.note_time(Duration::from_micros(time));
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
        ahead.note_time(SLOW_READ);
        let mut asked_to = |at| {
            ahead.ask(source, at);
            ahead.asked_to
        };
        assert_eq!(asked_to(1 << 20), 2 << 20);
        assert_eq!(asked_to(2 << 20), 3 << 20);
        assert_eq!(asked_to(6 << 20), 6 << 20);
    }
}
