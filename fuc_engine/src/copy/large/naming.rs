//! Dests that get their names when they are complete.
//!
//! Each write sets the time of modification to the present. So a file that is being written looks newer than its source,
//! and `cp -u` would keep it after SIGKILL or a power cut. A large dest therefore has no name until it is complete: the
//! kernel removes it if its process ends.
//!
//! Another machine cannot open a file without a name. A dest that several engines write is created beside its place,
//! under a hidden name that cannot be guessed. If the engine dies, only this file is left.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use crate::copy::changes::hidden_name;
use crate::copy::context::Context;
use crate::copy::decide::mode::Origin;
use crate::copy::facts::{DestState, Entry, FileId, Symlinks};
use crate::copy::look;
use crate::operand;
use crate::sys::{self, Blocking, Fd, Stat};

/// Size from which a dest gets its name last, which takes up to four more calls.
///
/// With it, copying 400 files of 1 MiB took 1.00 times as long as without it, and 40 files of 8 MiB 1.02 times (tmpfs, 2
/// cores, 30 runs of each; to repeat it, build with `u64::MAX`).
const NAMED_LAST_FROM: u64 = 1 << 20;

/// Says when a dest gets its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::copy) enum Naming {
    /// The dest has its name while it is written.
    AtOnce,
    /// The dest gets its name when it is complete, if that is possible.
    WhenComplete,
    /// The same, and it has a hidden name until then, by which other engines open it.
    Hidden,
}

/// Creates the dest of a large source without a name. Returns `None` if that is not possible, or if
/// something may be at the dest.
#[cold]
pub(in crate::copy) fn try_create_unnamed(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &Stat,
) -> Option<Fd> {
    // Relaxed: the flag only saves calls that would fail, and publishes nothing.
    let lacks_unnamed_files = &ctx.lacks_unnamed_files;
    let names_file = !entry.dest_name.to_bytes().ends_with(b"/");
    if !names_file || lacks_unnamed_files.load(Ordering::Relaxed) || may_be_occupied(ctx, entry) {
        return None;
    }
    let directory = operand::directory_of(entry.dest_name);
    let mode = ctx.policy.creation_mode(source.st_mode);
    let created = ctx
        .descriptors
        .making_room(|| sys::create_unnamed(entry.dest_dir, &directory, mode));
    // Linux before 3.11 ignores the flag, and takes this for an attempt to write to the directory.
    if let Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOSYS) = created {
        lacks_unnamed_files.store(true, Ordering::Relaxed);
    }
    created.ok()
}

/// Creates a dest under a hidden name. Returns `None` if that is not possible, or if something may be at the dest.
#[cold]
pub(in crate::copy) fn try_create_hidden(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &Stat,
) -> Option<(Fd, Box<CStr>)> {
    if may_be_occupied(ctx, entry) {
        return None;
    }
    create_beside(ctx, entry, ctx.policy.creation_mode(source.st_mode)).ok()
}

/// Creates a file under a hidden name in the directory of the dest.
pub(in crate::copy) fn create_beside(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    mode: u32,
) -> Result<(Fd, Box<CStr>), Errno> {
    let name = hidden_name(entry.dest_name)?;
    let file = ctx
        .descriptors
        .making_room(|| sys::create_file(entry.dest_dir, &name, mode))?;
    Ok((file, name.into_boxed_c_str()))
}

/// Replaces the file at the dest by a complete one, which has the name `from`. If that fails, removes `from`.
#[cold]
pub(in crate::copy) fn replace(
    entry: &Entry<'_>,
    from: &CStr,
    dest: BorrowedFd<'_>,
) -> Result<(), Errno> {
    // Servers may report only when a file is closed that they have not stored its content.
    let stored = sys::duplicate(dest).and_then(sys::close_checked);
    // Another process may have put a file of its own at either name.
    let renamed = stored.and_then(|()| match is_at(entry, from, dest) {
        true => sys::rename(entry.dest_dir, from, entry.dest_name),
        false => Err(Errno::STALE),
    });
    if renamed.is_err() {
        remove_hidden(entry, from, dest);
    }
    renamed?;
    match is_at(entry, entry.dest_name, dest) {
        true => Ok(()),
        false => Err(Errno::STALE),
    }
}

/// Returns `true` if `source` is so large that its copy gets its name last.
#[inline]
pub(in crate::copy) fn is_large_enough(ctx: &Context<'_>, source: &Stat) -> bool {
    source.st_size >= NAMED_LAST_FROM as i64 && sys::is_regular(source) && ctx.policy.writes_content
}

/// Returns `true` if something may be at the dest.
fn may_be_occupied(ctx: &Context<'_>, entry: &Entry<'_>) -> bool {
    let is_vacant = matches!(entry.dest_state, DestState::Vacant { .. })
        || ctx.dest_directory_origin(entry) == Origin::Created;
    !is_vacant && look::at_dest(ctx, entry, Symlinks::NoFollow).err() != Some(Errno::NOENT)
}

/// Gives a complete dest its name, and removes the one that was `hidden`. Returns `false` if that is not possible, so that the file
/// must be written under its name instead.
#[cold]
pub(in crate::copy) fn give_name(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    dest: BorrowedFd<'_>,
    hidden: Option<&CStr>,
) -> bool {
    // The name is given to the open file itself, so no file that has taken over the hidden name gets it. Unlike a rename
    // without replacement, all network filesystems can make a link.
    let linked = sys::create_hard_link_to(dest, entry.dest_dir, entry.dest_name);
    let has_name = match (linked, hidden) {
        (Ok(()), _) => true,
        (Err(Errno::EXIST), _) => false,
        // The filesystem has no hard links.
        (Err(_), Some(hidden)) => {
            is_at(entry, hidden, dest)
                && sys::rename_to_new(entry.dest_dir, hidden, entry.dest_name).is_ok()
                && is_at(entry, entry.dest_name, dest)
        }
        (Err(_), None) => {
            ctx.lacks_unnamed_files.store(true, Ordering::Relaxed);
            false
        }
    };
    if let Some(hidden) = hidden {
        remove_hidden(entry, hidden, dest);
    }
    if has_name {
        // A process that watches the directory learns from this that a file was closed after
        // it was written. Closing the dest sends no event for its new name.
        let _ = sys::open_existing(entry.dest_at(), Blocking::OnlyForLease);
    }
    has_name
}

/// Removes the hidden name of a dest, unless another file has taken it over.
pub(in crate::copy) fn remove_hidden(entry: &Entry<'_>, hidden: &CStr, dest: BorrowedFd<'_>) {
    if is_at(entry, hidden, dest) {
        // If this fails, an incomplete file stays under its hidden name.
        let _ = sys::unlink(entry.dest_dir, hidden);
    }
}

/// Returns `true` if `name` leads to the open file.
fn is_at(entry: &Entry<'_>, name: &CStr, file: BorrowedFd<'_>) -> bool {
    let named = sys::stat(entry.dest_dir, name, Symlinks::NoFollow);
    let open = sys::stat_open(file.as_fd());
    matches!((named, open), (Ok(named), Ok(open)) if FileId::of(&named) == FileId::of(&open))
}
