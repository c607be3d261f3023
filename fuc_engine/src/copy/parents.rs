//! Makes the directories that lead to a source below the target, for
//! [`CopyOp::parents`](crate::CopyOp::parents).
//!
//! They get their final attributes when everything below them is done. Until then their owner
//! may do everything in them. As with cp, directories that existed before get the attributes of their
//! sources, too, if one below them was missing.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes::{self, PathOnly, Role};
use super::changes::{DestPath, Spot};
use super::context::Context;
use super::decide::mode::{self, DestAcl, Origin};
use super::dest::directory;
use super::facts::Symlinks;
use super::operand::{DestParent, OpenParent, ends, last_component, open_component};
use crate::error::{Error, Operation, Refusal};
use crate::hashing::HashSet;
use crate::observer::Event;
use crate::operand::c_string;
use crate::sys::{self, At, Fd, Identity, Inode, Stat};

/// A directory on the way to a dest, which gets its final attributes in the end.
struct Parent {
    /// The path of the directory, relative to the target.
    dest: Box<CStr>,
    /// The first operand below it.
    operand: u32,
    /// Identity of the directory, which must still be at `dest` in the end.
    identity: Identity,
    origin: Origin,
    path: PathBuf,
    /// The mode to set in the end, if it differs from the present one.
    mode_pending: Option<u32>,
    /// The directory of which it is a copy.
    source: Box<CStr>,
}

/// The directories on the way to the dests of operands.
#[derive(Default)]
pub(super) struct MadeParents {
    /// Those that get attributes in the end. Each comes after the one that it is in.
    list: Vec<Parent>,
    /// Names of those that this run has made, relative to the target.
    made: HashSet<Box<CStr>>,
    /// Names of those in the list that existed before.
    existing: HashSet<Box<CStr>>,
}

/// A directory on the way to a dest.
struct Step<'a> {
    operand: u32,
    source: &'a Path,
    /// The path of the directory, relative to the target.
    dest: &'a CStr,
    /// The name of the directory, relative to that of the step before.
    name: &'a CStr,
    path: &'a Path,
}

impl<'a> Step<'a> {
    fn spot(&'a self, above: BorrowedFd<'a>) -> Spot<'a, impl DestPath> {
        Spot {
            dir: above,
            name: self.name,
            path: || self.path.into(),
        }
    }
}

/// Makes the missing directories on the way to the dest of an operand, and adds them to `made`.
/// Opens the last one.
pub(super) fn make<'c>(
    ctx: &'c Context<'_>,
    index: u32,
    made: &mut MadeParents,
) -> Result<OpenParent<'c>, Error> {
    let operands = &ctx.operands;
    let [source, name] = [operands.source(index), operands.dest_name(index)].map(CStr::to_bytes);
    let lead = source.iter().take_while(|&&byte| byte == b'/').count();
    let target = operands.dest_path(index);
    let target = target.as_os_str().as_bytes();
    let target = &target[..target.len() - name.len()];
    let mut dir = OpenParent::Target(ctx.target());
    let mut last = None;
    let mut existing = Vec::new();
    let known = made.list.len();
    for end in ends(name) {
        let path = [target, &name[..end]].concat();
        let step = Step {
            operand: index,
            source: Path::new(OsStr::from_bytes(&source[..lead + end])),
            dest: &c_string(&name[..end]),
            name: &last_component(&name[..end]),
            path: Path::new(OsStr::from_bytes(&path)),
        };
        let next = open_or_make(ctx, dir.as_fd(), &step, made, &mut existing)
            .map_err(|error| first_error(ctx, index, &step).unwrap_or(error))?;
        last = Some((end, path));
        dir = OpenParent::Below(next);
    }
    if ctx.policy.sets_attributes && made.list.len() > known {
        let names = existing.iter().map(|parent| parent.dest.clone());
        made.existing.extend(names);
        made.list.splice(known..known, existing);
    }
    if let Some((end, path)) = last {
        let failed = |errno| {
            let path = Path::new(OsStr::from_bytes(&path)).into();
            Error::failed(Operation::Stat, path, errno).at_dest()
        };
        let is_made = made.made.contains(&*c_string(&name[..end]));
        let parent = DestParent {
            identity: sys::stat_directory(dir.as_fd()).map_err(failed)?.identity,
            origin: if is_made {
                Origin::Created
            } else {
                Origin::Existing
            },
        };
        // An operand is begun once per run.
        let _ = operands.state(index).parent.set(parent);
    }
    Ok(dir)
}

