//! Asks the filesystem of a dest which times it stores.
//!
//! A dest gets times that cannot be taken for that of its source, and then its own time again. A process that is
//! killed in between leaves a dest that a later run copies.

use std::os::fd::AsFd;
use std::sync::PoisonError;

use rustix::io::Errno;

use crate::copy::context::Context;
use crate::copy::decide::times::StoredTimes;
use crate::copy::facts::{FileId, FileTime};
use crate::sys::{self, At, Inode, InodeError, PathFd, Stat};

/// Returns `true` if the filesystem stores the time `wanted` as the one that the dest has.
///
/// The dest, which was seen as `dest`, is probed only if the filesystem has not shown that before. Returns `false`
/// if it cannot be probed: its user may not set its times, or the run is a dry one.
pub(super) fn stands_for(ctx: &Context<'_>, at: At<'_>, dest: &Stat, wanted: FileTime) -> bool {
    let device = FileId::of(dest).device;
    let stored = sys::modified(dest);
    let all = || {
        let times = ctx.stored_times.lock();
        times.unwrap_or_else(PoisonError::into_inner)
    };
    let known = all().get(&device).copied();
    if let Some(found) = known.and_then(|known| known.stored(wanted)) {
        return found == stored;
    }
    let shown = ctx.changes.really(|| probe(ctx, at, dest, wanted));
    let Ok(Some(shown)) = shown else {
        return false;
    };
    let mut times = all();
    let known = shown.added_to(times.get(&device).copied());
    times.insert(device, known);
    shown.stored(wanted) == Some(stored)
}

/// Probes the dest, and gives it its time again.
fn probe(
    ctx: &Context<'_>,
    at: At<'_>,
    dest: &Stat,
    wanted: FileTime,
) -> Result<Option<StoredTimes>, InodeError> {
    let stored = sys::modified(dest);
    let held = ctx.descriptors.making_room(|| sys::open_path_only(&at))?;
    let (fd, at) = (held.as_fd(), Some(at));
    let inode = Inode::PathOnly(PathFd { fd, at });
    let seen = inode.stat()?;
    if FileId::of(&seen) != FileId::of(dest) || sys::modified(&seen) != stored {
        return Err(Errno::STALE.into());
    }
    let set = |time| {
        inode.set_modified(time)?;
        Ok(sys::modified(&inode.stat()?))
    };
    let shown: Result<Option<StoredTimes>, InodeError> = StoredTimes::ask(stored, wanted, set);
    // A limit may not be a multiple of the step: then only a time beyond it is stored as the limit.
    let is_complete = matches!(shown, Ok(Some(shown)) if shown.stored(wanted) == Some(stored));
    let restored = set(if is_complete { wanted } else { stored });
    Ok(shown?.filter(|_| restored == Ok(stored)))
}
