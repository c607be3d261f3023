//! Links a dest to the first copy of a source that has several names.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;

use crate::copy::context::{Context, Failure};
use crate::copy::decide::clear::Making;
use crate::copy::dest::clear::{Cleared, clear_dest};
use crate::copy::facts::{Entry, FileId, Symlinks};
use crate::copy::hardlinks::{DestName, FirstCopy};
use crate::copy::look;
use crate::copy::node::CopyNode;
use crate::copy::scratch::{CopyScratch, LinkedTo};
use crate::descriptors::PinnedOrReopened;
use crate::error::Operation;
use crate::node::Side;
use crate::sys::{self, At};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::copy) enum Linked {
    Yes,
    /// The first copy is gone, or has as many names as the filesystem allows.
    NotPossible,
}

/// Finds the copy that was made at the dest of `entry`, if its name still leads to the file
/// that was `written`. Without `written`, finds the file that has the name.
pub(in crate::copy) fn find_copy(entry: &Entry<'_>, written: Option<FileId>) -> Option<FirstCopy> {
    let at = |symlinks| look::dest_facts(entry, symlinks).map(|facts| facts.id);
    let itself = at(Symlinks::NoFollow)?;
    let behind_link = match written {
        None => None,
        Some(written) if written == itself => None,
        Some(written) if at(Symlinks::Follow) == Some(written) => Some(written),
        // Another process has put something else there.
        Some(_) => return None,
    };
    Some(FirstCopy {
        name: DestName::of(entry),
        itself,
        behind_link,
    })
}

/// Links the dest to `first`, if that is still the file that it was.
pub(in crate::copy) fn link(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    first: &FirstCopy,
    scratch: &mut CopyScratch,
) -> Result<Linked, Failure> {
    let operation = Operation::CreateHardLink;
    let (_, id) = first.link_target(entry.symlinks);
    let mut linked = try_link(ctx, entry, first, scratch);
    if linked == Err(Errno::EXIST) {
        match clear_dest(ctx, entry, Making::LinkToCopy(id), operation, None)? {
            Cleared::AlreadyThere => return Ok(Linked::Yes),
            Cleared::Vacant => linked = try_link(ctx, entry, first, scratch),
            _ => {}
        }
    }
    match linked {
        Ok(()) => {}
        Err(Errno::NOENT | Errno::STALE | Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => {
            return Ok(Linked::NotPossible);
        }
        Err(errno) => return Err(not_linked(ctx, entry, &first.name, errno)),
    }
    let made = look::at_dest(entry, Symlinks::NoFollow)
        .map_err(|errno| ctx.making_failure(entry, Operation::Stat, errno))?;
    if FileId::of(&made) == id {
        return Ok(Linked::Yes);
    }
    // Another process has put something else in the place of the first copy.
    sys::unlink(entry.dest_dir, entry.dest_name)
        .map_err(|errno| ctx.making_failure(entry, Operation::Remove, errno))?;
    Ok(Linked::NotPossible)
}

fn try_link(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    first: &FirstCopy,
    scratch: &mut CopyScratch,
) -> Result<(), Errno> {
    let (symlinks, _) = first.link_target(entry.symlinks);
    let link = |dir: BorrowedFd<'_>| {
        let first = At {
            dir,
            name: &first.name.name,
            symlinks,
        };
        sys::create_hard_link(first, entry.dest_dir, entry.dest_name)
    };
    let Some(node) = &first.name.node else {
        return link(ctx.target());
    };
    let last = scratch.linked_to.as_ref();
    if let Some(last) = last.filter(|last| Arc::ptr_eq(&last.node, node)) {
        return link(last.dir.as_fd());
    }
    // The directory may be finished and closed, so it is reached again from its operand.
    match ctx.descriptors.pin_or_reopen(node, Side::Dest, ctx)? {
        PinnedOrReopened::Pinned(dir) => link(dir.as_fd()),
        PinnedOrReopened::Reopened(dir) => {
            let linked = link(dir.as_fd());
            keep_linked_to(ctx, node, dir, scratch);
            linked
        }
    }
}

/// Keeps the directory open for the next link, in place of the last one, if a descriptor can be
/// lent for it.
fn keep_linked_to(ctx: &Context<'_>, node: &CopyNode, dir: OwnedFd, scratch: &mut CopyScratch) {
    let last = &mut scratch.linked_to;
    if last.is_some() || ctx.descriptors.lend(1) {
        let node = Arc::clone(node);
        *last = Some(LinkedTo { node, dir });
    }
}

fn not_linked(ctx: &Context<'_>, entry: &Entry<'_>, first: &DestName, errno: Errno) -> Failure {
    let first = ctx.path_in(first.node.as_ref(), first.operand, &first.name, Side::Dest);
    let error = ctx.dest_error(entry, Operation::CreateHardLink, errno);
    Failure::making(error.with_other(first))
}
