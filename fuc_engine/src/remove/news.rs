//! What a removal tells: what is gone, and what stays behind, and where that was.

use std::ffi::CStr;
use std::path::PathBuf;

use rustix::io::Errno;

use super::node::{RemoveDir, RemoveNode};
use super::tree::Removal;
use crate::error::{Error, Operation};
use crate::node::Place;
use crate::observer::Event;
use crate::walk::Walker;

impl Removal<'_> {
    /// A name that is no directory is gone: in `node`, or else an operand.
    #[inline]
    pub(super) fn removed(
        &self,
        node: Option<&RemoveNode>,
        operand: u32,
        name: &CStr,
        worker: &mut Walker<'_, '_, Self>,
    ) {
        worker.scratch.tally.entries += 1;
        worker.count(1);
        if let Some(node) = node {
            node.state.mark_shrunk();
        }
        if self.report.wants_events() {
            self.tell_removed(node, operand, name);
        }
    }

    #[cold]
    fn tell_removed(&self, node: Option<&RemoveNode>, operand: u32, name: &CStr) {
        self.report
            .event(Event::Removed(&self.path_of(node, operand, name)));
    }

    pub(super) fn removed_directory(
        &self,
        place: &Place<RemoveDir>,
        worker: &mut Walker<'_, '_, Self>,
    ) {
        worker.scratch.tally.entries += 1;
        worker.count(1);
        if let Some(parent) = &place.parent {
            parent.state.mark_shrunk();
        }
        if self.report.wants_events() {
            self.report
                .event(Event::RemovedDirectory(&self.path(place)));
        }
    }

    pub(super) fn path(&self, place: &Place<RemoveDir>) -> PathBuf {
        place.path(self.operand_path(place.operand))
    }

    pub(super) fn path_of(&self, node: Option<&RemoveNode>, operand: u32, name: &CStr) -> PathBuf {
        match node {
            Some(node) => {
                let place = &node.place;
                place.path_of(self.operand_path(place.operand), name)
            }
            None => self.operand_path(operand).to_path_buf(),
        }
    }

    /// A name stays behind, unless it is missing and that is as well.
    pub(super) fn fail(&self, node: Option<&RemoveNode>, operand: u32, name: &CStr, errno: Errno) {
        if !self.is_as_well(errno) {
            self.leave_behind(node);
            self.tell_failed(node, operand, name, errno);
        }
    }

    /// Reports a failure that does not keep what the name lies in, if it is one.
    pub(super) fn tell_failed(
        &self,
        node: Option<&RemoveNode>,
        operand: u32,
        name: &CStr,
        errno: Errno,
    ) {
        if self.is_as_well(errno) {
            return;
        }
        let path = self.path_of(node, operand, name);
        self.report
            .failed(Error::failed(Operation::Remove, path, errno));
    }

    pub(super) fn fail_place(&self, place: &Place<RemoveDir>, errno: Errno) {
        self.fail(place.parent.as_ref(), place.operand, &place.name, errno);
    }

    pub(super) fn leave_behind(&self, node: Option<&RemoveNode>) {
        if let Some(node) = node {
            node.state.keep();
        }
    }

    /// Missing, and that is no failure.
    pub(super) fn is_as_well(&self, errno: Errno) -> bool {
        self.options.ignore_missing && matches!(errno, Errno::NOENT | Errno::NOTDIR)
    }
}
