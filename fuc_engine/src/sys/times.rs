//! Timestamps as comparable values.

use rustix::fs::Stat;

/// A point in time: seconds since 1970, and nanoseconds of the next second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileTime {
    pub(crate) seconds: i64,
    /// Less than 1,000,000,000.
    pub(crate) nanoseconds: u32,
}

impl FileTime {
    /// The start of 1970, before nearly all files were written.
    pub(crate) const START: Self = Self {
        seconds: 0,
        nanoseconds: 0,
    };

    /// Returns a time before this one: the start of 1970, if that is before.
    pub(crate) fn earlier(self) -> Self {
        if self > Self::START {
            return Self::START;
        }
        Self {
            seconds: self.seconds.saturating_sub(1),
            ..self
        }
    }

    /// Returns the number of nanoseconds since the start of 1970, negative for an earlier time.
    pub(crate) fn nanoseconds_since_start(self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanoseconds)
    }

    /// Returns the last time up to this one that is a multiple of `step` nanoseconds since the start of 1970.
    pub(crate) fn cut_to(self, step: i128) -> Self {
        self.moved(-self.nanoseconds_since_start().rem_euclid(step))
    }

    /// Returns the time that is later by this number of nanoseconds.
    pub(crate) fn moved(self, nanoseconds: i128) -> Self {
        let moved = self.nanoseconds_since_start() + nanoseconds;
        Self {
            seconds: moved.div_euclid(1_000_000_000) as i64,
            nanoseconds: moved.rem_euclid(1_000_000_000) as u32,
        }
    }
}

/// Returns the time of the content's last modification.
pub(crate) fn modified(stat: &Stat) -> FileTime {
    times(stat)[1]
}

/// Returns the times of access, of modification and of the last change of the inode.
pub(crate) fn times(stat: &Stat) -> [FileTime; 3] {
    [
        (stat.st_atime, stat.st_atime_nsec),
        (stat.st_mtime, stat.st_mtime_nsec),
        (stat.st_ctime, stat.st_ctime_nsec),
    ]
    .map(|(seconds, nanoseconds)| FileTime {
        seconds,
        nanoseconds: nanoseconds as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_cut_to_a_step() {
        let at = |seconds, nanoseconds| FileTime {
            seconds,
            nanoseconds,
        };
        for (time, step, cut) in [
            (at(9, 123_456_789), 1, at(9, 123_456_789)),
            (at(9, 123_456_789), 10_000_000, at(9, 120_000_000)),
            (at(9, 123_456_789), 2_000_000_000, at(8, 0)),
            (at(-9, 123_456_789), 1_000_000_000, at(-9, 0)),
            (at(-9, 123_456_789), 2_000_000_000, at(-10, 0)),
        ] {
            assert_eq!(time.cut_to(step), cut, "{time:?} {step}");
        }
    }

    #[test]
    fn an_earlier_time_is_the_start_if_that_is_earlier() {
        let at = |seconds, nanoseconds| FileTime {
            seconds,
            nanoseconds,
        };
        for (time, earlier) in [
            (at(7, 5), FileTime::START),
            (at(0, 1), FileTime::START),
            (FileTime::START, at(-1, 0)),
            (at(-7, 5), at(-8, 5)),
        ] {
            assert_eq!(time.earlier(), earlier, "{time:?}");
        }
    }
}
