//! Takes away and gives back what protects an open file or directory from removal, beside its mode.

use std::os::fd::BorrowedFd;

use linux_raw_sys::general::BTRFS_SUPER_MAGIC;
use rustix::fs::{IFlags, fstatfs, ioctl_getflags, ioctl_setflags};
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, Setter, ioctl, opcode};

use super::interrupted::retry_on_intr;
use super::stat::stat_open;

/// The attributes of an inode that protect its name, and if it is a directory, the names in it.
const PROTECTING: IFlags = IFlags::IMMUTABLE.union(IFlags::APPEND);

/// Clears the attributes that protect a regular file or a directory. Returns those that were set.
///
/// # Errors
/// Fails if the filesystem has no attributes, or if this process may not change them.
pub(crate) fn clear_attributes(file: BorrowedFd<'_>) -> Result<IFlags, Errno> {
    let flags = retry_on_intr(|| ioctl_getflags(file))?;
    let protecting = flags & PROTECTING;
    if !protecting.is_empty() {
        retry_on_intr(|| ioctl_setflags(file, flags - protecting))?;
    }
    Ok(protecting)
}

/// Sets attributes that were [cleared](clear_attributes).
pub(crate) fn set_attributes(file: BorrowedFd<'_>, cleared: IFlags) -> Result<(), Errno> {
    let flags = retry_on_intr(|| ioctl_getflags(file))?;
    retry_on_intr(|| ioctl_setflags(file, flags | cleared))
}

// The filesystem's headers define these: `_IOR(0x94, 25, __u64)`, `_IOW(0x94, 26, __u64)` and the flag.
const GET_SUBVOLUME: Opcode = opcode::read::<u64>(0x94, 25);
const SET_SUBVOLUME: Opcode = opcode::write::<u64>(0x94, 26);
const READ_ONLY: u64 = 1 << 1;

/// Returns `true` if an open directory is the root of a btrfs subvolume.
pub(crate) fn is_subvolume(dir: BorrowedFd<'_>) -> bool {
    const ROOT: u64 = 256;
    stat_open(dir).is_ok_and(|stat| stat.st_ino == ROOT)
        && fstatfs(dir).is_ok_and(|stat| stat.f_type as u64 == u64::from(BTRFS_SUPER_MAGIC))
}

/// Makes a btrfs subvolume writable. Returns `false` if it was.
pub(crate) fn make_subvolume_writable(root: BorrowedFd<'_>) -> Result<bool, Errno> {
    // SAFETY: the call writes 64 bits of flags to a value of that type.
    let flags = retry_on_intr(|| unsafe { ioctl(root, Getter::<GET_SUBVOLUME, u64>::new()) })?;
    if flags & READ_ONLY == 0 {
        return Ok(false);
    }
    set_subvolume_flags(root, flags & !READ_ONLY)?;
    Ok(true)
}

/// Makes a btrfs subvolume read-only.
pub(crate) fn make_subvolume_read_only(root: BorrowedFd<'_>) -> Result<(), Errno> {
    set_subvolume_flags(root, READ_ONLY)
}

fn set_subvolume_flags(root: BorrowedFd<'_>, flags: u64) -> Result<(), Errno> {
    // SAFETY: the call reads 64 bits of flags from a value of that type.
    retry_on_intr(|| unsafe { ioctl(root, Setter::<SET_SUBVOLUME, u64>::new(flags)) })
}
