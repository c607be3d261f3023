//! Makes copies, one file for each kind of source. The files do not know each other.
//!
//! - [`mod@file`]: regular files, and the content of special files.
//! - [`symlink`]: symbolic links.
//! - [`special`]: FIFOs, sockets and devices.
//! - [`link`]: links instead of copies.
//! - [`hardlink`]: links to the first copy of a source that has several names.
//! - [`directory`]: directories, which are entered, and finished after their last entry.

pub(super) mod directory;
pub(super) mod file;
pub(super) mod hardlink;
pub(super) mod link;
pub(super) mod special;
pub(super) mod symlink;

use std::ffi::CStr;

use rustix::io::Errno;

use super::attributes::Role;
use super::attributes::path_only::{self, PathOnly};
use super::context::{Context, Failure};
use super::decide::clear::{Making, Removal};
use super::decide::mode::Origin;
use super::dest::clear::{Cleared, clear_dest};
use super::diagnose;
use super::facts::Entry;
use crate::error::Operation;
use crate::node::Side;
use crate::observer::Event;

/// Says whether a copy was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Created {
    Yes,
    /// The dest is another name of the source, so it has all attributes already.
    AlreadyThere,
}

/// Creates a copy that has no content by `create`, which gets its name. Something else at the dest is removed first, or
/// replaced.
fn create_or_replace(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    making: Making,
    operation: Operation,
    create: impl Fn(&CStr) -> Result<(), Errno>,
) -> Result<Created, Failure> {
    let name = entry.dest_name;
    let created = match create(name) {
        Err(Errno::EXIST) => match clear_dest(ctx, entry, making, None)? {
            Cleared::Vacant => create(name),
            Cleared::AlreadyThere => return Ok(Created::AlreadyThere),
            Cleared::ToReplace(removal) => {
                let replaced = ctx.changes.replace(ctx.spot(entry), create);
                replaced.inspect(|()| {
                    if removal == Removal::Reported {
                        ctx.emit(entry, |_, dest, _| Event::RemovedDest(dest));
                    }
                })
            }
            Cleared::KeptDirectory => Err(Errno::ISDIR),
            _ => Err(Errno::EXIST),
        },
        // As cp, try a FIFO again. A server that cannot store one may have made a file, which is reported then.
        Err(_) if operation == Operation::CreateFifo => create(name),
        created => created,
    };
    match (created, making) {
        (Ok(()), _) => Ok(Created::Yes),
        (Err(errno), Making::Link(_)) => Err(diagnose::linking(ctx, entry, operation, errno)),
        (Err(errno), _) => Err(diagnose::creation(ctx, entry, operation, errno)),
    }
}

/// Gives a new dest without content the attributes of its source.
fn set_attributes(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &PathOnly<'_>,
) -> Result<(), Failure> {
    let unseen = |errno| ctx.making_failure(entry, Operation::Stat, errno);
    let dest = PathOnly::find(entry.dest_at()).map_err(unseen)?;
    let (policy, origin) = (&ctx.policy, Origin::Created);
    let acl = ctx.inherited_acl(entry);
    let set = path_only::transfer(policy, source, &dest, origin, acl, Role::Copy);
    let set = set.map_err(unseen)?;
    ctx.report_attributes(entry.operand, set, || ctx.path(entry, Side::Dest))
        .map_err(Failure::making)
}
