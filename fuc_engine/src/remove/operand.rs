//! Removes operands, or hands them over to be entered.

use rustix::fs::FileType;
use rustix::io::Errno;

use super::context::RemoveContext;
use super::node::{Name, RemovePlace};
use super::options::Scope;
use super::{asking, room};
use crate::error::Refusal;
use crate::observer::Answer;
use crate::operand;
use crate::report::Counted;
use crate::sys::{self, Symlinks};

/// The result of beginning an operand.
pub(super) enum Begun {
    Removed(Counted),
    /// The operand stays. Any failure has already been reported.
    Left,
    /// The operand, of this type, could not be removed because the filesystem is full.
    NoRoom(FileType, Errno),
    /// The operand is a directory to enter.
    Enter(RemovePlace),
}

/// Removes an operand, unless it is a directory to enter.
pub(super) fn begin_operand(context: &RemoveContext<'_>, operand: u32) -> Begun {
    let path = &context.operands[operand as usize];
    let name = Name::operand(operand, path);
    if context.remover.is_path_gone(context.base, path) {
        return left(context, name, Errno::NOENT);
    }
    let looked_at = sys::stat(context.base, path, Symlinks::NoFollow);
    match &looked_at {
        Ok(stat) if sys::is_directory(stat) => {
            return begin_directory(context, operand);
        }
        Ok(_) if context.options.scope == Scope::Contents => {
            return left(context, name, Errno::NOTDIR);
        }
        Err(errno) if context.options.scope == Scope::Contents => {
            return left(context, name, *errno);
        }
        Ok(stat) if context.asks => {
            let kind = sys::file_type(stat);
            if asking::ask_about_operand(context, name, kind) == Answer::No {
                return Begun::Left;
            }
        }
        // The user cannot be asked about a name that cannot be looked at.
        Err(errno) if asking::needs_stat(context) => return left(context, name, *errno),
        // If unlinking fails, its error is the one to report.
        Ok(_) | Err(_) => {}
    }
    let unlinked = context.unlocking(name, |dir, name| context.remover.unlink(dir, name));
    match (unlinked, looked_at) {
        (Ok(()), looked_at) => {
            context.removed(name);
            let kind = looked_at.map_or(FileType::Unknown, |stat| sys::file_type(&stat));
            Begun::Removed(Counted::of(kind))
        }
        (Err(errno), Ok(stat)) if room::is_needed(errno) => {
            Begun::NoRoom(sys::file_type(&stat), errno)
        }
        // On a read-only filesystem the kernel returns EROFS even for a missing name.
        (Err(Errno::ROFS), Err(errno)) | (Err(errno), _) => left(context, name, errno),
    }
}

fn left(context: &RemoveContext<'_>, name: Name<'_>, errno: Errno) -> Begun {
    context.fail_and_keep(name, errno);
    Begun::Left
}

fn begin_directory(context: &RemoveContext<'_>, operand: u32) -> Begun {
    let options = context.options;
    let path = &context.operands[operand as usize];
    let name = Name::operand(operand, path);
    let refused = |refusal| {
        context.refuse(name, refusal);
        Begun::Left
    };
    match (options.recursive, options.empty_directories) {
        (true, _) => {}
        (false, true) if context.options.scope == Scope::Contents => {
            return refused(Refusal::NotRecursive);
        }
        (false, true) => return remove_empty(context, name),
        (false, false) => return refused(Refusal::NotRecursive),
    }
    let (_, last) = operand::split(path.to_bytes());
    if context.options.scope == Scope::Whole && operand::is_dot_or_dot_dot(last) {
        return refused(Refusal::DotOrDotDot);
    }
    Begun::Enter(place_of(context, operand))
}

pub(super) fn place_of(context: &RemoveContext<'_>, operand: u32) -> RemovePlace {
    RemovePlace {
        parent: None,
        name: (&*context.operands[operand as usize]).into(),
        operand,
    }
}

/// Removes an operand that is a directory, if it is empty. The kernel refuses all others, so nothing is
/// checked before.
fn remove_empty(context: &RemoveContext<'_>, name: Name<'_>) -> Begun {
    if context.asks && asking::ask_about_empty(context, name) == Answer::No {
        return Begun::Left;
    }
    match context.unlocking(name, |dir, name| {
        context.remover.remove_directory(dir, name)
    }) {
        Ok(()) => {
            context.removed_directory(name);
            Begun::Removed(Counted::Directory)
        }
        Err(errno) if room::is_needed(errno) => Begun::NoRoom(FileType::Directory, errno),
        Err(errno) => left(context, name, errno),
    }
}
