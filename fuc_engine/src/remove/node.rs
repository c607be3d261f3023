//! The state that a removal keeps for each directory in flight.

use std::ffi::CStr;
use std::sync::Arc;

use crate::node::{Dir, Marks, Node, Place, Side};
use crate::sys::DirSlot;

pub(super) struct RemoveDir(pub(super) DirSlot);

impl Dir for RemoveDir {
    type State = State;

    fn slot(&self, _side: Side) -> &DirSlot {
        &self.0
    }
}

pub(super) type RemoveNode = Arc<Node<RemoveDir>>;
pub(super) type RemovePlace = Place<RemoveDir>;

/// The user's consent to the removal of a directory that is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consent {
    /// Ask again before the directory is removed.
    ToEnter,
    /// Remove the directory without another question.
    ToRemove,
}

/// The progress of the removal of one directory.
pub(super) struct State {
    /// The number of earlier listings.
    pub(super) pass: u8,
    pub(super) consent: Consent,
    pub(super) marks: Marks,
}

/// Something under the directory stays, so that the directory stays too. For entries that the filter leaves alone,
/// there is [`LEFT_ALONE`].
pub(super) const KEPT: u16 = 1;
/// The user declined to remove an entry, so that ENOTEMPTY is expected.
pub(super) const DECLINED: u16 = 2;
/// The filter leaves alone something under the directory, so that the directory stays too.
pub(super) const LEFT_ALONE: u16 = 4;
/// Only entries of the directory are removed, and not the directory itself.
pub(super) const ENTRIES_ONLY: u16 = 8;
/// The directory itself was removed before it was finished.
pub(super) const GONE: u16 = 16;
/// An entry of the directory was removed, or one of a subdirectory that stays.
pub(super) const SHRUNK: u16 = 32;
/// The reasons why the directory and those above it stay.
pub(super) const STAYS: u16 = KEPT | LEFT_ALONE;
/// Something under the directory stays for another reason than the filter: it could not be removed, the user declined,
/// or the run was cancelled.
pub(super) const INCOMPLETE: u16 = KEPT | DECLINED;

impl State {
    pub(super) fn new(pass: u8, consent: Consent, marks: u16) -> Self {
        Self {
            pass,
            consent,
            marks: Marks::new(marks),
        }
    }
}

/// An entry of a directory in flight, or an operand.
#[derive(Clone, Copy)]
pub(super) struct Name<'a> {
    /// The directory that the name is in. `None` for an operand.
    pub(super) parent: Option<&'a RemoveNode>,
    /// The index of the operand that the name is or lies below.
    pub(super) operand: u32,
    /// One component, or the whole path of an operand.
    pub(super) name: &'a CStr,
}

impl<'a> Name<'a> {
    pub(super) fn entry(node: &'a RemoveNode, name: &'a CStr) -> Self {
        Self {
            parent: Some(node),
            operand: node.place.operand,
            name,
        }
    }

    pub(super) fn of(place: &'a RemovePlace) -> Self {
        Self {
            parent: place.parent.as_ref(),
            operand: place.operand,
            name: &place.name,
        }
    }

    /// Marks the directory that the name is in.
    pub(super) fn mark(self, marks: u16) {
        if let Some(node) = self.parent {
            node.state.marks.set(marks);
        }
    }
}
