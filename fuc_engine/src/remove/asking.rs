//! What somebody is asked about before it goes.
//!
//! | | always | only if write-protected |
//! |---|---|---|
//! | a file | before it is unlinked | the same |
//! | a directory with something in it | before it is entered, and again when it is empty | the same |
//! | an empty directory | once | the same |
//! | a directory that cannot be read | once | never: its emptiness is tried |
//!
//! Symbolic links are never write-protected. To decline is no failure. A directory
//! that is not entered keeps all that it lies in. After any other name that was
//! declined, or that could not be asked about, its directory is asked about (or tried) all the same, as `rm` does:
//! to say yes to that is the failure that one expects.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::Ask;
use super::tree::{Removal, RemoveDir, RemoveNode, is_directory};
use crate::node::Place;
use crate::observer::{Answer, Doomed, Kind, Question};
use crate::sys::{self, CWD, Entry, Symlinks};
use crate::walk::{self, Walker};

/// What is known of the content of a directory.
enum Content {
    Nothing,
    Something,
    Unreadable,
}

impl Removal<'_> {
    pub(super) fn asks(&self) -> bool {
        self.options.ask != Ask::Never
    }

    /// Whether there is anything to ask about a name that is no symbolic link, and
    /// if so, whether it is write-protected.
    fn protection(&self, dir: BorrowedFd<'_>, name: &CStr) -> Result<Option<bool>, Errno> {
        let is_protected = sys::is_write_protected(dir, name)?;
        Ok((is_protected || self.options.ask == Ask::Always).then_some(is_protected))
    }

    fn confirm(&self, question: Question<'_>) -> Answer {
        self.report.confirm(question)
    }

    /// Asks about something that can be unlinked, or is an empty directory.
    fn agrees_to_name(
        &self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        kind: FileType,
        path: impl FnOnce() -> std::path::PathBuf,
    ) -> Result<Answer, Errno> {
        let protection = match kind {
            FileType::Symlink => {
                // What cannot be looked at fails here, as other kinds do.
                sys::stat(dir, name, Symlinks::NoFollow)?;
                (self.options.ask == Ask::Always).then_some(false)
            }
            _ => self.protection(dir, name)?,
        };
        let Some(is_write_protected) = protection else {
            return Ok(Answer::Yes);
        };
        let stat = sys::stat(dir, name, Symlinks::NoFollow)?;
        let path = &path();
        Ok(self.confirm(Question::Remove(Doomed {
            path,
            kind: kind_of(&stat),
            is_write_protected,
        })))
    }

    /// Whether an entry that is listed as no directory may go. If it is one after all, it is queued.
    #[cold]
    pub(super) fn agrees_to_entry(
        &self,
        node: &RemoveNode,
        dir: BorrowedFd<'_>,
        entry: Entry<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> bool {
        if entry.kind == FileType::Unknown && is_directory(dir, entry.name) {
            walk::queue(node, entry.name, worker);
            return false;
        }
        let path = || self.path_of(Some(node), node.place.operand, entry.name);
        match self.agrees_to_name(dir, entry.name, entry.kind, path) {
            Ok(Answer::Yes) => true,
            Ok(Answer::No) => false,
            Err(errno) => {
                self.tell_failed(Some(node), node.place.operand, entry.name, errno);
                false
            }
        }
    }

    pub(super) fn agrees_to_operand(&self, place: &Place<RemoveDir>, stat: &sys::Stat) -> bool {
        let path = || self.path(place);
        self.obeys(
            place,
            self.agrees_to_name(CWD, &place.name, sys::file_type(stat), path),
        )
    }

    /// Whether something is in a directory, as far as this process may know.
    pub(super) fn holds_something(&self, place: &Place<RemoveDir>) -> bool {
        let opened = sys::open_directory(CWD, &place.name, Symlinks::NoFollow);
        opened.is_ok_and(|dir| matches!(content(dir.as_fd()), Content::Something))
    }

    /// Whether an operand that is an empty directory may go.
    pub(super) fn agrees_to_empty(&self, place: &Place<RemoveDir>) -> bool {
        let path = || self.path(place);
        self.obeys(
            place,
            self.agrees_to_name(CWD, &place.name, FileType::Directory, path),
        )
    }

    /// Asks before a directory is entered: `None`, it is not; else whether it
    /// was empty, and may go without another question.
    pub(super) fn agrees_to_enter(
        &self,
        place: &Place<RemoveDir>,
        dir: BorrowedFd<'_>,
    ) -> Option<bool> {
        let protection = match self.at(place, |dir, name| self.protection(dir, name)) {
            Ok(protection) => protection,
            Err(errno) => {
                self.fail_place(place, errno);
                return None;
            }
        };
        let Some(is_write_protected) = protection else {
            return Some(false);
        };
        let path = &self.path(place);
        let doomed = doomed_directory(path, is_write_protected);
        let (question, is_empty) = match content(dir) {
            Content::Nothing => (Question::Remove(doomed), true),
            Content::Something => (Question::Descend(doomed), false),
            Content::Unreadable => (Question::RemoveInaccessible(doomed), true),
        };
        self.obeys(place, Ok(self.confirm(question)))
            .then_some(is_empty)
    }

    /// Asks whether to try the removal of a directory that cannot be opened.
    pub(super) fn agrees_to_unopened(&self, place: &Place<RemoveDir>, errno: Errno) -> bool {
        if errno != Errno::ACCESS || self.options.ask != Ask::Always {
            return true;
        }
        let seen = self.at(place, |dir, name| {
            sys::stat(dir, name, Symlinks::NoFollow)?;
            sys::is_write_protected(dir, name)
        });
        match seen {
            Ok(is_write_protected) => {
                let path = &self.path(place);
                let doomed = doomed_directory(path, is_write_protected);
                let answer = self.confirm(Question::RemoveInaccessible(doomed));
                self.obeys(place, Ok(answer))
            }
            Err(errno) => {
                self.tell_failed(place.parent.as_ref(), place.operand, &place.name, errno);
                false
            }
        }
    }

    /// Whether the directory of `node`, which is `dir`'s entry and empty by now, may go.
    pub(super) fn agrees_to_finish(&self, node: &RemoveNode, dir: BorrowedFd<'_>) -> Answer {
        if !self.asks() || node.mark.is_agreed {
            return Answer::Yes;
        }
        let Place {
            parent,
            name,
            operand,
        } = &node.place;
        let path = || self.path(&node.place);
        self.agrees_to_name(dir, name, FileType::Directory, path)
            .unwrap_or_else(|errno| {
                self.tell_failed(parent.as_ref(), *operand, name, errno);
                Answer::No
            })
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

    pub(super) fn leave_behind(&self, parent: Option<&RemoveNode>) {
        if let Some(parent) = parent {
            parent.keep();
        }
    }
}

fn doomed_directory(path: &Path, is_write_protected: bool) -> Doomed<'_> {
    Doomed {
        path,
        kind: Kind::Directory,
        is_write_protected,
    }
}

fn content(dir: BorrowedFd<'_>) -> Content {
    match sys::is_empty_directory(dir) {
        Ok(true) => Content::Nothing,
        Ok(false) => Content::Something,
        Err(_) => Content::Unreadable,
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
