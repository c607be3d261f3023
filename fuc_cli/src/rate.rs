//! `--max-rate`: the most entries, or bytes of content, that a run processes in a second.

use std::ffi::OsStr;
use std::num::NonZeroU64;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use fuc_engine::{Cancel, Throttle};

use crate::flags::UsageError;
use crate::locale::Charset;
use crate::sync::lock;

/// The time between two looks at the token of a worker that waits.
const CANCEL_INTERVAL: Duration = Duration::from_millis(100);

/// The end of the message about a rate that is not one.
const RATES: &str = "\nValid rates are:
  - entries per second: '500/s'
  - bytes per second: '200M', with K, M, G or T (powers of 1024), or KB, MB, GB or TB (powers of 1000)";

/// The most that a run may do in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "distribute", derive(serde::Serialize, serde::Deserialize))]
pub enum MaxRate {
    /// Entries of directories.
    Entries(NonZeroU64),
    /// Bytes of copied content.
    Bytes(NonZeroU64),
}

impl MaxRate {
    /// Parses the value of `--max-rate`: entries per second, as in `500/s`, or bytes, as in `200M`.
    ///
    /// # Errors
    /// If the value is not a positive decimal number with `/s`, or with one of the units of GNU's commands: `K` or `KiB`
    /// (1,024), `KB` (1,000), and so on with `M`, `G` and `T`.
    pub fn parse(value: &OsStr, charset: Charset) -> Result<Self, UsageError> {
        Self::read(value).ok_or_else(|| {
            let mut error = UsageError::invalid("rate", value, charset);
            error.message.extend_from_slice(RATES.as_bytes());
            error
        })
    }

    fn read(value: &OsStr) -> Option<Self> {
        let value = value.to_str()?;
        let unit = value.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let number = &value[..value.len() - unit.len()];
        let number: u64 = number.parse().ok()?;
        if unit == "/s" {
            return NonZeroU64::new(number).map(Self::Entries);
        }
        let unit = unit.strip_suffix("/s").unwrap_or(unit);
        let power = 1 + "KMGT".find(unit.chars().next()?)? as u32;
        let base: u64 = match &unit[1..] {
            "" | "iB" => 1024,
            "B" => 1000,
            _ => return None,
        };
        NonZeroU64::new(number.checked_mul(base.pow(power))?).map(Self::Bytes)
    }

    /// Returns the number that the rate limits.
    #[must_use]
    pub fn per_second(self) -> NonZeroU64 {
        let (Self::Entries(number) | Self::Bytes(number)) = self;
        number
    }

    /// Returns what of this work counts.
    #[must_use]
    pub fn amount(self, entries: u64, bytes: u64) -> u64 {
        match self {
            Self::Entries(_) => entries,
            Self::Bytes(_) => bytes,
        }
    }
}

/// Keeps a run to its rate. Workers that are ahead of it sleep.
#[derive(Debug)]
pub struct Limiter {
    rate: MaxRate,
    cancel: Cancel,
    /// The time at which the work so far is due.
    due: Mutex<Instant>,
}

impl Limiter {
    /// Makes the limiter of a run that begins now.
    #[must_use]
    pub fn new(rate: MaxRate, cancel: &Cancel) -> Self {
        Self {
            rate,
            cancel: cancel.clone(),
            due: Mutex::new(Instant::now()),
        }
    }

    /// Notes the work, and returns the time at which the worker may go on. Time in which the run was slower is lost.
    fn due_after(&self, amount: u64, now: Instant) -> Instant {
        let seconds = amount as f64 / self.rate.per_second().get() as f64;
        let mut due = lock(&self.due);
        *due = (*due).max(now) + Duration::from_secs_f64(seconds);
        *due
    }
}

impl Throttle for Limiter {
    /// In a cancelled run it returns early.
    fn wait(&self, entries: u64, bytes: u64) {
        let amount = self.rate.amount(entries, bytes);
        if amount == 0 {
            return;
        }
        let due = self.due_after(amount, Instant::now());
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() || self.cancel.is_cancelled() {
                return;
            }
            thread::sleep(left.min(CANCEL_INTERVAL));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_positive_number_of_entries_or_of_bytes_with_a_unit() {
        let rate = |number| NonZeroU64::new(number).unwrap();
        for (value, parsed) in [
            ("250/s", MaxRate::Entries(rate(250))),
            ("1K", MaxRate::Bytes(rate(1 << 10))),
            ("200M", MaxRate::Bytes(rate(200 << 20))),
            ("3T", MaxRate::Bytes(rate(3 << 40))),
            ("50MB", MaxRate::Bytes(rate(50_000_000))),
            ("50MB/s", MaxRate::Bytes(rate(50_000_000))),
            ("2KiB", MaxRate::Bytes(rate(2048))),
        ] {
            assert_eq!(MaxRate::parse(value.as_ref(), Charset::Ascii), Ok(parsed));
        }
        for value in [
            "",
            "0/s",
            "250",
            "250/m",
            "/s",
            "0M",
            "M",
            "-1",
            "+1",
            "1.5",
            "x",
            "1k",
            "1MBB",
            "1Mi",
            "1B",
            "99999999999T",
            "99999999999999999999999",
        ] {
            let error = MaxRate::parse(value.as_ref(), Charset::Ascii).unwrap_err();
            let message = format!("invalid rate: '{value}'{RATES}");
            assert_eq!(error, UsageError::plain(message));
        }
    }

    #[test]
    fn work_is_due_by_the_rate_and_slow_time_is_lost() {
        let rate = MaxRate::Bytes(NonZeroU64::new(1000).unwrap());
        let limiter = Limiter::new(rate, &Cancel::new());
        let start = *limiter.due.lock().unwrap();
        let after = |millis| start + Duration::from_millis(millis);
        assert_eq!(limiter.due_after(500, start), after(500));
        assert_eq!(limiter.due_after(100, start), after(600));
        assert_eq!(limiter.due_after(100, after(2_000)), after(2_100));
        assert_eq!(
            (
                rate.amount(7, 9),
                MaxRate::Entries(rate.per_second()).amount(7, 9)
            ),
            (9, 7)
        );
    }
}
