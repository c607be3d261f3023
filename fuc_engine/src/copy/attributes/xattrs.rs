//! Extended attributes, and the ACLs among them with the permissions that depend on them.
//!
//! Beside an ACL, the mode's bits for the group are the mask of the ACL. So the group bits are set last: after
//! the ACL of the source was set, or after one that the dest must not have is gone.

use std::ffi::CStr;

use rustix::io::Errno;

use crate::copy::decide::mode::DestAcl;
use crate::copy::policy::Policy;
use crate::sys::InodeError::{self, Failed};
use crate::sys::{self, ACCESS_ACL, DEFAULT_ACL, Inode};

/// Name of the extended attribute that holds an SELinux context.
pub(super) const CONTEXT: &CStr = c"security.selinux";

/// Returns `true` if an attribute says on which servers or disks a filesystem has put a file: those of Lustre and of Ceph.
/// On another filesystem, it would be wrong, or put the copy where its directory does not want it.
pub(super) fn is_layout(name: &CStr) -> bool {
    let name = name.to_bytes();
    let is_of_lustre = matches!(
        name,
        b"trusted.hsm"
            | b"trusted.link"
            | b"trusted.lma"
            | b"trusted.lmv"
            | b"trusted.lov"
            | b"trusted.som"
    );
    is_of_lustre || name.starts_with(b"lustre.") || name.starts_with(b"ceph.")
}

/// Returns `true` if the SELinux context of the source is copied.
pub(super) fn copies_context(policy: &Policy<'_>) -> bool {
    policy.options.preserve.context && policy.options.context.is_none()
}

/// Copies the attributes with these names, as many as possible. The first failure is returned.
pub(super) fn copy<'n>(
    source: &Inode<'_>,
    dest: &Inode<'_>,
    names: impl Iterator<Item = &'n CStr>,
) -> Result<(), InodeError> {
    let mut mode_before = None;
    let copied = names.map(|name| {
        let value = source.xattr(name)?;
        match dest.set_xattr(name, &value) {
            // The owner of a file may set its attributes only if the file is writable, so make
            // it writable.
            Err(Failed(Errno::ACCESS | Errno::PERM)) if mode_before.is_none() => {
                mode_before = Some(make_writable(dest)?);
                dest.set_xattr(name, &value)
            }
            set => set,
        }
    });
    let outcome = copied.fold(Ok(()), Result::and);
    match mode_before {
        Some(mode) if mode & OWNER_WRITES == 0 => outcome.and(dest.set_mode(mode).map_err(Failed)),
        _ => outcome,
    }
}

/// The bit of a mode that lets the owner write.
const OWNER_WRITES: u32 = 0o200;

/// Makes a dest writable for its owner, if it is not. Returns the mode that it had.
fn make_writable(dest: &Inode<'_>) -> Result<u32, Errno> {
    let mode = dest.stat()?.st_mode & 0o7777;
    if mode & OWNER_WRITES == 0 {
        dest.set_mode(mode | OWNER_WRITES)?;
    }
    Ok(mode)
}

/// Splits a list of names, each of which ends with a NUL.
pub(super) fn names_in(list: &[u8]) -> impl Iterator<Item = &CStr> {
    list.split_inclusive(|&byte| byte == 0)
        .filter_map(|name| CStr::from_bytes_with_nul(name).ok())
}

/// The bits of a mode for the group.
const GROUP: u32 = 0o070;

/// Finds out whether entries that are created in a directory may inherit an ACL before the run ends.
///
/// Only its owner and root can give it a default ACL. So what is seen now is believed if this user trusts its owner.
pub(crate) fn inherited_in(policy: &Policy<'_>, dir: &Inode<'_>, owner: u32) -> DestAcl {
    if !policy.trusts(owner) {
        return DestAcl::Possible;
    }
    match dir.xattr(DEFAULT_ACL) {
        Err(Failed(Errno::NODATA | Errno::OPNOTSUPP)) => DestAcl::Absent,
        _ => DestAcl::Possible,
    }
}

/// Sets the mode and the access ACL, or removes the ACL that the dest may have. After a failure about an
/// ACL, the dest has the part of the mode that grants no more than the ACL.
pub(super) fn set_access(
    dest: &Inode<'_>,
    mode: u32,
    acl: Option<&[u8]>,
    present: DestAcl,
) -> Result<(), InodeError> {
    match acl.filter(|acl| *acl != sys::plain_acl(mode)) {
        Some(acl) => {
            dest.set_mode(match present {
                DestAcl::Absent => sys::mode_without_acl(mode, acl),
                DestAcl::Possible => mode & !GROUP,
            })?;
            dest.set_xattr(ACCESS_ACL, acl)?;
        }
        None if present == DestAcl::Possible => {
            if let Err(error) = remove_acl(dest, ACCESS_ACL) {
                set_mode_beside_unknown_acl(dest, mode);
                return Err(error);
            }
        }
        None => {}
    }
    Ok(dest.set_mode(mode)?)
}

/// Sets the part of `mode` that is safe if an ACL is unknown: that of the source, which cannot be
/// read, or that of the dest, which cannot be removed.
pub(super) fn set_mode_beside_unknown_acl(dest: &Inode<'_>, mode: u32) {
    let _ = dest.set_mode(mode & !GROUP);
}

/// Sets the default ACL of a directory, or removes the one that it may have.
pub(super) fn set_default_acl(
    dest: &Inode<'_>,
    acl: Option<&[u8]>,
    present: DestAcl,
) -> Result<(), InodeError> {
    match (acl, present) {
        (Some(acl), _) => dest.set_xattr(DEFAULT_ACL, acl),
        (None, DestAcl::Possible) => remove_acl(dest, DEFAULT_ACL),
        (None, DestAcl::Absent) => Ok(()),
    }
}

/// Removes an ACL. Fails only if the inode still has it.
fn remove_acl(dest: &Inode<'_>, acl: &CStr) -> Result<(), InodeError> {
    match dest.remove_xattr(acl) {
        Ok(()) | Err(Failed(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS)) => Ok(()),
        Err(error) => match dest.xattr(acl) {
            Err(Failed(_)) => Ok(()),
            Ok(_) | Err(InodeError::NoWay) => Err(error),
        },
    }
}

/// Reads an ACL of the source, unless `names` shows that it does not have it. `names` lists the extended attributes
/// of the source. If they could not be listed, which the caller reports, an ACL that cannot be read counts as none.
pub(super) fn read_acl(
    source: &Inode<'_>,
    acl: &CStr,
    names: &Result<Vec<u8>, InodeError>,
) -> Result<Option<Vec<u8>>, InodeError> {
    match names {
        Ok(names) if names_in(names).all(|name| name != acl) => Ok(None),
        Ok(_) => source.xattr(acl).map(Some),
        Err(_) => Ok(source.xattr(acl).ok()),
    }
}

/// Copies the ACLs of other kinds, which have these names, as many as possible. The first failure is returned.
pub(super) fn copy_other_acls<'n>(
    source: &Inode<'_>,
    dest: &Inode<'_>,
    names: impl Iterator<Item = &'n CStr>,
) -> Result<(), InodeError> {
    let copied = names.map(|name| match source.xattr(name) {
        Ok(acl) => match dest.set_xattr(name, &acl) {
            // An NFS server returns such an ACL for each file.
            Err(_) if sys::is_nfs4_acl_of_mode(&acl) => Ok(()),
            set => set,
        },
        // As in cp, such an ACL may be listed by a server that has none.
        Err(Failed(Errno::OPNOTSUPP)) => Ok(()),
        Err(error) => Err(error),
    });
    copied.fold(Ok(()), Result::and)
}
