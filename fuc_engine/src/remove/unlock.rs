//! Gives the owner all permissions on a directory if they are the reason why it, or a name in it, cannot be removed.
//!
//! The [context](super::context) does so after a call that has failed with EACCES, and makes the call again. What stays
//! keeps the new permissions.
//!
//! Two invariants. **Nothing above an operand is changed.** A mode is only changed by a descriptor: that of a directory
//! in flight, or of one that was opened without following a link.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::sys::{self, Inode};

/// All permissions of the owner.
const ALL: u32 = 0o700;

/// Unlocks an open directory. Fails if it belongs to another user.
pub(super) fn unlock(dir: BorrowedFd<'_>) -> Result<(), Errno> {
    let stat = sys::stat_open(dir)?;
    match stat.st_mode & ALL == ALL {
        // Another worker may have unlocked it.
        true => Ok(()),
        false if stat.st_uid != sys::effective_user() => Err(Errno::ACCESS),
        false => Inode::directory(dir).set_mode(stat.st_mode | ALL),
    }
}
