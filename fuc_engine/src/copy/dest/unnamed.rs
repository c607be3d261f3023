//! Large dests that get their name only when they are complete.
//!
//! Each write sets the time of modification to the present. So a file that is being written looks
//! newer than its source, and `cp -u` would keep it after SIGKILL or a power cut. The kernel removes a
//! file that has no name yet.

use std::os::fd::BorrowedFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::copy::context::Context;
use crate::copy::decide::mode::Origin;
use crate::copy::facts::{DestState, Entry, Symlinks};
use crate::copy::look;
use crate::operand;
use crate::sys::{self, Blocking, Fd, Stat};

/// Size from which a dest gets its name last, which takes up to four more calls. With it, copying 400
/// files of 1 MiB took 1.00 times as long as without it, and 40 files of 8 MiB 1.02 times (tmpfs, 2
/// cores, 30 runs of each; to repeat it, build with `i64::MAX`).
const MIN_BYTES: i64 = 1 << 20;

/// Creates the dest of a large source without a name. Returns `None` if that is not possible, or if
/// something may be at the dest.
#[cold]
pub(super) fn try_create(ctx: &Context<'_>, entry: &Entry<'_>, source: &Stat) -> Option<Fd> {
    let names_file = !entry.dest_name.to_bytes().ends_with(b"/");
    if !names_file || !ctx.unnamed_dests.may_exist() || may_be_occupied(ctx, entry) {
        return None;
    }
    let directory = operand::directory_of(entry.dest_name);
    let mode = ctx.policy.creation_mode(source.st_mode);
    let created = ctx
        .descriptors
        .making_room(|| sys::create_unnamed(entry.dest_dir, &directory, mode));
    match created {
        Ok(file) => Some(file),
        Err(errno) => {
            // Linux before 3.11 ignores the flag, and takes this for an attempt to write to the
            // directory.
            if matches!(errno, Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOSYS) {
                ctx.unnamed_dests.note_missing();
            }
            None
        }
    }
}

/// Returns `true` if `source` is so large that its copy gets its name last.
#[inline]
pub(super) fn is_large_enough(ctx: &Context<'_>, source: &Stat) -> bool {
    source.st_size >= MIN_BYTES
        && sys::file_type(source) == FileType::RegularFile
        && !ctx.policy.options.attributes_only
}

/// Returns `true` if something may be at the dest.
pub(super) fn may_be_occupied(ctx: &Context<'_>, entry: &Entry<'_>) -> bool {
    let is_vacant = matches!(entry.dest_state, DestState::Vacant { .. })
        || ctx.dest_directory_origin(entry) == Origin::Created;
    !is_vacant && look::at_dest(ctx, entry, Symlinks::NoFollow).err() != Some(Errno::NOENT)
}

/// Gives a complete dest its name. Returns `false` if that is not possible, so that the file must be
/// written under its name instead.
pub(in crate::copy) fn name(ctx: &Context<'_>, entry: &Entry<'_>, dest: BorrowedFd<'_>) -> bool {
    match sys::create_hard_link_to(dest, entry.dest_dir, entry.dest_name) {
        Ok(()) => {
            // A process that watches the directory learns from this that a file was closed after
            // it was written. Closing the unnamed file sends no event for a name.
            let _ = sys::open_existing(entry.dest_at(), Blocking::OnlyForLease);
            true
        }
        Err(Errno::EXIST) => false,
        Err(_) => {
            ctx.unnamed_dests.note_missing();
            false
        }
    }
}