fn open_or_make(
    ctx: &Context<'_>,
    above: BorrowedFd<'_>,
    step: &Step<'_>,
    made: &mut MadeParents,
    existing: &mut Vec<Parent>,
) -> Result<Fd, Error> {
    let is_made = made.made.contains(step.dest);
    let spot = step.spot(above);
    let open = || {
        if is_made {
            // Another process has replaced it if it is a link now.
            sys::open_path_directory(above, step.name, Symlinks::NoFollow)
        } else {
            open_component(&ctx.policy, above, step.name)
        }
    };
    let opened = ctx
        .changes
        .open(spot, Origin::Existing, || ctx.descriptors.making_room(open));
    match opened {
        Ok(dir) => {
            if !is_made && !made.existing.contains(step.dest) {
                existing.push(existing_parent(dir.as_fd(), step)?);
            }
            Ok(dir)
        }
        // It may also be a link whose target is below something that is not a directory. That counts as missing.
        Err(Errno::NOTDIR) if ctx.changes.look(spot, Symlinks::Follow).is_ok() => {
            Err(Error::refused(Refusal::ParentNotDirectory, step.path.into()).at_dest())
        }
        Err(_) => make_one(ctx, above, step, made),
    }
}

/// Describes a directory that existed before.
fn existing_parent(dir: BorrowedFd<'_>, step: &Step<'_>) -> Result<Parent, Error> {
    let failed = |errno| Error::failed(Operation::Stat, step.path.into(), errno).at_dest();
    Ok(Parent {
        dest: step.dest.into(),
        operand: step.operand,
        identity: sys::stat_directory(dir).map_err(failed)?.identity,
        origin: Origin::Existing,
        path: step.path.into(),
        mode_pending: None,
        source: c_string(step.source.as_os_str().as_bytes()).into_boxed_c_str(),
    })
}

fn make_one(
    ctx: &Context<'_>,
    above: BorrowedFd<'_>,
    step: &Step<'_>,
    made: &mut MadeParents,
) -> Result<Fd, Error> {
    let failed =
        |operation| move |errno| Error::failed(operation, step.path.into(), errno).at_dest();
    let source = c_string(step.source.as_os_str().as_bytes());
    let stat = look_at_source(ctx, step.source)?;
    let mode = mode::of_parent(&ctx.policy.options.preserve, stat.st_mode);
    let requested = ctx.policy.directory_creation_mode(mode);
    let spot = step.spot(above);
    ctx.changes
        .create_directory(spot, requested, || Ok(stat))
        .map_err(failed(Operation::MakeParent))?;
    if ctx.report.wants_events() {
        let (source, dest) = (step.source, step.path);
        ctx.report.event(Event::MadeParent { source, dest });
    }
    let fd = ctx
        .changes
        .open(spot, Origin::Created, || {
            sys::open_path_directory(above, step.name, Symlinks::NoFollow)
        })
        .map_err(failed(Operation::Stat))?;
    let granted = sys::stat_directory(fd.as_fd()).map_err(failed(Operation::Stat))?;
    let mode_pending = directory::let_owner_fill(ctx, fd.as_fd(), granted.mode & 0o7777)
        .map_err(failed(Operation::SetMode))?;
    made.made.insert(step.dest.into());
    made.list.push(Parent {
        dest: step.dest.into(),
        operand: step.operand,
        identity: granted.identity,
        origin: Origin::Created,
        path: step.path.into(),
        mode_pending,
        source: source.into_boxed_c_str(),
    });
    Ok(fd)
}

