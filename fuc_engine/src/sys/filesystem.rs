//! Facts about the filesystem that a file is on.

use std::os::fd::BorrowedFd;

use linux_raw_sys::general::{
    BTRFS_SUPER_MAGIC, CIFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, F2FS_SUPER_MAGIC, FUSE_SUPER_MAGIC,
    NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, SMB2_SUPER_MAGIC, TMPFS_MAGIC, V9FS_MAGIC, XFS_SUPER_MAGIC,
};
use rustix::io::Errno;

pub(crate) const BTRFS: u64 = BTRFS_SUPER_MAGIC as u64;
pub(crate) const XFS: u64 = XFS_SUPER_MAGIC as u64;

/// Returns the magic number of the filesystem that `file` is on, if the kernel reports one.
pub(crate) fn filesystem(file: BorrowedFd<'_>) -> Option<u64> {
    rustix::fs::fstatfs(file)
        .ok()
        .map(|stat| stat.f_type as u64)
}

/// Filesystems that store files themselves, so that a stat returns the stored size. ext2 and ext3 have the same
/// number as ext4.
const NATIVE: [u64; 5] = [
    BTRFS,
    EXT4_SUPER_MAGIC as u64,
    F2FS_SUPER_MAGIC as u64,
    TMPFS_MAGIC as u64,
    XFS,
];

/// Returns `true` if a server, or a process, does the work of the filesystem with this magic number.
pub(crate) fn is_of_server(magic: u64) -> bool {
    const OF_SERVERS: [u32; 6] = [
        CIFS_SUPER_MAGIC,
        FUSE_SUPER_MAGIC,
        NFS_SUPER_MAGIC,
        SMB2_SUPER_MAGIC,
        SMB_SUPER_MAGIC,
        V9FS_MAGIC,
    ];
    OF_SERVERS.iter().any(|&other| magic == u64::from(other))
}

/// Says where a filesystem stores the content of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// The filesystem stores it.
    Native,
    /// A server, or a process, stores it.
    Server,
    /// The content may be made up while it is read, or be on another filesystem.
    Other,
}

impl Storage {
    /// Returns the storage of the filesystem that `file` is on.
    pub(crate) fn of(file: BorrowedFd<'_>) -> Self {
        match filesystem(file) {
            Some(magic) if NATIVE.contains(&magic) => Self::Native,
            Some(magic) if is_of_server(magic) => Self::Server,
            _ => Self::Other,
        }
    }

    /// Returns `true` if the `st_size` of a file is the number of bytes that can be read.
    pub(crate) fn reports_true_size(self) -> bool {
        self == Self::Native
    }
}

/// Returns `true` if a file on this filesystem keeps its time of birth and its inode number, and if
/// all of its hard links have that number.
///
/// On overlayfs a file gets another time of birth when it is copied to the upper layer, and if that is
/// on another filesystem, sometimes another inode number. Many FUSE filesystems invent the numbers, one
/// for each path. A network filesystem may be any of these on its server.
pub(crate) fn keeps_identities(file: BorrowedFd<'_>) -> bool {
    Storage::of(file) == Storage::Native
}

/// Returns `true` if a listing of this directory may skip entries when others are removed during it. Filesystems that
/// store files themselves never do that.
pub(crate) fn may_skip_entries(dir: BorrowedFd<'_>) -> bool {
    Storage::of(dir) != Storage::Native
}

/// Returns `true` if `syncfs` writes everything on the filesystem of `file` to the disk. On the
/// filesystems of servers, it may only send the content to the server.
pub(crate) fn syncfs_is_enough(file: BorrowedFd<'_>) -> bool {
    filesystem(file).is_some_and(|magic| !is_of_server(magic))
}

/// Returns the largest number of bytes of a name in this directory.
pub(crate) fn longest_name(dir: BorrowedFd<'_>) -> Result<usize, Errno> {
    rustix::fs::fstatvfs(dir).map(|stat| stat.f_namemax as usize)
}

/// Returns how many bytes this process can still write to the filesystem of `file`. Returns `None`
/// if the filesystem does not say, or has no limit.
pub(crate) fn free_bytes(file: BorrowedFd<'_>) -> Option<u64> {
    let stat = rustix::fs::fstatvfs(file).ok()?;
    if stat.f_blocks == 0 || stat.f_frsize == 0 {
        return None;
    }
    // Only root may use the blocks that are reserved.
    let blocks = if rustix::process::geteuid().is_root() {
        stat.f_bfree
    } else {
        stat.f_bavail
    };
    Some(blocks.saturating_mul(stat.f_frsize))
}
