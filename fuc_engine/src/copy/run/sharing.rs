//! Shares a copy with other engines: reaches their directories, gives entries to their homes, and leaves large files to
//! the caller.

use std::ffi::CStr;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::{CopyRun, EntryCopy, Processed};
use crate::copy::content::OpenSource;
use crate::copy::context::Failure;
use crate::copy::decide::mode::{OWNER, OWNER_FILE, Origin};
use crate::copy::entry::Entry;
use crate::copy::facts::{CopyNode, Symlinks};
use crate::copy::make::directory;
use crate::copy::operand::{DestParent, open_parent};
use crate::copy::options::{ModePolicy, Sparse};
use crate::distribute::LargeCopy;
use crate::error::Refusal;
use crate::node::{Finished, Side};
use crate::sys::{self, Fd, Stat, Storage};
use crate::walk;

/// Lets the caller copy a large file, if several engines could copy parts of it: the content must be read and written, the
/// dest is new, and no other name will lead to it. Returns `true` if the caller does.
#[cold]
pub(super) fn is_taken_over(run: &CopyRun<'_>, entry: &Entry<'_>, source: &OpenSource) -> bool {
    let ctx = &run.ctx;
    let Some(stealing) = &run.stealing else {
        return false;
    };
    let options = ctx.policy.options;
    let kernel_copies = options.lets_kernel_copy() && source.storage == Storage::Native;
    let may_be_met = match entry.node {
        Some(_) => ctx.merges_directories,
        None => ctx.operands.may_share_dest(entry.operand),
    };
    let is_vacant = || {
        entry.dest_directory_origin() == Origin::Created
            || entry.stat_dest(Symlinks::NoFollow).err() == Some(Errno::NOENT)
    };
    if kernel_copies
        || may_be_met
        || options.parents
        // Zeros in several parts would have to be found together, and this engine would read all of the copy.
        || options.sparse == Sparse::Always
        || options.verify
        || entry.dest_name.to_bytes().ends_with(b"/")
        || !is_vacant()
    {
        return false;
    }
    let look = |side| sys::stat_open(&entry.open_directory(side)?);
    let (Ok(source_dir), Ok(dest_dir)) = (look(Side::Source), look(Side::Dest)) else {
        return false;
    };
    let mode = ctx.policy.creation_mode(source.stat.st_mode);
    // Otherwise the dest could not be opened again, or not get its name when its directory is complete.
    let stays_writable = (mode & OWNER_FILE == OWNER_FILE
        || options.preserve.mode == ModePolicy::Preserve)
        && (entry.is_operand() || source_dir.st_mode & OWNER == OWNER);
    stays_writable
        && stealing.exchange.divide(LargeCopy {
            source: entry.path(Side::Source),
            dest: entry.path(Side::Dest),
            names_below: entry.node.map_or(0, |node| 1 + walk::levels(node)),
            inode: source.stat.st_ino,
            directories: [source_dir.st_ino, dest_dir.st_ino],
            bytes: source.stat.st_size as u64,
            mode: mode | OWNER_FILE,
        })
}

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
