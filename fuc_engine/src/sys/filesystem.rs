//! Facts about the filesystem that a file is on, and what follows for calls that cp does not make.
//!
//! A server may accept a call that few programs make, and not do what it says. So its success is believed only where it was
//! tried, or where it cannot be wrong. Elsewhere, files are copied by the calls of cp.
//!
//! | call | used on | its success is believed because |
//! |---|---|---|
//! | `openat` with `O_TMPFILE`, then `linkat` by descriptor | native | these filesystems are tested. JuiceFS loses the file |
//! | `linkat` by descriptor, for a link to a file of an older copy | all | the file has a name already, so it cannot vanish |
//! | `mknodat` for an empty file | native | as above. On a server, watchers also miss the event of a closed file |
//! | `fchmodat2`, and `fchownat`, `utimensat` with `AT_EMPTY_PATH` | all | filesystems cannot tell them from `fchmod` and its like |
//! | opening a file once more through `/proc` | all | it is an ordinary open |
//! | `renameat2` without replacement | all | the kernel refuses the flag for filesystems that lack it |
//! | `copy_file_range` for less than a whole file | all | cp makes the call. Unless the source is native, a read confirms the end |
//! | `syncfs` instead of `fsync` | not on servers | of servers, it may only write to the server |
//! | `sync_file_range`, `posix_fadvise` | all | they only hasten what happens anyway, or report errors |
//! | `openat` with `O_DIRECT`, to compare copies | all | what is read is compared |
//!
//! Not in the table are calls that cp makes, too: `ioctl` with `FICLONE`, `fallocate` that punches a hole, `lseek` to data and
//! holes, and `copy_file_range` between two mounts.

use std::os::fd::BorrowedFd;

use linux_raw_sys::general::{
    AFS_FS_MAGIC, AFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, CEPH_SUPER_MAGIC, CIFS_SUPER_MAGIC,
    EXT4_SUPER_MAGIC, F2FS_SUPER_MAGIC, FUSE_SUPER_MAGIC, NFS_SUPER_MAGIC, SMB_SUPER_MAGIC,
    SMB2_SUPER_MAGIC, TMPFS_MAGIC, V9FS_MAGIC, XFS_SUPER_MAGIC,
};
use rustix::fs;
use rustix::io::Errno;

use SecondWorker::{Pays, SeldomPays, Unknown};

/// The filesystems of which something is known. To support another one, add a row. For one on which a second worker
/// never pays, use [`SeldomPays`]: a long run tries one late, and gives it up. `sched::governor` says when.
///
/// Figures are ratios of times on two cores, of medians of 5 to 15 rounds.
static TABLE: [Filesystem; 21] = [
    // All names are in the single tree of the subvolume, and kernel threads do a part of the work later. If a removal of
    // 50,000 files tries a second worker at once, it takes 1.12 of the time with 4 KiB, and 0.94 without content. Copying
    // them with two workers takes 0.9 on one processor, and 1.2 on others. Similar cells:
    // btrfs-remove-data, btrfs-copy-data.
    Filesystem {
        removal: SeldomPays,
        copy: Unknown,
        ..native(BTRFS_SUPER_MAGIC)
    },
    // ext2 and ext3 have the same number.
    Filesystem {
        directories_first: true,
        ..native(EXT4_SUPER_MAGIC)
    },
    native(F2FS_SUPER_MAGIC),
    native(TMPFS_MAGIC),
    // It depends on the tree. Removing 50,000 empty files with two workers takes 0.6 of the time of one in 500 directories
    // side by side, and twice the time in a tree of ftzz. In one directory it takes twice the time, and 1.4 with files of
    // 4 KiB, because kernel threads free the blocks.
    //
    // Copying with two workers in different groups takes 0.68 (4 KB) and 0.72 (empty). Directly after a large copy or
    // removal, a trial of a second worker often fails. Then runs take 1.16 to 1.21 of the time if there is one. Cells:
    // xfs-remove-data, xfs-copy-data.
    Filesystem {
        removal: Unknown,
        shares_removal: false,
        copy: Unknown,
        has_groups: true,
        ..native(XFS_SUPER_MAGIC)
    },
    server(AFS_FS_MAGIC),
    server(AFS_SUPER_MAGIC),
    server(CEPH_SUPER_MAGIC),
    server(CIFS_SUPER_MAGIC),
    server(FUSE_SUPER_MAGIC),
    server(NFS_SUPER_MAGIC),
    server(SMB2_SUPER_MAGIC),
    server(SMB_SUPER_MAGIC),
    server(V9FS_MAGIC),
    // BeeGFS, GPFS, Lustre, OrangeFS, prl_fs, vboxsf and vmhgfs.
    server(0x1983_0326),
    server(0x4750_4653),
    server(0x0BD0_0BD0),
    server(0x2003_0528),
    server(0x7C7C_6673),
    server(0x786F_4256),
    server(0xBACB_ACBC),
];

