//! Copies FIFOs, sockets and devices by making new ones. They are never read or written.

use rustix::fs::FileType;

use super::{Created, create_or_replace, set_attributes};
use crate::copy::attributes::path_only::PathOnly;
use crate::copy::context::{Context, Failure};
use crate::copy::decide::mode;
use crate::copy::facts::Entry;
use crate::error::Operation;
use crate::sys::{self, Stat};

pub(in crate::copy) fn copy(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &Stat,
) -> Result<(), Failure> {
    let kind = sys::file_type(source);
    let permissions = mode::for_special_file(&ctx.policy.options.preserve, source.st_mode);
    let mode = kind.as_raw_mode() | permissions;
    let create = || sys::create_node(entry.dest_dir, entry.dest_name, mode, source.st_rdev);
    let operation = match kind {
        FileType::Fifo => Operation::CreateFifo,
        _ => Operation::CreateSpecial,
    };
    let created = create_or_replace(ctx, entry, operation, create)?;
    if created == Created::AlreadyThere || !ctx.policy.sets_attributes {
        return Ok(());
    }
    let source = PathOnly::find(entry.source_at());
    let source =
        source.map_err(|errno| Failure::making(ctx.source_error(entry, Operation::Stat, errno)))?;
    set_attributes(ctx, entry, &source)
}
