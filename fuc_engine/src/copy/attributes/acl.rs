//! Permissions and ACLs of one inode.

use std::ffi::CStr;

use rustix::io::Errno;

use crate::sys::InodeError::{self, Failed, NoWay};
use crate::sys::{self, ACCESS_ACL, DEFAULT_ACL, Inode};

/// Says whether the dest's filesystem has ACLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Support {
    Supported,
    Unsupported,
}

/// Sets the nine permission bits, and removes the ACL that the dest may have inherited from its
/// directory, which `fchmod` alone would keep. On a filesystem without ACLs, sets all of `mode`.
pub(super) fn set_permissions(dest: &Inode<'_>, mode: u32) -> Result<Support, InodeError> {
    match dest.set_xattr(ACCESS_ACL, &sys::plain_acl(mode)) {
        Ok(()) => Ok(Support::Supported),
        Err(Failed(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL)) => {
            dest.set_mode(mode)?;
            Ok(Support::Unsupported)
        }
        Err(error) => Err(error),
    }
}

/// Sets an access ACL that belongs to `mode`. If that fails, sets the part of the mode that
/// grants no more than the ACL, unless there is [`NoWay`] to set ACLs.
pub(super) fn set_access(dest: &Inode<'_>, mode: u32, acl: &[u8]) -> Result<(), InodeError> {
    let set = dest.set_xattr(ACCESS_ACL, acl);
    if !matches!(set, Ok(()) | Err(NoWay)) {
        let _ = dest.set_mode(sys::mode_without_acl(mode, acl));
    }
    set
}

/// Sets the part of `mode` that is safe if an ACL is unknown: that of the source, which cannot be
/// read, or that of the dest, which cannot be replaced. Under an ACL the group bits are its mask,
/// so the group bits of one side have another meaning on the other side.
pub(super) fn set_mode_beside_unknown_acl(dest: &Inode<'_>, mode: u32) {
    let _ = dest.set_mode(mode & !0o070);
}

/// Reads an ACL. Returns `None` if the source does not have it.
pub(super) fn read(source: &Inode<'_>, acl: &CStr) -> Result<Option<Vec<u8>>, InodeError> {
    match source.xattr(acl) {
        Ok(acl) => Ok(Some(acl)),
        Err(Failed(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sets the default ACL of a directory, or removes it.
pub(super) fn set_default(dest: &Inode<'_>, acl: Option<&[u8]>) -> Result<(), InodeError> {
    match acl {
        Some(acl) => dest.set_xattr(DEFAULT_ACL, acl),
        None => match dest.remove_xattr(DEFAULT_ACL) {
            Err(Failed(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS)) => Ok(()),
            removed => removed,
        },
    }
}
