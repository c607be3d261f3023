//! Operands, and which directories are not entered.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::PreserveRoot;
use super::tree::{Removal, RemoveDir};
use crate::error::{Error, Operation as Doing, Refusal};
use crate::node::Place;
use crate::operand;
use crate::sys::{self, CWD, Symlinks};
use crate::walk::{Task, Walker};

impl Removal<'_> {
    /// Removes an operand that is no directory, or queues it.
    pub(super) fn begin(&self, operand: u32, worker: &mut Walker<'_, '_, Self>) {
        let path = &self.operands[operand as usize];
        let stat = sys::stat(CWD, path, Symlinks::NoFollow);
        match &stat {
            Ok(stat) if sys::file_type(stat) == FileType::Directory => {
                return self.begin_directory(operand, worker);
            }
            _ => {}
        }
        // If it cannot even be looked at, unlinking tells the reason that counts.
        if let Ok(stat) = &stat
            && self.asks()
        {
            let place = self.operand_place(operand);
            if !self.agrees_to_operand(&place, stat) {
                return;
            }
        }
        match sys::unlink(CWD, path) {
            Ok(()) => self.removed(None, operand, path, worker),
            Err(errno) => self.fail(None, operand, path, errno),
        }
    }

    fn begin_directory(&self, operand: u32, worker: &mut Walker<'_, '_, Self>) {
        let path = &self.operands[operand as usize];
        let (_, name) = operand::split(path.to_bytes());
        if !self.options.recursive && !self.options.empty_directories {
            self.refuse(operand, Refusal::NotRecursive);
        } else if operand::is_dot_or_dot_dot(name) {
            self.refuse(operand, Refusal::DotOrDotDot);
        } else {
            let place = self.operand_place(operand);
            if self.options.recursive {
                worker.push(Task::Enter { place, pass: 0 });
            } else {
                self.remove_empty(&place, worker);
            }
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
    pub(super) fn admit(&self, place: &Place<RemoveDir>, dir: &OwnedFd) -> Option<bool> {
        if place.parent.is_none() && !self.admits_operand(place, dir.as_fd()) {
            return None;
        }
        let is_agreed = !self.asks() || self.agrees_to_enter(place, dir.as_fd())?;
        if self.options.one_file_system && !self.is_on_filesystem_of_operand(place, dir.as_fd()) {
            return None;
        }
        Some(is_agreed)
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

    /// Remembers an operand's filesystem; what is mounted below it is left alone.
    fn is_on_filesystem_of_operand(&self, place: &Place<RemoveDir>, dir: BorrowedFd<'_>) -> bool {
        let device = match sys::stat_open(dir) {
            Ok(stat) => stat.st_dev,
            Err(errno) => {
                self.fail_place(place, errno);
                return false;
            }
        };
        let of_operand = *self.devices[place.operand as usize].get_or_init(|| device);
        if device != of_operand {
            self.leave_behind(place.parent.as_ref());
            let path = self.path(place);
            self.report
                .failed(Error::refused(Refusal::OtherFilesystem, path));
        }
        device == of_operand
    }
}
