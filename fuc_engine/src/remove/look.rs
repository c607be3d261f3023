//! Looks at names: the facts that a question depends on.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::context::RemoveContext;
use super::name::Name;
use super::prompt::{DirContent, Protection};
use crate::observer::Kind;
use crate::sys::{self, Symlinks};

/// Returns `true` if `name` is known to be a directory.
pub(super) fn is_directory(dir: BorrowedFd<'_>, name: &CStr) -> bool {
    sys::stat(dir, name, Symlinks::NoFollow)
        .is_ok_and(|stat| sys::file_type(&stat) == FileType::Directory)
}

/// Finds out whether the user may write to `name`. A symbolic link is never protected, and nothing
/// is protected from the superuser.
pub(super) fn access(
    context: &RemoveContext<'_>,
    dir: BorrowedFd<'_>,
    name: &CStr,
    kind: FileType,
) -> Result<Protection, Errno> {
    if kind == FileType::Symlink || context.is_superuser {
        return Ok(Protection::Writable);
    }
    Ok(match sys::may_write(dir, name, Symlinks::NoFollow)? {
        true => Protection::Writable,
        false => Protection::WriteProtected,
    })
}

/// Finds out whether an open directory is empty.
pub(super) fn content(context: &RemoveContext<'_>, dir: BorrowedFd<'_>) -> DirContent {
    match context.remover.is_empty(dir) {
        Ok(true) => DirContent::Nothing,
        Ok(false) => DirContent::Something,
        Err(errno) => DirContent::Unreadable(errno),
    }
}

/// Opens a directory and looks whether it is empty.
pub(super) fn content_of(context: &RemoveContext<'_>, name: Name<'_>) -> DirContent {
    match context.open(name) {
        Ok(dir) => content(context, dir.as_fd()),
        Err(errno) => DirContent::Unreadable(errno),
    }
}

pub(super) fn kind_of(stat: &sys::Stat) -> Kind {
    match sys::file_type(stat) {
        FileType::RegularFile if stat.st_size == 0 => Kind::EmptyFile,
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        FileType::BlockDevice => Kind::BlockDevice,
        FileType::CharacterDevice => Kind::CharacterDevice,
        FileType::Unknown => Kind::Other,
    }
}
