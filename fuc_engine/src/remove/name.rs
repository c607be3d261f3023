//! A name to remove, and the directory that it is in.

use std::ffi::CStr;

use super::node::{RemoveNode, RemovePlace};

/// An entry of a directory in flight, or an operand.
#[derive(Clone, Copy)]
pub(super) struct Name<'a> {
    pub(super) parent: Parent<'a>,
    /// One component, or the whole path of an operand.
    pub(super) name: &'a CStr,
}

/// The directory that a name is in.
#[derive(Clone, Copy)]
pub(super) enum Parent<'a> {
    Node(&'a RemoveNode),
    /// The name is the operand of this index.
    Operand(u32),
}

impl<'a> Name<'a> {
    pub(super) fn entry(node: &'a RemoveNode, name: &'a CStr) -> Self {
        let parent = Parent::Node(node);
        Self { parent, name }
    }

    pub(super) fn operand(operand: u32, name: &'a CStr) -> Self {
        let parent = Parent::Operand(operand);
        Self { parent, name }
    }

    pub(super) fn of(place: &'a RemovePlace) -> Self {
        match &place.parent {
            Some(node) => Self::entry(node, &place.name),
            None => Self::operand(place.operand, &place.name),
        }
    }

    /// Returns the index of the operand that the name is or lies below.
    pub(super) fn operand_index(self) -> u32 {
        match self.parent {
            Parent::Node(node) => node.place.operand,
            Parent::Operand(operand) => operand,
        }
    }

    /// Records that the name stays, so that all directories that it is in stay too.
    pub(super) fn keep(self) {
        if let Parent::Node(node) = self.parent {
            node.state.keep();
        }
    }

    /// Records that the user declined to remove the name.
    pub(super) fn mark_declined(self) {
        if let Parent::Node(node) = self.parent {
            node.state.mark_declined();
        }
    }

    /// Records that the name is gone.
    pub(super) fn mark_removed(self) {
        if let Parent::Node(node) = self.parent {
            node.state.mark_shrunk();
        }
    }
}
