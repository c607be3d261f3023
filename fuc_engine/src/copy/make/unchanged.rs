//! Links dests to the unchanged files of an older copy, for [`CopyOp::link_dest`](crate::CopyOp::link_dest).
//!
//! A file of the older copy is held while it is compared and linked, so no other file takes its place. It is
//! linked only if a new copy would be the same in all that the options preserve. If it is not, or if anything fails here, the
//! source is copied. The older copy is never changed: a dest with several names is unlinked, and not written to.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use super::{CopyScratch, create_in_way};
use crate::copy::attributes;
use crate::copy::decide::mode::Origin;
use crate::copy::decide::settle::Way;
use crate::copy::dest::settling::has_lost_content;
use crate::copy::entry::Entry;
use crate::copy::facts::{CopyNode, FileId, Symlinks};
use crate::copy::options::ModePolicy;
use crate::paths;
use crate::sys::{self, At, Fd, PathOnly, Stat};

/// Files below more directories are copied, because each directory is opened from the top.
const MOST_LEVELS: usize = 256;

/// The directory of an older copy in which a worker has looked last, if there is one, and the node that it belongs to.
pub(in crate::copy) struct OlderDir {
    node: CopyNode,
    dir: Option<Fd>,
}

/// Links the dest to the file of the older copy if that is an unchanged copy of `source`. Returns `false` if the source must be
/// copied.
pub(in crate::copy) fn link(
    entry: &Entry<'_>,
    source: &Stat,
    way: Way,
    scratch: &mut CopyScratch,
) -> bool {
    let Some(older) = &entry.ctx.older else {
        return false;
    };
    let is_created = matches!(way, Way::Create | Way::Replace(_));
    if !is_created || !sys::is_regular(source) || entry.ctx.policy.options.attributes_only {
        return false;
    }
    let link_in = |dir: BorrowedFd<'_>, name: &CStr| {
        let at = At {
            dir,
            name,
            symlinks: Symlinks::NoFollow,
        };
        let Ok(held) = entry.ctx.descriptors.making_room(|| PathOnly::find(at)) else {
            return false;
        };
        let link = |name: &CStr| sys::create_hard_link_to(held.as_fd(), entry.dest.dir, name);
        is_unchanged(entry, source, &held, at)
            && matches!(create_in_way(entry, way, link), Ok(Some(())))
    };
    // The dest of the operand, below the directory that the older copy stands for.
    let top = match &entry.ctx.target {
        Some(_) => entry.ctx.operands.dest_name(entry.operand).to_bytes(),
        None => b"",
    };
    let Some(node) = entry.node else {
        let name = paths::name_of(entry.dest.name.to_bytes());
        let dir = open_older_directory(older.as_fd(), paths::split(top).0);
        return dir.is_some_and(|dir| link_in(dir.as_fd(), &name));
    };
    let is_known = |known: &&OlderDir| Arc::ptr_eq(&known.node, node);
    if let Some(known) = scratch.older.as_ref().filter(is_known) {
        let dir = known.dir.as_ref();
        return dir.is_some_and(|dir| link_in(dir.as_fd(), entry.dest.name));
    }
    let directory = node.place.path(Path::new(OsStr::from_bytes(top)), None);
    let dir = open_older_directory(older.as_fd(), directory.as_os_str().as_bytes());
    let is_linked = dir
        .as_ref()
        .is_some_and(|dir| link_in(dir.as_fd(), entry.dest.name));
    // Keep it open for the next file, in place of the last one, if a descriptor can be lent for it.
    if scratch.older.is_some() || entry.ctx.descriptors.lend() {
        let node = Arc::clone(node);
        scratch.older = Some(OlderDir { node, dir });
    }
    is_linked
}

/// Opens a directory of the older copy, without following links.
fn open_older_directory(older: BorrowedFd<'_>, path: &[u8]) -> Option<Fd> {
    let components = path.split(|&byte| byte == b'/');
    let components = components.filter(|name| !matches!(*name, b"" | b"."));
    let mut dir = sys::open_path_directory(older, c".", Symlinks::NoFollow).ok()?;
    for (level, name) in components.enumerate() {
        if name == b".." || level >= MOST_LEVELS {
            return None;
        }
        let name = paths::name_of(name);
        dir = sys::open_path_directory(dir.as_fd(), &name, Symlinks::NoFollow).ok()?;
    }
    Some(dir)
}

/// Returns `true` if a new copy of `source` would be as the older file, which is `held` and has its name `at` this place.
fn is_unchanged(entry: &Entry<'_>, source: &Stat, held: &PathOnly, at: At<'_>) -> bool {
    let policy = &entry.ctx.policy;
    let (options, older) = (policy.options, held.stat());
    let preserve = &options.preserve;
    let mode = policy
        .last_mode(source.st_mode, Origin::Created)
        .unwrap_or_else(|| policy.creation_mode(source.st_mode) & !policy.umask());
    let has_owner = match policy.user {
        0 => !attributes::has_other_owner(source, older),
        // This user cannot give a new copy to another one, and such a copy loses its set-id bits.
        user => {
            let keeps_set_id = source.st_uid == user || source.st_mode & 0o6000 == 0;
            (older.st_uid, older.st_gid) == (user, source.st_gid) && keeps_set_id
        }
    };
    let has_attributes = || {
        let source_held = PathOnly::find(entry.source);
        source_held.is_ok_and(|source_held| {
            FileId::of(source_held.stat()) == FileId::of(source)
                && attributes::have_same_xattrs(policy, &source_held.inode(), &held.inode())
        })
    };
    sys::is_regular(older)
        && source.st_size == older.st_size
        && sys::modified(source) == sys::modified(older)
        && (mode ^ older.st_mode) & 0o7777 == 0
        && preserve.mode == ModePolicy::Preserve
        && preserve.ownership
        && preserve.timestamps
        && has_owner
        // If it is the source, a copy would not change with it.
        && FileId::of(source) != FileId::of(older)
        && options.context.is_none()
        && has_attributes()
        && !has_lost_content(entry, at, older)
}
