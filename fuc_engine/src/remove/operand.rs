//! Operands, and which directories are not entered.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::tree::{Removal, RemoveDir};
use super::{Ask, PreserveRoot};
use crate::error::{Error, Operation as Doing, Refusal};
use crate::node::Place;
use crate::operand;
use crate::sys::{self, CWD, Symlinks};
use crate::walk::{Task, Walker};

impl Removal<'_> {
    /// Removes an operand that is no directory, or queues it.
    pub(super) fn begin(&self, operand: u32, worker: &mut Walker<'_, '_, Self>) {
        let path = &self.operands[operand as usize];
        match sys::stat(CWD, path, Symlinks::NoFollow) {
            Ok(stat) if sys::file_type(&stat) == FileType::Directory => {
                return self.begin_directory(operand, worker);
            }
            Ok(stat) if self.asks() => {
                if !self.agrees_to_operand(&self.operand_place(operand), &stat) {
                    return;
                }
            }
            // Nobody can be asked about what cannot be looked at.
            Err(errno) if self.options.ask == Ask::Always => {
                return self.fail(None, operand, path, errno);
            }
            // Unlinking tells the reason that counts.
            Ok(_) | Err(_) => {}
        }
        match sys::unlink(CWD, path) {
            Ok(()) => self.removed(None, operand, path, worker),
            Err(errno) => self.fail(None, operand, path, errno),
        }
    }

    fn begin_directory(&self, operand: u32, worker: &mut Walker<'_, '_, Self>) {
        if !self.options.recursive && !self.options.empty_directories {
            return self.refuse(operand, Refusal::NotRecursive);
        }
        let (_, name) = operand::split(self.operands[operand as usize].to_bytes());
        let place = self.operand_place(operand);
        // Before anybody is asked in vain, and before any other reason, as rm does.
        if !self.options.recursive && self.holds_something(&place) {
            self.fail_place(&place, Errno::NOTEMPTY);
        } else if operand::is_dot_or_dot_dot(name) {
            self.refuse(operand, Refusal::DotOrDotDot);
        } else if self.options.recursive {
            worker.push(Task::Enter { place, pass: 0 });
        } else {
            self.remove_empty(&place, worker);
        }
    }

    fn operand_place(&self, operand: u32) -> Place<RemoveDir> {
        Place {
            parent: None,
            name: self.operands[operand as usize].clone(),
            operand,
        }
    }

    /// Removes an operand that is a directory, if nothing is in it.
    fn remove_empty(&self, place: &Place<RemoveDir>, worker: &mut Walker<'_, '_, Self>) {
        if self.asks() && !self.agrees_to_empty(place) {
            return;
        }
        match sys::remove_directory(CWD, &place.name) {
            Ok(()) => self.removed_directory(place, worker),
            Err(errno) => self.fail_place(place, errno),
        }
    }

    fn refuse(&self, operand: u32, refusal: Refusal) {
        let path = self.operand_path(operand).to_path_buf();
        self.report.failed(Error::refused(refusal, path));
    }

    /// Decides about a directory that was opened: `None`, it stays, and what is
    /// to be said of that has been said; else whether nobody need be asked any
    /// more when it is empty.
    pub(super) fn admit(
        &self,
        place: &Place<RemoveDir>,
        dir: &OwnedFd,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Option<bool> {
        if place.parent.is_none() && !self.admits_operand(place, dir.as_fd()) {
            return None;
        }
        let is_agreed = !self.asks() || self.agrees_to_enter(place, dir.as_fd())?;
        if self.options.one_file_system && !self.is_on_filesystem_of_operand(place, dir.as_fd()) {
            self.leave_filesystem(place, dir.as_fd(), worker);
            return None;
        }
        Some(is_agreed)
    }

    /// The same as far as it matters for a directory that cannot be read: it goes only if it is empty.
    pub(super) fn admits_unopened(&self, place: &Place<RemoveDir>) -> bool {
        if place.parent.is_some() || self.options.preserve_root != PreserveRoot::AllRoots {
            return true;
        }
        // If it cannot even be found, removing it tells why.
        let opened = sys::open_path_directory(CWD, &place.name);
        opened.map_or(true, |dir| self.admits_operand(place, dir.as_fd()))
    }

    fn admits_operand(&self, place: &Place<RemoveDir>, dir: BorrowedFd<'_>) -> bool {
        if self.options.preserve_root == PreserveRoot::No {
            return true;
        }
        match self.is_root(dir) {
            Ok(false) => {}
            Ok(true) => {
                self.refuse(place.operand, Refusal::Root);
                return false;
            }
            // Who can't tell must not delete.
            Err(errno) => {
                self.fail_place(place, errno);
                return false;
            }
        }
        if self.options.preserve_root == PreserveRoot::Root {
            return true;
        }
        let above = sys::stat(dir, c"..", Symlinks::NoFollow);
        match (above, sys::stat_open(dir)) {
            (Ok(above), Ok(dir)) if above.st_dev == dir.st_dev => true,
            (Ok(_), Ok(_)) => {
                self.refuse(place.operand, Refusal::MountPoint);
                false
            }
            (Err(errno), _) | (_, Err(errno)) => {
                let path = self.operand_path(place.operand).to_path_buf();
                self.report
                    .failed(Error::failed(Doing::StatParent, path, errno));
                false
            }
        }
    }

    /// Whether an open operand is `/`.
    fn is_root(&self, operand: BorrowedFd<'_>) -> Result<bool, Errno> {
        let root = match self.root.get() {
            Some(root) => *root,
            None => {
                let root = self
                    .descriptors
                    .making_room(|| sys::open_path_directory(CWD, c"/"))?;
                let identity = sys::stat_directory(root.as_fd())?.identity;
                *self.root.get_or_init(|| identity)
            }
        };
        Ok(root.same_file(sys::stat_directory(operand)?.identity))
    }

    /// Remembers an operand's filesystem, and compares those of directories below it.
    fn is_on_filesystem_of_operand(&self, place: &Place<RemoveDir>, dir: BorrowedFd<'_>) -> bool {
        let device = sys::stat_open(dir).map(|stat| stat.st_dev);
        let remembered = &self.devices[place.operand as usize];
        match device {
            Ok(device) => *remembered.get_or_init(|| device) == device,
            // Who can't tell must not delete.
            Err(_) => false,
        }
    }

    /// Skips a directory on another filesystem. One that is empty may yet be
    /// removable, as a subvolume is, and a mount point is not.
    fn leave_filesystem(
        &self,
        place: &Place<RemoveDir>,
        dir: BorrowedFd<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) {
        if sys::is_empty_directory(dir) == Ok(true) {
            return match self.at(place, sys::remove_directory) {
                Ok(()) => self.removed_directory(place, worker),
                Err(errno) => self.fail_place(place, errno),
            };
        }
        self.leave_behind(place.parent.as_ref());
        let path = self.path(place);
        self.report
            .failed(Error::refused(Refusal::OtherFilesystem, path));
    }
}
