//! Times, owners, extended attributes and ACLs of one inode, whatever it is.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::{Errno, retry_on_intr};

use super::calls::{CWD, Stat, Symlinks, set_mode};

/// What the access ACL is called.
pub(crate) const ACCESS_ACL: &CStr = c"system.posix_acl_access";
/// What a directory gives to what is made in it.
pub(crate) const DEFAULT_ACL: &CStr = c"system.posix_acl_default";

/// An inode that is held by a descriptor. Those that only name it can do less, so that
/// the kernel has to be shown the inode through /proc.
#[derive(Clone, Copy)]
pub(crate) enum Inode<'a> {
    Opened(BorrowedFd<'a>),
    Named(BorrowedFd<'a>),
}

/// Opens a name that may be anything, for its attributes alone.
pub(crate) fn open_named(
    dir: BorrowedFd<'_>,
    name: &CStr,
    symlinks: Symlinks,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | symlinks.open_flag();
    retry_on_intr(|| fs::openat(dir, name, flags, Mode::empty()))
}

impl Inode<'_> {
    /// Leads to the inode itself, even if that is a symbolic link.
    fn path(fd: BorrowedFd<'_>) -> CString {
        CString::new(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap_or_default()
    }

    pub(crate) fn stat(&self) -> Result<Stat, Errno> {
        let (Self::Opened(fd) | Self::Named(fd)) = self;
        super::stat_open(fd)
    }

    pub(crate) fn set_times(&self, of: &Stat) -> Result<(), Errno> {
        let times = Timestamps {
            last_access: Timespec {
                tv_sec: of.st_atime as _,
                tv_nsec: of.st_atime_nsec as _,
            },
            last_modification: Timespec {
                tv_sec: of.st_mtime as _,
                tv_nsec: of.st_mtime_nsec as _,
            },
        };
        match self {
            Self::Opened(fd) => fs::futimens(fd, &times),
            Self::Named(fd) => match fs::utimensat(fd, c"", &times, AtFlags::EMPTY_PATH) {
                // Before Linux 5.8.
                Err(Errno::INVAL) => fs::utimensat(CWD, Self::path(*fd), &times, AtFlags::empty()),
                result => result,
            },
        }
    }

    pub(crate) fn set_owner(&self, user: Option<u32>, group: u32) -> Result<(), Errno> {
        let (user, group) = (user.map(Uid::from_raw), Some(Gid::from_raw(group)));
        match self {
            Self::Opened(fd) => fs::fchown(fd, user, group),
            Self::Named(fd) => fs::chownat(fd, c"", user, group, AtFlags::EMPTY_PATH),
        }
    }

    pub(crate) fn set_mode(&self, mode: u32) -> Result<(), Errno> {
        match self {
            Self::Opened(fd) => set_mode(fd, mode),
            Self::Named(fd) => {
                let bits = Mode::from_raw_mode(mode & 0o7777);
                fs::chmodat(CWD, Self::path(*fd), bits, AtFlags::empty())
            }
        }
    }

    /// The names of all extended attributes that may be listed, each followed by a NUL.
    pub(crate) fn xattr_names(&self) -> Result<Vec<u8>, Errno> {
        filled(|buffer| match self {
            Self::Opened(fd) => fs::flistxattr(fd, buffer),
            Self::Named(fd) => fs::listxattr(Self::path(*fd), buffer),
        })
    }

    pub(crate) fn xattr(&self, name: &CStr) -> Result<Vec<u8>, Errno> {
        filled(|buffer| match self {
            Self::Opened(fd) => fs::fgetxattr(fd, name, buffer),
            Self::Named(fd) => fs::getxattr(Self::path(*fd), name, buffer),
        })
    }

    pub(crate) fn set_xattr(&self, name: &CStr, value: &[u8]) -> Result<(), Errno> {
        match self {
            Self::Opened(fd) => fs::fsetxattr(fd, name, value, XattrFlags::empty()),
            Self::Named(fd) => fs::setxattr(Self::path(*fd), name, value, XattrFlags::empty()),
        }
    }

    pub(crate) fn remove_xattr(&self, name: &CStr) -> Result<(), Errno> {
        match self {
            Self::Opened(fd) => fs::fremovexattr(fd, name),
            Self::Named(fd) => fs::removexattr(Self::path(*fd), name),
        }
    }
}

/// What `read` puts into a buffer, which grows until it is large enough.
fn filled(mut read: impl FnMut(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    /// No attribute, and no list of them, is larger.
    const MOST_BYTES: usize = 64 << 10;
    let mut small = [0; 256];
    match read(&mut small) {
        Ok(length) => Ok(small[..length].to_vec()),
        Err(Errno::RANGE) => {
            let mut large = vec![0; MOST_BYTES];
            let length = read(&mut large)?;
            large.truncate(length);
            Ok(large)
        }
        Err(errno) => Err(errno),
    }
}

/// The ACL that says no more than the nine permission bits of `mode`.
pub(crate) fn plain_acl(mode: u32) -> [u8; 28] {
    const VERSION: u32 = 2;
    const NOBODY_IN_PARTICULAR: u32 = u32::MAX;
    // Owner, group, others: their tags in linux/posix_acl.h.
    const ENTRIES: [(u16, u32); 3] = [(0x01, 6), (0x04, 3), (0x20, 0)];
    let mut acl = [0; 28];
    acl[..4].copy_from_slice(&VERSION.to_le_bytes());
    for (entry, (tag, shift)) in acl[4..].chunks_exact_mut(8).zip(ENTRIES) {
        entry[..2].copy_from_slice(&tag.to_le_bytes());
        entry[2..4].copy_from_slice(&((mode >> shift & 7) as u16).to_le_bytes());
        entry[4..].copy_from_slice(&NOBODY_IN_PARTICULAR.to_le_bytes());
    }
    acl
}

/// What `mode` is without `acl`. Where there is an ACL, the bits of the group in the mode are
/// the most that anybody in the ACL gets; alone, they would be what the group gets.
pub(crate) fn mode_without_acl(mode: u32, acl: &[u8]) -> u32 {
    const GROUP: u16 = 0x04;
    let entries = acl.get(4..).unwrap_or_default().chunks_exact(8);
    let group = entries
        .map(|entry| [0, 2].map(|at| u16::from_le_bytes([entry[at], entry[at + 1]])))
        .find_map(|[tag, bits]| (tag == GROUP).then_some(u32::from(bits)));
    mode & (0o7707 | (group.unwrap_or(0) & 7) << 3)
}

/// Opens a directory to list it, without its being listed changing its time of access,
/// where the kernel grants that: to its owner and to root.
pub(crate) fn open_directory_untouched(
    dir: BorrowedFd<'_>,
    name: &CStr,
    symlinks: Symlinks,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | symlinks.open_flag();
    let open = |flags| retry_on_intr(|| fs::openat(dir, name, flags, Mode::empty()));
    match open(flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(flags),
        result => result,
    }
}

/// The bits that this process withholds from what it creates. It is read, never set, since
/// setting it changes what other threads create meanwhile.
pub(crate) fn umask() -> u32 {
    /// Where the kernel does not tell: too little is better than too much.
    const UNKNOWN: u32 = 0o077;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    lines
        .find_map(|line| line.strip_prefix("Umask:"))
        .and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
        .unwrap_or(UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn without_its_acl_a_mode_gives_the_group_what_the_acl_gave_it() {
        let mut acl = plain_acl(0o4740).to_vec();
        // The mask: its tag, `rwx`.
        acl.extend([0x10, 0, 7, 0, 255, 255, 255, 255]);
        assert_eq!(mode_without_acl(0o4770, &acl), 0o4740);
        // The mask: `-w-`.
        assert_eq!(mode_without_acl(0o4720, &acl), 0o4700);
        assert_eq!(mode_without_acl(0o4775, b"what is this?"), 0o4705);
    }

    #[test]
    fn a_plain_acl_is_the_mode() {
        let file = tempfile::tempfile().unwrap();
        let inode = Inode::Opened(file.as_fd());
        match inode.set_xattr(ACCESS_ACL, &plain_acl(0o751)) {
            Err(Errno::OPNOTSUPP) => {}
            set => {
                set.unwrap();
                assert_eq!(fs::fstat(&file).unwrap().st_mode & 0o7777, 0o751);
            }
        }
    }
}
