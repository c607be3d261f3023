//! Links a dest to the first copy of a source that has several names.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::Errno;

use super::Created;
use crate::copy::changes::New;
use crate::copy::context::{Context, Failure};
use crate::copy::decide::clear::Making;
use crate::copy::dest::clear::{Cleared, clear_dest};
use crate::copy::facts::{Entry, FileId, Symlinks};
use crate::copy::hardlinks::{DestName, FirstCopy, SeenFile};
use crate::copy::look;
use crate::copy::node::CopyNode;
use crate::copy::scratch::{CopyScratch, LinkedTo};
use crate::descriptors::PinnedOrReopened;
use crate::error::Operation;
use crate::node::Side;
use crate::sys::{self, At, Fd};

/// Describes the copy that was made at the dest of `entry`: the file that was `written`, or the
/// file that has the name if the copy was not written through a descriptor.
///
/// If the name does not lead to the file that was written, [`link`] reports that.
pub(in crate::copy) fn find_copy(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    written: Option<FileId>,
) -> Result<FirstCopy, Errno> {
    let named = look::at_dest(ctx, entry, Symlinks::NoFollow);
    let (itself, behind_link) = match (named, written) {
        (Ok(named), None) => (SeenFile::of(&named), None),
        (Err(errno), None) => (ctx.changes.really(|| Err(errno))?, None),
        (Ok(named), Some(written)) if FileId::of(&named) == written => (SeenFile::of(&named), None),
        (Ok(named), Some(written)) => match look::at_dest(ctx, entry, Symlinks::Follow) {
            Ok(target) if FileId::of(&target) == written => {
                (SeenFile::of(&named), Some(Box::new(SeenFile::of(&target))))
            }
            _ => (SeenFile::unseen(written), None),
        },
        (Err(_), Some(written)) => (SeenFile::unseen(written), None),
    };
    Ok(FirstCopy {
        name: DestName::of(entry),
        itself,
        behind_link,
    })
}

/// Links the dest to `first`. Fails if that is not the file any more that it was.
///
/// The link is checked after it was made, because another process may have put another file in
/// the place of the first copy. On some filesystems each name has an inode number of its own, so
/// that the check fails for a good link too. There, the first copy is opened and checked before.
pub(in crate::copy) fn link(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    first: &FirstCopy,
    scratch: &mut CopyScratch,
) -> Result<(), Failure> {
    let (_, file) = first.link_target(entry.symlinks);
    if !scratch.links_change_ids {
        let by_name =
            |first: At<'_>, name: &CStr| sys::create_hard_link(first, entry.dest_dir, name);
        if make(ctx, entry, first, scratch, by_name)? == Created::AlreadyThere {
            return Ok(());
        }
        let leads_elsewhere = ctx.changes.really(|| {
            let made = look::at_dest(ctx, entry, Symlinks::NoFollow)?;
            Ok(FileId::of(&made) != file.id)
        });
        if !leads_elsewhere.map_err(|errno| ctx.making_failure(entry, Operation::Stat, errno))? {
            return Ok(());
        }
        sys::unlink(entry.dest_dir, entry.dest_name)
            .map_err(|errno| ctx.making_failure(entry, Operation::Remove, errno))?;
    }
    let checked = |first: At<'_>, name: &CStr| link_checked(ctx, entry, first, file, name);
    make(ctx, entry, first, scratch, checked)?;
    scratch.links_change_ids = true;
    Ok(())
}

/// Links `name` in the directory of the dest to the file at `first`, if that is `file`.
fn link_checked(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    first: At<'_>,
    file: SeenFile,
    name: &CStr,
) -> Result<(), Errno> {
    let held = ctx
        .descriptors
        .making_room(|| sys::open_path_only(&first))?;
    let stat = sys::stat_open(&held)?;
    let is_same_file = FileId::of(&stat) == file.id
        || file.resembles(&stat) && !sys::keeps_identities(held.as_fd());
    if !is_same_file {
        return Err(Errno::STALE);
    }
    sys::create_hard_link_to(held.as_fd(), entry.dest_dir, name)
}

