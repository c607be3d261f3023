//! Which directories and filesystems a durable copy writes to the disk, besides its files.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::CopyRun;
use crate::copy::context::{Context, Failure};
use crate::copy::entry::Entry;
use crate::copy::facts::{CopyNode, FileId, Symlinks};
use crate::copy::operand::open_parent;
use crate::copy::options::Dest;
use crate::error::{Error, Operation};
use crate::node::{Dir, Side};
use crate::paths;
use crate::sys::{self, Blocking, Stat};

/// Notes the filesystem of the directory that contains the dests. Fails if it cannot be written to the
/// disk in the end.
pub(super) fn note_filesystems(ctx: &Context<'_>) -> Result<(), Error> {
    let Some(durability) = &ctx.durability else {
        return Ok(());
    };
    let note = |dir: BorrowedFd<'_>| {
        let device = sys::stat_directory(dir)?.identity.device();
        let open = || sys::open_directory(dir, c".", Symlinks::NoFollow);
        durability.note_filesystem(device, open)
    };
    for_each_parent(ctx, note).map_err(|errno| sync_error(ctx, errno))
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
    if let Err(errno) = noted {
        let error = ctx.node_error(node, Side::Dest, Operation::Sync, errno);
        ctx.fail(node.place.operand, error);
    }
}

/// Writes everything to the disk that this engine has made and not written before. Reports a failure.
pub(super) fn write_rest(run: &CopyRun<'_>) {
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
        false => for_each_parent(ctx, |dir| durability.directory_complete(dir)),
    };
    if let Err(errno) = synced.and_then(|()| durability.write_rest()) {
        ctx.report.fail(0, sync_error(ctx, errno));
    }
}

/// Writes a dest to the disk that was linked to its source.
pub(super) fn linked(entry: &Entry<'_>) -> Result<(), Failure> {
    if entry.ctx.durability.is_none() {
        return Ok(());
    }
    let dest = sys::stat(entry.dest.dir, entry.dest.name, Symlinks::NoFollow);
    let dest = dest.map_err(|errno| entry.making_failure(Operation::Sync, errno))?;
    kept(entry, &dest)
}

/// Writes a dest to the disk that was seen as `dest`, if it is a regular file. This run has not written its content.
pub(super) fn kept(entry: &Entry<'_>, dest: &Stat) -> Result<(), Failure> {
    let Some(durability) = &entry.ctx.durability else {
        return Ok(());
    };
    let device = FileId::of(dest).device;
    if !sys::is_regular(dest) || durability.try_leave(device) {
        return Ok(());
    }
    let at = entry.dest.at(Symlinks::Follow);
    let opened = entry
        .ctx
        .descriptors
        .making_room(|| sys::open_source(at, Blocking::OnlyForLease));
    match opened.and_then(|file| sys::sync_file(file.as_fd())) {
        // The file may not be read.
        Err(Errno::ACCESS) if durability.try_leave_to_filesystem(device) => Ok(()),
        synced => synced.map_err(|errno| entry.making_failure(Operation::Sync, errno)),
    }
}

fn sync_error(ctx: &Context<'_>, errno: Errno) -> Error {
    let (Dest::Into(path) | Dest::Exactly(path)) = ctx.dest;
    Error::failed(Operation::Sync, path.clone(), errno).at_dest()
}

/// Runs `call` on the directories that contain the dests of the operands: on the target, or on those in exact paths, and
/// on the directories on the way to a dest.
fn for_each_parent(
    ctx: &Context<'_>,
    call: impl Fn(BorrowedFd<'_>) -> Result<(), Errno>,
) -> Result<(), Errno> {
    match &ctx.target {
        Some(target) => call(target.as_fd())?,
        // All operands have this dest.
        None if ctx.operands.len() > 0 => {
            match paths::open_directory_of(ctx.target(), ctx.operands.dest_name(0)) {
                Ok(dir) => call(dir.as_fd())?,
                // Then the dest cannot be created, which is reported elsewhere.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
                Err(errno) => return Err(errno),
            }
        }
        None => {}
    }
    if ctx.policy.options.parents {
        for index in 0..ctx.operands.len() as u32 {
            let name = ctx.operands.dest_name(index);
            let mut called = Ok(());
            // If a directory cannot be opened, it is not there yet, or the operand has failed, which was reported.
            let _ = open_parent(&ctx.policy, ctx.target(), name, |dir| {
                called = call(dir);
                called
            });
            called?;
        }
    }
    Ok(())
}
