//! The state that a copy keeps for each directory in flight.

use std::sync::Arc;

use super::decide::mode::{DestAcl, Origin};
use crate::node::{Dir, Node, Side};
use crate::sys::{DirSlot, Identity};

pub(super) struct CopyDir {
    source: DirSlot,
    dest: DirSlot,
}

impl CopyDir {
    pub(super) fn new(source: Identity, dest: Identity) -> Self {
        let dir = Self::unknown();
        dir.source.record(source);
        dir.dest.record(dest);
        dir
    }

    /// Makes a directory of which nothing is known yet.
    pub(super) fn unknown() -> Self {
        Self {
            source: DirSlot::empty(),
            dest: DirSlot::empty(),
        }
    }
}

impl Dir for CopyDir {
    type State = Mark;

    const SIDES: &'static [Side] = &[Side::Source, Side::Dest];

    fn slot(&self, side: Side) -> &DirSlot {
        match side {
            Side::Source => &self.source,
            Side::Dest => &self.dest,
        }
    }

    fn inheritance(mark: &Mark) -> u8 {
        mark.inheritance()
    }
}

pub(super) type CopyNode = Arc<Node<CopyDir>>;

/// Facts about a directory that are needed until it is finished.
pub(super) struct DirFacts {
    /// The dest gets the attributes of its source.
    pub(super) gets_attributes: bool,
    /// A symbolic link was followed to the source.
    pub(super) is_behind_link: bool,
    /// The dest has its time of access already.
    pub(super) has_access_time: bool,
    /// Says whether this run created the dest.
    pub(super) origin: Origin,
    /// Says whether entries created in the dest may inherit an ACL from it.
    pub(super) inherited_acl: DestAcl,
    /// The mode to set in the end, if it differs from the present one.
    pub(super) mode_pending: Option<u32>,
}

/// [`DirFacts`], and the facts inherited from the parent, in the three bytes that a node has room
/// for.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    /// The lower 12 bits are the mode. The next one says whether there is a mode.
    mode: [u8; 2],
    flags: u8,
}

impl Mark {
    const HAS_MODE: u16 = 1 << 12;
    /// The flags that matter to the entries of the directory at another engine.
    const INHERITANCE: u8 = Self::BEHIND_LINK | Self::CREATED | Self::GIVES_ACL;

    // Set if the directory of an ancestor will be needed again. An evicted one is reopened while
    // its child is still open.
    const RETURNS_TO_SOURCE: u8 = 1;
    const RETURNS_TO_DEST: u8 = 1 << 1;
    const BEHIND_LINK: u8 = 1 << 2;
    const HAS_ACCESS_TIME: u8 = 1 << 3;
    const CREATED: u8 = 1 << 4;
    const GIVES_ACL: u8 = 1 << 5;
    const GETS_ATTRIBUTES: u8 = 1 << 6;
    const BORROWED: u8 = 1 << 7;

    pub(super) fn new(parent: Option<&CopyNode>, facts: &DirFacts) -> Self {
        let mut flags = parent.map_or(0, Self::inherited);
        if facts.gets_attributes {
            flags |= Self::GETS_ATTRIBUTES | Self::RETURNS_TO_SOURCE | Self::RETURNS_TO_DEST;
        }
        if facts.is_behind_link {
            flags |= Self::BEHIND_LINK;
        }
        if facts.has_access_time {
            flags |= Self::HAS_ACCESS_TIME;
        }
        if facts.origin == Origin::Created {
            flags |= Self::CREATED;
        }
        if facts.inherited_acl == DestAcl::Possible {
            flags |= Self::GIVES_ACL;
        }
        let mode = facts
            .mode_pending
            .map_or(0, |mode| Self::HAS_MODE | mode as u16 & 0o7777);
        Self {
            mode: mode.to_le_bytes(),
            flags,
        }
    }

    /// Makes the mark of a directory that belongs to another engine, which has returned `inheritance` for it.
    pub(super) fn borrowed(inheritance: u8) -> Self {
        Self {
            mode: [0; 2],
            flags: Self::BORROWED | inheritance & Self::INHERITANCE,
        }
    }

    /// Returns the part of the mark that another engine needs for the entries of the directory.
    fn inheritance(self) -> u8 {
        self.flags & Self::INHERITANCE
    }

