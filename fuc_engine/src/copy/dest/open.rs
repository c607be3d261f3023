//! Creates a dest file, or opens and empties one that exists.
//!
//! A new name is tried first. Only `EEXIST` makes the engine look at the dest. Nothing is truncated
//! before it is known that the file that was opened is not the source: only this check protects the
//! source of `cp f f`, whatever alias names it.

use std::os::fd::AsFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::clear::{Cleared, clear_dest, unlink_dest};
use super::unnamed;
use crate::copy::attributes;
use crate::copy::context::{Context, Failure};
use crate::copy::decide::clear::Making;
use crate::copy::decide::mode::Origin;
use crate::copy::diagnose;
use crate::copy::facts::{Entry, Facts, FileId, Symlinks};
use crate::copy::look;
use crate::copy::names::{self, New};
use crate::copy::naming::Naming;
use crate::copy::plan::Plan;
use crate::error::{Error, Operation, Refusal};
use crate::node::Side;
use crate::operand;
use crate::sys::{self, At, Blocking, Fd, Stat};

/// An open dest that is ready for the content.
pub(in crate::copy) struct OpenDest {
    pub(in crate::copy) fd: Fd,
    /// `true` for a regular file, which may get holes and a final truncation.
    pub(in crate::copy) is_file: bool,
    pub(in crate::copy) origin: Origin,
    /// A dest that was created without a name gets it [`WhenComplete`](Naming::WhenComplete).
    pub(in crate::copy) naming: Naming,
    /// The mode that an existing dest gets back if its copy fails, if it was changed.
    pub(in crate::copy) mode_before: Option<u32>,
}

impl OpenDest {
    pub(in crate::copy) fn new_file(fd: Fd, naming: Naming) -> Self {
        Self {
            fd,
            is_file: true,
            origin: Origin::Created,
            naming,
            mode_before: None,
        }
    }
}

/// Creates the dest of `source`, or opens and empties the file that is there. A large dest gets its
/// name when `naming` says.
#[inline]
pub(in crate::copy) fn open(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &Stat,
    naming: Naming,
) -> Result<OpenDest, Failure> {
    if naming == Naming::WhenComplete
        && ctx.plan.is_none()
        && unnamed::is_large_enough(ctx, source)
        && let Some(file) = unnamed::try_create(ctx, entry, source)
    {
        return Ok(OpenDest::new_file(file, naming));
    }
    match create(ctx, entry, source) {
        Ok(dest) => Ok(dest),
        Err(Errno::EXIST) => open_existing(ctx, entry, source),
        Err(errno) => Err(diagnose::file_creation(ctx, entry, errno)),
    }
}

#[inline]
fn create(ctx: &Context<'_>, entry: &Entry<'_>, source: &Stat) -> Result<OpenDest, Errno> {
    if let Some(plan) = &ctx.plan {
        return plan_file(ctx, plan, entry);
    }
    let mode = ctx.policy.creation_mode(source.st_mode);
    ctx.descriptors
        .making_room(|| sys::create_file(entry.dest_dir, entry.dest_name, mode))
        .map(|file| OpenDest::new_file(file, Naming::AtOnce))
}

/// Plans to create the dest, instead of [`create`].
#[cold]
fn plan_file(ctx: &Context<'_>, plan: &Plan, entry: &Entry<'_>) -> Result<OpenDest, Errno> {
    if entry.dest_name.to_bytes().ends_with(b"/") {
        // A missing directory on the way is reported first.
        sys::stat(
            entry.dest_dir,
            &operand::directory_of(entry.dest_name),
            Symlinks::Follow,
        )?;
        return Err(Errno::ISDIR);
    }
    names::create(ctx, entry, New::Copy, || Ok(()))?;
    Ok(OpenDest::new_file(plan.stand_in()?, Naming::AtOnce))
}

/// Checks that the dest could be opened, instead of opening it.
#[cold]
fn plan_opening(
    ctx: &Context<'_>,
    plan: &Plan,
    entry: &Entry<'_>,
    symlinks: Symlinks,
) -> Result<Fd, Errno> {
    let spot = look::spot(ctx, entry);
    let is_fifo = plan
        .look(&spot, symlinks)
        .is_ok_and(|dest| sys::file_type(&dest) == FileType::Fifo);
    if is_fifo && entry.blocking() == Blocking::OnlyForLease {
        // The FIFO probably has no reader.
        return Err(Errno::NXIO);
    }
    plan.check_writing(&spot, symlinks)?;
    plan.stand_in()
}

fn create_again(ctx: &Context<'_>, entry: &Entry<'_>, source: &Stat) -> Result<OpenDest, Failure> {
    create(ctx, entry, source).map_err(|errno| diagnose::file_creation(ctx, entry, errno))
}

