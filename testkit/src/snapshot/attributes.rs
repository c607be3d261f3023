//! The attributes that a comparison considers. The type of an entry and the target of a symlink always count.

use std::ops::{BitOr, Sub};

/// A set of attributes; `|` joins two sets, `-` takes one out of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes(u16);

impl Attributes {
    /// Only names, types and symlink targets.
    pub const NAMES: Self = Self(0);
    /// Permission bits, set-id and sticky ones included. Symlinks have none.
    pub const MODE: Self = Self(1);
    /// Sizes of files.
    pub const SIZE: Self = Self(1 << 1);
    /// The bytes of files; holes read as zeros.
    pub const DATA: Self = Self(1 << 2);
    /// Hard links: which names in the tree belong to the same inode.
    pub const LINKS: Self = Self(1 << 3);
    /// Device numbers of device files.
    pub const DEVICE: Self = Self(1 << 4);
    /// User and group.
    pub const OWNER: Self = Self(1 << 5);
    /// The last modification, to the nanosecond.
    pub const MTIME: Self = Self(1 << 6);
    /// The last access, to the nanosecond.
    pub const ATIME: Self = Self(1 << 7);
    /// Extended attributes, ACLs included; those of the namespace `trusted` only as root.
    pub const XATTRS: Self = Self(1 << 8);
    /// Holes: a file has some if it has fewer blocks than its size needs.
    pub const HOLES: Self = Self(1 << 9);
    /// The inode number, and the time of the last change of anything, to the nanosecond. Not one of [`ALL`](Self::ALL).
    pub const CHANGE: Self = Self(1 << 10);

    /// The attributes that a plain copy keeps.
    pub const CONTENT: Self =
        Self(Self::MODE.0 | Self::SIZE.0 | Self::DATA.0 | Self::LINKS.0 | Self::DEVICE.0);
    /// All attributes that two trees can have in common.
    pub const ALL: Self = Self((1 << 10) - 1);

    /// Returns `true` if this set contains all of `other`.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Attributes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Sub for Attributes {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}