/// Returns the stat of a directory that leads to a source.
fn look_at_source(ctx: &Context<'_>, source: &Path) -> Result<Stat, Error> {
    let failed = |errno| Error::failed(Operation::StatSourceParent, source.into(), errno);
    let path = c_string(source.as_os_str().as_bytes());
    let stat = sys::stat(ctx.bases.source, &path, Symlinks::Follow).map_err(failed)?;
    match sys::file_type(&stat) {
        FileType::Directory => Ok(stat),
        _ => Err(failed(Errno::NOTDIR)),
    }
}

/// Returns the error of a source directory on the way to the one that failed, if cp would have reported that.
///
/// cp looks at each source directory first if it preserves its attributes, unless the dest of the last one exists.
fn first_error(ctx: &Context<'_>, operand: u32, failed: &Step<'_>) -> Option<Error> {
    let name = ctx.operands.dest_name(operand);
    let dest_path = ctx.operands.dest_path(operand);
    let end = ends(name.to_bytes()).last()?;
    let last = c_string(&name.to_bytes()[..end]);
    let shown = dest_path.as_os_str().as_bytes();
    let shown = &shown[..shown.len() - (name.to_bytes().len() - end)];
    let spot = Spot {
        dir: ctx.target(),
        name: &last,
        path: || OsStr::from_bytes(shown).into(),
    };
    if !ctx.policy.options.preserve.keeps_what_stat_shows()
        || ctx.changes.look(spot, Symlinks::Follow).is_ok()
    {
        return None;
    }
    let source = failed.source.as_os_str().as_bytes();
    let mut ends = ends(source).chain([source.len()]);
    ends.find_map(|end| look_at_source(ctx, Path::new(OsStr::from_bytes(&source[..end]))).err())
}

/// Sets the final mode and attributes of the directories, the innermost first.
pub(super) fn finish(ctx: &Context<'_>, made: MadeParents) {
    for parent in made.list.into_iter().rev() {
        if let Err(error) = finish_one(ctx, &parent) {
            ctx.fail(parent.operand, error);
        }
    }
}

fn finish_one(ctx: &Context<'_>, parent: &Parent) -> Result<(), Error> {
    let failed =
        |operation| move |errno| Error::failed(operation, parent.path.clone(), errno).at_dest();
    let sets_attributes = ctx.policy.sets_attributes;
    if parent.mode_pending.is_none() && !sets_attributes {
        return Ok(());
    }
    let dir = reopen(ctx, parent).map_err(failed(Operation::Stat))?;
    if let Some(mode) = parent.mode_pending {
        let set = Inode::directory(dir.as_fd()).set_mode(mode);
        set.map_err(failed(Operation::SetMode))?;
    }
    if !sets_attributes {
        return Ok(());
    }
    let source = PathOnly::find(At {
        dir: ctx.bases.source,
        name: &parent.source,
        symlinks: Symlinks::Follow,
    });
    let source = source.map_err(failed(Operation::Stat))?;
    let dest = PathOnly::created(dir).map_err(failed(Operation::Stat))?;
    let (policy, acl) = (&ctx.policy, DestAcl::Possible);
    let set = attributes::transfer(policy, &source, &dest, parent.origin, acl, Role::Parent);
    let set = set.map_err(failed(Operation::Stat))?;
    ctx.report_attributes(parent.operand, set, || parent.path.clone())
}

/// Opens the directory, and no other one that has its name now.
fn reopen(ctx: &Context<'_>, parent: &Parent) -> Result<Fd, Errno> {
    let symlinks = match parent.origin {
        Origin::Created => Symlinks::NoFollow,
        // A link may have led to it.
        Origin::Existing => Symlinks::Follow,
    };
    let dir = sys::open_path_directory(ctx.target(), &parent.dest, symlinks)?;
    if !sys::is_same_directory(dir.as_fd(), parent.identity)? {
        return Err(Errno::STALE);
    }
    Ok(dir)
}
