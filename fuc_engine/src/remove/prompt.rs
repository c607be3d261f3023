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

#[cfg(test)]
mod tests {
    use super::*;
    use Protection::{Writable, WriteProtected};

    const UNREADABLE: Errno = Errno::ACCESS;

    fn policy(ask: Ask) -> RemoveOp<'static> {
        RemoveOp::new().with(|options| options.ask = ask)
    }

    fn asks(step: Step, access: Protection) -> Prompt {
        Prompt::Ask(Inquiry {
            step,
            kind: Kind::Directory,
            access,
        })
    }

    fn asked(prompt: Prompt) -> Option<Step> {
        match prompt {
            Prompt::Ask(inquiry) => Some(inquiry.step),
            Prompt::Proceed => None,
            Prompt::Fail(errno) => panic!("failed: {errno}"),
        }
    }

    #[test]
    fn a_question_is_due_as_the_policy_says() {
        for (ask, access, is_due) in [
            (Ask::Never, Writable, false),
            (Ask::Never, WriteProtected, false),
            (Ask::IfWriteProtected, Writable, false),
            (Ask::IfWriteProtected, WriteProtected, true),
            (Ask::Always, Writable, true),
            (Ask::Always, WriteProtected, true),
        ] {
            let row = format!("{ask:?}, {access:?}");
            let policy = policy(ask);
            let removing = before_removing(&policy, access, || Ok(Kind::File)).unwrap();
            let entering = before_entering(&policy, access, || Ok(false));
            let trying = before_trying_unread(&policy, access, UNREADABLE);
            let empty = before_removing_empty(&policy, access, || Ok(true));
            assert_eq!(empty != Prompt::Proceed, is_due, "removing empty: {row}");
            assert_eq!(removing != Prompt::Proceed, is_due, "removing: {row}");
            assert_eq!(entering != Prompt::Proceed, is_due, "entering: {row}");
            assert_eq!(trying != Prompt::Proceed, is_due, "trying: {row}");
        }
    }

    #[test]
    fn nothing_is_looked_at_if_no_question_is_due() {
        let policy = policy(Ask::IfWriteProtected);
        let removing = before_removing(&policy, Writable, || panic!("looked at the name"));
        assert_eq!(removing, Ok(Prompt::Proceed));
        let entering = before_entering(&policy, Writable, || panic!("looked into the directory"));
        assert_eq!(entering, Prompt::Proceed);
    }

    #[test]
    fn the_question_before_entering_depends_on_the_content() {
        for (is_empty, expected) in [(Ok(true), Step::Remove), (Ok(false), Step::Enter)] {
            let prompt = before_entering(&policy(Ask::Always), Writable, || is_empty);
            assert_eq!(asked(prompt), Some(expected), "{is_empty:?}");
        }
        let unreadable = Err(UNREADABLE);
        let prompt = before_entering(&policy(Ask::Always), Writable, || unreadable);
        assert_eq!(prompt, Prompt::Fail(UNREADABLE));
    }

    #[test]
    fn a_directory_that_cannot_be_read_is_asked_about_only_if_it_must_be_empty_or_is_unlocked() {
        let ask = |step| asks(step, WriteProtected);
        for (empty_directories, unlock, expected) in [
            (false, false, Prompt::Fail(UNREADABLE)),
            (true, false, ask(Step::Remove)),
            (false, true, ask(Step::TryUnread)),
        ] {
            let mut policy = policy(Ask::Always);
            policy.empty_directories = empty_directories;
            policy.unlock = unlock;
            let prompt = before_trying_unread(&policy, WriteProtected, UNREADABLE);
            assert_eq!(prompt, expected, "{empty_directories} {unlock}");
        }
    }

    #[test]
    fn the_question_about_an_operand_that_must_be_empty_depends_on_the_content() {
        let ask = |step| asks(step, Writable);
        for (is_empty, expected) in [
            (Ok(true), ask(Step::Remove)),
            (Ok(false), Prompt::Fail(Errno::ISDIR)),
            (Err(UNREADABLE), ask(Step::TryUnread)),
        ] {
            let prompt = before_removing_empty(&policy(Ask::Always), Writable, || is_empty);
            assert_eq!(prompt, expected, "{is_empty:?}");
        }
    }

    #[test]
    fn a_name_that_cannot_be_looked_at_fails() {
        let prompt = before_removing(&policy(Ask::Always), Writable, || Err(Errno::NOENT));
        assert_eq!(prompt, Err(Errno::NOENT));
    }

    #[test]
    fn a_question_shows_what_is_known_of_the_name() {
        let prompt = before_removing(&policy(Ask::Always), WriteProtected, || Ok(Kind::Fifo));
        let Ok(Prompt::Ask(inquiry)) = prompt else {
            panic!("{prompt:?}");
        };
        let path = Path::new("dir/fifo");
        let expected = RemovalTarget {
            path,
            kind: Kind::Fifo,
            is_write_protected: true,
        };
        assert_eq!(inquiry.question(path), Question::Remove(expected));
    }
}
