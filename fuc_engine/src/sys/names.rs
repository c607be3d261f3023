//! Creates, renames and removes names in open directories.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::fs::{
    self, AtFlags, CWD, Dev, FileType, Mode, RenameFlags, linkat, renameat, renameat_with,
};
use rustix::io::Errno;

use super::at::{At, Symlinks};
use super::interrupted::retry_on_intr;
use super::proc::path_of_open;
use super::stat::stat;

pub(crate) fn unlink(dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    retry_on_intr(|| fs::unlinkat(dir, name, AtFlags::empty()))
}

pub(crate) fn remove_directory(dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    retry_on_intr(|| fs::unlinkat(dir, name, AtFlags::REMOVEDIR))
}

pub(crate) fn create_directory(dir: BorrowedFd<'_>, name: &CStr, mode: u32) -> Result<(), Errno> {
    retry_on_intr(|| fs::mkdirat(dir, name, Mode::from_raw_mode(mode)))
}

/// Creates an empty file, FIFO, socket or device node; `mode` includes the type.
pub(crate) fn create_node(
    dir: BorrowedFd<'_>,
    name: &CStr,
    mode: u32,
    device: Dev,
) -> Result<(), Errno> {
    let kind = FileType::from_raw_mode(mode);
    let mode = Mode::from_raw_mode(mode & 0o7777);
    retry_on_intr(|| fs::mknodat(dir, name, kind, mode, device))
}

pub(crate) fn create_symlink(target: &CStr, dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    retry_on_intr(|| fs::symlinkat(target, dir, name))
}

/// Gives an existing file, found by its directory and name, one more name.
pub(crate) fn create_hard_link(
    source: At<'_>,
    dir: BorrowedFd<'_>,
    name: &CStr,
) -> Result<(), Errno> {
    let flags = match source.symlinks {
        Symlinks::Follow => AtFlags::SYMLINK_FOLLOW,
        Symlinks::NoFollow => AtFlags::empty(),
    };
    retry_on_intr(|| linkat(source.dir, source.name, dir, name, flags))
}

/// Gives an open file one more name. `file` may be a path descriptor.
pub(crate) fn create_hard_link_to(
    file: BorrowedFd<'_>,
    dir: BorrowedFd<'_>,
    name: &CStr,
) -> Result<(), Errno> {
    match retry_on_intr(|| linkat(file, c"", dir, name, AtFlags::EMPTY_PATH)) {
        // Before Linux 6.10 this needs a capability.
        Err(Errno::NOENT) => {
            let path = path_of_open(file)?;
            retry_on_intr(|| linkat(CWD, &path, dir, name, AtFlags::SYMLINK_FOLLOW))
        }
        linked => linked,
    }
}

/// Renames within one directory; replaces a file that has the new name.
pub(crate) fn rename(dir: BorrowedFd<'_>, old: &CStr, new: &CStr) -> Result<(), Errno> {
    retry_on_intr(|| renameat(dir, old, dir, new))
}

/// Renames within one directory; fails with `EEXIST` if the new name exists.
///
/// On a filesystem that cannot promise this, the name is looked up first, so a file that another
/// process creates in between is replaced.
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
