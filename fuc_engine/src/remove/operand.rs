//! Operands, and which directories are not entered.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::node::{Consent, RemoveDir};
use super::tree::Removal;
use crate::error::{Error, Operation, Refusal};
use crate::node::Place;
use crate::operand;
use crate::sys::{self, CWD, Symlinks};
use crate::walk::{Task, Walker};

impl Removal<'_> {
    /// Removes an operand that is no directory, or queues it.
    pub(super) fn begin(&self, operand: u32, worker: &mut Walker<'_, '_, Self>) {
        let path = &self.operands[operand as usize];
        let looked_at = sys::stat(CWD, path, Symlinks::NoFollow);
        match &looked_at {
            Ok(stat) if sys::file_type(stat) == FileType::Directory => {
                return self.begin_directory(operand, worker);
            }
            Ok(stat) if self.asks => {
                let place = self.operand_place(operand);
                if !self.agrees_to_operand(&place, sys::file_type(stat)) {
                    return;
                }
            }
            // Nobody can be asked about what cannot be looked at.
            Err(errno) if self.looks_at_all() => return self.fail(None, operand, path, *errno),
            // Unlinking tells the reason that counts.
            Ok(_) | Err(_) => {}
        }
        match (sys::unlink(CWD, path), looked_at) {
            (Ok(()), _) => self.removed(None, operand, path, worker),
            // The kernel says this of a missing name as well.
            (Err(Errno::ROFS), Err(errno)) | (Err(errno), _) => {
                self.fail(None, operand, path, errno);
            }
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
        let agrees = || !self.asks || self.agrees_to_operand(place, FileType::Directory);
        if !self.admits_unopened(place) || !agrees() {
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

    /// What may be done with a directory that was opened.
    pub(super) fn admit(
        &self,
        place: &Place<RemoveDir>,
        pass: u8,
        dir: BorrowedFd<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Consent {
        if place.parent.is_none() && !self.admits_operand(place, dir) {
            return Consent::None;
        }
        let consent = match (self.asks, pass) {
            (false, _) => Consent::ToRemove,
            (true, 0) => self.agrees_to_enter(place, dir),
            // Nobody is asked again about what is listed again.
            (true, _) => Consent::ToEnter,
        };
        if consent != Consent::None
            && self.options.one_file_system
            && !self.stays_on_filesystem(place, dir, worker)
        {
            return Consent::None;
        }
        consent
    }

    /// Whether an operand that is not entered may be removed if it is an empty directory.
    pub(super) fn admits_unopened(&self, place: &Place<RemoveDir>) -> bool {
        if place.parent.is_some() || !self.options.preserve_mount_points {
            return true;
        }
        let opened = self
            .descriptors
            .making_room(|| sys::open_path_directory(CWD, &place.name, Symlinks::NoFollow));
        match opened {
            Ok(dir) => self.admits_operand(place, dir.as_fd()),
            // No directory, or none any more.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => true,
            Err(errno) => {
                self.fail_place(place, errno);
                false
            }
        }
    }

    fn admits_operand(&self, place: &Place<RemoveDir>, dir: BorrowedFd<'_>) -> bool {
        if self.options.preserve_root {
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
        }
        if !self.options.preserve_mount_points {
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
                    .failed(Error::failed(Operation::StatParent, path, errno));
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
                    .making_room(|| sys::open_path_directory(CWD, c"/", Symlinks::NoFollow))?;
                let identity = sys::stat_directory(root.as_fd())?.identity;
                *self.root.get_or_init(|| identity)
            }
        };
        Ok(root.file() == sys::stat_directory(operand)?.identity.file())
    }

    /// Remembers an operand's filesystem, and skips directories below it that are on another.
    fn stays_on_filesystem(
        &self,
        place: &Place<RemoveDir>,
        dir: BorrowedFd<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> bool {
        let device = match sys::stat_open(dir) {
            Ok(stat) => stat.st_dev,
            // Who can't tell must not delete.
            Err(errno) => {
                self.fail_place(place, errno);
                return false;
            }
        };
        let remembered = &self.devices[place.operand as usize];
        if *remembered.get_or_init(|| device) == device {
            return true;
        }
        if sys::is_empty_directory(dir) == Ok(true) {
            // It may yet be removable, as a subvolume is, and a mount point is not.
            match self.at(place, sys::remove_directory) {
                Ok(()) => self.removed_directory(place, worker),
                Err(errno) => self.fail_place(place, errno),
            }
        } else {
            self.leave_behind(place.parent.as_ref());
            let path = self.path(place);
            self.report
                .failed(Error::refused(Refusal::OtherFilesystem, path));
        }
        false
    }
}