fn open_existing(ctx: &Context<'_>, entry: &Entry<'_>, source: &Stat) -> Result<OpenDest, Failure> {
    let facts = Some(Facts::of(source));
    let symlinks = match clear_dest(ctx, entry, Making::File, facts)? {
        Cleared::Writable(symlinks) => symlinks,
        Cleared::LeadsNowhere => return open_dangling(ctx, entry, source),
        Cleared::Vacant => return create_again(ctx, entry, source),
        Cleared::AlreadyThere | Cleared::Kept | Cleared::KeptDirectory | Cleared::ToReplace(_) => {
            return Err(diagnose::file_creation(ctx, entry, Errno::EXIST));
        }
    };
    let dest = At {
        symlinks,
        ..entry.dest_at()
    };
    let opened = match &ctx.plan {
        None => ctx
            .descriptors
            .making_room(|| sys::open_existing(dest, entry.blocking())),
        Some(plan) => plan_opening(ctx, plan, entry, symlinks),
    };
    match opened {
        Ok(dest) => prepare_opened(ctx, entry, source, dest),
        // Another process has just replaced the file by a link.
        Err(Errno::LOOP) if symlinks == Symlinks::NoFollow => {
            Err(ctx.refused(entry, Refusal::ThroughJustCreatedLink))
        }
        Err(errno) if ctx.policy.options.force && is_about_the_file(errno) => {
            // The copy had begun, so `-v` names it even if the removal fails.
            unlink_dest(ctx, entry).map_err(|failure| Failure::making(failure.error))?;
            create_again(ctx, entry, source)
        }
        Err(errno) => Err(diagnose::file_creation(ctx, entry, errno)),
    }
}

/// Returns `true` if unlinking the dest and creating a new file may help.
fn is_about_the_file(errno: Errno) -> bool {
    !matches!(
        errno,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::IO | Errno::AGAIN
    )
}

/// Opens a dest that is a dangling link, if the options allow that. Below operands nothing is
/// created through a link.
fn open_dangling(ctx: &Context<'_>, entry: &Entry<'_>, source: &Stat) -> Result<OpenDest, Failure> {
    if let Err(errno) = look::at_dest(ctx, entry, Symlinks::NoFollow) {
        return Err(diagnose::file_creation(ctx, entry, errno));
    }
    let may_follow = entry.is_operand() && !ctx.treatment(entry).vacates();
    if !may_follow || !ctx.policy.options.rules.create_through_links {
        let (dest, source) = (ctx.path(entry, Side::Dest), ctx.path(entry, Side::Source));
        let error = Error::refused(Refusal::DanglingDest, dest)
            .at_dest()
            .with_other(Side::Source, source);
        return Err(Failure::making(error));
    }
    let mode = ctx.policy.creation_mode(source.st_mode);
    let opened = match &ctx.plan {
        None => ctx
            .descriptors
            .making_room(|| sys::create_through_link(entry.dest_dir, entry.dest_name, mode)),
        Some(plan) => plan.stand_in(),
    };
    let opened =
        opened.map_err(|errno| diagnose::creation(ctx, entry, Operation::CreateFile, errno))?;
    // Another process may have created it since, so it is emptied like an existing file.
    let dest = prepare_opened(ctx, entry, source, opened)?;
    Ok(OpenDest {
        origin: Origin::Created,
        ..dest
    })
}

/// Prepares the opened dest for the content: truncates it, unless only attributes are copied.
/// Stats it again, because another process may have replaced it since.
fn prepare_opened(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &Stat,
    dest: Fd,
) -> Result<OpenDest, Failure> {
    if ctx.plan.is_some() {
        return Ok(OpenDest::new_file(dest, Naming::AtOnce));
    }
    let opened = sys::stat_open(&dest).map_err(|errno| ctx.dest_stat_failure(entry, errno))?;
    if FileId::of(source) == FileId::of(&opened) {
        return Err(ctx.refused(entry, Refusal::SameFile));
    }
    let failed = |errno| diagnose::file_creation(ctx, entry, errno);
    let is_file = sys::file_type(&opened) == FileType::RegularFile;
    if let Some(durability) = &ctx.durability
        && is_file
    {
        // A link may have led to another filesystem.
        let device = FileId::of(&opened).device;
        let noted = durability.note_filesystem(device, || sys::duplicate(dest.as_fd()));
        noted.map_err(|errno| ctx.making_failure(entry, Operation::Sync, errno))?;
    }
    if is_file && !ctx.policy.options.attributes_only {
        // An empty file is truncated too: that gives it a new time of modification.
        sys::set_size(dest.as_fd(), 0).map_err(failed)?;
    } else if entry.blocking() == Blocking::OnlyForLease {
        // The FIFO has a reader, or open would have failed. Clear `O_NONBLOCK` so that a full
        // pipe makes writes wait instead of failing with EAGAIN.
        sys::clear_nonblock(dest.as_fd()).map_err(failed)?;
    }
    let mode_before = attributes::restrict(&ctx.policy, dest.as_fd(), &opened, source);
    Ok(OpenDest {
        fd: dest,
        is_file,
        origin: Origin::Existing,
        naming: Naming::AtOnce,
        mode_before,
    })
}

/// Returns `true` if the dest's name is a link through which the dest may have been created.
pub(in crate::copy) fn is_behind_link(ctx: &Context<'_>, entry: &Entry<'_>) -> bool {
    ctx.policy.options.rules.create_through_links
        && look::dest_facts(ctx, entry, Symlinks::NoFollow)
            .is_some_and(|dest| dest.kind == FileType::Symlink)
}
