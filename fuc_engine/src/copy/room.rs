//! Room for large files on the filesystems of dests.
//!
//! Two files that are written at the same time can both run out of room, even if there is enough
//! for one of them. So a large file waits until it can be written alone, unless there is room for
//! all. It also waits if the process may use too little memory for more writers: the kernel counts
//! pages that are not yet on the disk, too, and would kill the process. After a write has failed
//! for lack of room, a large file is begun only if it fits: otherwise the old content of its dest
//! would be lost, and no copy gained.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::io::Errno;

use super::facts::{Entry, Symlinks};
use crate::operand;
use crate::sys::{self, Device, Stat};

/// Memory for each worker that writes a large file.
///
/// In a memory cgroup of 12 to 16 MiB, the kernel killed 4 of 42 copies of 25 files of 8 MB by two
/// workers, and none with 24 MiB (Linux 6.18, a cgroup of version 1).
const MEMORY_PER_WRITER: u64 = 12 << 20;

/// The knowledge about the room for large files.
#[derive(Default)]
pub(super) struct Room {
    /// Bytes of all large files that are being written.
    reserved: AtomicU64,
    /// How many large files are being written.
    writers: AtomicU64,
    /// How many may be written at the same time. Found when it is first needed.
    most_writers: OnceLock<u64>,
    /// The filesystems on which a write has failed for lack of room, and with which error.
    full: Mutex<Vec<(Device, Errno)>>,
}

/// Room for a file that is being written.
pub(super) struct Reservation<'r> {
    room: &'r Room,
    bytes: u64,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.room.release(self.bytes);
    }
}

impl Room {
    fn full(&self) -> MutexGuard<'_, Vec<(Device, Errno)>> {
        self.full.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // Relaxed: only the numbers count, and they publish nothing.

    /// Notes that a file is being written, until [`release`](Self::release).
    pub(super) fn hold(&self, bytes: u64) {
        self.reserved.fetch_add(bytes, Ordering::Relaxed);
        self.writers.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a file is not being written any more.
    pub(super) fn release(&self, bytes: u64) {
        self.reserved.fetch_sub(bytes, Ordering::Relaxed);
        self.writers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Reserves room for a file. Returns `None` if other large files are being written and
    /// there may not be room or memory for all of them. `free` is called only if there are others.
    pub(super) fn reserve(
        &self,
        bytes: u64,
        free: impl FnOnce() -> Option<u64>,
    ) -> Option<Reservation<'_>> {
        let others = self.reserved.fetch_add(bytes, Ordering::Relaxed);
        let writers = self.writers.fetch_add(1, Ordering::Relaxed);
        let reservation = Reservation { room: self, bytes };
        let fits = writers == 0
            || writers < self.most_writers()
                && free().is_none_or(|free| others.saturating_add(bytes) <= free);
        fits.then_some(reservation)
    }

    fn most_writers(&self) -> u64 {
        *self
            .most_writers
            .get_or_init(|| sys::memory_limit().map_or(u64::MAX, |bytes| bytes / MEMORY_PER_WRITER))
    }

    /// Notes that a write to the dest of `entry` has failed, if that was for lack of room.
    pub(super) fn note_failure(&self, entry: &Entry<'_>, errno: Option<Errno>) {
        let Some(errno @ (Errno::NOSPC | Errno::DQUOT)) = errno else {
            return;
        };
        let Some(device) = in_dest_directory(entry, device) else {
            return;
        };
        let mut full = self.full();
        if !full.contains(&(device, errno)) {
            full.push((device, errno));
        }
    }

    /// Returns the error with which an earlier write has failed, if there is no room for this
    /// source either.
    pub(super) fn shortage(&self, entry: &Entry<'_>, source: &Stat) -> Option<Errno> {
        if self.full().is_empty() {
            return None;
        }
        let (device, free) =
            in_dest_directory(entry, |dir| Some((device(dir)?, sys::free_bytes(dir))))?;
        // The old content makes room when it is truncated or unlinked.
        let old = sys::stat(entry.dest_dir, entry.dest_name, Symlinks::Follow);
        let old_bytes = old.map_or(0, |old| bytes_on_disk(&old));
        let needed = bytes_on_disk(source);
        let lacks_room = |errno| match errno {
            // The kernel cannot be asked how much of a quota is left. Incomplete files have
            // used it up.
            Errno::DQUOT => needed > old_bytes,
            _ => free.is_some_and(|free| needed > old_bytes.saturating_add(free)),
        };
        let full = self.full();
        let mut errors = full.iter().filter(|(full, _)| *full == device);
        errors
            .find(|(_, errno)| lacks_room(*errno))
            .map(|(_, errno)| *errno)
    }
}

/// Returns how many bytes a copy of the file takes at least, if its holes stay holes.
#[allow(clippy::unnecessary_cast)] // The types of the fields depend on the architecture.
pub(super) fn bytes_on_disk(stat: &Stat) -> u64 {
    (stat.st_size as u64).min((stat.st_blocks as u64).saturating_mul(512))
}

fn device(dir: BorrowedFd<'_>) -> Option<Device> {
    let stat = sys::stat(dir, c".", Symlinks::NoFollow);
    stat.ok().map(|stat| stat.st_dev)
}

/// Calls `ask` with the directory of the dest. Returns `None` if that cannot be opened.
fn in_dest_directory<T>(
    entry: &Entry<'_>,
    ask: impl FnOnce(BorrowedFd<'_>) -> Option<T>,
) -> Option<T> {
    if !entry.is_operand() {
        return ask(entry.dest_dir);
    }
    let path = operand::directory_of(entry.dest_name);
    let dir = sys::open_path_directory(entry.dest_dir, &path, Symlinks::Follow).ok()?;
    ask(dir.as_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_alone_needs_no_known_room() {
        let room = Room::default();
        let ask = || unreachable!("no other file is being written");
        assert!(room.reserve(7, ask).is_some());
        assert!(room.reserve(7, ask).is_some(), "the first one was released");
    }

    #[test]
    fn files_are_written_together_if_there_is_room_for_all() {
        let room = Room::default();
        let first = room.reserve(6, || None);
        assert!(room.reserve(4, || Some(9)).is_none());
        let second = room.reserve(4, || Some(10));
        assert!(first.is_some() && second.is_some());
        drop(first);
        assert!(room.reserve(6, || Some(9)).is_none());
        assert!(room.reserve(6, || None).is_some(), "the room is unknown");
    }

    #[test]
    fn no_more_files_are_written_together_than_the_memory_bears() {
        let room = Room::default();
        room.most_writers.set(2).unwrap();
        let both = [(); 2].map(|()| room.reserve(1, || None));
        assert!(both.iter().all(Option::is_some));
        assert!(room.reserve(1, || None).is_none());
        drop(both);
        assert!(room.reserve(1, || None).is_some());
    }
}
