//! The attributes that a comparison considers. The type of an entry and the target of a symlink always count.

bitflags::bitflags! {
    /// A set of attributes; `|` joins two sets, `-` takes one out of another.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Attributes: u16 {
        /// Only names, types and symlink targets.
        const NAMES = 0;
        /// Permission bits, set-id and sticky ones included. Symlinks have none.
        const MODE = 1;
        /// Sizes of files.
        const SIZE = 1 << 1;
        /// The bytes of files; holes read as zeros.
        const DATA = 1 << 2;
        /// Hard links: which names in the tree belong to the same inode.
        const LINKS = 1 << 3;
        /// Device numbers of device files.
        const DEVICE = 1 << 4;
        /// User and group.
        const OWNER = 1 << 5;
        /// The last modification, to the nanosecond.
        const MTIME = 1 << 6;
        /// The last access, to the nanosecond.
        const ATIME = 1 << 7;
        /// Extended attributes, ACLs included; those of the namespace `trusted` only as root.
        const XATTRS = 1 << 8;
        /// Holes: a file has some if it has fewer blocks than its size needs.
        const HOLES = 1 << 9;
        /// The inode number, and the time of the last change of anything, to the nanosecond. Not one of
        /// [`ALL`](Self::ALL).
        const CHANGE = 1 << 10;

        /// The attributes that a plain copy keeps.
        const CONTENT = Self::MODE.bits() | Self::SIZE.bits() | Self::DATA.bits() | Self::LINKS.bits() | Self::DEVICE.bits();
        /// All attributes that two trees can have in common.
        const ALL = (1 << 10) - 1;
    }
}
