//! Asks the user before a name is removed, and applies the answer.
//!
//! [`prompt`] decides, and [`ask_and_apply`] does the rest.
//!
//! To decline is not a failure. If a directory is not entered, all of its ancestors
//! stay too. After any other name that was declined, or that could not be asked about,
//! the user is still asked about its directory (or it is tried), as in `rm`. If the user
//! allows that, ENOTEMPTY is expected, and listing the directory again would not help.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::context::RemoveContext;
use super::node::{Consent, DECLINED, KEPT, Name, RemoveNode};
use super::prompt::{self, Inquiry, Prompt, Protection, Step};
use crate::observer::Kind;
use crate::sys::{self, At, Symlinks};

/// The consequence for the parent directory if a name must stay.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IfLeft {
    /// The parent and all directories above it stay without another question.
    KeepAncestors,
    /// The user is still asked about the parent, or its removal is tried.
    TryParent,
}

/// Asks about a name that is not a directory.
pub(super) fn ask_about(
    context: &RemoveContext<'_>,
    name: Name<'_>,
    kind: FileType,
    if_left: IfLeft,
) -> bool {
    let prompt = context.unlocking(name, |dir, name| prompt_to_remove(context, dir, name, kind));
    ask_and_apply(context, name, prompt, if_left)
}

/// Asks about an operand that is a directory and must be empty.
pub(super) fn ask_about_empty(context: &RemoveContext<'_>, name: Name<'_>) -> bool {
    let prompt = protection_of_directory(context, name).map(|access| {
        prompt::before_removing_empty(context.options, access, || {
            let dir = context.open_directory(name)?;
            sys::is_empty_directory(dir.as_fd())
        })
    });
    ask_and_apply(context, name, prompt, IfLeft::KeepAncestors)
}

/// Asks before the directory `name`, open as `dir`, is entered. Returns `None` if the
/// directory must be left alone.
pub(super) fn ask_to_enter(
    context: &RemoveContext<'_>,
    name: Name<'_>,
    dir: BorrowedFd<'_>,
) -> Option<Consent> {
    let prompt = protection_of_directory(context, name).map(|access| {
        prompt::before_entering(context.options, access, || sys::is_empty_directory(dir))
    });
    let consent = match prompt {
        Ok(Prompt::Ask(Inquiry {
            step: Step::Remove, ..
        })) => Consent::ToRemove,
        _ => Consent::ToEnter,
    };
    ask_and_apply(context, name, prompt, IfLeft::KeepAncestors).then_some(consent)
}

/// Decides about a directory that cannot be read because of `errno`.
pub(super) fn prompt_to_try_unread(
    context: &RemoveContext<'_>,
    name: Name<'_>,
    errno: Errno,
) -> Result<Prompt, Errno> {
    if !context.asks {
        return Ok(Prompt::Proceed);
    }
    context.on(name, |dir, name| sys::stat(dir, name, Symlinks::NoFollow))?;
    let access = protection_of_directory(context, name)?;
    Ok(prompt::before_trying_unread(context.options, access, errno))
}

/// Asks whether the directory of `node`, which is empty by now, may be
/// removed. `dir` is its parent directory.
#[cold]
pub(super) fn ask_about_emptied(
    context: &RemoveContext<'_>,
    node: &RemoveNode,
    dir: BorrowedFd<'_>,
) -> bool {
    if node.state.consent == Consent::ToRemove {
        return true;
    }
    let prompt = prompt_to_remove(context, dir, &node.place.name, FileType::Directory);
    ask_and_apply(context, Name::of(&node.place), prompt, IfLeft::TryParent)
}

/// Looks at a name that one call removes, and decides about it.
fn prompt_to_remove(
    context: &RemoveContext<'_>,
    dir: BorrowedFd<'_>,
    name: &CStr,
    listed: FileType,
) -> Result<Prompt, Errno> {
    let stat = || sys::stat(dir, name, Symlinks::NoFollow);
    // If another type cannot be looked at, `protection_of` fails in the same way.
    let looks_first = matches!(listed, FileType::Symlink | FileType::Unknown);
    let seen = looks_first.then(stat).transpose()?;
    let kind = seen.as_ref().map_or(listed, sys::file_type);
    let access = protection_of(context, dir, name, kind)?;
    prompt::before_removing(context.options, access, || {
        Ok(asked_kind(&seen.map_or_else(stat, Ok)?))
    })
}

/// Asks if `prompt` says so. Returns `true` if the name may be removed. Otherwise reports errors and applies `if_left`.
pub(super) fn ask_and_apply(
    context: &RemoveContext<'_>,
    name: Name<'_>,
    prompt: Result<Prompt, Errno>,
    if_left: IfLeft,
) -> bool {
    match prompt {
        Ok(Prompt::Proceed) => return true,
        Ok(Prompt::Ask(inquiry)) => {
            let path = context.path(name);
            if context.report.confirm(inquiry.question(&path)) {
                return true;
            }
        }
        // Like `rm`, treat a name that cannot be looked at as declined.
        Err(errno) if if_left == IfLeft::TryParent => {
            context.report_unless_ignorable(name, errno);
        }
        Ok(Prompt::Fail(errno)) | Err(errno) => {
            context.fail_and_keep(name, errno);
            return false;
        }
    }
    name.mark(match if_left {
        IfLeft::KeepAncestors => KEPT,
        IfLeft::TryParent => DECLINED,
    });
    false
}

/// Finds out whether the user may write to `name`. A symbolic link is never protected, and nothing
/// is protected from the superuser.
fn protection_of(
    context: &RemoveContext<'_>,
    dir: BorrowedFd<'_>,
    name: &CStr,
    kind: FileType,
) -> Result<Protection, Errno> {
    if kind == FileType::Symlink || context.is_superuser {
        return Ok(Protection::Writable);
    }
    let symlinks = Symlinks::NoFollow;
    match sys::check_writing(At {
        dir,
        name,
        symlinks,
    }) {
        Ok(()) => Ok(Protection::Writable),
        Err(Errno::ACCESS) => Ok(Protection::WriteProtected),
        Err(errno) => Err(errno),
    }
}

fn protection_of_directory(
    context: &RemoveContext<'_>,
    name: Name<'_>,
) -> Result<Protection, Errno> {
    context.on(name, |dir, name| {
        protection_of(context, dir, name, FileType::Directory)
    })
}

fn asked_kind(stat: &sys::Stat) -> Kind {
    match sys::file_type(stat) {
        FileType::RegularFile if stat.st_size == 0 => Kind::EmptyFile,
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        FileType::BlockDevice => Kind::BlockDevice,
        FileType::CharacterDevice => Kind::CharacterDevice,
        FileType::Unknown => Kind::Other,
    }
}
