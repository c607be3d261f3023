//! Extended attributes and ACLs, from one open inode to another.

use std::ffi::CStr;

use rustix::io::Errno;

use crate::sys::InodeError::{self, Failed, NoWay};
use crate::sys::{self, ACCESS_ACL, DEFAULT_ACL, Inode};

/// Copies the attributes of these names, all that can be; the first failure is told.
pub(super) fn copy_xattrs<'n>(
    source: &Inode<'_>,
    dest: &Inode<'_>,
    names: impl Iterator<Item = &'n CStr>,
) -> Result<(), InodeError> {
    let mut outcome = Ok(());
    let mut writable = None;
    for name in names {
        let copied = source.xattr(name).and_then(|value| {
            match dest.set_xattr(name, &value) {
                // Its owner may do that to a file that he may write to.
                Err(Failed(Errno::ACCESS | Errno::PERM)) if writable.is_none() => {
                    writable = Some(Writable::make(dest)?);
                    dest.set_xattr(name, &value)
                }
                set => set,
            }
        });
        match copied {
            // It has gone since.
            Ok(()) | Err(Failed(Errno::NODATA)) => {}
            Err(error) => outcome = outcome.and(Err(error)),
        }
    }
    match writable {
        Some(writable) => outcome.and(writable.restore(dest).map_err(Failed)),
        None => outcome,
    }
}

/// A dest that its owner may write to for a while.
struct Writable {
    mode_before: u32,
}

impl Writable {
    fn make(dest: &Inode<'_>) -> Result<Self, Errno> {
        let mode_before = dest.stat()?.st_mode & 0o7777;
        if mode_before & 0o200 == 0 {
            dest.set_mode(mode_before | 0o200)?;
        }
        Ok(Self { mode_before })
    }

    fn restore(&self, dest: &Inode<'_>) -> Result<(), Errno> {
        if self.mode_before & 0o200 == 0 {
            dest.set_mode(self.mode_before)?;
        }
        Ok(())
    }
}

/// Sets the nine permission bits so that they say all there is; whether the filesystem has ACLs.
/// If not, all of `mode` is set.
///
/// By `fchmod` alone an ACL that the dest has inherited from its directory would stay.
pub(super) fn set_permissions(dest: &Inode<'_>, mode: u32) -> Result<bool, InodeError> {
    match dest.set_xattr(ACCESS_ACL, &sys::plain_acl(mode)) {
        Ok(()) => Ok(true),
        Err(Failed(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL)) => {
            dest.set_mode(mode)?;
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Sets an ACL that comes with `mode`, or else what of the mode gives nobody more;
/// nothing if there is [`NoWay`] to set it.
pub(super) fn set_acl(dest: &Inode<'_>, mode: u32, acl: &[u8]) -> Result<(), InodeError> {
    let set = dest.set_xattr(ACCESS_ACL, acl);
    if !matches!(set, Ok(()) | Err(NoWay)) {
        let _ = dest.set_mode(sys::mode_without_acl(mode, acl));
    }
    set
}

/// Sets as much of `mode` as is safe where the ACL of the source cannot be read, or that of
/// the dest, which its directory may have given it, cannot be replaced: the group's bits may
/// be the most that anybody gets by the one, and would be that by the other.
pub(super) fn set_mode_beside_unknown_acl(dest: &Inode<'_>, mode: u32) {
    let _ = dest.set_mode(mode & !0o070);
}

pub(super) fn read_acl(source: &Inode<'_>, acl: &CStr) -> Result<Option<Vec<u8>>, InodeError> {
    match source.xattr(acl) {
        Ok(acl) => Ok(Some(acl)),
        Err(Failed(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS)) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn set_default_acl(dest: &Inode<'_>, acl: Option<&[u8]>) -> Result<(), InodeError> {
    match acl {
        Some(acl) => dest.set_xattr(DEFAULT_ACL, acl),
        None => match dest.remove_xattr(DEFAULT_ACL) {
            Err(Failed(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS)) => Ok(()),
            result => result,
        },
    }
}

pub(super) fn names_in(list: &[u8]) -> impl Iterator<Item = &CStr> {
    list.split_inclusive(|&byte| byte == 0)
        .filter_map(|name| CStr::from_bytes_with_nul(name).ok())
}

/// What belongs to the mode, what its filesystem or the kernel alone may write, and what only
/// means something where it is: the list of `/etc/xattr.conf`, by which cp goes.
pub(super) fn is_left_to_others(name: &CStr) -> bool {
    const NAMES: [&[u8]; 5] = [
        b"system.nfs4_acl",
        b"system.nfs4acl",
        b"system.posix_acl_access",
        b"system.posix_acl_default",
        b"security.evm",
    ];
    const BEGINNINGS: [&[u8]; 4] = [b"trusted.SGI_", b"xfsroot.", b"user.Beagle.", b"afs."];
    let name = name.to_bytes();
    NAMES.contains(&name)
        || BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning))
}
