//! What somebody is asked about before it goes.
//!
//! | | always | only if write-protected |
//! |---|---|---|
//! | a file | before it is unlinked | the same |
//! | a directory with something in it | before it is entered, and again when it is empty | the same |
//! | an empty directory | once | the same |
//! | a directory that cannot be read | fails; with `empty_directories`, once | the same |
//!
//! Symbolic links are never write-protected, and to the superuser nothing is. To decline is no failure. A directory
//! that is not entered keeps all that it lies in. After any other name that was
//! declined, or that could not be asked about, its directory is asked about (or
//! tried) all the same, as `rm` does: to say yes to that is the failure that one
//! expects, and listing the directory again would not help.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::Ask;
use super::node::{Consent, RemoveDir, RemoveNode};
use super::tree::{Removal, is_directory};
use crate::node::Place;
use crate::observer::{Answer, Kind, Question, RemovalTarget};
use crate::sys::{self, CWD, Symlinks};

/// What to do with an entry that is not listed as a directory.
pub(super) enum Verdict {
    Remove,
    /// Leave it alone. If there is anything to report, that is done.
    Leave,
    /// It is a directory: enter it, which asks about it.
    Enter,
}

/// What is known of the content of a directory.
enum Content {
    Nothing,
    Something,
    Unreadable(Errno),
}

/// Whether a name is one to ask about.
enum Due {
    Nothing,
    Question { is_write_protected: bool },
}

