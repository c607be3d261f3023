//! Makes the directories that lead to a source below the target, for
//! [`CopyOp::parents`](crate::CopyOp::parents).
//!
//! They get their final attributes when everything below them is done. Until then their owner
//! may do everything in them. As with cp, directories that existed before get the attributes of their
//! sources, too, if one below them was missing.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes;
use super::changes::Spot;
use super::context::Context;
use super::decide::mode::{self, DestAcl, Origin};
use super::facts::Symlinks;
use super::operand::{DestParent, OpenParent, ends, open_component};
use crate::error::{Error, Operation, Refusal};
use crate::hashing::HashMap;
use crate::observer::Event;
use crate::paths::{c_string, name_of, path_of};
use crate::sys::{self, At, Fd, Inode, PathOnly, Stat};

/// A prefix of the name of an operand's dest, up to `end`. It names a directory on the way to the dest.
#[derive(Clone, Copy)]
struct Prefix {
    operand: u32,
    end: usize,
}

impl Prefix {
    /// Returns the path of the directory, relative to the target.
    fn dest(self, ctx: &Context<'_>) -> CString {
        c_string(&ctx.operands.dest_name(self.operand).to_bytes()[..self.end])
    }

    /// Returns the path of the directory of which it is a copy.
    fn source(self, ctx: &Context<'_>) -> CString {
        let source = ctx.operands.source(self.operand).to_bytes();
        let lead = source.iter().take_while(|&&byte| byte == b'/').count();
        c_string(&source[..lead + self.end])
    }

    /// Returns the path as it is shown to users.
    fn path(self, ctx: &Context<'_>) -> PathBuf {
        ctx.operands.dest_path_to(self.operand, self.end)
    }

    fn error(self, ctx: &Context<'_>, operation: Operation) -> impl FnOnce(Errno) -> Error {
        move |errno| Error::failed(operation, self.path(ctx), errno).at_dest()
    }
}

/// A directory on the way to a dest, which gets its final attributes in the end.
struct Parent {
    /// Names the directory. The operand is the first one below it.
    prefix: Prefix,
    /// The directory, which must still be there in the end.
    directory: DestParent,
    /// The mode to set in the end, if it differs from the present one.
    mode_pending: Option<u32>,
}

/// The directories on the way to the dests of operands.
#[derive(Default)]
pub(super) struct MadeParents {
    /// Those that get attributes in the end. Each comes after the one that it is in.
    list: Vec<Parent>,
    /// Those in the list, by their paths relative to the target.
    known: HashMap<CString, DestParent>,
}

/// Makes the missing directories on the way to the dest of an operand, and adds them to `made`.
/// Opens the last one.
pub(super) fn make_missing<'c>(
    ctx: &'c Context<'_>,
    operand: u32,
    made: &mut MadeParents,
) -> Result<OpenParent<'c>, Error> {
    let mut dir = OpenParent::Target(ctx.target());
    let mut last = None;
    let mut existing = Vec::new();
    let known = made.list.len();
    for end in ends(ctx.operands.dest_name(operand).to_bytes()) {
        let prefix = Prefix { operand, end };
        let next = open_or_make(ctx, dir.as_fd(), prefix, made, &mut existing)
            .map_err(|error| first_error(ctx, prefix).unwrap_or(error))?;
        last = Some(prefix);
        dir = OpenParent::Below(next);
    }
    if ctx.policy.sets_attributes && made.list.len() > known {
        let directories = existing
            .iter()
            .map(|parent: &Parent| (parent.prefix.dest(ctx), parent.directory));
        made.known.extend(directories);
        made.list.splice(known..known, existing);
    }
    if let Some(prefix) = last {
        let stat = sys::stat_directory(dir.as_fd()).map_err(prefix.error(ctx, Operation::Stat))?;
        let known = made.known.get(&prefix.dest(ctx));
        let parent = DestParent {
            identity: stat.identity,
            origin: known.map_or(Origin::Existing, |known| known.origin),
        };
        // An operand is begun once per run.
        let _ = ctx.operands.state(operand).parent.set(parent);
    }
    Ok(dir)
}

fn open_or_make(
    ctx: &Context<'_>,
    above: BorrowedFd<'_>,
    prefix: Prefix,
    made: &mut MadeParents,
    existing: &mut Vec<Parent>,
) -> Result<Fd, Error> {
    let dest = prefix.dest(ctx);
    let name = name_of(dest.to_bytes());
    let spot = Spot::new(above, &name);
    let known = made.known.get(&dest).copied();
    let open = || match known {
        Some(made) if made.origin == Origin::Created => open_known(above, spot.name, made),
        _ => open_component(&ctx.policy, above, spot.name),
    };
    let origin = known.map_or(Origin::Existing, |known| known.origin);
    let opened = ctx
        .changes
        .open_dest(spot, origin, || ctx.descriptors.making_room(open));
    match opened {
        Ok(dir) => {
            if known.is_none() {
                let stat = sys::stat_directory(dir.as_fd());
                let stat = stat.map_err(prefix.error(ctx, Operation::Stat))?;
                existing.push(Parent {
                    prefix,
                    directory: DestParent {
                        identity: stat.identity,
                        origin: Origin::Existing,
                    },
                    mode_pending: None,
                });
            }
            Ok(dir)
        }
        // It may also be a link whose target is below something that is not a directory. That counts as missing.
        Err(Errno::NOTDIR) if ctx.changes.stat(spot, Symlinks::Follow).is_ok() => {
            Err(Error::refused(Refusal::ParentNotDirectory, prefix.path(ctx)).at_dest())
        }
        Err(_) => make_one(ctx, spot, prefix, made),
    }
}

