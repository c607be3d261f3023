//! The directories of a node, kept open while its entries are visited.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::{NodeOf, Visitor};
use crate::node::Side;
use crate::sys::Pinned;

/// The open directories of one node: those that a removal or a copy needs.
pub(crate) trait OpenDirs<'n>: Sized {
    /// Opens each of the directories by one call of `pin`.
    fn open(pin: impl FnMut(Side) -> Result<Pinned<'n>, Errno>) -> Result<Self, Errno>;

    /// Returns the directory to list.
    fn source(&self) -> BorrowedFd<'_>;
}

/// The directory that a removal empties.
pub(crate) struct SourceOnly<'n>(Pinned<'n>);

impl<'n> OpenDirs<'n> for SourceOnly<'n> {
    fn open(mut pin: impl FnMut(Side) -> Result<Pinned<'n>, Errno>) -> Result<Self, Errno> {
        pin(Side::Source).map(Self)
    }

    fn source(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The directory that a copy lists, and the one it fills.
pub(crate) struct SourceAndDest<'n> {
    source: Pinned<'n>,
    dest: Pinned<'n>,
}

impl SourceAndDest<'_> {
    pub(crate) fn dest(&self) -> BorrowedFd<'_> {
        self.dest.as_fd()
    }
}

impl<'n> OpenDirs<'n> for SourceAndDest<'n> {
    #[inline]
    fn open(mut pin: impl FnMut(Side) -> Result<Pinned<'n>, Errno>) -> Result<Self, Errno> {
        Ok(Self {
            source: pin(Side::Source)?,
            dest: pin(Side::Dest)?,
        })
    }

    fn source(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

/// Opens the directories of `node`, for its entries to be visited.
pub(crate) fn open_dirs<'n, V: Visitor>(
    visitor: &V,
    node: &'n NodeOf<V>,
) -> Result<V::Open<'n>, Errno> {
    let descriptors = visitor.descriptors();
    V::Open::open(|side| descriptors.pin(node, side, visitor.roots()))
}
