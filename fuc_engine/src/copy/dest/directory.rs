//! Makes the directory at a dest, or opens the one that is there.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::backup::{BackupNumbers, replace_by_directory};
use super::create_directory;
use crate::copy::attributes;
use crate::copy::collisions;
use crate::copy::context::Context;
use crate::copy::decide::mode::{self, DestAcl, Origin};
use crate::copy::diagnose;
use crate::copy::facts::{Entry, FileId, Symlinks};
use crate::copy::look;
use crate::error::{Error, Operation, Refusal};
use crate::sys::{self, DirStat, Fd, Identity, Inode};
use crate::walk::Purpose;

/// A dest directory that is open.
pub(in crate::copy) struct DestDir {
    pub(in crate::copy) fd: Fd,
    pub(in crate::copy) identity: Identity,
    pub(in crate::copy) origin: Origin,
    pub(in crate::copy) inherited_acl: DestAcl,
    pub(in crate::copy) mode_pending: Option<u32>,
}

/// Returns `true` if the dest of a directory keeps its attributes: it existed, and the filter skips the source.
pub(in crate::copy) fn keeps_attributes(purpose: Purpose, dest: Origin) -> bool {
    purpose == Purpose::ProcessEntries && dest == Origin::Existing
}

/// Makes the dest directory, or opens the one that is there.
pub(in crate::copy) fn make(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &DirStat,
    purpose: Purpose,
    numbers: &mut BackupNumbers,
) -> Result<DestDir, Error> {
    let id = source.identity.file();
    let origin = claim(ctx, entry, id, source.mode, purpose, numbers)?;
    let fd = open_claimed(ctx, entry, origin).map_err(|errno| match errno {
        // The dest is a dangling link named with a trailing slash.
        Errno::NOENT if origin == Origin::Existing => Errno::EXIST,
        errno => errno,
    });
    let fd = fd.map_err(|errno| diagnose::directory_creation(ctx, entry, id, errno))?;
    let failed = |operation| move |errno| ctx.dest_error(entry, operation, errno);
    let stat = sys::stat_directory(fd.as_fd()).map_err(failed(Operation::Stat))?;
    let mut mode_pending = None;
    if origin == Origin::Created {
        let granted = stat.mode & 0o7777;
        mode_pending = let_owner_fill(ctx, fd.as_fd(), granted)
            .map_err(failed(Operation::SetMode))?
            .or_else(|| mode::of_writable_directory(granted));
    }
    if ctx.policy.sets_attributes && !keeps_attributes(purpose, origin) {
        let policy = &ctx.policy;
        let last = policy.last_directory_mode(source.mode, stat.mode, origin);
        mode_pending = last.or(mode_pending);
    }
    let above = entry.node.map(|node| node.state.inherited_acl());
    let inherited_acl = match (above, origin) {
        _ if !ctx.policy.replaces_acls() => DestAcl::Absent,
        // It has the default ACL of its parent.
        (Some(above), Origin::Created) => above,
        _ => attributes::inherited_in(&Inode::directory(fd.as_fd())),
    };
    Ok(DestDir {
        fd,
        identity: stat.identity,
        origin,
        inherited_acl,
        mode_pending,
    })
}

/// Creates the dest of the directory `source`, which has this mode, or decides to use the directory that is there.
#[inline(always)]
pub(in crate::copy) fn claim(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: FileId,
    mode: u32,
    purpose: Purpose,
    numbers: &mut BackupNumbers,
) -> Result<Origin, Error> {
    let mode = ctx.policy.directory_creation_mode(mode);
    match create_directory(ctx, entry, mode) {
        Ok(()) => Ok(Origin::Created),
        Err(Errno::EXIST) if !entry.is_operand() && collisions::may_be_other_copy(ctx, entry) => {
            Err(refuse_to_merge(ctx, entry, source))
        }
        Err(Errno::EXIST) if purpose == Purpose::ProcessEntries => Ok(Origin::Existing),
        Err(Errno::EXIST) => replace_by_directory(ctx, entry, mode, numbers),
        Err(errno) => Err(diagnose::directory_creation(ctx, entry, source, errno)),
    }
}

#[inline]
fn open_claimed(ctx: &Context<'_>, entry: &Entry<'_>, origin: Origin) -> Result<Fd, Errno> {
    let open = || ctx.open_dest_directory(entry.dest_dir, entry.dest_name);
    ctx.descriptors
        .making_room(|| ctx.changes.open(ctx.spot(entry), origin, open))
}

/// Lets the owner create entries in a new directory, which has the mode `granted`. Returns the mode to set in the end, if
/// it is another one.
///
/// The umask is not needed for this: the mode that `mkdirat` grants shows the effect of the umask and of default ACLs.
pub(in crate::copy) fn let_owner_fill(
    ctx: &Context<'_>,
    dir: BorrowedFd<'_>,
    granted: u32,
) -> Result<Option<u32>, Errno> {
    let Some(filling) = mode::while_filled(granted) else {
        return Ok(None);
    };
    let set = || match Inode::directory(dir).set_mode(filling) {
        Ok(()) => Ok(Some(granted)),
        // Root may do it without the mode.
        Err(_) if sys::check_adding(dir, c".").is_ok() => Ok(None),
        Err(errno) => Err(errno),
    };
    ctx.changes.really(set)
}

/// Returns the error of a dest that exists in a directory that this run has made.
fn refuse_to_merge(ctx: &Context<'_>, entry: &Entry<'_>, source: FileId) -> Error {
    match look::at_dest(ctx, entry, Symlinks::NoFollow) {
        Ok(dest) if sys::is_directory(&dest) => ctx.refused(entry, Refusal::JustCreated).error,
        _ => diagnose::directory_creation(ctx, entry, source, Errno::NOTDIR),
    }
}
