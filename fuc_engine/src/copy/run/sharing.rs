//! Shares a copy with other engines: reaches their directories, and gives entries to their homes.

use std::ffi::CStr;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::{CopyRun, EntryCopy, Processed};
use crate::copy::context::Failure;
use crate::copy::decide::mode::Origin;
use crate::copy::facts::CopyNode;
use crate::copy::make::directory;
use crate::copy::operand::{DestParent, open_parent};
use crate::error::Refusal;
use crate::node::{Finished, Side};
use crate::sys::{self, Fd, Stat};
use crate::walk;

/// Gives an entry that may have other names to the home of its source, before anything is done about its dest. Returns
/// `None` if this engine is the home.
///
/// It is a failure if the entry is an operand, or if another process has replaced the source since another engine has found
/// this one to be the home.
#[inline]
pub(super) fn give_to_home(
    copy: &mut EntryCopy<'_, '_, '_, '_>,
    source: &Stat,
) -> Option<Result<Processed, Failure>> {
    let EntryCopy { run, entry, .. } = *copy;
    let stealing = run.stealing.as_ref()?;
    let may_have_others = entry.has_other_names(source);
    let home = may_have_others.then(|| stealing.other_home(source.st_ino))??;
    let Some(node) = entry.node else {
        return Some(Err(entry.refused(Refusal::HomeNotReached)));
    };
    if stealing.is_home_of(node) {
        return Some(Err(entry.source_refused(Refusal::SourceReplaced)));
    }
    let listed = sys::Listed::new(entry.source_name, entry.kind);
    walk::entrust(node, listed, home, copy.worker);
    Some(Ok(Processed::Handled))
}

/// Opens a directory that another engine has entered or made. If this machine finds no dest, lets it look again.
pub(super) fn open_cached(
    side: Side,
    open: impl Fn() -> Result<Fd, Errno>,
    look_again: impl FnOnce() -> Result<(), Errno>,
) -> Result<Fd, Errno> {
    match open() {
        Err(Errno::NOENT) if side == Side::Dest => look_again().and_then(|()| open()),
        opened => opened,
    }
}

/// Lets the client of a server ask again for a directory of the dest. The client may have cached that the name does not
/// exist. So it sends a request to create the directory, learns that there is one, and forgets what it has cached.
pub(super) fn look_up_again(dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    match sys::create_directory(dir, name, 0o700) {
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
        Ok(()) => {
            // Another process has removed or renamed it.
            sys::remove_directory(dir, name)?;
            Err(Errno::NOENT)
        }
    }
}

/// Gives the entries of a borrowed directory back to their engine. If the copy must be durable, writes their names to
/// the disk before, because the other engine knows only what it has made itself.
pub(super) fn give_back(run: &CopyRun<'_>, node: &CopyNode) -> ControlFlow<()> {
    if let Err(error) = directory::sync(&run.ctx, node) {
        run.ctx.fail(node.place.operand, error);
    }
    walk::give_back(run, node, Finished::DONE)
}

/// Finds the directory that the dest of an operand is in, after the leader has made it.
pub(super) fn find_dest_parent(run: &CopyRun<'_>, operand: u32) -> Result<(), Errno> {
    let ctx = &run.ctx;
    if ctx.operands.parent(operand).is_some() {
        return Ok(());
    }
    let name = ctx.operands.dest_name(operand);
    let open = || open_parent(&ctx.policy, ctx.target(), name, |_| Ok(()));
    let dir = ctx.descriptors.making_room(open)?;
    let identity = sys::stat_directory(dir.as_fd())?.identity;
    // Only the leader copies entries to this directory itself, and must know whether this run has made it.
    let origin = Origin::Existing;
    let _ = ctx
        .operands
        .state(operand)
        .parent
        .set(DestParent { identity, origin });
    Ok(())
}
