//! Giving a file another name in its directory.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::fs::{RenameFlags, renameat, renameat_with};
use rustix::io::{Errno, retry_on_intr};

use super::{Symlinks, stat};

/// Renames; a file that has the new name is lost.
pub(crate) fn rename(dir: BorrowedFd<'_>, old: &CStr, new: &CStr) -> Result<(), Errno> {
    retry_on_intr(|| renameat(dir, old, dir, new))
}

/// Renames to a name that nobody has, else `EEXIST`. Where the filesystem
/// cannot promise that, looking first has to do.
pub(crate) fn rename_to_new(dir: BorrowedFd<'_>, old: &CStr, new: &CStr) -> Result<(), Errno> {
    match retry_on_intr(|| renameat_with(dir, old, dir, new, RenameFlags::NOREPLACE)) {
        Err(Errno::INVAL | Errno::NOSYS) => match stat(dir, new, Symlinks::NoFollow) {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) => rename(dir, old, new),
            Err(errno) => Err(errno),
        },
        renamed => renamed,
    }
}
