//! The reports of a removal: what is gone, and what stays.

use std::ffi::CStr;
use std::path::PathBuf;

use rustix::io::Errno;

use super::context::Context;
use super::name::{Name, Parent};
use super::node::RemoveNode;
use crate::error::{Error, Operation, Refusal};
use crate::observer::Event;

impl Context<'_> {
    pub(super) fn path(&self, name: Name<'_>) -> PathBuf {
        match name.parent {
            Parent::Node(node) => {
                let place = &node.place;
                place.path_of(self.operand_path(place.operand), name.name)
            }
            Parent::Operand(operand) => self.operand_path(operand).to_path_buf(),
        }
    }

    /// Reports that a name other than a directory is gone.
    #[inline]
    pub(super) fn removed(&self, name: Name<'_>) {
        name.mark_removed();
        if self.report.wants_events() {
            // If a call took the name as a whole, each one would be stored in memory.
            match name.parent {
                Parent::Node(node) => self.emit_removed_entry(node, name.name),
                Parent::Operand(operand) => self.emit_removed_operand(operand),
            }
        }
    }

    #[cold]
    fn emit_removed_entry(&self, node: &RemoveNode, name: &CStr) {
        let path = self.path(Name::entry(node, name));
        self.report.event(Event::Removed(&path));
    }

    #[cold]
    fn emit_removed_operand(&self, operand: u32) {
        self.report
            .event(Event::Removed(self.operand_path(operand)));
    }

    /// Reports that a directory is gone.
    #[inline]
    pub(super) fn removed_directory(&self, name: Name<'_>) {
        name.mark_removed();
        if self.report.wants_events() {
            let Name { parent, name } = name;
            self.emit_removed_directory(Name { parent, name });
        }
    }

    #[cold]
    fn emit_removed_directory(&self, name: Name<'_>) {
        self.report.event(Event::RemovedDirectory(&self.path(name)));
    }

    /// Reports that a name could not be removed, and keeps its ancestors; does nothing
    /// if the error is [ignorable](Self::is_ignorable).
    pub(super) fn fail_and_keep(&self, name: Name<'_>, errno: Errno) {
        if !self.is_ignorable(errno) {
            name.keep();
            self.report_only(name, errno);
        }
    }

    /// Reports that a name could not be removed, and keeps nothing; does nothing if the
    /// error is [ignorable](Self::is_ignorable).
    pub(super) fn report_only(&self, name: Name<'_>, errno: Errno) {
        if !self.is_ignorable(errno) {
            let error = Error::failed(Operation::Remove, self.path(name), errno);
            self.report.failed(error);
        }
    }

    /// Reports that the removal of a name is refused.
    pub(super) fn refuse(&self, name: Name<'_>, refusal: Refusal) {
        self.report.failed(Error::refused(refusal, self.path(name)));
    }

    /// Returns `true` if the name is missing, and the options accept that.
    pub(super) fn is_ignorable(&self, errno: Errno) -> bool {
        self.options.ignore_missing && matches!(errno, Errno::NOENT | Errno::NOTDIR)
    }
}
