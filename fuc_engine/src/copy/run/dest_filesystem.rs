//! The filesystem of the dests, and the zones of it that workers copy from and to.

use std::os::fd::BorrowedFd;

use crate::copy::node::CopyNode;
use crate::node::{Dir, Side};
use crate::sched::Zones;
use crate::sys::{self, AllocationGroups};

/// The filesystem that dests are made on.
pub(super) struct DestFilesystem {
    pub(super) magic: u64,
    /// `None` unless it is an XFS.
    pub(super) groups: Option<AllocationGroups>,
}

impl DestFilesystem {
    /// Returns `None` if the kernel reports no filesystem.
    pub(super) fn of(dir: BorrowedFd<'_>) -> Option<Self> {
        let magic = sys::filesystem(dir)?;
        let groups = match magic {
            sys::XFS => AllocationGroups::of(dir),
            _ => None,
        };
        Some(Self { magic, groups })
    }

    /// Returns the zones that files are copied from and to.
    ///
    /// While XFS makes a file, it locks the inodes of the directory's group. While it shares the blocks of a file, it locks
    /// the blocks of the source's group. These are two locks of a group, so each group is two zones.
    pub(super) fn zones(&self, node: &CopyNode) -> Zones {
        let zone = |side| {
            let group = self.groups?.group(node.dir.slot(side).identity()?)?;
            Some(group << 1 | u64::from(side == Side::Dest))
        };
        let zones = [Side::Source, Side::Dest].into_iter().filter_map(zone);
        zones.fold(Zones::NONE, Zones::with)
    }
}
