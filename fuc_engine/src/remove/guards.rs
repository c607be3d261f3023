//! Directories that the options protect: `/`, mount points, other filesystems.
//!
//! A bind mount of the operand's own filesystem counts as another filesystem: what is behind it belongs to another
//! place in the tree.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::context::RemoveContext;
use super::node::Name;
use crate::error::{Error, Operation, Refusal};
use crate::sys::{self, CWD, FileId, Mount, Symlinks};

/// Checks an operand that is open as `dir`. Fails if it is protected, or may be.
pub(super) fn check_operand(
    context: &RemoveContext<'_>,
    name: Name<'_>,
    dir: BorrowedFd<'_>,
) -> Result<(), Error> {
    let options = context.options;
    let failed = |operation| move |errno| Error::failed(operation, context.path(name), errno);
    if options.preserve_root && is_root(context, dir).map_err(failed(Operation::Remove))? {
        return Err(Error::refused(Refusal::Root, context.path(name)));
    }
    if options.preserve_mount_points
        && is_mount_point(dir).map_err(failed(Operation::StatParent))?
    {
        return Err(Error::refused(Refusal::MountPoint, context.path(name)));
    }
    Ok(())
}

/// Checks an operand that is removed without being entered, and so must be empty.
/// That excludes `/`, but not a mount point. It may also be unlocked and entered.
pub(super) fn check_unopened(context: &RemoveContext<'_>, name: Name<'_>) -> Result<(), Error> {
    if !context.options.preserve_mount_points && !context.unlocks {
        return Ok(());
    }
    match context.open_path(name) {
        Ok(dir) => check_operand(context, name, dir.as_fd()),
        // Nothing is mounted on a name that is not a directory.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
        Err(errno) => Err(Error::failed(Operation::Remove, context.path(name), errno)),
    }
}

/// Returns `true` if `dir`, which is an operand or lies below one, is not on the
/// operand's filesystem. The first call for an operand must be about itself.
pub(super) fn is_on_other_filesystem(
    context: &RemoveContext<'_>,
    operand: u32,
    dir: BorrowedFd<'_>,
) -> Result<bool, Errno> {
    Ok(is_other_mount(context, operand, Mount::of(dir, c"")?))
}

/// Does the same if the mount of the directory is known.
pub(super) fn is_other_mount(context: &RemoveContext<'_>, operand: u32, mount: Mount) -> bool {
    let operands = context.mounts[operand as usize].get_or_init(|| mount);
    !operands.is_same(mount)
}

fn is_root(context: &RemoveContext<'_>, operand: BorrowedFd<'_>) -> Result<bool, Errno> {
    let root = match context.root.get() {
        Some(root) => *root,
        None => {
            let root = FileId::of(&sys::stat(CWD, c"/", Symlinks::NoFollow)?);
            *context.root.get_or_init(|| root)
        }
    };
    Ok(root == sys::stat_directory(operand)?.identity.file())
}

/// Returns `true` if `dir` is on another filesystem than its parent, or reached through another mount.
pub(super) fn is_mount_point(dir: BorrowedFd<'_>) -> Result<bool, Errno> {
    let parent = Mount::of(dir, c"..");
    let itself = Mount::of(dir, c"");
    Ok(!parent?.is_same(itself?))
}
