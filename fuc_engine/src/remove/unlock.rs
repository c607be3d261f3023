//! Removes names that only permissions of the user's own making protect.
//!
//! Everything here comes after a failure, and its errno says which lock may be the reason:
//!
//! ```text
//!   EACCES   the mode of a directory, if the user owns it             u+rwx
//!   EPERM    attributes of the entry, and of the directory it is in   neither immutable nor append-only
//!   EROFS    the btrfs subvolume that the entry is in                 writable
//! ```
//!
//! Three invariants. **Nothing above an operand is unlocked.** A lock is only changed by a descriptor: that of a directory in
//! flight, or of an entry that was opened without following a link and compared with what was seen under its name.
//! **What stays is locked again:** an entry after the attempt, a directory when it is finished.
//!
//! Attributes belong to the inode. So an entry with other hard links is locked again even if this name is gone.

use std::ffi::CStr;
use std::iter;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, IFlags};
use rustix::io::Errno;

use super::context::RemoveContext;
use super::lock::Lock;
use super::node::{Name, RemoveNode, RemovePlace};
use crate::node::Side;
use crate::sync::lock;
use crate::sys::{self, At, Blocking, Fd, FileId, Symlinks};

/// A name is tried again at most this many times, because it may have a lock of each kind.
const MOST_ATTEMPTS: usize = 3;

/// An open directory that was unlocked, and about which nothing is left to do.
pub(super) struct Unlocked {
    dir: Fd,
    lock: Lock,
}

impl Unlocked {
    /// Locks an open directory again if it was unlocked.
    pub(super) fn restore_open(context: &RemoveContext<'_>, dir: Fd) {
        if let Some(unlocked) = Self::of(context, dir) {
            unlocked.restore();
        }
    }

    /// Returns `None` if the directory was not unlocked.
    fn of(context: &RemoveContext<'_>, dir: Fd) -> Option<Self> {
        context.unlocking.directories.get()?;
        let id = FileId::of(&sys::stat_open(&dir).ok()?);
        let lock = context.unlocking.directories().remove(&id)?;
        Some(Self { dir, lock })
    }

    /// Returns the directory of a node about which nothing is left to do, if it was unlocked.
    #[inline(always)]
    pub(super) fn finished(context: &RemoveContext<'_>, node: &RemoveNode) -> Option<Self> {
        if lock(context.unlocking.directories.get()?).is_empty() {
            return None;
        }
        let dir = context.descriptors.pin(node, Side::Source, context).ok()?;
        let held = || sys::duplicate(dir.as_fd());
        Self::of(context, context.descriptors.making_room(held).ok()?)
    }

    /// Locks the directory again.
    pub(super) fn restore(&self) {
        self.lock.restore(self.dir.as_fd());
    }
}

impl RemoveContext<'_> {
    /// Does the same as [`at`](Self::at), and unlocks what prevents `call` if the options permit it.
    // If the functions between the walk and the call on a directory are not inlined, that takes 30 more instructions. The
    // guard's case `rmz-directories` counts them.
    #[inline(always)]
    pub(super) fn unlocking<T>(
        &self,
        name: Name<'_>,
        mut call: impl FnMut(BorrowedFd<'_>, &CStr) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let called = self.at(name, &mut call);
        called.or_else(|errno| retry(self, name, errno, call))
    }

    /// Opens a directory.
    #[inline(always)]
    pub(super) fn open(&self, name: Name<'_>) -> Result<Fd, Errno> {
        self.unlocking(name, |dir, name| {
            self.descriptors
                .making_room(|| sys::open_directory(dir, name, Symlinks::NoFollow))
        })
    }
}

