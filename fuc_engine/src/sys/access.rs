//! Finds out whether names could be created, renamed or removed, without doing it.
//!
//! The answers are those of the kernel as far as it can be asked: modes, ACLs, read-only filesystems,
//! sticky directories, attributes of inodes, and mount points. It cannot be asked about security
//! modules, quotas, and rules of one filesystem.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::fs::{Access, AtFlags, Dev, FileType, Stat, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities};

use super::at::{At, Symlinks};
use super::interrupted::retry_on_intr;
use super::process::effective_user;
use super::stat::{check_access, stat};

/// The sticky bit of a mode.
const STICKY: u32 = 0o1000;

/// Fails with the kernel's error if this process may not create names in a directory. `path` leads
/// from `dir` to that directory.
pub(crate) fn check_adding(dir: BorrowedFd<'_>, path: &CStr) -> Result<(), Errno> {
    let directory = At {
        dir,
        name: path,
        symlinks: Symlinks::Follow,
    };
    check_access(directory, Access::WRITE_OK | Access::EXEC_OK)
}

/// Fails with the kernel's error if this process may not remove or rename `name`, which must exist.
/// `directory` is the path of the directory that it is in; both begin at `dir`.
pub(crate) fn check_removing(
    dir: BorrowedFd<'_>,
    directory: &CStr,
    name: &CStr,
) -> Result<(), Errno> {
    check_adding(dir, directory)?;
    check_sticky(dir, directory, name)?;
    let above = attributes(dir, directory, Symlinks::Follow);
    let itself = attributes(dir, name, Symlinks::NoFollow);
    let protected = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
    if above.contains(StatxAttributes::APPEND) || itself.intersects(protected) {
        return Err(Errno::PERM);
    }
    match itself.contains(StatxAttributes::MOUNT_ROOT) {
        true => Err(Errno::BUSY),
        false => Ok(()),
    }
}

/// Returns `true` if names can be created in a directory, but not renamed or removed. `path` leads from `dir` to it.
pub(crate) fn is_append_only(dir: BorrowedFd<'_>, path: &CStr) -> bool {
    attributes(dir, path, Symlinks::Follow).contains(StatxAttributes::APPEND)
}

/// Fails with `EPERM` if a sticky directory protects `name` from this user.
fn check_sticky(dir: BorrowedFd<'_>, directory: &CStr, name: &CStr) -> Result<(), Errno> {
    let user = effective_user();
    let above = stat(dir, directory, Symlinks::Follow)?;
    if user == 0 || above.st_mode & STICKY == 0 || above.st_uid == user {
        return Ok(());
    }
    match stat(dir, name, Symlinks::NoFollow)?.st_uid == user {
        true => Ok(()),
        false => Err(Errno::PERM),
    }
}

/// Returns the attributes of an inode, or none if the kernel or its filesystem does not know them.
fn attributes(dir: BorrowedFd<'_>, name: &CStr, symlinks: Symlinks) -> StatxAttributes {
    let flags = symlinks.at_flag() | AtFlags::NO_AUTOMOUNT;
    let looked_at = retry_on_intr(|| rustix::fs::statx(dir, name, flags, StatxFlags::empty()));
    looked_at.map_or(StatxAttributes::empty(), |found| {
        found.stx_attributes & StatxAttributes::from_bits_retain(found.stx_attributes_mask.bits())
    })
}

/// Fails with the kernel's error if this process may not write to the file at `at`, which must exist.
pub(crate) fn check_writing(at: At<'_>) -> Result<(), Errno> {
    check_access(at, Access::WRITE_OK)?;
    // The kernel permits these files to be opened only to append to them.
    match attributes(at.dir, at.name, at.symlinks).contains(StatxAttributes::APPEND) {
        true => Err(Errno::PERM),
        false => Ok(()),
    }
}

/// Fails with the kernel's error if this process may not read the file at `at`.
pub(crate) fn check_reading(at: At<'_>) -> Result<(), Errno> {
    check_access(at, Access::READ_OK)
}

/// Fails with `EPERM` if the kernel protects a file, which was seen as `stat`, from hard links by users that
/// do not own it.
pub(crate) fn check_linking(at: At<'_>, stat: &Stat) -> Result<(), Errno> {
    const SET_USER_ID: u32 = 0o4000;
    const SET_GROUP_ID: u32 = 0o2010;
    let user = effective_user();
    if user == 0 || stat.st_uid == user {
        return Ok(());
    }
    let wanted = Access::READ_OK | Access::WRITE_OK;
    let is_safe = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_mode & SET_USER_ID == 0
        && stat.st_mode & SET_GROUP_ID != SET_GROUP_ID
        && check_access(at, wanted).is_ok();
    let protection = std::fs::read("/proc/sys/fs/protected_hardlinks");
    match is_safe || protection.is_ok_and(|value| value.starts_with(b"0")) {
        true => Ok(()),
        false => Err(Errno::PERM),
    }
}

/// Fails with `EPERM` if this process may not create a device. Every process may create other files, and the one that
/// stands for a removed file on an overlay.
pub(crate) fn check_making_node(kind: FileType, number: Dev) -> Result<(), Errno> {
    let is_device = matches!(kind, FileType::CharacterDevice | FileType::BlockDevice);
    let is_whiteout = kind == FileType::CharacterDevice && number == 0;
    let may_make =
        || capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::MKNOD));
    match !is_device || is_whiteout || may_make() {
        true => Ok(()),
        false => Err(Errno::PERM),
    }
}
