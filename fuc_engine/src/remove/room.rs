//! Names that could not be removed because the filesystem is full.
//!
//! A filesystem that never writes in place needs room for each removal, and gets it when others are done. So a name
//! that fails with ENOSPC or EDQUOT is not reported. It waits as a user of its directory, until the operands are done.
//! Then the names are tried in turn:
//!
//! ```text
//!                        another error: reported
//!                                ▲
//!   failed ──▶ waiting ──▶ tried again ──▶ gone: its directory may be finished, and may wait itself
//!                 ▲              │
//!                 └── no room ───┘ pauses while nothing succeeds
//! ```
//!
//! It ends: each removal takes a name away, and after a limited number of pauses without a removal, the names that
//! have failed since the last one are reported.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::context::Context;
use super::name::Name;
use super::node::RemovePlace;
use crate::sys;

/// At most this number of names wait, which take about 4 MB. Others are reported at once.
const MOST_WAITING: usize = 1 << 16;

/// Names that are tried between two pauses.
const TRIED_AT_ONCE: usize = 64;

const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// Each pause takes twice as long as the one before, up to this. A cancelled run ends after it.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// The pauses without a removal between them take about two seconds.
const MOST_PAUSES: u32 = 26;

/// A name that waits for room.
pub(super) struct Waiting {
    /// The place of the name, which is a user of its directory.
    pub(super) place: RemovePlace,
    /// The type as which the name is removed.
    pub(super) kind: FileType,
}

impl Waiting {
    /// Tries the removal again.
    pub(super) fn remove(&self, context: &Context<'_>) -> Result<(), Errno> {
        let name = Name::of(&self.place);
        match self.kind {
            FileType::Directory => {
                context.at(name, sys::remove_directory)?;
                context.removed_directory(name);
            }
            _ => {
                context.at(name, sys::unlink)?;
                context.removed(name);
            }
        }
        Ok(())
    }
}

/// The names of a run that wait for room.
#[derive(Default)]
pub(super) struct WaitingList(Mutex<VecDeque<Waiting>>);

impl WaitingList {
    /// Adds a name. Gives its place back if too many wait already.
    pub(super) fn add(&self, place: RemovePlace, kind: FileType) -> Result<(), RemovePlace> {
        let mut list = self.lock();
        if list.len() >= MOST_WAITING {
            return Err(place);
        }
        list.push_back(Waiting { place, kind });
        Ok(())
    }

    /// Takes all names. Returns `None` if there are none.
    pub(super) fn take(&self) -> Option<VecDeque<Waiting>> {
        let list = std::mem::take(&mut *self.lock());
        (!list.is_empty()).then_some(list)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        // No change to the list is left half done by a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `true` if a removal failed because it needs room on the filesystem.
pub(super) fn is_needed(errno: Errno) -> bool {
    matches!(errno, Errno::NOSPC | Errno::DQUOT)
}

/// Decides how long failed removals are repeated. A success is a reason for new patience.
#[derive(Default)]
pub(super) struct Patience {
    /// Names that were tried since all of them were.
    tried: usize,
    pauses: u32,
}

/// The consequence of a removal that has failed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Try another name at once.
    TryOthers,
    Pause(Duration),
    /// Every name has failed since the last pause, and nothing has succeeded for many pauses.
    GiveUp,
}

impl Patience {
    /// Decides what follows a failure, while `others` wait, too.
    pub(super) fn after_failure(&mut self, others: usize) -> Next {
        self.tried += 1;
        let has_tried_all = self.tried > others;
        if has_tried_all && self.pauses == MOST_PAUSES {
            return Next::GiveUp;
        }
        let is_pause_due = has_tried_all || self.tried.is_multiple_of(TRIED_AT_ONCE);
        if !is_pause_due || self.pauses == MOST_PAUSES {
            return Next::TryOthers;
        }
        if has_tried_all {
            self.tried = 0;
        }
        let pause = FIRST_PAUSE * (1 << self.pauses.min(10));
        self.pauses += 1;
        Next::Pause(pause.min(LONGEST_PAUSE))
    }
}

impl Next {
    /// Pauses if that is the consequence. Returns `false` if the name is given up.
    pub(super) fn goes_on(self) -> bool {
        if let Self::Pause(pause) = self {
            thread::sleep(pause);
        }
        self != Self::GiveUp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_without_a_success_end_after_about_two_seconds() {
        for others in [0, 1, 200] {
            let mut patience = Patience::default();
            let mut paused = Duration::ZERO;
            let mut failures = 0;
            loop {
                failures += 1;
                match patience.after_failure(others) {
                    Next::TryOthers => {}
                    Next::Pause(pause) => paused += pause,
                    Next::GiveUp => break,
                }
            }
            let seconds = paused.as_secs_f64();
            assert!((1.9..2.1).contains(&seconds), "{seconds}");
            assert!(failures > others);
        }
    }

    #[test]
    fn every_name_is_tried_before_one_is_given_up() {
        const OTHERS: usize = 1_000_000;
        let mut patience = Patience::default();
        for _ in 0..OTHERS {
            assert_ne!(patience.after_failure(OTHERS), Next::GiveUp);
        }
        assert_eq!(patience.after_failure(OTHERS), Next::GiveUp);
    }
}
