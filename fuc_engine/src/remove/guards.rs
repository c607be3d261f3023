//! Directories that the options protect: `/`, mount points, other filesystems.
//!
//! A bind mount of the operand's own filesystem counts as another filesystem: what is behind it belongs to another
//! place in the tree.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::context::RemoveContext;
use super::node::Name;
use crate::error::{Error, Operation, Refusal};
use crate::sys::{self, CWD, Mount, Symlinks};

/// A reason not to remove or enter a directory.
pub(super) enum Obstacle {
    Refused(Refusal),
    /// The directory could not be looked at, and may be a protected one.
    Unknown(Errno),
    /// The parent directory could not be looked at.
    UnknownParent(Errno),
}

impl Obstacle {
    pub(super) fn report(self, context: &RemoveContext<'_>, name: Name<'_>) {
        match self {
            Self::Refused(refusal) => context.refuse(name, refusal),
            Self::Unknown(errno) => context.fail_and_keep(name, errno),
            Self::UnknownParent(errno) => {
                let error = Error::failed(Operation::StatParent, context.path(name), errno);
                context.fail(name, error);
            }
        }
    }
}

/// Checks an operand that is open as `dir`.
pub(super) fn check_operand(
    context: &RemoveContext<'_>,
    dir: BorrowedFd<'_>,
) -> Result<(), Obstacle> {
    let options = context.options;
    if options.preserve_root && is_root(context, dir).map_err(Obstacle::Unknown)? {
        return Err(Obstacle::Refused(Refusal::Root));
    }
    if options.preserve_mount_points && is_mount_point(dir).map_err(Obstacle::UnknownParent)? {
        return Err(Obstacle::Refused(Refusal::MountPoint));
    }
    Ok(())
}

/// Checks an operand that is removed without being entered, and so must be empty.
/// That excludes `/`, but not a mount point. It may also be unlocked and entered.
pub(super) fn check_unopened(context: &RemoveContext<'_>, name: Name<'_>) -> Result<(), Obstacle> {
    if !context.options.preserve_mount_points && !context.unlocks {
        return Ok(());
    }
    match context.open_path(name) {
        Ok(dir) => check_operand(context, dir.as_fd()),
        // Nothing is mounted on a name that is not a directory.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
        Err(errno) => Err(Obstacle::Unknown(errno)),
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
            let root = context
                .descriptors
                .making_room(|| sys::open_path_directory(CWD, c"/", Symlinks::NoFollow))?;
            let identity = sys::stat_directory(root.as_fd())?.identity;
            *context.root.get_or_init(|| identity)
        }
    };
    Ok(root.file() == sys::stat_directory(operand)?.identity.file())
}

/// Returns `true` if `dir` is on another filesystem than its parent, or reached through another mount.
pub(super) fn is_mount_point(dir: BorrowedFd<'_>) -> Result<bool, Errno> {
    let parent = Mount::of(dir, c"..");
    let itself = Mount::of(dir, c"");
    Ok(!parent?.is_same(itself?))
}
