//! Names that could not be removed because the filesystem is full.
//!
//! A filesystem that never writes in place needs room for each removal, and gets it when others are done. So a name
//! that fails with ENOSPC or EDQUOT is not reported. It waits as a user of its directory, until the operands are done.
//! Then the names are tried in rounds:
//!
//! ```text
//!                        another error: reported
//!                                ▲
//!   failed ──▶ waiting ──▶ tried again ──▶ gone: its directory may be finished, and may wait itself
//!                 ▲              │
//!                 └── no room ───┘ pauses after a round without a success
//! ```
//!
//! It ends: each success takes a name away. After about two seconds of pauses without a success, the names that still
//! wait are reported.
//!
//! Two kinds of names never wait, and are reported at once: those in a run that several engines share, and those for
//! which the list has no place.

use std::iter;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::context::Context;
use super::name::Name;
use super::node::RemovePlace;
use crate::sys;

/// At most this number of names wait, which take about 4 MB. Others are reported at once.
const MOST_WAITING: usize = 1 << 16;

/// Long enough for other processes to run, and short beside the time in which a filesystem makes room.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// Each pause takes twice as long as the one before, up to this. A cancelled run ends after it, and for the user a
/// command that ends within 0.1 seconds after Ctrl-C ends at once.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// These pauses take about two seconds. A command on a filesystem that stays full is held up for so long, so there are
/// not more of them.
const PAUSES: usize = 26;

/// A name that waits for room.
pub(super) struct Waiting {
    /// The place of the name, which is a user of its directory.
    pub(super) place: RemovePlace,
    /// The type as which the name is removed.
    pub(super) kind: FileType,
    /// The error of the last attempt.
    pub(super) errno: Errno,
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
pub(super) struct WaitingList(Mutex<Vec<Waiting>>);

impl WaitingList {
    /// Adds a name. Gives it back if too many wait already.
    pub(super) fn add(&self, name: Waiting) -> Result<(), Waiting> {
        let mut list = self.lock();
        if list.len() >= MOST_WAITING {
            return Err(name);
        }
        list.push(name);
        Ok(())
    }

    /// Takes all names. Returns `None` if there are none.
    pub(super) fn take(&self) -> Option<Vec<Waiting>> {
        let list = std::mem::take(&mut *self.lock());
        (!list.is_empty()).then_some(list)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Waiting>> {
        // No change to the list is left half done by a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `true` if a removal failed because it needs room on the filesystem.
pub(super) fn is_needed(errno: Errno) -> bool {
    matches!(errno, Errno::NOSPC | Errno::DQUOT)
}

/// Returns the pauses between rounds without a success.
pub(super) fn pauses() -> impl Iterator<Item = Duration> {
    let longer = |pause: &Duration| Some(LONGEST_PAUSE.min(*pause * 2));
    iter::successors(Some(FIRST_PAUSE), longer).take(PAUSES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_take_about_two_seconds() {
        let seconds = pauses().sum::<Duration>().as_secs_f64();
        assert!((1.9..2.1).contains(&seconds), "{seconds}");
    }
}
