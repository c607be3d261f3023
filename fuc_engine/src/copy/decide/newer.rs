//! Decides whether a dest is older than its source, or has changed.
//!
//! A filesystem may not store the time that a copy is given: it cuts the time to a step, or limits it to a
//! range. A time of the dest that differs may then stand for that of the source. Nothing is guessed about
//! that: [`may_stand_for`] finds the doubtful cases, and the caller asks the filesystem about them.

use rustix::fs::FileType;

use crate::copy::facts::{Facts, FileTime};

/// Says whether copies get the timestamps of their sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::copy) enum Timestamps {
    Fresh,
    Copied,
}

/// Returns `true` if the dest was modified before the source.
///
/// `stands_for_source` asks the filesystem whether the dest's time is the one that it stores for the time of
/// the source. It is called only in doubt.
pub(super) fn is_older(
    dest: &Facts,
    source: &Facts,
    timestamps: Timestamps,
    stands_for_source: impl FnOnce() -> bool,
) -> bool {
    dest.modified() < source.modified()
        && (timestamps == Timestamps::Fresh || !is_copy_in_doubt(dest, source, stands_for_source))
}

/// Returns `true` if the dest is a complete copy of the source, as far as their types, sizes and times of
/// modification show that, and the numbers of devices and the targets of links.
///
/// The time was copied, as in [`is_older`]. `targets_are_equal` is called only for links.
pub(super) fn is_complete(
    dest: &Facts,
    source: &Facts,
    stands_for_source: impl FnOnce() -> bool,
    targets_are_equal: impl FnOnce() -> bool,
) -> bool {
    let has_time = (dest.kind, dest.bytes) == (source.kind, source.bytes)
        && (dest.modified() == source.modified()
            || is_copy_in_doubt(dest, source, stands_for_source));
    has_time
        && match source.kind {
            FileType::Symlink => targets_are_equal(),
            FileType::BlockDevice | FileType::CharacterDevice => dest.number == source.number,
            _ => true,
        }
}

/// Returns `true` if a dest of another time is a copy nevertheless. A copy has the type and the size of its
/// source.
fn is_copy_in_doubt(
    dest: &Facts,
    source: &Facts,
    stands_for_source: impl FnOnce() -> bool,
) -> bool {
    (dest.kind, dest.bytes) == (source.kind, source.bytes)
        && may_stand_for(dest.modified(), source.modified())
        && stands_for_source()
}

/// The coarsest step of a filesystem in use, in nanoseconds. All steps are divisors of it.
pub(in crate::copy) const COARSEST: i128 = 2_000_000_000;

/// The finest step in nanoseconds that a limit of a range is expected to be a multiple of.
const STEP_OF_LIMITS: i128 = 10_000_000;

/// Returns `true` if a filesystem may have stored the time `wanted` as `stored`, which differs.
fn may_stand_for(stored: FileTime, wanted: FileTime) -> bool {
    let difference = wanted.nanoseconds_since_start() - stored.nanoseconds_since_start();
    let step = coarsest_step(stored);
    let may_be_cut = (1..step).contains(&difference);
    let may_be_limited = step >= STEP_OF_LIMITS;
    may_be_cut || may_be_limited
}

/// Returns the coarsest step, in nanoseconds, of a filesystem that can store this time.
fn coarsest_step(time: FileTime) -> i128 {
    let (mut step, mut rest) = (
        COARSEST,
        time.nanoseconds_since_start().rem_euclid(COARSEST),
    );
    while rest != 0 {
        (step, rest) = (rest, step % rest);
    }
    step
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

    fn file(seconds: i64, nanoseconds: u32) -> Facts {
        Facts {
            times: [at(seconds, nanoseconds); 3],
            ..Facts::example(FileType::RegularFile, 1)
        }
    }

    fn not_asked() -> bool {
        panic!("BUG: asked without a doubt")
    }

    #[test]
    fn nanoseconds_decide() {
        for timestamps in [Timestamps::Fresh, Timestamps::Copied] {
            let is_older = |dest, source| is_older(&dest, &source, timestamps, not_asked);
            assert!(is_older(file(7, 1), file(7, 2)));
            assert!(!is_older(file(7, 2), file(7, 2)));
            assert!(!is_older(file(8, 0), file(7, 9)));
        }
    }

    #[test]
    fn the_filesystem_decides_if_a_copied_time_may_have_been_cut() {
        for answer in [true, false] {
            let (dest, source) = (file(7, 0), file(7, 5));
            let is_older = |timestamps| is_older(&dest, &source, timestamps, || answer);
            assert_eq!(is_older(Timestamps::Copied), !answer);
            assert!(is_older(Timestamps::Fresh));
        }
    }

    #[test]
    fn a_dest_of_another_size_or_type_is_no_copy() {
        let dest = file(7, 0);
        let longer = Facts {
            bytes: 9,
            ..file(7, 5)
        };
        let link = Facts {
            kind: FileType::Symlink,
            ..file(7, 5)
        };
        for source in [longer, link] {
            assert!(is_older(&dest, &source, Timestamps::Copied, not_asked));
            assert!(!is_complete(&dest, &source, not_asked, not_asked));
        }
    }

    #[test]
    fn only_a_time_that_was_cut_or_limited_is_in_doubt() {
        let (latest, later) = (at(i64::from(i32::MAX), 0), at(1 << 40, 0));
        for (stored, wanted, in_doubt) in [
            (at(7, 0), at(7, 999_999_999), true),
            (at(7, 0), at(8, 0), true),
            (at(7, 130), at(7, 140), false),
            (at(8, 0), at(9, 999_999_999), true),
            (at(8, 0), at(10, 0), true),
            (at(7, 130_000_000), at(7, 139_999_999), true),
            (at(7, 130_000), at(7, 140_000), false),
            (at(7, 100), at(7, 199), true),
            (at(7, 123), at(7, 124), false),
            (at(8, 5), at(8, 4), false),
            (at(-1, 0), at(-1, 5), true),
            (latest, later, true),
            (at(7, 0), at(13, 0), true),
            (at(7, 1), at(13, 1), false),
            (at(-7, 0), at(-13, 0), true),
        ] {
            assert_eq!(
                may_stand_for(stored, wanted),
                in_doubt,
                "{stored:?} {wanted:?}"
            );
        }
    }

    #[test]
    fn a_complete_copy_has_type_size_and_time_of_its_source() {
        let source = Facts {
            bytes: 9,
            ..file(7, 1)
        };
        let with_time = |seconds, nanoseconds| Facts {
            bytes: 9,
            ..file(seconds, nanoseconds)
        };
        for (name, dest, complete) in [
            ("equal", source, true),
            ("newer", with_time(8, 1), false),
            ("older", with_time(7, 0), true),
            ("older by a second", with_time(6, 1), false),
            ("shorter", Facts { bytes: 8, ..source }, false),
        ] {
            let is_complete = is_complete(&dest, &source, || true, not_asked);
            assert_eq!(is_complete, complete, "{name}");
        }
    }

    #[test]
    fn a_complete_link_has_the_target_and_a_device_the_number_of_its_source() {
        let link = Facts::example(FileType::Symlink, 1);
        for equal in [true, false] {
            assert_eq!(is_complete(&link, &link, not_asked, || equal), equal);
        }
        for kind in [FileType::BlockDevice, FileType::CharacterDevice] {
            let source = Facts::example(kind, 1);
            let other = Facts {
                number: 7,
                ..source
            };
            assert!(is_complete(&source, &source, not_asked, not_asked));
            assert!(!is_complete(&other, &source, not_asked, not_asked));
        }
    }
}
