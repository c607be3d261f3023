//! Makes the directories that lead to a source below the target, for
//! [`CopyOptions::parents`](crate::CopyOptions::parents).
//!
//! They get their final attributes when everything below them is done. Until then their owner
//! may do everything in them.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes::path_only::{self, PathOnly};
use super::context::Context;
use super::decide::mode::{self, Origin};
use super::facts::Symlinks;
use super::way::{self, DestParent, OpenParent};
use crate::error::{Error, Operation, Refusal};
use crate::hashing::HashSet;
use crate::observer::Event;
use crate::sys::{self, At, CWD, Identity, Inode};

/// A directory that this run made for the dest of an operand.
struct MadeParent {
    /// The path of the directory, relative to the target.
    dest: Box<CStr>,
    /// Identity of the directory, which must still be at `dest` in the end.
    identity: Identity,
    path: PathBuf,
    /// The mode to set in the end, if it differs from the present one.
    mode_pending: Option<u32>,
    /// The directory of which it is a copy.
    source: Box<CStr>,
}

/// The directories that this run made for the dests of operands.
#[derive(Default)]
pub(super) struct MadeParents {
    /// In the order in which they were made.
    list: Vec<MadeParent>,
    /// Their names, relative to the target.
    names: HashSet<Box<CStr>>,
}

/// A directory on the way to a dest.
struct Step<'a> {
    source: &'a Path,
    /// The path of the directory, relative to the target.
    dest: &'a CStr,
    /// The name of the directory, relative to that of the step before.
    name: &'a CStr,
    path: &'a Path,
}

/// Makes the missing directories on the way to the dest of an operand, and adds them to `made`.
/// Opens the last one.
pub(super) fn make<'c>(
    ctx: &'c Context<'_>,
    operand: u32,
    made: &mut MadeParents,
) -> Result<OpenParent<'c>, Error> {
    let operand = &ctx.operands[operand as usize];
    let (source, name) = (operand.source.to_bytes(), operand.dest_name.to_bytes());
    let lead = source.iter().take_while(|&&byte| byte == b'/').count();
    let target = operand.dest_path.as_os_str().as_bytes();
    let target = &target[..target.len() - name.len()];
    let mut dir = OpenParent::Target(ctx.target());
    let mut last = None;
    for end in way::ends(name) {
        let path = [target, &name[..end]].concat();
        let step = Step {
            source: Path::new(OsStr::from_bytes(&source[..lead + end])),
            dest: &to_c(&name[..end]),
            name: &way::last_component(&name[..end]),
            path: Path::new(OsStr::from_bytes(&path)),
        };
        let next = open_or_make(ctx, dir.as_fd(), &step, made)?;
        last = Some((end, path));
        dir = OpenParent::Below(next);
    }
    if let Some((end, path)) = last {
        let failed = |errno| {
            Error::failed(
                Operation::Stat,
                Path::new(OsStr::from_bytes(&path)).into(),
                errno,
            )
        };
        let is_made = made.names.contains(&*to_c(&name[..end]));
        let parent = DestParent {
            identity: sys::stat_directory(dir.as_fd()).map_err(failed)?.identity,
            origin: if is_made {
                Origin::Created
            } else {
                Origin::Existing
            },
        };
        // An operand is begun once per run.
        let _ = operand.parent.set(parent);
    }
    Ok(dir)
}

fn open_or_make(
    ctx: &Context<'_>,
    above: BorrowedFd<'_>,
    step: &Step<'_>,
    made: &mut MadeParents,
) -> Result<OwnedFd, Error> {
    let is_made = made.names.contains(step.dest);
    let opened = ctx.descriptors.making_room(|| {
        if is_made {
            // Another process has replaced it if it is a link now.
            sys::open_path_directory(above, step.name, Symlinks::NoFollow)
        } else {
            way::open_component(&ctx.policy, above, step.name)
        }
    });
    match opened {
        Ok(dir) => Ok(dir),
        Err(Errno::NOTDIR) => {
            let path = step.path.into();
            Err(Error::refused(Refusal::ParentNotDirectory, path))
        }
        Err(_) => make_one(ctx, above, step, made),
    }
}

fn make_one(
    ctx: &Context<'_>,
    above: BorrowedFd<'_>,
    step: &Step<'_>,
    made: &mut MadeParents,
) -> Result<OwnedFd, Error> {
    let no_source = |errno| Error::failed(Operation::StatSourceParent, step.source.into(), errno);
    let failed = |operation| move |errno| Error::failed(operation, step.path.into(), errno);
    let source = to_c(step.source.as_os_str().as_bytes());
    let stat = sys::stat(CWD, &source, Symlinks::Follow).map_err(no_source)?;
    if sys::file_type(&stat) != FileType::Directory {
        return Err(no_source(Errno::NOTDIR));
    }
    let requested = ctx.policy.directory_creation_mode(stat.st_mode);
    sys::create_directory(above, step.name, requested | 0o700)
        .map_err(failed(Operation::MakeParent))?;
    if ctx.report.wants_events() {
        let (source, dest) = (step.source, step.path);
        ctx.report.event(Event::MadeParent { source, dest });
    }
    let fd = sys::open_path_directory(above, step.name, Symlinks::NoFollow)
        .map_err(failed(Operation::Stat))?;
    let granted = sys::stat_directory(fd.as_fd()).map_err(failed(Operation::Stat))?;
    let modes = mode::of_new_directory(granted.mode & 0o7777, requested);
    if modes.filling != granted.mode & 0o7777 {
        let set = Inode::directory(fd.as_fd()).set_mode(modes.filling);
        set.map_err(failed(Operation::SetMode))?;
    }
    made.names.insert(step.dest.into());
    made.list.push(MadeParent {
        dest: step.dest.into(),
        identity: granted.identity,
        path: step.path.into(),
        mode_pending: modes.pending,
        source: source.into_boxed_c_str(),
    });
    Ok(fd)
}

/// Sets the final mode and attributes of the directories, the innermost first.
pub(super) fn finish(ctx: &Context<'_>, made: MadeParents) {
    for parent in made.list.into_iter().rev() {
        if let Err(error) = finish_one(ctx, &parent) {
            ctx.report.failed(error);
        }
    }
}

fn finish_one(ctx: &Context<'_>, parent: &MadeParent) -> Result<(), Error> {
    let failed = |operation| move |errno| Error::failed(operation, parent.path.clone(), errno);
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
        dir: CWD,
        name: &parent.source,
        symlinks: Symlinks::Follow,
    });
    let source = source.map_err(failed(Operation::Stat))?;
    let dest = PathOnly::created(dir).map_err(failed(Operation::Stat))?;
    let set = path_only::transfer(&ctx.policy, &source, &dest, Origin::Created);
    let set = set.map_err(failed(Operation::Stat))?;
    ctx.report_attributes(set, || parent.path.clone())
}

/// Opens the directory that was made, and no other one that has its name now.
fn reopen(ctx: &Context<'_>, parent: &MadeParent) -> Result<OwnedFd, Errno> {
    let dir = sys::open_path_directory(ctx.target(), &parent.dest, Symlinks::NoFollow)?;
    if !sys::is_same_directory(dir.as_fd(), parent.identity)? {
        return Err(Errno::STALE);
    }
    Ok(dir)
}

fn to_c(part: &[u8]) -> CString {
    CString::new(part).expect("BUG: a NUL within a C string")
}
