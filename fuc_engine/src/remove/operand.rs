//! Removes operands, or hands them over to be entered.

use rustix::fs::FileType;
use rustix::io::Errno;

use super::asking;
use super::context::RemoveContext;
use super::directory::{self, Entered};
use super::node::Name;
use crate::error::Refusal;
use crate::paths;
use crate::sys::{self, Symlinks};

/// Removes an operand. Returns `None` if it is a directory to enter.
pub(super) fn begin_operand(context: &RemoveContext<'_>, name: Name<'_>) -> Option<Entered> {
    let left = |errno| Some(directory::left(context, name, errno));
    let looked_at = sys::stat(context.base, name.name, Symlinks::NoFollow);
    match &looked_at {
        Ok(stat) if sys::is_directory(stat) => return begin_directory(context, name),
        _ if context.options.keeps_operands => {
            return left(looked_at.err().unwrap_or(Errno::NOTDIR));
        }
        Ok(stat) if context.asks => {
            let kind = sys::file_type(stat);
            if !asking::ask_about(context, name, kind) {
                return Some(Entered::Left);
            }
        }
        // The user cannot be asked about a name that cannot be looked at.
        Err(errno) if asking::needs_stat(context) => return left(*errno),
        // If unlinking fails, its error is the one to report.
        Ok(_) | Err(_) => {}
    }
    let kind = looked_at.as_ref().map_or(FileType::Unknown, sys::file_type);
    match (directory::try_remove(context, name, kind), looked_at) {
        (Ok(removed), _) => Some(removed),
        // Two calls agree, so the name need not be looked at again.
        (Err(Errno::NOENT), Err(Errno::NOENT)) if context.options.ignore_missing => {
            Some(Entered::Left)
        }
        // On a read-only filesystem the kernel returns EROFS even for a missing name.
        (Err(Errno::ROFS), Err(errno)) | (Err(errno), _) => left(errno),
    }
}

fn begin_directory(context: &RemoveContext<'_>, name: Name<'_>) -> Option<Entered> {
    let options = context.options;
    let refused = |refusal| {
        context.refuse(name, refusal);
        Some(Entered::Left)
    };
    if !options.recursive {
        return match options.empty_directories && !options.keeps_operands {
            true => Some(remove_empty(context, name)),
            false => refused(Refusal::NotRecursive),
        };
    }
    let (_, last) = paths::split(name.name.to_bytes());
    if !options.keeps_operands && paths::is_dot_or_dot_dot(last) {
        return refused(Refusal::DotOrDotDot);
    }
    None
}

/// Removes an operand that is a directory, if it is empty. The kernel refuses all others, so nothing is
/// checked before.
fn remove_empty(context: &RemoveContext<'_>, name: Name<'_>) -> Entered {
    if context.asks && !asking::ask_about_empty(context, name) {
        return Entered::Left;
    }
    directory::remove(context, name, FileType::Directory)
}
