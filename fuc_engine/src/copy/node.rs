//! What a copy keeps for each directory in flight.

use std::sync::Arc;

use crate::node::{Dir, Node, Side};
use crate::sys::{DirSlot, Identity, Symlinks};

pub(super) struct CopyDir {
    source: DirSlot,
    dest: DirSlot,
}

impl CopyDir {
    pub(super) fn new(source: Identity, dest: Identity) -> Self {
        let dir = Self {
            source: DirSlot::empty(),
            dest: DirSlot::empty(),
        };
        dir.source.record(source);
        dir.dest.record(dest);
        dir
    }
}

impl Dir for CopyDir {
    type State = Mark;

    fn slot(&self, side: Side) -> &DirSlot {
        match side {
            Side::Source => &self.source,
            Side::Dest => &self.dest,
        }
    }
}

pub(super) type CopyNode = Arc<Node<CopyDir>>;

/// In three bytes, which is what a node has room for: the mode that the dest is
/// to get when it is finished, if it differs from the one it has, whether
/// somebody will need an ancestor's directory again, whether a link led here, and
/// whether the dest has its time of access.
#[derive(Clone, Copy, Default)]
pub(super) struct Mark([u8; 3]);

impl Mark {
    const HAS_MODE: u32 = 1 << 12;
    const RETURNS_TO_SOURCE: u32 = 1 << 13;
    const RETURNS_TO_DEST: u32 = 1 << 14;
    const BEHIND_LINK: u32 = 1 << 15;
    const HAS_ACCESS_TIME: u32 = 1 << 16;

    fn of(bits: u32) -> Self {
        let [low, middle, high, _] = bits.to_le_bytes();
        Self([low, middle, high])
    }

    fn bits(self) -> u32 {
        let [low, middle, high] = self.0;
        u32::from_le_bytes([low, middle, high, 0])
    }

    /// For a child of `parent`. An ancestor whose directory nobody will need
    /// again is not reopened on the way up if it was evicted.
    pub(super) fn below(parent: Option<&CopyNode>) -> Self {
        let Some(parent) = parent else {
            return Self::default();
        };
        const INHERITED: u32 = Mark::RETURNS_TO_SOURCE | Mark::RETURNS_TO_DEST | Mark::BEHIND_LINK;
        let mut mark = parent.state.bits() & INHERITED;
        if parent.is_shared() {
            mark |= Self::RETURNS_TO_SOURCE | Self::RETURNS_TO_DEST;
        }
        if parent.state.mode().is_some() {
            mark |= Self::RETURNS_TO_DEST;
        }
        Self::of(mark)
    }

    /// For a directory whose attributes will be those of its source, as those of all above it.
    pub(super) fn of_one_to_be_finished(self) -> Self {
        Self::of(self.bits() | Self::RETURNS_TO_SOURCE | Self::RETURNS_TO_DEST)
    }

    pub(super) fn with_mode(self, mode: Option<u32>) -> Self {
        mode.map_or(self, |mode| {
            Self::of(self.bits() | Self::HAS_MODE | mode & 0o7777)
        })
    }

    /// For a directory whose time of access is not to be set in the end.
    pub(super) fn of_one_with_access_time(self) -> Self {
        Self::of(self.bits() | Self::HAS_ACCESS_TIME)
    }

    pub(super) fn has_access_time(self) -> bool {
        self.bits() & Self::HAS_ACCESS_TIME != 0
    }

    /// For a source reached by way of `symlinks`.
    pub(super) fn by_way_of(self, symlinks: Symlinks) -> Self {
        match symlinks {
            Symlinks::Follow => Self::of(self.bits() | Self::BEHIND_LINK),
            Symlinks::NoFollow => self,
        }
    }

    /// Whether a symbolic link was followed to here, or on the way.
    pub(super) fn is_behind_link(self) -> bool {
        self.bits() & Self::BEHIND_LINK != 0
    }

    pub(super) fn mode(self) -> Option<u32> {
        (self.bits() & Self::HAS_MODE != 0).then_some(self.bits() & 0o7777)
    }

    pub(super) fn returns_to(self, side: Side) -> bool {
        let flag = match side {
            Side::Source => Self::RETURNS_TO_SOURCE,
            Side::Dest => Self::RETURNS_TO_DEST,
        };
        self.bits() & flag != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_of_a_copy_stays_small() {
        // See the same of a removal in `crate::node`.
        assert!(size_of::<Node<CopyDir>>() + 16 <= 112 - 8);
    }

    #[test]
    fn a_mark_keeps_mode_and_ways_apart() {
        let mark = Mark::of(Mark::RETURNS_TO_DEST).with_mode(Some(0o7777));
        assert_eq!(mark.mode(), Some(0o7777));
        assert!(mark.returns_to(Side::Dest) && !mark.returns_to(Side::Source));
        assert_eq!(Mark::of(Mark::RETURNS_TO_DEST).mode(), None);
        let mark = mark.of_one_with_access_time();
        assert!(mark.has_access_time() && !mark.is_behind_link());
        assert_eq!(mark.mode(), Some(0o7777));
    }
}
