//! What a run knows about the filesystem of its dests.

use std::os::fd::BorrowedFd;

use crate::copy::node::CopyNode;
use crate::node::{Dir, Side};
use crate::sched::Zones;
use crate::sys::{self, AllocationGroups};

/// The filesystem of the dests.
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
        let group = |side| self.groups?.group(node.dir.slot(side).identity()?);
        let mut zones = Zones::NONE;
        if let Some(group) = group(Side::Source) {
            zones = zones.with(2 * (group % 32));
        }
        if let Some(group) = group(Side::Dest) {
            zones = zones.with(2 * (group % 32) + 1);
        }
        zones
    }
}
