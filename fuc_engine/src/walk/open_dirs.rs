//! The directories of a node, kept open while its entries are visited.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::{NodeOf, Visitor};
use crate::node::{Dir, Side};
use crate::sys::Pinned;

/// The open directories of one node: those that a removal or a copy needs.
pub(crate) struct OpenDirs<'n> {
    source: Pinned<'n>,
    /// `None` unless the walk is a copy.
    dest: Option<Pinned<'n>>,
}

impl<'n> OpenDirs<'n> {
    /// Opens the directories of `node`, for its entries to be visited.
    #[inline]
    pub(crate) fn open<V: Visitor>(visitor: &V, node: &'n NodeOf<V>) -> Result<Self, Errno> {
        let pin = |side| visitor.descriptors().pin(node, side, visitor.roots());
        Ok(Self {
            source: pin(Side::Source)?,
            dest: match V::Dir::SIDES.contains(&Side::Dest) {
                true => Some(pin(Side::Dest)?),
                false => None,
            },
        })
    }

    /// Returns the directory to list.
    pub(crate) fn source(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }

    /// Returns the directory that a copy fills.
    pub(crate) fn dest(&self) -> BorrowedFd<'_> {
        let dest = self.dest.as_ref();
        dest.expect("BUG: only a copy has a dest").as_fd()
    }
}
