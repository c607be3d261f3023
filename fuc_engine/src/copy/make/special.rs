//! Copies FIFOs, sockets and devices by making new ones. They are never read or written.

use rustix::fs::FileType;

use super::{Created, create_or_replace, set_attributes};
use crate::copy::attributes::path_only::PathOnly;
use crate::copy::changes::New;
use crate::copy::context::{Context, Failure};
use crate::copy::decide::clear::Making;
use crate::copy::decide::mode;
use crate::copy::facts::Entry;
use crate::error::{Operation, Refusal};
use crate::sys::{self, Stat};

/// Makes a copy of a source that was seen as `source`.
pub(in crate::copy) fn copy(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &Stat,
) -> Result<(), Failure> {
    if !ctx.policy.sets_attributes {
        return create(ctx, entry, source).map(drop);
    }
    // Another process may have replaced the source since it was seen. So all facts, and all
    // attributes, are those of one inode that is held.
    let held = PathOnly::find(entry.source_at());
    let held =
        held.map_err(|errno| Failure::making(ctx.source_error(entry, Operation::Stat, errno)))?;
    if sys::file_type(held.stat()) != sys::file_type(source) {
        return Err(ctx.source_refused(entry, Refusal::SourceReplaced));
    }
    if create(ctx, entry, held.stat())? == Created::AlreadyThere {
        return Ok(());
    }
    set_attributes(ctx, entry, &held)
}

fn create(ctx: &Context<'_>, entry: &Entry<'_>, source: &Stat) -> Result<Created, Failure> {
    let kind = sys::file_type(source);
    let permissions = mode::for_special_file(&ctx.policy.options.preserve, source.st_mode);
    let mode = kind.as_raw_mode() | permissions;
    let operation = match kind {
        FileType::Fifo => Operation::CreateFifo,
        _ => Operation::CreateSpecial,
    };
    let new = match kind {
        FileType::CharacterDevice | FileType::BlockDevice => {
            New::Device(entry.source_at(), kind, source.st_rdev)
        }
        _ => New::Copy(entry.source_at()),
    };
    create_or_replace(ctx, entry, Making::Special, operation, |name| {
        ctx.changes.create(ctx.spot(entry), new, || {
            sys::create_node(entry.dest_dir, name, mode, source.st_rdev)
        })
    })
}
