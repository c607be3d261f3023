//! Makes the directory at a dest, or opens the one that is there.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::backup::{BackupNumbers, replace_by_directory};
use crate::copy::attributes;
use crate::copy::collisions;
use crate::copy::context::Context;
use crate::copy::decide::mode::{self, DestAcl, Origin};
use crate::copy::diagnose;
use crate::copy::facts::{CopyDir, FileId, Symlinks};
use crate::copy::look;
use crate::error::{Error, Operation, Refusal};
use crate::node::{Place, Side};
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
    place: &Place<CopyDir>,
    source: &DirStat,
    purpose: Purpose,
    numbers: &mut BackupNumbers,
) -> Result<DestDir, Error> {
    let id = source.identity.file();
    let origin = claim(ctx, place, id, source.mode, purpose, numbers)?;
    let fd = open_claimed(ctx, place, origin).map_err(|errno| match errno {
        // The dest is a dangling link named with a trailing slash.
        Errno::NOENT if origin == Origin::Existing => Errno::EXIST,
        errno => errno,
    });
    let fd = fd.map_err(|errno| diagnose::directory_creation(ctx, place, id, errno))?;
    let stat = sys::stat_directory(fd.as_fd())
        .map_err(|errno| ctx.place_error(place, Side::Dest, Operation::Stat, errno))?;
    let mut mode_pending = None;
    if origin == Origin::Created {
        let granted = stat.mode & 0o7777;
        mode_pending = let_owner_fill(ctx, fd.as_fd(), granted)
            .map_err(|errno| ctx.place_error(place, Side::Dest, Operation::SetMode, errno))?
            .or_else(|| mode::of_writable_directory(granted));
    }
    if ctx.policy.sets_attributes && !keeps_attributes(purpose, origin) {
        let policy = &ctx.policy;
        let last = policy.last_directory_mode(source.mode, stat.mode, origin);
        mode_pending = last.or(mode_pending);
    }
    let above = place.parent.as_ref().map(|node| node.state.inherited_acl());
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
    place: &Place<CopyDir>,
    source: FileId,
    mode: u32,
    purpose: Purpose,
    numbers: &mut BackupNumbers,
) -> Result<Origin, Error> {
    let mode = ctx.policy.directory_creation_mode(mode);
    let created = ctx.at(place, Side::Dest, |dir, name| {
        let spot = ctx.spot_of(place, dir, name);
        ctx.changes
            .create_directory(spot, mode, || look::at_source_of(ctx, place))
    });
    match created {
        Ok(()) => Ok(Origin::Created),
        Err(Errno::EXIST) if collisions::may_be_other_directory(ctx, place) => {
            Err(refuse_to_merge(ctx, place, source))
        }
        Err(Errno::EXIST) if purpose == Purpose::ProcessEntries => Ok(Origin::Existing),
        Err(Errno::EXIST) => replace_by_directory(ctx, place, mode, numbers),
        Err(errno) => Err(diagnose::directory_creation(ctx, place, source, errno)),
    }
}

#[inline]
fn open_claimed(ctx: &Context<'_>, place: &Place<CopyDir>, origin: Origin) -> Result<Fd, Errno> {
    ctx.at(place, Side::Dest, |dir, name| {
        let spot = ctx.spot_of(place, dir, name);
        let open = || ctx.open_dest_directory(dir, name);
        ctx.descriptors
            .making_room(|| ctx.changes.open(spot, origin, open))
    })
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
fn refuse_to_merge(ctx: &Context<'_>, place: &Place<CopyDir>, source: FileId) -> Error {
    match look::at_dest_of(ctx, place, Symlinks::NoFollow) {
        Ok(dest) if sys::is_directory(&dest) => ctx.place_refused(place, Refusal::JustCreated),
        _ => diagnose::directory_creation(ctx, place, source, Errno::NOTDIR),
    }
}
