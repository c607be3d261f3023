//! Removes operands, or hands them over to be entered.

use rustix::fs::FileType;
use rustix::io::Errno;

use super::context::RemoveContext;
use super::directory::{self, Entered};
use super::node::Name;
use super::{asking, room};
use crate::error::Refusal;
use crate::observer::Answer;
use crate::operand;
use crate::report::Counted;
use crate::sys::{self, Symlinks};

/// Removes an operand. Returns `None` if it is a directory to enter.
pub(super) fn begin_operand(context: &RemoveContext<'_>, operand: u32) -> Option<Entered> {
    let path = &context.operands[operand as usize];
    let name = Name {
        parent: None,
        operand,
        name: path,
    };
    let left = |errno| Some(directory::left(context, name, errno));
    if context.remover.is_path_gone(context.base, path) {
        return left(Errno::NOENT);
    }
    let looked_at = sys::stat(context.base, path, Symlinks::NoFollow);
    match &looked_at {
        Ok(stat) if sys::is_directory(stat) => {
            return begin_directory(context, operand);
        }
        Ok(_) if context.options.keeps_operands => {
            return left(Errno::NOTDIR);
        }
        Err(errno) if context.options.keeps_operands => {
            return left(*errno);
        }
        Ok(stat) if context.asks => {
            let kind = sys::file_type(stat);
            if asking::ask_about(context, name, kind) == Answer::No {
                return Some(Entered::Left);
            }
        }
        // The user cannot be asked about a name that cannot be looked at.
        Err(errno) if asking::needs_stat(context) => return left(*errno),
        // If unlinking fails, its error is the one to report.
        Ok(_) | Err(_) => {}
    }
    let unlinked = context.unlocking(name, |dir, name| context.remover.unlink(dir, name));
    match (unlinked, looked_at) {
        (Ok(()), looked_at) => {
            context.removed(name);
            let kind = looked_at.map_or(FileType::Unknown, |stat| sys::file_type(&stat));
            Some(Entered::Removed(Counted::of(kind)))
        }
        (Err(errno), Ok(stat)) if room::is_needed(errno) => {
            Some(Entered::NoRoom(sys::file_type(&stat), errno))
        }
        // On a read-only filesystem the kernel returns EROFS even for a missing name.
        (Err(Errno::ROFS), Err(errno)) | (Err(errno), _) => left(errno),
    }
}

fn begin_directory(context: &RemoveContext<'_>, operand: u32) -> Option<Entered> {
    let options = context.options;
    let path = &context.operands[operand as usize];
    let name = Name {
        parent: None,
        operand,
        name: path,
    };
    let refused = |refusal| {
        context.refuse(name, refusal);
        Some(Entered::Left)
    };
    match (options.recursive, options.empty_directories) {
        (true, _) => {}
        (false, true) if context.options.keeps_operands => {
            return refused(Refusal::NotRecursive);
        }
        (false, true) => return Some(remove_empty(context, name)),
        (false, false) => return refused(Refusal::NotRecursive),
    }
    let (_, last) = operand::split(path.to_bytes());
    if !context.options.keeps_operands && operand::is_dot_or_dot_dot(last) {
        return refused(Refusal::DotOrDotDot);
    }
    None
}

/// Removes an operand that is a directory, if it is empty. The kernel refuses all others, so nothing is
/// checked before.
fn remove_empty(context: &RemoveContext<'_>, name: Name<'_>) -> Entered {
    if context.asks && asking::ask_about_empty(context, name) == Answer::No {
        return Entered::Left;
    }
    directory::remove(context, name).unwrap_or_else(|errno| directory::left(context, name, errno))
}