impl Removal<'_> {
    /// Whether every name is looked at before it is removed.
    pub(super) fn looks_at_all(&self) -> bool {
        match self.options.ask {
            Ask::Never => false,
            Ask::IfWriteProtected => !self.may_write_anything,
            Ask::Always => true,
        }
    }

    fn is_write_protected(&self, dir: BorrowedFd<'_>, name: &CStr) -> Result<bool, Errno> {
        if self.may_write_anything {
            return Ok(false);
        }
        Ok(!sys::may_write(dir, name, Symlinks::NoFollow)?)
    }

    fn due(&self, dir: BorrowedFd<'_>, name: &CStr, kind: FileType) -> Result<Due, Errno> {
        let is_write_protected = kind != FileType::Symlink && self.is_write_protected(dir, name)?;
        if is_write_protected || self.options.ask == Ask::Always {
            Ok(Due::Question { is_write_protected })
        } else {
            Ok(Due::Nothing)
        }
    }

    /// Asks about something that can be unlinked, or is an empty directory.
    fn agrees_to_name(
        &self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        kind: FileType,
        path: impl FnOnce() -> PathBuf,
    ) -> Result<Answer, Errno> {
        // A symbolic link that cannot be looked at fails as others do, whom `due` looks at.
        let looks_first = matches!(kind, FileType::Symlink | FileType::Unknown);
        let stat = || sys::stat(dir, name, Symlinks::NoFollow);
        let seen = looks_first.then(stat).transpose()?;
        let kind = seen.as_ref().map_or(kind, sys::file_type);
        let Due::Question { is_write_protected } = self.due(dir, name, kind)? else {
            return Ok(Answer::Yes);
        };
        let stat = seen.map_or_else(stat, Ok)?;
        Ok(self.report.confirm(Question::Remove(RemovalTarget {
            path: &path(),
            kind: kind_of(&stat),
            is_write_protected,
        })))
    }

    /// Asks about an entry that is not listed as a directory.
    #[cold]
    pub(super) fn ask_about_entry(
        &self,
        node: &RemoveNode,
        dir: BorrowedFd<'_>,
        name: &CStr,
        kind: FileType,
    ) -> Verdict {
        if kind == FileType::Unknown && is_directory(dir, name) {
            return Verdict::Enter;
        }
        let path = || self.path_of(Some(node), node.place.operand, name);
        match self.agrees_to_name(dir, name, kind, path) {
            Ok(Answer::Yes) => return Verdict::Remove,
            Ok(Answer::No) => {}
            Err(errno) => self.tell_failed(Some(node), node.place.operand, name, errno),
        }
        node.state.mark_declined();
        Verdict::Leave
    }

    /// Whether an operand that is no directory, or an empty one, may go.
    pub(super) fn agrees_to_operand(&self, place: &Place<RemoveDir>, kind: FileType) -> bool {
        if kind == FileType::Directory
            && let Content::Unreadable(errno) = self.content_of(place)
        {
            return self.agrees_to_try(place, errno);
        }
        let path = || self.path(place);
        let answer = self.agrees_to_name(CWD, &place.name, kind, path);
        self.obeys(place, answer)
    }

    /// Whether something is in a directory, as far as this process may know.
    pub(super) fn holds_something(&self, place: &Place<RemoveDir>) -> bool {
        matches!(self.content_of(place), Content::Something)
    }

    fn content_of(&self, place: &Place<RemoveDir>) -> Content {
        match self.open(place) {
            Ok(dir) => content(dir.as_fd()),
            Err(errno) => Content::Unreadable(errno),
        }
    }

    /// Asks before a directory is entered.
    pub(super) fn agrees_to_enter(&self, place: &Place<RemoveDir>, dir: BorrowedFd<'_>) -> Consent {
        let due = self.at(place, |dir, name| self.due(dir, name, FileType::Directory));
        let is_write_protected = match due {
            Ok(Due::Nothing) => return Consent::ToEnter,
            Ok(Due::Question { is_write_protected }) => is_write_protected,
            Err(errno) => {
                self.fail_place(place, errno);
                return Consent::None;
            }
        };
        let path = &self.path(place);
        let doomed = doomed_directory(path, is_write_protected);
        let (question, consent) = match content(dir) {
            Content::Nothing => (Question::Remove(doomed), Consent::ToRemove),
            Content::Something => (Question::Descend(doomed), Consent::ToEnter),
            Content::Unreadable(errno) => {
                self.fail_place(place, errno);
                return Consent::None;
            }
        };
        if self.obeys(place, Ok(self.report.confirm(question))) {
            consent
        } else {
            Consent::None
        }
    }

    /// Asks about what is listed as a directory, or was one, and could not be opened as one.
    pub(super) fn agrees_to_unopened(&self, place: &Place<RemoveDir>, errno: Errno) -> bool {
        match errno {
            Errno::ACCESS => self.agrees_to_try(place, errno),
            // It is something else by now.
            Errno::NOTDIR | Errno::LOOP => {
                let path = || self.path(place);
                let answer = self.at(place, |dir, name| {
                    self.agrees_to_name(dir, name, FileType::Unknown, path)
                });
                self.obeys(place, answer)
            }
            _ => true,
        }
    }

    /// Whether to try the removal of a directory that cannot be read.
    fn agrees_to_try(&self, place: &Place<RemoveDir>, errno: Errno) -> bool {
        let due = self.at(place, |dir, name| {
            sys::stat(dir, name, Symlinks::NoFollow)?;
            self.due(dir, name, FileType::Directory)
        });
        let path = &self.path(place);
        let answer = match due {
            Ok(Due::Nothing) => return true,
            Ok(Due::Question { is_write_protected }) if self.options.empty_directories => {
                let doomed = doomed_directory(path, is_write_protected);
                self.report.confirm(Question::RemoveInaccessible(doomed))
            }
            // It may hold something, which nobody could be asked about.
            Ok(Due::Question { .. }) => {
                self.fail_place(place, errno);
                return false;
            }
            // It is not even known to be a directory: to rm, a name like any other.
            Err(errno) => {
                self.tell_failed(place.parent.as_ref(), place.operand, &place.name, errno);
                Answer::No
            }
        };
        if let (Answer::No, Some(parent)) = (answer, &place.parent) {
            parent.state.mark_declined();
        }
        answer == Answer::Yes
    }

    /// Whether the directory of `node`, which is `dir`'s entry and empty by now, may go.
    pub(super) fn agrees_to_finish(&self, node: &RemoveNode, dir: BorrowedFd<'_>) -> Answer {
        if !self.asks || node.state.consent == Consent::ToRemove {
            return Answer::Yes;
        }
        let Place {
            parent,
            name,
            operand,
        } = &node.place;
        let path = || self.path(&node.place);
        let answer = self
            .agrees_to_name(dir, name, FileType::Directory, path)
            .unwrap_or_else(|errno| {
                self.tell_failed(parent.as_ref(), *operand, name, errno);
                Answer::No
            });
        if let (Answer::No, Some(parent)) = (answer, parent) {
            parent.state.mark_declined();
        }
        answer
    }

    /// Leaves behind what was declined; reports what could not be asked about.
    fn obeys(&self, place: &Place<RemoveDir>, answer: Result<Answer, Errno>) -> bool {
        match answer {
            Ok(Answer::Yes) => return true,
            Ok(Answer::No) => self.leave_behind(place.parent.as_ref()),
            Err(errno) => self.fail_place(place, errno),
        }
        false
    }
}

fn doomed_directory(path: &Path, is_write_protected: bool) -> RemovalTarget<'_> {
    RemovalTarget {
        path,
        kind: Kind::Directory,
        is_write_protected,
    }
}

fn content(dir: BorrowedFd<'_>) -> Content {
    match sys::is_empty_directory(dir) {
        Ok(true) => Content::Nothing,
        Ok(false) => Content::Something,
        Err(errno) => Content::Unreadable(errno),
    }
}

fn kind_of(stat: &sys::Stat) -> Kind {
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