    fn inherited(parent: &CopyNode) -> u8 {
        const INHERITED: u8 = Mark::RETURNS_TO_SOURCE | Mark::RETURNS_TO_DEST | Mark::BEHIND_LINK;
        let mut flags = parent.state.flags & INHERITED;
        if parent.is_shared() {
            flags |= Self::RETURNS_TO_SOURCE | Self::RETURNS_TO_DEST;
        }
        if parent.state.mode().is_some() {
            flags |= Self::RETURNS_TO_DEST;
        }
        flags
    }

    pub(super) fn gets_attributes(self) -> bool {
        self.flags & Self::GETS_ATTRIBUTES != 0
    }

    pub(super) fn has_access_time(self) -> bool {
        self.flags & Self::HAS_ACCESS_TIME != 0
    }

    /// Returns `true` if a symbolic link was followed to this source or to one above it.
    pub(super) fn is_behind_link(self) -> bool {
        self.flags & Self::BEHIND_LINK != 0
    }

    /// Returns `true` if the directory belongs to another engine.
    pub(super) fn is_borrowed(self) -> bool {
        self.flags & Self::BORROWED != 0
    }

    /// Returns whether this run created the dest.
    pub(super) fn origin(self) -> Origin {
        if self.flags & Self::CREATED != 0 {
            Origin::Created
        } else {
            Origin::Existing
        }
    }

    /// Returns whether entries created in the dest may inherit an ACL from it.
    pub(super) fn inherited_acl(self) -> DestAcl {
        if self.flags & Self::GIVES_ACL != 0 {
            DestAcl::Possible
        } else {
            DestAcl::Absent
        }
    }

    /// Returns the mode to set in the end.
    pub(super) fn mode(self) -> Option<u32> {
        let mode = u16::from_le_bytes(self.mode);
        (mode & Self::HAS_MODE != 0).then_some(u32::from(mode & 0o7777))
    }

    /// Returns `true` if an ancestor's directory will be needed again.
    pub(super) fn returns_to(self, side: Side) -> bool {
        let flag = match side {
            Side::Source => Self::RETURNS_TO_SOURCE,
            Side::Dest => Self::RETURNS_TO_DEST,
        };
        self.flags & flag != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_of_a_copy_stays_small() {
        // `crate::node` has the same test for a removal, and explains the numbers.
        assert!(size_of::<Node<CopyDir>>() + 16 <= 128 - 8);
    }

    #[test]
    fn a_mark_keeps_mode_and_flags_apart() {
        let mark = |gets_attributes, mode_pending| {
            let facts = DirFacts {
                gets_attributes,
                is_behind_link: false,
                has_access_time: true,
                origin: Origin::Existing,
                inherited_acl: DestAcl::Absent,
                mode_pending,
            };
            Mark::new(None, &facts)
        };
        let all = mark(true, Some(0o7777));
        assert_eq!(all.mode(), Some(0o7777));
        assert!(all.returns_to(Side::Source) && all.returns_to(Side::Dest));
        assert!(all.has_access_time() && !all.is_behind_link());
        assert_eq!(all.origin(), Origin::Existing);
        assert_eq!(all.inherited_acl(), DestAcl::Absent);
        let none = mark(false, None);
        assert_eq!(none.mode(), None);
        assert!(!none.returns_to(Side::Source) && !none.returns_to(Side::Dest));
        assert_eq!(mark(false, Some(0)).mode(), Some(0));
    }

    #[test]
    fn a_borrowed_mark_has_what_its_entries_need_and_no_more() {
        let facts = DirFacts {
            gets_attributes: true,
            is_behind_link: true,
            has_access_time: true,
            origin: Origin::Created,
            inherited_acl: DestAcl::Possible,
            mode_pending: Some(0o755),
        };
        let owned = Mark::new(None, &facts);
        assert!(!owned.is_borrowed());
        let borrowed = Mark::borrowed(owned.inheritance());
        assert!(borrowed.is_borrowed() && borrowed.is_behind_link());
        assert_eq!(borrowed.origin(), Origin::Created);
        assert_eq!(borrowed.inherited_acl(), DestAcl::Possible);
        assert!(!borrowed.gets_attributes() && borrowed.mode().is_none());
        assert!(!borrowed.returns_to(Side::Source) && !borrowed.returns_to(Side::Dest));
    }
}
