//! Dests that several engines write, which have a hidden name until they are complete.
//!
//! Another machine cannot open a file without a name. So the dest is created beside its place, under a name that cannot
//! be guessed. If the engine dies, only this file is left, and nothing is at the place of the dest.

use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use super::open::OpenDest;
use super::unnamed;
use crate::copy::context::Context;
use crate::copy::decide::mode::OWNER_FILE;
use crate::copy::facts::{Entry, FileId, Symlinks};
use crate::copy::naming::Naming;
use crate::sys::{self, Blocking, Inode, Stat};

/// A dest with a hidden name in its directory.
pub(in crate::copy) struct Hidden {
    pub(in crate::copy) dest: OpenDest<'static>,
    pub(in crate::copy) name: Box<CStr>,
}

/// Creates the dest of a source under a hidden name. Returns `None` if that is not possible, or if something may be at
/// the dest.
///
/// Its owner may read and write it, since other engines open it. [`restrict`] takes these permissions back.
pub(in crate::copy) fn try_create(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &Stat,
) -> Option<Hidden> {
    if unnamed::may_be_occupied(ctx, entry) {
        return None;
    }
    let name = CString::new(format!(".cpz-{:032x}", sys::random().ok()?));
    let name = name.expect("BUG: a NUL in a number").into_boxed_c_str();
    let mode = ctx.policy.creation_mode(source.st_mode) | OWNER_FILE;
    let created = ctx
        .descriptors
        .making_room(|| sys::create_file(entry.dest_dir, &name, mode));
    let dest = OpenDest::new_file(created.ok()?, Naming::AtOnce);
    Some(Hidden { dest, name })
}

/// Takes back the permissions that only other engines needed.
pub(in crate::copy) fn restrict(
    ctx: &Context<'_>,
    dest: BorrowedFd<'_>,
    source: &Stat,
) -> Result<(), Errno> {
    let extra = OWNER_FILE & !ctx.policy.creation_mode(source.st_mode);
    match extra {
        0 => Ok(()),
        _ => {
            let mode = sys::stat_open(dest)?.st_mode & 0o7777 & !extra;
            Inode::Opened(dest).set_mode(mode)
        }
    }
}

/// Gives a complete dest its name, and removes the hidden one. Returns `false` if that is not possible, so that the file
/// must be written under its name instead.
///
/// The name is given to the open file itself, so no file that has taken over the hidden name gets it.
pub(in crate::copy) fn show(entry: &Entry<'_>, hidden: &CStr, dest: BorrowedFd<'_>) -> bool {
    // Unlike a rename without replacement, all network filesystems can make a link.
    let has_name = match sys::create_hard_link_to(dest, entry.dest_dir, entry.dest_name) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        // The filesystem has no hard links.
        Err(_) => {
            is_at(entry, hidden, dest)
                && sys::rename_to_new(entry.dest_dir, hidden, entry.dest_name).is_ok()
                && is_at(entry, entry.dest_name, dest)
        }
    };
    remove(entry, hidden, dest);
    if has_name {
        // As for a file without a name, a process that watches the directory learns that it was written.
        let _ = sys::open_existing(entry.dest_at(), Blocking::OnlyForLease);
    }
    has_name
}

/// Removes the hidden name of a dest, unless another file has taken it over.
pub(in crate::copy) fn remove(entry: &Entry<'_>, hidden: &CStr, dest: BorrowedFd<'_>) {
    if is_at(entry, hidden, dest) {
        // If this fails, an incomplete file stays under its hidden name.
        let _ = sys::unlink(entry.dest_dir, hidden);
    }
}

/// Returns `true` if `name` leads to the open file.
fn is_at(entry: &Entry<'_>, name: &CStr, file: BorrowedFd<'_>) -> bool {
    let named = sys::stat(entry.dest_dir, name, Symlinks::NoFollow);
    let open = sys::stat_open(file);
    matches!((named, open), (Ok(named), Ok(open)) if FileId::of(&named) == FileId::of(&open))
}
