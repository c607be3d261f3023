//! The state that a removal keeps for each directory in flight.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::node::{Dir, Node, Place, Side};
use crate::sys::DirSlot;

pub(super) struct RemoveDir(DirSlot);

impl RemoveDir {
    pub(super) fn new() -> Self {
        Self(DirSlot::empty())
    }
}

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
    has_shrunk: AtomicBool,
    flags: AtomicU8,
}

const KEPT: u8 = 1;
const DECLINED: u8 = 2;
const LEFT_ALONE: u8 = 4;
const BORROWED: u8 = 8;
const GONE: u8 = 16;

// The flags are Relaxed: the decrement in `node::climb` publishes them to the worker that
// finishes the directory.
impl State {
    pub(super) fn new(pass: u8, consent: Consent) -> Self {
        Self {
            pass,
            consent,
            has_shrunk: AtomicBool::new(false),
            flags: AtomicU8::new(0),
        }
    }

    /// Returns the state of a directory that the filter skips.
    pub(super) fn skipped(consent: Consent) -> Self {
        Self {
            flags: AtomicU8::new(LEFT_ALONE),
            ..Self::new(0, consent)
        }
    }

    /// Makes the state of a directory that belongs to another engine.
    pub(super) fn borrowed() -> Self {
        Self {
            flags: AtomicU8::new(BORROWED),
            ..Self::new(0, Consent::ToRemove)
        }
    }

    pub(super) fn is_borrowed(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & BORROWED != 0
    }

    /// Records that something under the directory stays, so that the directory stays too. For entries that the
    /// filter leaves alone, [`leave_alone`](Self::leave_alone) does this.
    pub(super) fn keep(&self) {
        self.flags.fetch_or(KEPT, Ordering::Relaxed);
    }

    /// Records that the filter leaves alone something under the directory, so that the directory stays too.
    pub(super) fn leave_alone(&self) {
        self.flags.fetch_or(LEFT_ALONE, Ordering::Relaxed);
    }

    /// Records that a subdirectory stays, for the same reasons.
    pub(super) fn keep_as(&self, subdirectory: &Self) {
        let reasons = subdirectory.flags.load(Ordering::Relaxed) & (KEPT | LEFT_ALONE);
        self.flags.fetch_or(reasons, Ordering::Relaxed);
        if subdirectory.has_shrunk() {
            self.mark_shrunk();
        }
    }

    /// Returns `true` if something under the directory stays.
    pub(super) fn is_kept(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & (KEPT | LEFT_ALONE) != 0
    }

    /// Returns `true` if the filter leaves alone something under the directory.
    pub(super) fn leaves_entries_alone(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & LEFT_ALONE != 0
    }

    /// Returns `true` if something under the directory stays for another reason than the filter: it could not be
    /// removed, the user declined, or the run was cancelled.
    pub(super) fn is_incomplete(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & (KEPT | DECLINED) != 0
    }

    /// Records that an entry of the directory was removed, or one of a subdirectory that stays.
    pub(super) fn mark_shrunk(&self) {
        // The flag is usually set already. Without a store, other workers keep their copy of the
        // cache line.
        if !self.has_shrunk.load(Ordering::Relaxed) {
            self.has_shrunk.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn has_shrunk(&self) -> bool {
        self.has_shrunk.load(Ordering::Relaxed)
    }

    /// Records that the user declined to remove an entry, so that ENOTEMPTY is expected.
    pub(super) fn mark_declined(&self) {
        self.flags.fetch_or(DECLINED, Ordering::Relaxed);
    }

    pub(super) fn is_declined(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & DECLINED != 0
    }

    /// Records that the directory itself was removed before it was finished.
    pub(super) fn mark_gone(&self) {
        self.flags.fetch_or(GONE, Ordering::Relaxed);
    }

    pub(super) fn is_gone(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & GONE != 0
    }
}

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
