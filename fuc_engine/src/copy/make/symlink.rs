//! Copies symbolic links.

use std::ffi::CStr;

use super::{Created, create_or_replace, set_attributes};
use crate::copy::attributes::path_only::PathOnly;
use crate::copy::changes::New;
use crate::copy::context::{Context, Failure};
use crate::copy::decide::clear::Making;
use crate::copy::diagnose;
use crate::copy::facts::Entry;
use crate::error::Operation;
use crate::sys;

/// Makes a copy of a link, unless the dest is another name of it.
pub(in crate::copy) fn copy(ctx: &Context<'_>, entry: &Entry<'_>) -> Result<Created, Failure> {
    let failed = |errno| diagnose::reading(ctx, entry, Operation::ReadLink, errno);
    if !ctx.policy.sets_attributes {
        let target = sys::read_link(entry.source_dir, entry.source_name).map_err(failed)?;
        return create(ctx, entry, &target);
    }
    // Stat the link before reading it, because reading changes its time of access.
    let source = PathOnly::find(entry.source_at()).map_err(failed)?;
    let target = source.read_link().map_err(failed)?;
    if create(ctx, entry, &target)? == Created::AlreadyThere {
        return Ok(Created::AlreadyThere);
    }
    set_attributes(ctx, entry, &source)?;
    Ok(Created::Yes)
}

fn create(ctx: &Context<'_>, entry: &Entry<'_>, target: &CStr) -> Result<Created, Failure> {
    let create = |name: &CStr| {
        let new = New::Copy(entry.source_at());
        ctx.changes.create(ctx.spot(entry), new, || {
            sys::create_symlink(target, entry.dest_dir, name)
        })
    };
    create_or_replace(
        ctx,
        entry,
        Making::Symlink,
        Operation::CreateSymlink,
        create,
    )
}
