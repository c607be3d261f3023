//! Decides whether a dest is older than its source, or has changed.
//!
//! A filesystem may not store the time that a copy is given: it cuts the time to a step, or limits it to a
//! range. A time of the dest that differs may then stand for that of the source. Nothing is guessed about
//! that: [`may_stand_for`] finds the doubtful cases, and the caller probes the filesystem for its [`StoredTimes`].

use rustix::fs::FileType;

use crate::copy::facts::{Facts, FileTime};

/// Returns `true` if the dest was modified before the source.
///
/// `stands_for_source` says whether the dest's time may be that of the source, as the filesystem of the dest stores it. It
/// is called only in doubt.
pub(super) fn is_older(
    dest: &Facts,
    source: &Facts,
    stands_for_source: impl FnOnce() -> bool,
) -> bool {
    dest.modified < source.modified && !is_copy_in_doubt(dest, source, stands_for_source)
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
        && (dest.modified == source.modified || is_copy_in_doubt(dest, source, stands_for_source));
    has_time
        && match source.kind {
            FileType::Symlink => targets_are_equal(),
            FileType::BlockDevice | FileType::CharacterDevice => dest.number == source.number,
            _ => true,
        }
}

/// Returns `true` if a file has the time of its source, but another size: a power cut has taken the end of its content.
pub(super) fn has_time_alone(dest: &Facts, source: &Facts) -> bool {
    let are_files = [dest.kind, source.kind] == [FileType::RegularFile; 2];
    are_files && dest.modified == source.modified && dest.bytes != source.bytes
}

/// Returns `true` if a dest of another time is a copy nevertheless. A copy has the type and the size of its
/// source.
fn is_copy_in_doubt(
    dest: &Facts,
    source: &Facts,
    stands_for_source: impl FnOnce() -> bool,
) -> bool {
    (dest.kind, dest.bytes) == (source.kind, source.bytes)
        && may_stand_for(dest.modified, source.modified)
        && stands_for_source()
}

/// The coarsest step of a filesystem in use, in nanoseconds. All steps are divisors of it.
const COARSEST: i128 = 2_000_000_000;

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

/// The rules by which a filesystem stores times: the step to which it cuts them, and its earliest and latest time.
///
/// ```text
///      first                                  last
///   ─────┼──────────────────────────────────────┼─────▶ time
///        │ each time is cut to the step         │ limited to `last`, or not known
/// ```
///
/// A probe gives a file a time and reads it back. No probe's time is taken for the time of the source, even if
/// the run is killed before the file gets its own time back: it differs by at least a step, and is earlier if the
/// source is newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredTimes {
    /// Times from `first` to `last` are cut to a multiple of this number of nanoseconds.
    step: i128,
    first: FileTime,
    last: FileTime,
    /// Earlier times are stored as `first`.
    limits_earlier: bool,
    /// Later times are stored as `last`.
    limits_later: bool,
}

impl StoredTimes {
    /// Returns the time that is stored for `wanted`, or `None` if that is not known.
    pub(crate) fn stored(&self, wanted: FileTime) -> Option<FileTime> {
        let cut = wanted.cut_to(self.step);
        if cut < self.first {
            return self.limits_earlier.then_some(self.first);
        }
        if cut > self.last {
            return self.limits_later.then_some(self.last);
        }
        Some(cut)
    }

    /// Adds what is known about the same filesystem. If that differs, as behind a filesystem that unites
    /// several, only the new knowledge counts.
    pub(crate) fn added_to(self, known: Option<Self>) -> Self {
        match known {
            Some(known) if known.step == self.step => {
                let earlier = if self.first <= known.first {
                    self
                } else {
                    known
                };
                let later = if self.last >= known.last { self } else { known };
                Self {
                    last: later.last,
                    limits_later: later.limits_later,
                    ..earlier
                }
            }
            _ => self,
        }
    }

