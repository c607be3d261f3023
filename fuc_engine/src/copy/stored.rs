//! An entry that is kept for later, without the directories that it was found in.

use std::ffi::CStr;
use std::sync::Arc;

use rustix::fs::FileType;

use super::facts::{DestState, Entry, Symlinks};
use super::node::{CopyDir, CopyNode};
use crate::node::Place;
use crate::sys;

/// An entry whose copy comes later. It delays the finish of its node.
pub(super) struct StoredEntry {
    /// `None` for an operand.
    pub(super) node: Option<CopyNode>,
    /// Name of the dest. In a node the source has the same name.
    pub(super) name: Box<CStr>,
    pub(super) operand: u32,
    kind: FileType,
    symlinks: Symlinks,
    dest_state: StoredState,
}

/// A [`DestState`] that owns the name of the backup.
enum StoredState {
    Unchecked,
    Occupied,
    Vacant { backup: Option<Box<CStr>> },
}

impl StoredEntry {
    pub(super) fn of(entry: &Entry<'_>) -> Self {
        if let Some(node) = entry.node {
            node.retain();
        }
        Self {
            node: entry.node.map(Arc::clone),
            name: entry.dest_name.into(),
            operand: entry.operand,
            kind: entry.kind,
            symlinks: entry.symlinks,
            dest_state: match entry.dest_state {
                DestState::Unchecked => StoredState::Unchecked,
                DestState::Occupied => StoredState::Occupied,
                DestState::Vacant { backup } => StoredState::Vacant {
                    backup: backup.map(Into::into),
                },
            },
        }
    }

    /// Keeps a source of type `kind` that was queued as a directory. Takes over the use of its parent.
    pub(super) fn of_place(place: Place<CopyDir>, kind: FileType, symlinks: Symlinks) -> Self {
        Self {
            node: place.parent,
            name: (*place.name).into(),
            operand: place.operand,
            kind,
            symlinks,
            dest_state: StoredState::Unchecked,
        }
    }

    /// Returns the entry as its directory lists it.
    pub(super) fn listed(&self) -> sys::Entry<'_> {
        sys::Entry::new(&self.name, self.kind)
    }

    /// Returns the entry as it was when it was stored. `entry` holds its names and directories.
    pub(super) fn restore<'a>(&'a self, entry: Entry<'a>) -> Entry<'a> {
        Entry {
            symlinks: self.symlinks,
            dest_state: match &self.dest_state {
                StoredState::Unchecked => DestState::Unchecked,
                StoredState::Occupied => DestState::Occupied,
                StoredState::Vacant { backup } => DestState::Vacant {
                    backup: backup.as_deref(),
                },
            },
            ..entry
        }
    }
}