/// The knowledge about a filesystem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filesystem {
    magic: u32,
    pub(crate) storage: Storage,
    /// `true` if `syncfs` writes everything on it to the disk. On the filesystems of servers, it may only send the
    /// content to the server.
    pub(crate) syncs_all: bool,
    /// Says whether a second worker pays in a removal.
    pub(crate) removal: SecondWorker,
    /// `true` if two workers that remove from the same directory may be faster than one.
    ///
    /// The kernel locks the directory for each removal. Most native filesystems free the blocks of large files without
    /// the lock, which takes milliseconds. If a server does the work, the lock is held until it answers.
    pub(crate) shares_removal: bool,
    /// Says whether a second worker pays in a copy to the filesystem.
    pub(crate) copy: SecondWorker,
    /// `true` if it has [`AllocationGroups`](super::AllocationGroups).
    pub(crate) has_groups: bool,
    /// `true` if a copy is faster when directories are made before the files in them.
    ///
    /// ext4 puts directories that are made one after the other into one group of inodes, and others into the groups of
    /// the files made before them. A search for a free inode begins with the group of the directory. Without a journal,
    /// it looks at each inode that was deleted in the last minutes. A full group ends it at once.
    pub(crate) directories_first: bool,
}

/// Says what is known about a second worker before anything has been measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecondWorker {
    /// It is faster, so there are two when there is a backlog.
    Pays,
    /// It is faster on some machines, or in some trees, and slower in others. So it is tried at once.
    Unknown,
    /// It is seldom faster, so it is tried late.
    SeldomPays,
}

/// Returns a filesystem that stores files itself.
const fn native(magic: u32) -> Filesystem {
    Filesystem {
        magic,
        storage: Storage::Native,
        ..Filesystem::OTHER
    }
}

/// Returns a filesystem of which a server, or a process, does the work.
const fn server(magic: u32) -> Filesystem {
    Filesystem {
        magic,
        storage: Storage::Server,
        syncs_all: false,
        shares_removal: false,
        ..Filesystem::OTHER
    }
}

impl Filesystem {
    /// A filesystem of which nothing is known.
    pub(crate) const OTHER: Self = Self {
        magic: 0,
        storage: Storage::Other,
        syncs_all: true,
        removal: Pays,
        shares_removal: true,
        copy: Pays,
        has_groups: false,
        directories_first: false,
    };

    /// Returns the filesystem that `file` is on.
    pub(crate) fn of(file: BorrowedFd<'_>) -> Self {
        let Ok(stat) = fs::fstatfs(file) else {
            return Self {
                syncs_all: false,
                ..Self::OTHER
            };
        };
        let mut rows = TABLE.iter();
        let row = rows.find(|row| u64::from(row.magic) == stat.f_type as u64);
        row.copied().unwrap_or(Self::OTHER)
    }
}

/// Says where a filesystem stores the content of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// The filesystem stores it. A stat returns the stored size, and a listing skips no entries while others are
    /// removed.
    Native,
    /// A server, or a process, stores it.
    Server,
    /// The content may be made up while it is read, or be on another filesystem.
    Other,
}

impl Storage {
    /// Returns the storage of the filesystem that `file` is on.
    pub(crate) fn of(file: BorrowedFd<'_>) -> Self {
        Filesystem::of(file).storage
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

/// Returns `true` if two files that are seen through two mounts may be on one filesystem, as far as its kind and size tell.
pub(crate) fn may_be_one_filesystem(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    let kind_and_size =
        |file| fs::fstatfs(file).map(|stat| (stat.f_type, stat.f_bsize, stat.f_blocks));
    matches!((kind_and_size(one), kind_and_size(other)), (Ok(one), Ok(other)) if one == other)
}

/// Returns the largest number of bytes of a name in this directory.
pub(crate) fn longest_name(dir: BorrowedFd<'_>) -> Result<usize, Errno> {
    fs::fstatvfs(dir).map(|stat| stat.f_namemax as usize)
}

/// Returns how many bytes this process can still write to the filesystem of `file`. Returns `None`
/// if the filesystem does not say, or has no limit.
pub(crate) fn free_bytes(file: BorrowedFd<'_>) -> Option<u64> {
    let stat = fs::fstatvfs(file).ok()?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_filesystem_has_one_row() {
        for row in &TABLE {
            let rows = TABLE.iter().filter(|other| other.magic == row.magic);
            assert_eq!(rows.count(), 1, "{row:?}");
        }
    }
}
