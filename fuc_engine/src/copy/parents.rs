//! Makes the directories that lead to a source below the target, for
//! [`CopyOptions::parents`](crate::CopyOptions::parents).
//!
//! They get their final attributes when everything below them is done. Until then their owner
//! may do everything in them.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes::path_only::{self, PathOnly};
use super::context::Context;
use super::decide::mode::{self, Origin};
use super::facts::Symlinks;
use crate::error::{Error, Operation, Refusal};
use crate::observer::Event;
use crate::sys::{self, At, CWD, Identity, Inode};

/// A directory that this run made for the dest of an operand.
pub(super) struct MadeParent {
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

/// A directory on the way to a dest.
struct Step<'a> {
    source: &'a Path,
    /// The path of the directory, relative to the target.
    dest: &'a CStr,
    /// The name of the directory, relative to that of the step before.
    name: &'a CStr,
    path: &'a Path,
}

/// Returns the positions in `name` at which a directory ends.
fn ends(name: &[u8]) -> impl Iterator<Item = usize> {
    let is_end = |&at: &usize| at > 0 && name[at] == b'/' && name[at - 1] != b'/';
    (0..name.len()).filter(is_end)
}

/// Makes the missing directories on the way to the dest of an operand, and appends them to
/// `made`.
pub(super) fn make(
    ctx: &Context<'_>,
    operand: u32,
    made: &mut Vec<MadeParent>,
) -> Result<(), Error> {
    let operand = &ctx.operands[operand as usize];
    let (source, name) = (operand.source.to_bytes(), operand.dest_name.to_bytes());
    let lead = source.iter().take_while(|&&byte| byte == b'/').count();
    let target = operand.dest_path.as_os_str().as_bytes();
    let target = &target[..target.len() - name.len()];
    let mut above: Option<OwnedFd> = None;
    let mut start = 0;
    for end in ends(name) {
        let path = [target, &name[..end]].concat();
        let step = Step {
            source: Path::new(OsStr::from_bytes(&source[..lead + end])),
            dest: &to_c(&name[..end]),
            name: &to_c(without_leading_slashes(&name[start..end])),
            path: Path::new(OsStr::from_bytes(&path)),
        };
        let dir = above.as_ref().map_or(ctx.target(), AsFd::as_fd);
        let next = match sys::open_path_directory(dir, step.name, Symlinks::Follow) {
            Ok(next) => next,
            Err(Errno::NOTDIR) => {
                let path = step.path.into();
                return Err(Error::refused(Refusal::ParentNotDirectory, path));
            }
            Err(_) => make_one(ctx, dir, &step, made)?,
        };
        above = Some(next);
        start = end;
    }
    Ok(())
}

fn make_one(
    ctx: &Context<'_>,
    above: BorrowedFd<'_>,
    step: &Step<'_>,
    made: &mut Vec<MadeParent>,
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
    made.push(MadeParent {
        dest: step.dest.into(),
        identity: granted.identity,
        path: step.path.into(),
        mode_pending: modes.pending,
        source: source.into_boxed_c_str(),
    });
    Ok(fd)
}

/// Sets the final mode and attributes of the directories, the innermost first.
pub(super) fn finish(ctx: &Context<'_>, made: Vec<MadeParent>) {
    for parent in made.into_iter().rev() {
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

fn without_leading_slashes(name: &[u8]) -> &[u8] {
    let start = name.iter().position(|&byte| byte != b'/');
    &name[start.unwrap_or(name.len())..]
}

fn to_c(part: &[u8]) -> CString {
    CString::new(part).expect("BUG: a NUL within a C string")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_directory_on_the_way_ends_once() {
        assert_eq!(ends(b"a/./b//c").collect::<Vec<_>>(), [1, 3, 5]);
        assert_eq!(ends(b"a").count(), 0);
    }
}