fn make_one(
    ctx: &Context<'_>,
    spot: Spot<'_>,
    prefix: Prefix,
    made: &mut MadeParents,
) -> Result<Fd, Error> {
    let source = prefix.source(ctx);
    let stat = look_at_source(ctx, &source)?;
    let mode = mode::of_parent(&ctx.policy.options.preserve, stat.st_mode);
    let requested = ctx.policy.directory_creation_mode(mode);
    ctx.changes
        .create_directory(spot, requested)
        .map_err(prefix.error(ctx, Operation::MakeParent))?;
    if ctx.report.wants_events() {
        let (source, dest) = (path_of(&source), &prefix.path(ctx));
        ctx.report.event(Event::MadeParent { source, dest });
    }
    let open = || sys::open_path_directory(spot.dir, spot.name, Symlinks::NoFollow);
    let opened = ctx.changes.open_dest(spot, Origin::Created, open);
    let fd = opened.map_err(prefix.error(ctx, Operation::Stat))?;
    let granted = sys::stat_directory(fd.as_fd()).map_err(prefix.error(ctx, Operation::Stat))?;
    if sys::is_of_another(fd.as_fd(), granted.owner, ctx.policy.user) {
        return Err(prefix.error(ctx, Operation::Stat)(Errno::STALE));
    }
    let let_owner_fill = || attributes::let_owner_fill(fd.as_fd(), granted.mode & 0o7777);
    let mode_pending = ctx
        .changes
        .really(let_owner_fill)
        .map_err(prefix.error(ctx, Operation::SetMode))?;
    let directory = DestParent {
        identity: granted.identity,
        origin: Origin::Created,
    };
    made.known.insert(prefix.dest(ctx), directory);
    made.list.push(Parent {
        prefix,
        directory,
        mode_pending,
    });
    Ok(fd)
}

/// Returns the stat of a directory that leads to a source.
fn look_at_source(ctx: &Context<'_>, source: &CStr) -> Result<Stat, Error> {
    let failed = |errno| Error::failed(Operation::StatSourceParent, path_of(source).into(), errno);
    let stat = sys::stat(ctx.bases.source, source, Symlinks::Follow).map_err(failed)?;
    match sys::file_type(&stat) {
        FileType::Directory => Ok(stat),
        _ => Err(failed(Errno::NOTDIR)),
    }
}

/// Returns the error of a source directory on the way to the one that failed, if cp would have reported that.
///
/// cp looks at each source directory first if it preserves its attributes, unless the dest of the last one exists.
fn first_error(ctx: &Context<'_>, failed: Prefix) -> Option<Error> {
    let end = ends(ctx.operands.dest_name(failed.operand).to_bytes()).last()?;
    let last = Prefix { end, ..failed };
    let dest = last.dest(ctx);
    let spot = Spot::new(ctx.target(), &dest);
    if !ctx.policy.options.preserve.keeps_what_stat_shows()
        || ctx.changes.stat(spot, Symlinks::Follow).is_ok()
    {
        return None;
    }
    let source = failed.source(ctx).into_bytes();
    let mut ends = ends(&source).chain([source.len()]);
    ends.find_map(|end| look_at_source(ctx, &c_string(&source[..end])).err())
}

/// Sets the final mode and attributes of the directories, the innermost first.
pub(super) fn set_final_attributes(ctx: &Context<'_>, made: MadeParents) {
    for parent in made.list.into_iter().rev() {
        if let Err(error) = set_final_attributes_of(ctx, &parent) {
            ctx.fail(parent.prefix.operand, error);
        }
    }
}

fn set_final_attributes_of(ctx: &Context<'_>, parent: &Parent) -> Result<(), Error> {
    let failed = |operation| parent.prefix.error(ctx, operation);
    let sets_attributes = ctx.policy.sets_attributes;
    if parent.mode_pending.is_none() && !sets_attributes {
        return Ok(());
    }
    let dir = open_known(ctx.target(), &parent.prefix.dest(ctx), parent.directory);
    let dir = dir.map_err(failed(Operation::Stat))?;
    if let Some(mode) = parent.mode_pending {
        let set = Inode::PathOnly(dir.as_fd()).set_mode(mode);
        set.map_err(failed(Operation::SetMode))?;
    }
    if !sets_attributes {
        return Ok(());
    }
    let source = parent.prefix.source(ctx);
    let at = At {
        dir: ctx.bases.source,
        name: &source,
        symlinks: Symlinks::Follow,
    };
    let source = PathOnly::find(at).map_err(failed(Operation::Stat))?;
    let dest = PathOnly::of(dir).map_err(failed(Operation::Stat))?;
    let (policy, acl) = (&ctx.policy, DestAcl::Possible);
    let set = attributes::transfer(policy, &source, &dest, parent.directory.origin, acl);
    let set = set.map_err(failed(Operation::Stat))?;
    ctx.report_attributes(parent.prefix.operand, set, || parent.prefix.path(ctx))
}

/// Opens a directory that is known, and no other one that has its name now.
fn open_known(above: BorrowedFd<'_>, name: &CStr, known: DestParent) -> Result<Fd, Errno> {
    let symlinks = match known.origin {
        Origin::Created => Symlinks::NoFollow,
        // A link may have led to it.
        Origin::Existing => Symlinks::Follow,
    };
    let dir = sys::open_path_directory(above, name, symlinks)?;
    match sys::is_same_directory(dir.as_fd(), known.identity)? {
        true => Ok(dir),
        false => Err(Errno::STALE),
    }
}
