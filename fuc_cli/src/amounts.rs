//! Numbers for people: counts, sizes and times.
//!
//! Nothing here allocates, because a signal handler writes these, too.

use std::fmt;
use std::time::Duration;

/// A number with a comma between each three digits.
pub(crate) struct Count(pub(crate) u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut group = 1;
        while self.0 / group >= 1000 {
            group *= 1000;
        }
        write!(f, "{}", self.0 / group)?;
        while group > 1 {
            group /= 1000;
            write!(f, ",{:03}", self.0 / group % 1000)?;
        }
        Ok(())
    }
}

/// A number with its noun: the second part if the number is 1, otherwise the third.
pub(crate) struct Quantity(
    pub(crate) u64,
    pub(crate) &'static str,
    pub(crate) &'static str,
);

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self(count, one, several) = self;
        write!(
            f,
            "{} {}",
            Count(count),
            if count == 1 { one } else { several }
        )
    }
}

/// Returns a number of entries with its noun.
pub(crate) fn entries(count: u64) -> Quantity {
    Quantity(count, "entry", "entries")
}

/// A number of bytes in the largest unit of which there is at least one.
pub(crate) struct Bytes(pub(crate) u64);

impl Bytes {
    /// Returns the number without its unit, and the unit.
    fn parts(&self) -> (f64, &'static str) {
        const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        // A larger number would be rounded to 1024.
        while value >= 1023.5 {
            value /= 1024.0;
            unit += 1;
        }
        (value, UNITS[unit])
    }

    /// Returns `true` if both are shown in the same unit.
    pub(crate) fn has_unit_of(&self, other: &Self) -> bool {
        self.parts().1 == other.parts().1
    }
}

impl fmt::Display for Bytes {
    /// Writes the number, and its unit unless the alternate form is asked for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = self.parts();
        let decimals = usize::from(value < 99.95 && unit != "B");
        write!(f, "{value:.decimals$}")?;
        match f.alternate() {
            true => Ok(()),
            false => write!(f, " {unit}"),
        }
    }
}

/// A time as minutes and seconds, after hours if there are any.
pub(crate) struct Clock(pub(crate) Duration);

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        match hours {
            0 => write!(f, "{minutes}:{seconds:02}"),
            _ => write!(f, "{hours}:{minutes:02}:{seconds:02}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (28_826, "28,826"),
            (1_002_003, "1,002,003"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(Count(number).to_string(), text);
        }
    }

    #[test]
    fn bytes_have_the_largest_unit() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (5_046_586_573, "4.7 GiB"),
            (952 << 20, "952 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        assert_eq!(format!("{:#}", Bytes(1536)), "1.5");
    }

    #[test]
    fn times_are_clocks() {
        for (seconds, text) in [(3, "0:03"), (65, "1:05"), (3723, "1:02:03")] {
            assert_eq!(Clock(Duration::from_secs(seconds)).to_string(), text);
        }
    }
}
