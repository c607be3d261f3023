//! Creates, renames and unlinks names at the dest. A dry run plans that instead.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::context::Context;
use super::facts::{Entry, FileId};
use super::look;
use super::node::CopyDir;
use super::plan::{Plan, Replaces, Spot};
use crate::node::{Place, Side};
use crate::operand;
use crate::sys::{self, Stat};

/// The thing that is created, for a dry run.
#[derive(Clone, Copy, Debug)]
pub(super) enum New {
    /// A copy of the source.
    Copy,
    /// A copy of a device of this type and number.
    Device(FileType, sys::Device),
    /// Another name of the source.
    HardLink,
    /// A symbolic link to the source.
    Symlink,
    /// Another name of the first copy, which is this file.
    LinkToCopy(FileId),
}

/// The entry or the directory whose dest is changed.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    Entry(&'a Entry<'a>),
    Directory(&'a Place<CopyDir>),
}

impl Target<'_> {
    fn path(self, ctx: &Context<'_>) -> PathBuf {
        match self {
            Self::Entry(entry) => ctx.path(entry, Side::Dest),
            Self::Directory(place) => ctx.place_path(place, Side::Dest),
        }
    }
}

/// Creates the dest of an entry by `act`.
#[inline]
pub(super) fn create(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    new: New,
    act: impl FnOnce() -> Result<(), Errno>,
) -> Result<(), Errno> {
    match &ctx.plan {
        None => act(),
        Some(plan) => plan_creation(ctx, plan, entry, new),
    }
}

#[cold]
fn plan_creation(ctx: &Context<'_>, plan: &Plan, entry: &Entry<'_>, new: New) -> Result<(), Errno> {
    if let New::HardLink = new {
        check_linking(plan, entry)?;
    }
    let spot = look::spot(ctx, entry);
    // Only directories can be created by such a name.
    if spot.name.to_bytes().ends_with(b"/") && plan.look(&spot, sys::Symlinks::NoFollow).is_err() {
        return Err(Errno::NOENT);
    }
    if let New::Device(kind, number) = new {
        plan.check_creating(&spot)?;
        sys::check_making_device(kind, number)?;
    }
    plan.create(spot, || made(ctx, plan, entry, new))
}

/// Fails as the kernel does if no hard link to the source can be made in the directory of the dest.
fn check_linking(plan: &Plan, entry: &Entry<'_>) -> Result<(), Errno> {
    let source = look::at_source(entry)?;
    sys::check_linking(entry.source_at(), &source)?;
    let directory = operand::directory_of(entry.dest_name);
    if let Ok(directory) = sys::stat(entry.dest_dir, &directory, sys::Symlinks::Follow)
        && directory.st_dev != source.st_dev
        && !plan.is_new(entry.dest_dir)
    {
        return Err(Errno::XDEV);
    }
    Ok(())
}

/// Returns what a dest would be once it is created.
fn made(ctx: &Context<'_>, plan: &Plan, entry: &Entry<'_>, new: New) -> Option<Stat> {
    let mut stat = look::at_source(entry).ok()?;
    let id = match new {
        New::HardLink => return Some(stat),
        New::LinkToCopy(id) => id,
        New::Copy | New::Device(..) | New::Symlink => plan.new_id(),
    };
    if let New::Symlink = new {
        stat.st_mode = FileType::Symlink.as_raw_mode() | 0o777;
    }
    stat.st_ino = id.inode;
    stat.st_dev = sys::device_of(id);
    stat.st_nlink = 1;
    if !ctx.policy.options.preserve.timestamps {
        // A new file is newer than all others.
        stat.st_mtime = i64::MAX as _;
    }
    Some(stat)
}

/// Creates the dest of a directory, which is `name` in `dir`, with this mode.
#[inline]
pub(super) fn create_directory(
    ctx: &Context<'_>,
    place: &Place<CopyDir>,
    dir: BorrowedFd<'_>,
    name: &CStr,
    mode: u32,
) -> Result<(), Errno> {
    match &ctx.plan {
        None => sys::create_directory(dir, name, mode),
        Some(plan) => plan_directory(ctx, plan, place, dir, name),
    }
}

#[cold]
fn plan_directory(
    ctx: &Context<'_>,
    plan: &Plan,
    place: &Place<CopyDir>,
    dir: BorrowedFd<'_>,
    name: &CStr,
) -> Result<(), Errno> {
    let path = ctx.place_path(place, Side::Dest);
    plan.create(Spot { dir, name, path }, || planned_directory(plan))
}

/// Returns what a new directory would be.
pub(super) fn planned_directory(plan: &Plan) -> Option<Stat> {
    let stand_in = plan.stand_in().ok()?;
    let mut stat = sys::stat_open(stand_in).ok()?;
    stat.st_mode = FileType::Directory.as_raw_mode() | 0o777;
    stat.st_ino = plan.new_id().inode;
    Some(stat)
}

/// Unlinks the dest of an entry.
#[inline]
pub(super) fn unlink(ctx: &Context<'_>, entry: &Entry<'_>) -> Result<(), Errno> {
    match &ctx.plan {
        None => sys::unlink(entry.dest_dir, entry.dest_name),
        Some(plan) => plan.unlink(look::spot(ctx, entry)),
    }
}

/// Renames a dest within its directory. If it `replaces` nothing, fails with `EEXIST` if the new name exists.
pub(super) fn rename(
    ctx: &Context<'_>,
    target: Target<'_>,
    dir: BorrowedFd<'_>,
    old: &CStr,
    new: &CStr,
    replaces: Replaces,
) -> Result<(), Errno> {
    match (&ctx.plan, replaces) {
        (None, Replaces::Files) => sys::rename(dir, old, new),
        (None, Replaces::Nothing) => sys::rename_to_new(dir, old, new),
        (Some(plan), replaces) => {
            let path = target.path(ctx);
            let (directory, _) = operand::split(path.as_os_str().as_bytes());
            let spot = |name: &'_ CStr| {
                let (_, base) = operand::split(name.to_bytes());
                let path = [directory, base].concat();
                PathBuf::from(std::ffi::OsStr::from_bytes(&path))
            };
            let (old_path, new_path) = (spot(old), spot(new));
            let old = Spot {
                dir,
                name: old,
                path: old_path,
            };
            let new = Spot {
                dir,
                name: new,
                path: new_path,
            };
            plan.rename(old, new, replaces)
        }
    }
}
