//! The allocation groups of XFS. Each has locks of its own, so workers in different groups rarely wait for each other.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::ioctl::{Getter, Opcode, ioctl, opcode};

use super::calls::Symlinks;
use super::filesystem::Filesystem;
use super::open::open_directory;
use super::stat::{Identity, stat_directory};

/// `struct xfs_fsop_geom_v1` of `xfs/xfs_fs.h`.
#[repr(C)]
struct Geometry {
    block_bytes: u32,
    _realtime_extent_blocks: u32,
    group_blocks: u32,
    _groups: u32,
    _log_blocks: u32,
    _sector_bytes: u32,
    inode_bytes: u32,
    _most_inodes_percent: u32,
    _blocks: [u64; 4],
    _uuid: [u8; 16],
    _rest: [u32; 7],
}

/// `XFS_IOC_FSGEOMETRY_V1`, which each version of XFS has.
const GET_GEOMETRY: Opcode = opcode::read::<Geometry>(b'X', 100);

/// Says in which allocation group of one XFS an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllocationGroups {
    device: u32,
    /// How many bits of an inode number are below those of the group's number.
    inode_bits: u32,
}

impl AllocationGroups {
    /// Returns the groups of the filesystem that `dir` is on. Returns `None` if that is not an XFS, or if the directory
    /// cannot be opened for reading.
    pub(crate) fn of(dir: BorrowedFd<'_>) -> Option<Self> {
        // The ioctl refuses descriptors that only name an inode.
        let dir = open_directory(dir, c".", Symlinks::NoFollow).ok()?;
        if !Filesystem::of(dir.as_fd()).has_groups {
            return None;
        }
        // SAFETY: the directory is on an XFS, which fills the whole structure if the call succeeds. All values of its
        // fields are valid.
        let geometry = unsafe { ioctl(&dir, Getter::<GET_GEOMETRY, Geometry>::new()) }.ok()?;
        let device = stat_directory(dir.as_fd()).ok()?.identity.device();
        Some(Self {
            device,
            inode_bits: geometry.inode_bits()?,
        })
    }

    /// Returns the number of the group, or `None` if the inode is on another filesystem.
    pub(crate) fn group(self, inode: Identity) -> Option<u64> {
        let is_here = inode.device() == self.device;
        is_here.then(|| inode.file().inode >> self.inode_bits)
    }
}

impl Geometry {
    /// Returns how many bits a block of a group and an inode of a block take.
    fn inode_bits(&self) -> Option<u32> {
        let inodes_per_block = self.block_bytes.checked_div(self.inode_bytes)?;
        let group_blocks = self.group_blocks.checked_next_power_of_two()?;
        Some(inodes_per_block.checked_ilog2()? + group_blocks.ilog2())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use testkit::probe::{Fs, LoopMount};

    impl AllocationGroups {
        /// Puts all inodes of the device into one group.
        pub(crate) fn single(device: u32) -> Self {
            let inode_bits = u64::BITS - 1;
            Self { device, inode_bits }
        }
    }

    #[test]
    fn a_directory_elsewhere_has_no_groups() {
        let dir = std::fs::File::open("/proc").unwrap();
        assert_eq!(AllocationGroups::of(dir.as_fd()), None);
    }

    #[test]
    fn new_directories_of_xfs_are_in_different_groups() {
        let place = testkit::or_skip!(LoopMount::new(Fs::Xfs, 300));
        let open = std::fs::File::open(place.path()).unwrap();
        let groups = AllocationGroups::of(open.as_fd()).unwrap();
        let group_of = |number: u32| {
            let path = place.path().join(number.to_string());
            std::fs::create_dir(&path).unwrap();
            let dir = std::fs::File::open(path).unwrap();
            let identity = stat_directory(dir.as_fd()).unwrap().identity;
            groups.group(identity).unwrap()
        };
        // `mkfs.xfs` makes four groups.
        let found: BTreeSet<_> = (0..16).map(group_of).collect();
        assert_eq!(found, (0..4).collect());
        let elsewhere = std::fs::File::open("/proc").unwrap();
        let elsewhere = stat_directory(elsewhere.as_fd()).unwrap().identity;
        assert_eq!(groups.group(elsewhere), None);
    }

    /// As `mkfs.xfs` makes them on 4 GiB.
    #[test]
    fn a_group_is_above_the_bits_of_its_blocks_and_inodes() {
        let mut geometry = Geometry {
            block_bytes: 4096,
            _realtime_extent_blocks: 1,
            group_blocks: 1 << 18,
            _groups: 4,
            _log_blocks: 0,
            _sector_bytes: 512,
            inode_bytes: 512,
            _most_inodes_percent: 25,
            _blocks: [0; 4],
            _uuid: [0; 16],
            _rest: [0; 7],
        };
        assert_eq!(geometry.inode_bits(), Some(21));
        geometry.group_blocks -= 1;
        assert_eq!(geometry.inode_bits(), Some(21));
        geometry.inode_bytes = 0;
        assert_eq!(geometry.inode_bits(), None);
    }
}
