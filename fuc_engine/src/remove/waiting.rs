//! Names whose removal is tried again at the end, because the reason of the failure may pass by then.
//!
//! | error | of | why it may pass |
//! |---|---|---|
//! | ENOSPC, EDQUOT | any name | a filesystem that never writes in place needs room for a removal, and gets it from others |
//! | ENOTEMPTY, EBUSY | a directory that this run has emptied, unless it is a native filesystem or a mount point | the last removal in it is seen later |
//!
//! Such a failure is not reported. The name waits as a user of its directory, until the operands are done. Then the names
//! are tried in rounds:
//!
//! ```text
//!                        another error: reported
//!                                ▲
//!   failed ──▶ waiting ──▶ tried again ──▶ gone: its directory may be finished, and may wait itself
//!                 ▲              │
//!                 └─ fails again ┘ pauses after a round without a success
//! ```
//!
//! It ends: each success takes a name away. After about two seconds of pauses without a success, the names that still
//! wait are reported.
//!
//! Two kinds of names never wait, and are reported at once: those of a closed list, and those for which the list has no
//! place.

use std::os::fd::AsFd;
use std::sync::Mutex;
use std::time::Duration;
use std::{iter, thread};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::context::RemoveContext;
use super::directory::{self, Entered};
use super::guards;
use super::node::{DECLINED, KEPT, Name, RemoveNode, RemovePlace, SHRUNK};
use crate::sync::lock;
use crate::sys::Storage;

/// At most this number of names wait, which take about 4 MB. Others are reported at once.
const MOST_WAITING: usize = 1 << 16;

/// Long enough for other processes to run, and short beside the time in which a filesystem makes room or a server catches up.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// Each pause takes twice as long as the one before, up to this. A cancelled run ends after it, and for the user a
/// command that ends within 0.1 seconds after Ctrl-C ends at once.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// These pauses take about two seconds. A command on a filesystem that stays full is held up for so long, so there are
/// not more of them.
const PAUSES: usize = 26;

/// A name that waits.
pub(super) struct Waiting {
    /// The place of the name, which is a user of its directory.
    place: RemovePlace,
    /// The type as which the name is removed.
    kind: FileType,
    /// The error of the last attempt.
    errno: Errno,
}

/// The names of a run that wait.
pub(super) struct WaitingList {
    names: Mutex<Vec<Waiting>>,
    is_closed: bool,
}

impl WaitingList {
    /// Returns an empty list. No name waits in a closed one.
    pub(super) fn new(is_closed: bool) -> Self {
        Self {
            names: Mutex::default(),
            is_closed,
        }
    }

    /// Lets a name wait that could not be removed because of `errno`. If that is not possible, reports the failure and
    /// gives the place back.
    #[cold]
    pub(super) fn let_wait(
        &self,
        context: &RemoveContext<'_>,
        place: RemovePlace,
        kind: FileType,
        errno: Errno,
    ) -> Option<RemovePlace> {
        let mut names = lock(&self.names);
        if names.len() < MOST_WAITING && !self.is_closed {
            names.push(Waiting { place, kind, errno });
            return None;
        }
        drop(names);
        context.fail_and_keep(Name::of(&place), errno);
        Some(place)
    }

    /// Takes all names. Returns `None` if there are none.
    pub(super) fn take_all(&self) -> Option<Vec<Waiting>> {
        let names = std::mem::take(&mut *lock(&self.names));
        (!names.is_empty()).then_some(names)
    }
}

/// Returns `true` if the directory of `node`, under which nothing is left to do, may be refused only for a moment.
#[cold]
pub(super) fn may_pass(context: &RemoveContext<'_>, node: &RemoveNode, errno: Errno) -> bool {
    let state = &node.state;
    let was_emptied = (state.pass > 0 || state.marks.has(SHRUNK)) && !state.marks.has(DECLINED);
    let is_seen_later = || -> Result<bool, Errno> {
        let dir = context.open_path(Name::of(&node.place))?;
        Ok(Storage::of(dir.as_fd()) != Storage::Native && !guards::is_mount_point(dir.as_fd())?)
    };
    is_not_empty(errno) && was_emptied && is_seen_later() == Ok(true)
}

/// Returns `true` if a filesystem may give this reason for a directory of which the last entry went a moment ago.
fn is_not_empty(errno: Errno) -> bool {
    matches!(errno, Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY)
}

/// Tries again to remove names, in rounds. Calls `done` with each place when its name does not wait any more, and with
/// what became of it.
pub(super) fn try_all_again(
    context: &RemoveContext<'_>,
    mut waiting: Vec<Waiting>,
    mut done: impl FnMut(RemovePlace, Entered),
) {
    let mut left_pauses = pauses();
    loop {
        let before = waiting.len();
        let names = waiting.into_iter();
        waiting = names
            .filter_map(|name| try_again(context, name, &mut done))
            .collect();
        match waiting.len() {
            0 => return,
            left if left < before => left_pauses = pauses(),
            _ => match left_pauses.next() {
                Some(pause) => thread::sleep(pause),
                None => break,
            },
        }
    }
    for Waiting { place, errno, .. } in waiting {
        let left = directory::report_left(context, Name::of(&place), errno);
        done(place, left);
    }
}

/// Tries again to remove a name. Returns it if it still waits.
fn try_again(
    context: &RemoveContext<'_>,
    waiting: Waiting,
    done: &mut impl FnMut(RemovePlace, Entered),
) -> Option<Waiting> {
    let name = Name::of(&waiting.place);
    if context.report.must_stop() {
        name.mark(KEPT);
        done(waiting.place, Entered::Left);
        return None;
    }
    match directory::try_remove(context, name, waiting.kind) {
        Ok(Entered::NoRoom(_, errno)) => return Some(Waiting { errno, ..waiting }),
        Err(errno) if is_not_empty(waiting.errno) && is_not_empty(errno) => {
            return Some(Waiting { errno, ..waiting });
        }
        Ok(removed) => done(waiting.place, removed),
        // Another operand leads to the same name.
        Err(Errno::NOENT) => done(waiting.place, Entered::Left),
        Err(errno) => {
            let left = directory::report_left(context, name, errno);
            done(waiting.place, left);
        }
    }
    None
}

/// Returns the pauses between rounds without a success.
fn pauses() -> impl Iterator<Item = Duration> {
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