    /// Finds out by probes what happens to `wanted`, which may have been stored as `stored`. `probe` gives a
    /// file a time, and returns the time that the file has then. Returns `None` if the answers do not fit.
    ///
    /// A filesystem that ignores the time is not taken for one that limits it: the first probe is on the other
    /// side of `stored`, where the time must be kept up to the step.
    pub(crate) fn ask<E>(
        stored: FileTime,
        wanted: FileTime,
        mut probe: impl FnMut(FileTime) -> Result<FileTime, E>,
    ) -> Result<Option<Self>, E> {
        // The end of a step of any length, at least the coarsest step away.
        let odd_second = match stored < wanted {
            true => stored.seconds.saturating_sub(4) | 1,
            false => stored.seconds.saturating_add(2) | 1,
        };
        let inside = FileTime {
            seconds: odd_second,
            nanoseconds: 999_999_999,
        };
        let difference =
            inside.nanoseconds_since_start() - probe(inside)?.nanoseconds_since_start();
        // The last nanosecond of a step is stored as its first one.
        let step = difference + 1;
        let is_step = (1..=COARSEST).contains(&step) && COARSEST % step == 0;
        if !is_step {
            return Ok(None);
        }
        let known = Self {
            step,
            first: inside.min(stored),
            last: inside.max(stored),
            limits_earlier: false,
            limits_later: false,
        };
        let is_multiple = stored.cut_to(step) == stored;
        // The time next to that of the source which can be stored between the two.
        let cut = wanted.cut_to(step);
        let outside = match stored < wanted {
            true => cut.moved(-step),
            false => cut.moved(step),
        };
        let is_between =
            stored < outside && outside < wanted || wanted < outside && outside < stored;
        if !is_between {
            return Ok(is_multiple.then_some(known));
        }
        let kept = probe(outside)?;
        Ok(if kept == stored {
            Some(Self {
                limits_earlier: wanted < stored,
                limits_later: wanted > stored,
                ..known
            })
        } else if kept == outside && is_multiple {
            Some(Self {
                first: known.first.min(outside),
                last: known.last.max(outside),
                ..known
            })
        } else {
            None
        })
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

    /// A filesystem with this step and this range.
    #[derive(Clone, Copy, Debug)]
    struct Filesystem {
        step: i128,
        range: [FileTime; 2],
    }

    impl Filesystem {
        fn store(self, time: FileTime) -> FileTime {
            let [first, last] = self.range;
            time.cut_to(self.step).clamp(first, last)
        }
    }

    #[test]
    fn the_answer_is_what_the_filesystem_does_and_no_probe_looks_like_the_source() {
        let steps = [1, 100, 1_000, 10_000_000, 1_000_000_000, COARSEST];
        let far = [at(i64::MIN >> 2, 0), at(i64::MAX >> 2, 0)];
        let limits = [at(315_532_800, 0), at(i64::from(i32::MAX), 0)];
        let mut asked = 0;
        for step in steps {
            for range in [far, limits] {
                let filesystem = Filesystem { step, range };
                for seconds in [-9, 7, 8, 400_000_000, 1_000_000_001, (1 << 31) + 2, 1 << 33] {
                    for nanoseconds in [0, 1, 500_000_000, 123_456_789] {
                        let wanted = at(seconds, nanoseconds);
                        let stored = filesystem.store(wanted);
                        if stored == wanted {
                            continue;
                        }
                        let mut left = Vec::new();
                        let known = StoredTimes::ask(stored, wanted, |time| {
                            left.push(filesystem.store(time));
                            Ok::<_, ()>(filesystem.store(time))
                        });
                        let case = format!("{filesystem:?} {wanted:?}");
                        let known = known.unwrap().unwrap_or_else(|| panic!("{case}"));
                        assert_eq!(known.stored(wanted), Some(stored), "{case}");
                        for time in left.into_iter().filter(|time| *time != stored) {
                            let is_older = time < wanted.cut_to(step) || wanted < stored;
                            assert!(is_older && time != wanted.cut_to(step), "{case} {time:?}");
                        }
                        asked += 1;
                    }
                }
            }
        }
        assert!(asked > 200, "{asked}");
    }

    #[test]
    fn a_filesystem_that_ignores_or_invents_times_is_not_believed() {
        let (stored, later) = (at(1_000_000_000, 0), at(1 << 33, 0));
        for kept in [stored, at(2_000_000_000, 0), at(999_999_960, 0), at(0, 0)] {
            for wanted in [later, at(1_000_000_001, 0)] {
                let answer = StoredTimes::ask(stored, wanted, |_| Ok::<_, ()>(kept));
                assert_eq!(answer, Ok(None), "{kept:?}");
            }
        }
        let whole_minutes = |time: FileTime| Ok::<_, ()>(at(time.seconds - time.seconds % 60, 0));
        let stored = at(1_000_000_020, 0);
        assert_eq!(StoredTimes::ask(stored, later, whole_minutes), Ok(None));
    }

    #[test]
    fn a_limit_one_step_before_the_source_is_not_shown() {
        // The only time beyond the limit that is not later than the source is that of the source.
        let limit = at(2_000_000_000, 0);
        let store = |time: FileTime| Ok::<_, ()>(time.cut_to(1_000_000_000).min(limit));
        let shown = StoredTimes::ask(limit, at(2_000_000_001, 5), store).unwrap();
        assert_eq!(shown.unwrap().stored(at(2_000_000_001, 5)), None);
        let shown = StoredTimes::ask(limit, at(2_000_000_002, 5), store).unwrap();
        assert_eq!(shown.unwrap().stored(at(2_000_000_001, 5)), Some(limit));
    }

    #[test]
    fn knowledge_about_one_filesystem_grows() {
        let whole_seconds = |time: FileTime| Ok::<_, ()>(at(time.seconds, 0));
        let ask = |seconds| StoredTimes::ask(at(seconds, 0), at(seconds, 5), whole_seconds);
        let [early, late] = [1_000, 9_000].map(|seconds| ask(seconds).unwrap().unwrap());
        assert_eq!(early.stored(at(5_000, 7)), None);
        let both = late.added_to(Some(early));
        assert_eq!(both, early.added_to(Some(late)));
        assert_eq!(both.stored(at(5_000, 7)), Some(at(5_000, 0)));
        assert_eq!(both.stored(at(9_001, 7)), None);

        let nanoseconds = |time: FileTime| Ok::<_, ()>(time);
        let other = StoredTimes::ask(at(9_000, 0), at(9_000, 5), nanoseconds);
        let other = other.unwrap().unwrap();
        assert_eq!(other.added_to(Some(early)), other);
    }

    #[test]
    fn a_limit_is_known_until_a_time_beyond_it_is_kept() {
        let filesystem = Filesystem {
            step: 1,
            range: [at(0, 0), at(2_000_000_000, 0)],
        };
        let last = at(2_000_000_000, 0);
        let store = |time| Ok::<_, ()>(filesystem.store(time));
        let limited = StoredTimes::ask(last, at(1 << 40, 0), store)
            .unwrap()
            .unwrap();
        assert_eq!(limited.stored(at(2_000_000_001, 0)), Some(last));
        assert_eq!(limited.stored(at(9, 0)), None);
        let early = StoredTimes::ask(at(10, 0), at(10, 5), store)
            .unwrap()
            .unwrap();
        assert_eq!(
            early.added_to(Some(limited)).stored(at(1 << 40, 0)),
            Some(last)
        );
    }

    fn file(seconds: i64, nanoseconds: u32) -> Facts {
        Facts {
            modified: at(seconds, nanoseconds),
            ..Facts::example(FileType::RegularFile, 1)
        }
    }

    #[test]
    fn the_filesystem_decides_if_a_copied_time_may_have_been_cut() {
        for answer in [true, false] {
            let (dest, source) = (file(7, 0), file(7, 5));
            assert_eq!(is_older(&dest, &source, || answer), !answer);
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
}
