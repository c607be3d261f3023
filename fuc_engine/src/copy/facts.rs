//! Facts about a file, made once from a stat, and the facts that a copy keeps for each directory in flight.
//!
//! Nothing here makes a system call.

use std::hash::BuildHasher;
use std::num::NonZeroU64;
use std::sync::Arc;

use rustix::fs::FileType;

use super::decide::mode::{DestAcl, Origin};
use crate::hashing::Seeded;
use crate::node::{Dir, Marks, Node, Side};
use crate::sys::{self, Device, DirSlot, Identity, Stat};

pub(super) use crate::sys::{FileId, FileTime, Symlinks};

/// The part of a stat that decisions are based on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) id: FileId,
    pub(super) kind: FileType,
    /// Number of hard links.
    pub(super) links: u64,
    pub(super) bytes: u64,
    pub(super) modified: FileTime,
    /// The number of the device that a special file stands for.
    pub(super) number: Device,
}

impl Facts {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            id: FileId::of(stat),
            kind: sys::file_type(stat),
            links: sys::links(stat),
            bytes: stat.st_size as u64,
            modified: sys::modified(stat),
            number: stat.st_rdev,
        }
    }
}

/// Type, mode, owner, size and time of modification of a file. They show whether it is the file that
/// was seen before, if its inode number does not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint(NonZeroU64);

impl Fingerprint {
    pub(super) fn of(stat: &Stat) -> Self {
        let modified = sys::modified(stat);
        let owner = (stat.st_uid, stat.st_gid);
        let modified = (modified.seconds, modified.nanoseconds);
        let facts = (stat.st_mode, owner, stat.st_size, modified);
        let hash = Seeded::default().hash_one(facts);
        Self(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN))
    }
}

pub(super) struct CopyDir {
    source: DirSlot,
    dest: DirSlot,
}

impl CopyDir {
    pub(super) fn new(source: Identity, dest: Identity) -> Self {
        let dir = Self::unknown();
        dir.source.set_identity(source);
        dir.dest.set_identity(dest);
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
}

pub(super) type CopyNode = Arc<Node<CopyDir>>;

/// The facts about a directory that are needed until it is finished, in the four bytes that a node has room for.
pub(super) struct Mark {
    /// The mode to set in the end, with [`HAS_MODE`](Self::HAS_MODE), or zero.
    mode: u16,
    pub(super) marks: Marks,
}

impl Mark {
    const HAS_MODE: u16 = 1 << 12;

    /// The source is not listed.
    pub(super) const UNLISTED: u16 = 1;
    /// The dest has its time of access already.
    pub(super) const HAS_ACCESS_TIME: u16 = 1 << 1;
    /// The dest gets the attributes of its source.
    pub(super) const GETS_ATTRIBUTES: u16 = 1 << 2;
    /// A mirror has compared the names in the directory.
    pub(super) const COMPARED: u16 = 1 << 3;
    // Set if the directory of an ancestor will be needed again. An evicted one is reopened while
    // its child is still open.
    const RETURNS_TO_SOURCE: u16 = 1 << 4;
    const RETURNS_TO_DEST: u16 = 1 << 5;
    const RETURNS: u16 = Self::RETURNS_TO_SOURCE | Self::RETURNS_TO_DEST;
    /// A mirror could not compare the names in the directory, which was reported.
    pub(super) const UNCLEAR: u16 = 1 << 6;
    // The facts from here on matter to the entries of the directory.
    /// A symbolic link was followed to the source, or to one above it.
    pub(super) const BEHIND_LINK: u16 = 1 << 8;
    /// This run has created the dest, and has copied no other directory to it.
    pub(super) const CREATED: u16 = 1 << 9;
    /// Entries created in the dest may inherit an ACL from it.
    pub(super) const GIVES_ACL: u16 = 1 << 10;
    /// No other user may rename entries of the dest, unless it is the owner.
    pub(super) const KEEPS_ENTRIES: u16 = 1 << 11;

    /// Makes the mark of a directory in `parent`, with these marks, and those that it inherits. The mode is the one to set in
    /// the end, if it differs from the present one.
    pub(super) fn new(parent: Option<&CopyNode>, mode: Option<u32>, marks: u16) -> Self {
        let mut marks = marks | parent.map_or(0, Self::inherited);
        if marks & Self::GETS_ATTRIBUTES != 0 {
            marks |= Self::RETURNS;
        }
        Self {
            mode: mode.map_or(0, |mode| mode as u16 & 0o7777 | Self::HAS_MODE),
            marks: Marks::new(marks),
        }
    }

    fn inherited(parent: &CopyNode) -> u16 {
        let mut marks = parent.state.marks.all() & (Self::RETURNS | Self::BEHIND_LINK);
        if parent.is_shared() {
            marks |= Self::RETURNS;
        }
        if parent.state.mode().is_some() {
            marks |= Self::RETURNS_TO_DEST;
        }
        marks
    }

    /// Returns whether this run created the dest.
    pub(super) fn origin(&self) -> Origin {
        match self.marks.has(Self::CREATED) {
            true => Origin::Created,
            false => Origin::Existing,
        }
    }

    /// Returns whether entries created in the dest may inherit an ACL from it.
    pub(super) fn inherited_acl(&self) -> DestAcl {
        match self.marks.has(Self::GIVES_ACL) {
            true => DestAcl::Possible,
            false => DestAcl::Absent,
        }
    }

    /// Returns the mode to set in the end.
    pub(super) fn mode(&self) -> Option<u32> {
        (self.mode != 0).then_some(u32::from(self.mode & 0o7777))
    }

    /// Returns `true` if an ancestor's directory will be needed again.
    pub(super) fn returns_to(&self, side: Side) -> bool {
        self.marks.has(match side {
            Side::Source => Self::RETURNS_TO_SOURCE,
            Side::Dest => Self::RETURNS_TO_DEST,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Facts {
        /// Returns a file with one name and the times of 1970.
        pub(in crate::copy) fn example(kind: FileType, inode: u64) -> Self {
            Self {
                id: FileId { device: 0, inode },
                kind,
                links: 1,
                bytes: 0,
                modified: FileTime::START,
                number: 0,
            }
        }
    }

    #[test]
    fn a_level_of_a_copy_stays_small() {
        // `crate::node` has the same test for a removal, and explains the numbers.
        assert!(size_of::<Node<CopyDir>>() + 16 <= 128 - 8);
    }

    #[test]
    fn a_mark_keeps_mode_and_flags_apart() {
        let mark = |gets_attributes, mode| {
            let marks = Marks::when(gets_attributes, Mark::GETS_ATTRIBUTES)
                | Marks::when(false, Mark::BEHIND_LINK)
                | Marks::when(true, Mark::HAS_ACCESS_TIME);
            Mark::new(None, mode, marks)
        };
        let all = mark(true, Some(0o7777));
        assert_eq!(all.mode(), Some(0o7777));
        assert!(all.returns_to(Side::Source) && all.returns_to(Side::Dest));
        assert!(all.marks.has(Mark::HAS_ACCESS_TIME) && !all.marks.has(Mark::BEHIND_LINK));
        assert_eq!(all.origin(), Origin::Existing);
        assert_eq!(all.inherited_acl(), DestAcl::Absent);
        let none = mark(false, None);
        assert_eq!(none.mode(), None);
        assert!(!none.returns_to(Side::Source) && !none.returns_to(Side::Dest));
        assert_eq!(mark(false, Some(0)).mode(), Some(0));
    }
}
