//! Which of two files is the older one.

use crate::sys::{self, FileTime, Stat};

/// Whether timestamps are copied as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timestamps {
    Fresh,
    Copied,
}

/// Whether the dest was modified before the source was.
///
/// A copied timestamp loses what the dest's filesystem cannot store. So where
/// timestamps are copied, the source's is cut to what the dest's are multiples
/// of; else such a filesystem would be copied to again each time.
pub(super) fn is_older(dest: &Stat, source: &Stat, timestamps: Timestamps) -> bool {
    let source_time = sys::modified(source);
    let source_time = match timestamps {
        Timestamps::Fresh => source_time,
        Timestamps::Copied => cut(source_time, granularity(dest)),
    };
    sys::modified(dest) < source_time
}

/// What a filesystem's timestamps are multiples of, as far as one file shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Granularity {
    TwoSeconds,
    Nanoseconds(u32),
}

const SECOND: u32 = 1_000_000_000;

fn granularity(stat: &Stat) -> Granularity {
    let times = sys::times(stat);
    let mut step = SECOND;
    while step > 1 && times.iter().any(|time| time.nanoseconds % step != 0) {
        step /= 10;
    }
    if step == SECOND && times.iter().all(|time| time.seconds % 2 == 0) {
        return Granularity::TwoSeconds;
    }
    Granularity::Nanoseconds(step)
}

fn cut(time: FileTime, granularity: Granularity) -> FileTime {
    match granularity {
        Granularity::TwoSeconds => FileTime {
            seconds: time.seconds - time.seconds.rem_euclid(2),
            nanoseconds: 0,
        },
        Granularity::Nanoseconds(step) => FileTime {
            nanoseconds: time.nanoseconds - time.nanoseconds % step,
            ..time
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64, nanoseconds: u32) -> FileTime {
        FileTime {
            seconds,
            nanoseconds,
        }
    }

    /// A file of which all three timestamps are the same.
    fn file(seconds: i64, nanoseconds: u32) -> Stat {
        sys::stat_with_times([at(seconds, nanoseconds); 3])
    }

    #[test]
    fn nanoseconds_decide() {
        assert!(is_older(&file(7, 1), &file(7, 2), Timestamps::Fresh));
        assert!(!is_older(&file(7, 2), &file(7, 2), Timestamps::Fresh));
        assert!(!is_older(&file(8, 0), &file(7, 9), Timestamps::Fresh));
    }

    #[test]
    fn whole_seconds_at_the_dest_cut_a_copied_timestamp() {
        assert!(!is_older(&file(7, 0), &file(7, 5), Timestamps::Copied));
        assert!(is_older(&file(7, 0), &file(7, 5), Timestamps::Fresh));
        assert!(is_older(&file(7, 0), &file(8, 5), Timestamps::Copied));
    }

    #[test]
    fn even_seconds_at_the_dest_cut_to_two_seconds() {
        assert!(!is_older(&file(8, 0), &file(9, 5), Timestamps::Copied));
        assert!(is_older(&file(8, 0), &file(10, 0), Timestamps::Copied));
    }

    #[test]
    fn one_fine_timestamp_shows_a_fine_filesystem() {
        let dest = sys::stat_with_times([at(8, 0), at(8, 0), at(9, 123_456_789)]);
        assert!(is_older(&dest, &file(8, 5), Timestamps::Copied));
        let dest = sys::stat_with_times([at(8, 0), at(8, 0), at(9, 123_000_000)]);
        assert!(!is_older(&dest, &file(8, 5), Timestamps::Copied));
    }
}
