//! Which directories and filesystems a durable copy writes to the disk, besides its files.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::CopyRun;
use crate::copy::context::{Context, Failure};
use crate::copy::durability::Durability;
use crate::copy::facts::{CopyNode, Entry, Symlinks};
use crate::copy::operand::open_parent;
use crate::copy::options::Dest;
use crate::error::{Error, Operation};
use crate::node::{Dir, Side};
use crate::operand;
use crate::sys::{self, Blocking};

/// Notes the filesystem of the directory that contains the dests. Fails if it cannot be written to the
/// disk in the end.
pub(super) fn begin(ctx: &Context<'_>) -> Result<(), Error> {
    let Some(durability) = &ctx.durability else {
        return Ok(());
    };
    let note = |dir: BorrowedFd<'_>| match note(durability, dir) {
        // The directory may not be read. The first file is noted instead.
        Err(Errno::ACCESS) => Ok(()),
        noted => noted,
    };
    for index in 0..ctx.operands.len() as u32 {
        // All operands share one target.
        if index > 0 && ctx.target.is_some() {
            break;
        }
        with_parent(ctx, index, note).map_err(|errno| failed(ctx, errno))?;
    }
    Ok(())
}

/// Notes the filesystem of a dest directory that was entered.
pub(super) fn entered(run: &CopyRun<'_>, node: &CopyNode) {
    let ctx = &run.ctx;
    let Some(durability) = &ctx.durability else {
        return;
    };
    let Some(identity) = node.dir.slot(Side::Dest).identity() else {
        return;
    };
    let noted = durability.note_filesystem(identity.device(), || {
        let dir = ctx.descriptors.pin(node, Side::Dest, ctx)?;
        sys::open_directory(dir.as_fd(), c".", Symlinks::NoFollow)
    });
    if let Err(errno) = noted
        && errno != Errno::ACCESS
    {
        let error = ctx.node_error(node, Side::Dest, Operation::Sync, errno);
        ctx.fail(node.place.operand, error);
    }
}

/// Writes everything to the disk that this engine has made and not written before. Reports a failure.
pub(super) fn finish(run: &CopyRun<'_>) {
    let ctx = &run.ctx;
    let Some(durability) = &ctx.durability else {
        return;
    };
    // The status of a cancelled run does not promise anything.
    if ctx.report.must_stop() {
        return;
    }
    let synced = match run.assists() {
        true => Ok(()),
        false => sync_parents(ctx, durability),
    };
    if let Err(errno) = synced.and_then(|()| durability.finish()) {
        ctx.report.failed(failed(ctx, errno));
    }
}

/// Writes a dest to the disk that was kept because it is complete.
pub(super) fn kept(ctx: &Context<'_>, entry: &Entry<'_>) -> Result<(), Failure> {
    let Some(durability) = &ctx.durability else {
        return Ok(());
    };
    let at = entry.dest_at();
    let opened = ctx.descriptors.making_room(|| {
        sys::open_source(at.dir, at.name, Symlinks::Follow, Blocking::OnlyForLease)
    });
    opened
        .and_then(|file| durability.file_complete(file.as_fd()))
        .map_err(|errno| ctx.making_failure(entry, Operation::Sync, errno))
}

fn failed(ctx: &Context<'_>, errno: Errno) -> Error {
    let (Dest::Into(path) | Dest::Exactly(path)) = ctx.dest;
    Error::failed(Operation::Sync, path.clone(), errno).at_dest()
}

fn note(durability: &Durability, dir: BorrowedFd<'_>) -> Result<(), Errno> {
    let device = sys::stat_directory(dir)?.identity.device();
    let open = || sys::open_directory(dir, c".", Symlinks::NoFollow);
    durability.note_filesystem(device, open)
}

/// Runs `call` on the target, or on the directory that contains the dest of an operand with an exact
/// path.
fn with_parent(
    ctx: &Context<'_>,
    index: u32,
    call: impl FnOnce(BorrowedFd<'_>) -> Result<(), Errno>,
) -> Result<(), Errno> {
    if let Some(target) = &ctx.target {
        return call(target.as_fd());
    }
    let directory = operand::directory_of(ctx.operands.dest_name(index));
    match sys::open_path_directory(ctx.target(), &directory, Symlinks::Follow) {
        Ok(dir) => call(dir.as_fd()),
        // Then the dest cannot be created, which is reported elsewhere.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Writes the directories to the disk that contain the dests of the operands.
fn sync_parents(ctx: &Context<'_>, durability: &Durability) -> Result<(), Errno> {
    for index in 0..ctx.operands.len() as u32 {
        if index > 0 && ctx.target.is_some() && !ctx.policy.options.parents {
            break;
        }
        with_parent(ctx, index, |dir| durability.directory_complete(dir))?;
        if ctx.policy.options.parents {
            let (target, name) = (ctx.target(), ctx.operands.dest_name(index));
            let mut synced = Ok(());
            // If a directory cannot be opened, the operand has failed, and that was reported.
            let _ = open_parent(&ctx.policy, target, name, |dir| {
                synced = durability.directory_complete(dir);
                synced
            });
            synced?;
        }
    }
    Ok(())
}
