//! Decides whether a dest is older than its source, or has changed.

use crate::copy::facts::{Facts, FileTime};

/// Says whether copies get the timestamps of their sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::copy) enum Timestamps {
    Fresh,
    Copied,
}

/// Returns `true` if the dest was modified before the source.
///
/// A copied timestamp loses the precision that the dest's filesystem cannot store. So if
/// timestamps are copied, the source's is truncated to the precision of the dest's. Otherwise
/// each run would copy to such a filesystem again.
pub(super) fn is_older(dest: &Facts, source: &Facts, timestamps: Timestamps) -> bool {
    let source_time = match timestamps {
        Timestamps::Fresh => source.modified(),
        Timestamps::Copied => truncate(source.modified(), granularity(dest)),
    };
    dest.modified() < source_time
}

/// Returns `true` if the dest is a complete copy of the source, as far as type, size and time of
/// modification show that. The time was copied, as in [`is_older`].
pub(super) fn is_complete(dest: &Facts, source: &Facts) -> bool {
    (dest.kind, dest.bytes) == (source.kind, source.bytes)
        && dest.modified() == truncate(source.modified(), granularity(dest))
}

/// The timestamp resolution of a filesystem, guessed from one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Granularity {
    TwoSeconds,
    Nanoseconds(u32),
}

const SECOND: u32 = 1_000_000_000;

fn granularity(file: &Facts) -> Granularity {
    let times = &file.times;
    let mut step = SECOND;
    while step > 1 && times.iter().any(|time| time.nanoseconds % step != 0) {
        step /= 10;
    }
    if step == SECOND && times.iter().all(|time| time.seconds % 2 == 0) {
        return Granularity::TwoSeconds;
    }
    Granularity::Nanoseconds(step)
}

fn truncate(time: FileTime, granularity: Granularity) -> FileTime {
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
    use rustix::fs::FileType;

    fn at(seconds: i64, nanoseconds: u32) -> FileTime {
        FileTime {
            seconds,
            nanoseconds,
        }
    }

    fn with_times(times: [FileTime; 3]) -> Facts {
        Facts {
            times,
            ..Facts::example(FileType::RegularFile, 1)
        }
    }

    /// Returns a file of which all three timestamps are equal.
    fn file(seconds: i64, nanoseconds: u32) -> Facts {
        with_times([at(seconds, nanoseconds); 3])
    }

    #[test]
    fn nanoseconds_decide() {
        assert!(is_older(&file(7, 1), &file(7, 2), Timestamps::Fresh));
        assert!(!is_older(&file(7, 2), &file(7, 2), Timestamps::Fresh));
        assert!(!is_older(&file(8, 0), &file(7, 9), Timestamps::Fresh));
    }

    #[test]
    fn whole_seconds_at_the_dest_truncate_a_copied_timestamp() {
        assert!(!is_older(&file(7, 0), &file(7, 5), Timestamps::Copied));
        assert!(is_older(&file(7, 0), &file(7, 5), Timestamps::Fresh));
        assert!(is_older(&file(7, 0), &file(8, 5), Timestamps::Copied));
    }

    #[test]
    fn even_seconds_at_the_dest_truncate_to_two_seconds() {
        assert!(!is_older(&file(8, 0), &file(9, 5), Timestamps::Copied));
        assert!(is_older(&file(8, 0), &file(10, 0), Timestamps::Copied));
    }

    #[test]
    fn a_complete_copy_has_type_size_and_time_of_its_source() {
        let source = Facts {
            bytes: 9,
            ..file(7, 1)
        };
        let link = FileType::Symlink;
        for (name, dest, complete) in [
            ("equal", source, true),
            (
                "newer",
                Facts {
                    bytes: 9,
                    ..file(8, 1)
                },
                false,
            ),
            (
                "older",
                Facts {
                    bytes: 9,
                    ..file(7, 0)
                },
                true,
            ),
            (
                "older by a second",
                Facts {
                    bytes: 9,
                    ..file(6, 1)
                },
                false,
            ),
            ("shorter", Facts { bytes: 8, ..source }, false),
            (
                "a link",
                Facts {
                    kind: link,
                    ..source
                },
                false,
            ),
        ] {
            assert_eq!(is_complete(&dest, &source), complete, "{name}");
        }
        let later = Facts {
            bytes: 9,
            ..with_times([at(7, 0), at(7, 0), at(9, 123)])
        };
        assert!(!is_complete(&later, &source), "the dest has nanoseconds");
    }

    #[test]
    fn one_fine_timestamp_shows_a_fine_filesystem() {
        let dest = with_times([at(8, 0), at(8, 0), at(9, 123_456_789)]);
        assert!(is_older(&dest, &file(8, 5), Timestamps::Copied));
        let dest = with_times([at(8, 0), at(8, 0), at(9, 123_000_000)]);
        assert!(!is_older(&dest, &file(8, 5), Timestamps::Copied));
    }
}