/// Unlocks what may be the reason why a call on `name` has failed with `errno`, and makes the call again.
#[cold]
pub(super) fn retry<T>(
    context: &RemoveContext<'_>,
    name: Name<'_>,
    errno: Errno,
    mut call: impl FnMut(BorrowedFd<'_>, &CStr) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let mut failed = errno;
    for _ in 0..MOST_ATTEMPTS {
        if !context.unlocks || !matches!(failed, Errno::ACCESS | Errno::PERM | Errno::ROFS) {
            break;
        }
        let is_unlocked = name
            .parent
            .is_some_and(|above| unlock_directory(context, above, failed).is_ok());
        let called = match failed {
            Errno::PERM => call_unlocked(context, name, is_unlocked, &mut call),
            _ if is_unlocked => context.at(name, &mut call),
            _ => break,
        };
        match called {
            Err(errno) => failed = errno,
            done => return done,
        }
    }
    Err(failed)
}

/// Makes a call on an entry that has no attributes while it is made.
fn call_unlocked<T>(
    context: &RemoveContext<'_>,
    name: Name<'_>,
    is_unlocked: bool,
    call: impl FnMut(BorrowedFd<'_>, &CStr) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let one_at_a_time = context.unlocking.entry.lock();
    let entry = context.at(name, unlock_entry);
    if entry.is_err() && !is_unlocked {
        return Err(Errno::PERM);
    }
    let called = context.at(name, call);
    if let Ok((file, attributes)) = entry {
        let is_gone = || sys::stat_open(&file).is_ok_and(|stat| stat.st_nlink == 0);
        if called.is_err() || !is_gone() {
            let _ = sys::set_attributes(file.as_fd(), attributes);
        }
    }
    drop(one_at_a_time);
    called
}

/// Clears the attributes of an entry. Other types than these have none, and to open them could have side effects.
fn unlock_entry(dir: BorrowedFd<'_>, name: &CStr) -> Result<(Fd, IFlags), Errno> {
    let symlinks = Symlinks::NoFollow;
    let seen = sys::stat(dir, name, symlinks)?;
    let at = At {
        dir,
        name,
        symlinks,
    };
    let file = match sys::file_type(&seen) {
        FileType::Directory => sys::open_directory(dir, name, symlinks)?,
        FileType::RegularFile => sys::open_source(at, Blocking::OnlyForLease)?,
        _ => return Err(Errno::PERM),
    };
    if FileId::of(&sys::stat_open(&file)?) != FileId::of(&seen) {
        return Err(Errno::STALE);
    }
    let attributes = sys::clear_attributes(file.as_fd())?;
    match attributes.is_empty() {
        true => Err(Errno::PERM),
        false => Ok((file, attributes)),
    }
}

/// Unlocks a directory in flight, or the subvolume that it is in. Succeeds if that was done before, too.
fn unlock_directory(
    context: &RemoveContext<'_>,
    node: &RemoveNode,
    errno: Errno,
) -> Result<(), Errno> {
    let unlock = |node: &RemoveNode, errno| {
        let dir = context.descriptors.pin(node, Side::Source, context)?;
        unlock_open(context, dir.as_fd(), errno)
    };
    if errno == Errno::ROFS {
        let above = iter::successors(Some(node), |node| node.place.parent.as_ref());
        let is_subvolume = |node: &&RemoveNode| {
            let dir = context.descriptors.pin(node, Side::Source, context);
            dir.is_ok_and(|dir| sys::is_subvolume(dir.as_fd()))
        };
        let root = above.into_iter().find(is_subvolume).ok_or(errno)?;
        return unlock(root, errno);
    }
    match unlock(node, errno) {
        // The directory may have locks that protect its mode.
        Err(reason @ (Errno::PERM | Errno::ROFS)) if reason != errno => {
            unlock_directory(context, node, reason)?;
            unlock(node, errno)
        }
        unlocked => unlocked,
    }
}

/// Unlocks the directory that is open as `dir`, and notes how it was.
fn unlock_open(
    context: &RemoveContext<'_>,
    dir: BorrowedFd<'_>,
    errno: Errno,
) -> Result<(), Errno> {
    let id = FileId::of(&sys::stat_open(dir)?);
    let mut directories = context.unlocking.directories();
    let lock = directories.entry(id).or_insert(Lock::NONE);
    let taken = lock.take(dir, errno);
    if *lock == Lock::NONE {
        directories.remove(&id);
    }
    taken
}

/// Unlocks and opens a directory that could not be opened because of `errno`.
pub(super) fn open(context: &RemoveContext<'_>, place: &RemovePlace, errno: Errno) -> Option<Fd> {
    if !context.unlocks || errno != Errno::ACCESS {
        return None;
    }
    let descriptors = &context.descriptors;
    let held = context.at(Name::of(place), |dir, name| {
        descriptors.making_room(|| sys::open_path_directory(dir, name, Symlinks::NoFollow))
    });
    let held = held.ok()?;
    let unlock = || unlock_open(context, held.as_fd(), errno);
    match (unlock(), &place.parent) {
        (Ok(()), _) => {}
        (Err(Errno::ROFS), Some(above)) => {
            unlock_directory(context, above, Errno::ROFS).ok()?;
            unlock().ok()?;
        }
        (Err(_), _) => return None,
    }
    let listed = || sys::open_directory(held.as_fd(), c".", Symlinks::NoFollow);
    let opened = descriptors.making_room(listed);
    if opened.is_err() {
        Unlocked::restore_open(context, held);
    }
    opened.ok()
}