/// Makes the dest a link by `link`, which gets the place of the first copy and the name of the link.
fn make(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    first: &FirstCopy,
    scratch: &mut CopyScratch,
    link: impl Fn(At<'_>, &CStr) -> Result<(), Errno>,
) -> Result<Created, Failure> {
    let (symlinks, file) = first.link_target(entry.symlinks);
    let spot = ctx.spot(entry);
    let new = New::LinkToCopy(entry.source_at(), file.id);
    let mut attempt = |link_name: &CStr| {
        ctx.changes.create(spot, new, || {
            at_first(ctx, &first.name, scratch, |dir| {
                let name = &first.name.name;
                let first = At {
                    dir,
                    name,
                    symlinks,
                };
                link(first, link_name)
            })
        })
    };
    let mut linked = attempt(entry.dest_name);
    if linked == Err(Errno::EXIST) {
        let making = Making::LinkToCopy(file.id);
        match clear_dest(ctx, entry, making, None)? {
            // Another file may have the inode number of the first copy.
            Cleared::AlreadyThere if !has_true_identity(ctx, entry) => {
                linked = ctx.changes.replace(spot, attempt);
            }
            Cleared::AlreadyThere => return Ok(Created::AlreadyThere),
            Cleared::Vacant => linked = attempt(entry.dest_name),
            Cleared::KeptDirectory => linked = Err(Errno::ISDIR),
            _ => {}
        }
    }
    match linked {
        Ok(()) => Ok(Created::Yes),
        Err(errno) => Err(not_linked(ctx, entry, &first.name, errno)),
    }
}

/// Returns `true` if no other file has the inode number of the dest, as its filesystem promises.
fn has_true_identity(ctx: &Context<'_>, entry: &Entry<'_>) -> bool {
    let dest = ctx
        .descriptors
        .making_room(|| sys::open_path_only(&entry.dest_at()));
    dest.is_ok_and(|dest| sys::keeps_identities(dest.as_fd()))
}

/// Runs `call` on the directory of the first copy.
fn at_first(
    ctx: &Context<'_>,
    first: &DestName,
    scratch: &mut CopyScratch,
    call: impl FnOnce(BorrowedFd<'_>) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let Some(node) = &first.node else {
        return call(ctx.open_dest_parent(first.operand)?.as_fd());
    };
    let last = scratch.linked_to.as_ref();
    if let Some(last) = last.filter(|last| Arc::ptr_eq(&last.node, node)) {
        return call(last.dir.as_fd());
    }
    // The directory may be finished and closed, so it is reached again from its operand.
    match ctx.descriptors.pin_or_reopen(node, Side::Dest, ctx)? {
        PinnedOrReopened::Pinned(dir) => call(dir.as_fd()),
        PinnedOrReopened::Reopened(dir) => {
            let done = call(dir.as_fd());
            keep_linked_to(ctx, node, dir, scratch);
            done
        }
    }
}

/// Keeps the directory open for the next link, in place of the last one, if a descriptor can be
/// lent for it.
fn keep_linked_to(ctx: &Context<'_>, node: &CopyNode, dir: Fd, scratch: &mut CopyScratch) {
    let last = &mut scratch.linked_to;
    if last.is_some() || ctx.descriptors.lend(1) {
        let node = Arc::clone(node);
        *last = Some(LinkedTo { node, dir });
    }
}

fn not_linked(ctx: &Context<'_>, entry: &Entry<'_>, first: &DestName, errno: Errno) -> Failure {
    let first = ctx.path_in(first.node.as_ref(), first.operand, &first.name, Side::Dest);
    let error = ctx.dest_error(entry, Operation::CreateHardLink, errno);
    Failure::making(error.with_other(Side::Dest, first))
}
