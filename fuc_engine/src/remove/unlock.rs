//! Gives the owner all permissions on a directory if they are the reason why it, or a name in it, cannot be removed.
//!
//! Everything here comes after a call that has failed with EACCES. What stays keeps the new permissions.
//!
//! Two invariants. **Nothing above an operand is changed.** A mode is only changed by a descriptor: that of a directory
//! in flight, or of one that was opened without following a link.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::context::RemoveContext;
use super::node::{Name, RemoveNode};
use crate::node::Side;
use crate::sys::{self, Fd, Inode, Symlinks};

/// All permissions of the owner.
const ALL: u32 = 0o700;

/// Makes a call on `name` again that has failed with `errno`, if permissions on the directory above may be the reason.
#[cold]
pub(super) fn retry<T>(
    context: &RemoveContext<'_>,
    name: Name<'_>,
    errno: Errno,
    call: impl FnOnce(BorrowedFd<'_>, &CStr) -> Result<T, Errno>,
) -> Result<T, Errno> {
    match name.parent {
        Some(above) if unlock(context, above, errno) => context.at(name, call),
        _ => Err(errno),
    }
}

/// Unlocks a directory in flight if its permissions may be the reason for `errno`. Returns `true` if the owner has all
/// of them now.
pub(super) fn unlock(context: &RemoveContext<'_>, node: &RemoveNode, errno: Errno) -> bool {
    let unlock = || {
        let dir = context.descriptors.pin(node, Side::Source, context)?;
        unlock_open(dir.as_fd())
    };
    context.unlocks && errno == Errno::ACCESS && unlock().is_ok()
}

/// Unlocks and opens a directory that could not be opened because of `errno`.
pub(super) fn open(context: &RemoveContext<'_>, name: Name<'_>, errno: Errno) -> Option<Fd> {
    if !context.unlocks || errno != Errno::ACCESS {
        return None;
    }
    let held = context.open_path(name).ok()?;
    unlock_open(held.as_fd()).ok()?;
    let listed = || sys::open_directory(held.as_fd(), c".", Symlinks::NoFollow);
    context.descriptors.making_room(listed).ok()
}

/// Fails if the directory belongs to another user.
fn unlock_open(dir: BorrowedFd<'_>) -> Result<(), Errno> {
    let stat = sys::stat_open(dir)?;
    match stat.st_mode & ALL == ALL {
        // Another worker may have unlocked it.
        true => Ok(()),
        false if stat.st_uid != sys::effective_user() => Err(Errno::ACCESS),
        false => Inode::directory(dir).set_mode(stat.st_mode | ALL),
    }
}
