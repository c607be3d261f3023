//! Decides whether the user is asked before something goes, and what the question is.
//!
//! The functions here make no system call. A fact that costs one comes as a closure,
//! which is called only if the decision depends on it.
//!
//! | subject | question, if one is due |
//! |---|---|
//! | a file, or a directory that is empty by now | remove it? |
//! | an empty directory, before it is entered | remove it? This is the only question. |
//! | a directory with entries, before it is entered | enter it? |
//! | a directory that cannot be entered | none: it fails. With `empty_directories`: remove it? With `unlock`: try it? |
//! | an operand that must be an empty directory | remove it? If it has entries, it fails. If it cannot be read: try to remove it? |

use std::path::Path;

use rustix::io::Errno;

use super::options::{Ask, RemoveOp};
use crate::observer::{Kind, Question, RemovalTarget};

/// The protection of a name by its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    Writable,
    WriteProtected,
}

/// How to go on with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prompt {
    /// Go on without a question.
    Proceed,
    Ask(Inquiry),
    /// Report this error, and leave the name alone.
    Fail(Errno),
}

/// A [`Question`] without the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inquiry {
    pub(super) step: Step,
    kind: Kind,
    access: Protection,
}

/// The step that a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Remove,
    Enter,
    /// Try to remove a directory that cannot be read.
    TryUnread,
}

impl Inquiry {
    pub(super) fn question<'a>(&self, path: &'a Path) -> Question<'a> {
        let target = RemovalTarget {
            path,
            kind: self.kind,
            is_write_protected: self.access == Protection::WriteProtected,
        };
        match self.step {
            Step::Remove => Question::Remove(target),
            Step::Enter => Question::Descend(target),
            Step::TryUnread => Question::RemoveInaccessible(target),
        }
    }
}

fn is_question_due(options: &RemoveOp<'_>, access: Protection) -> bool {
    match options.ask {
        Ask::Never => false,
        Ask::IfWriteProtected => access == Protection::WriteProtected,
        Ask::Always => true,
    }
}

/// Decides about a name that one call removes: a file, or a directory that is empty.
pub(super) fn before_removing(
    options: &RemoveOp<'_>,
    access: Protection,
    kind: impl FnOnce() -> Result<Kind, Errno>,
) -> Result<Prompt, Errno> {
    if !is_question_due(options, access) {
        return Ok(Prompt::Proceed);
    }
    Ok(Prompt::Ask(Inquiry {
        step: Step::Remove,
        kind: kind()?,
        access,
    }))
}

/// Decides about a directory. `step` is called if a question is due. It returns what is asked, or why the directory is left
/// alone.
fn about_directory(
    options: &RemoveOp<'_>,
    access: Protection,
    step: impl FnOnce() -> Result<Step, Errno>,
) -> Prompt {
    if !is_question_due(options, access) {
        return Prompt::Proceed;
    }
    match step() {
        Ok(step) => Prompt::Ask(Inquiry {
            step,
            kind: Kind::Directory,
            access,
        }),
        Err(errno) => Prompt::Fail(errno),
    }
}

/// Decides about a directory that is about to be entered.
pub(super) fn before_entering(
    options: &RemoveOp<'_>,
    access: Protection,
    is_empty: impl FnOnce() -> Result<bool, Errno>,
) -> Prompt {
    about_directory(options, access, || {
        Ok(match is_empty()? {
            true => Step::Remove,
            false => Step::Enter,
        })
    })
}

/// Decides about an operand that is a directory and must be empty.
pub(super) fn before_removing_empty(
    options: &RemoveOp<'_>,
    access: Protection,
    is_empty: impl FnOnce() -> Result<bool, Errno>,
) -> Prompt {
    about_directory(options, access, || match is_empty() {
        Ok(true) => Ok(Step::Remove),
        // A question would be pointless. `rm` reports this error, and not ENOTEMPTY.
        Ok(false) => Err(Errno::ISDIR),
        Err(_) => Ok(Step::TryUnread),
    })
}

/// Decides about a directory that could not be entered because of `errno`, but may be empty and thus removable.
pub(super) fn before_trying_unread(
    options: &RemoveOp<'_>,
    access: Protection,
    errno: Errno,
) -> Prompt {
    about_directory(options, access, || {
        if options.empty_directories {
            Ok(Step::Remove)
        } else if options.unlock {
            // If it has entries, it is unlocked, and the user is asked about these.
            Ok(Step::TryUnread)
        } else {
            // The directory may have entries, and the user cannot be asked about these.
            Err(errno)
        }
    })
}
