//! Makes links instead of copies.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;

use super::{Created, create_or_replace};
use crate::copy::attributes::path_only;
use crate::copy::changes::New;
use crate::copy::context::{Context, Failure};
use crate::copy::decide::clear::{Clear, Making};
use crate::copy::dest::clear::decide;
use crate::copy::facts::{Entry, FileId, Symlinks};
use crate::copy::look;
use crate::copy::options::LinkKind;
use crate::error::{Error, Operation, Refusal};
use crate::node::Side;
use crate::operand;
use crate::sys;

/// Makes a link to a source that is not a directory.
pub(in crate::copy) fn make(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    kind: LinkKind,
) -> Result<Created, Failure> {
    let target = match kind {
        LinkKind::Hard => None,
        LinkKind::Symbolic => match symlink_target(ctx, entry)? {
            None => return refuse_relative_link(ctx, entry),
            target => target,
        },
    };
    let source = entry.source_at();
    let (new, operation) = match kind {
        LinkKind::Hard => (New::HardLink(source), Operation::CreateHardLink),
        LinkKind::Symbolic => (New::Symlink(source), Operation::CreateSymlink),
    };
    let create = |name: &CStr| {
        ctx.changes.create(ctx.spot(entry), new, || match &target {
            Some(target) => sys::create_symlink(target, entry.dest_dir, name),
            None => sys::create_hard_link(source, entry.dest_dir, name),
        })
    };
    let created = create_or_replace(ctx, entry, Making::Link(kind), operation, create)?;
    if created == Created::AlreadyThere {
        return Ok(Created::AlreadyThere);
    }
    let keeps_times = ctx.policy.sets_attributes && ctx.policy.options.preserve.timestamps;
    if kind == LinkKind::Symbolic && keeps_times {
        let source = look::at_source(entry);
        let source = source
            .map_err(|errno| Failure::making(ctx.source_error(entry, Operation::Stat, errno)))?;
        path_only::set_link_times(entry.dest_at(), &source)
            .map_err(|errno| ctx.making_failure(entry, Operation::KeepTimes, errno))?;
    }
    Ok(Created::Yes)
}

/// Refuses to make a symbolic link that would lead elsewhere because the source is relative. A dest in
/// the way is reported first.
fn refuse_relative_link(ctx: &Context<'_>, entry: &Entry<'_>) -> Result<Created, Failure> {
    match decide(ctx, entry, Making::Link(LinkKind::Symbolic), None)? {
        Some(Clear::AlreadyThere) => Ok(Created::AlreadyThere),
        Some(Clear::Refuse(refusal)) => Err(ctx.refused(entry, refusal)),
        _ => {
            let dest = ctx.path(entry, Side::Dest);
            let error = Error::refused(Refusal::RelativeSymlink, dest).at_dest();
            Err(Failure::making(error))
        }
    }
}

/// Returns the path of the source as the target of a symbolic link, or `None` if that would lead
/// elsewhere.
fn symlink_target(ctx: &Context<'_>, entry: &Entry<'_>) -> Result<Option<CString>, Failure> {
    // The kernel would make a link to a source that does not exist.
    look::at_source(entry).map_err(|errno| ctx.source_stat_failure(entry, errno))?;
    let path = ctx.path(entry, Side::Source);
    if path.is_relative() && !is_in_source_base(ctx, entry) {
        return Ok(None);
    }
    let path = CString::new(path.as_os_str().as_bytes());
    Ok(Some(path.expect("BUG: a NUL within C strings")))
}

/// Returns `true` if the dest is in the directory in which relative sources are looked up. Also `true` if
/// either directory cannot be stat'ed; creating the link then reports the error.
fn is_in_source_base(ctx: &Context<'_>, entry: &Entry<'_>) -> bool {
    if ctx.changes.is_absent(entry.dest_dir) {
        return false;
    }
    let dest = match entry.node {
        Some(_) => sys::stat(entry.dest_dir, c".", Symlinks::Follow),
        None => {
            let directory = operand::directory_of(entry.dest_name);
            sys::stat(entry.dest_dir, &directory, Symlinks::Follow)
        }
    };
    let base = sys::stat(ctx.bases.source, c".", Symlinks::Follow);
    match (dest, base) {
        (Ok(dest), Ok(base)) => FileId::of(&dest) == FileId::of(&base),
        _ => true,
    }
}
