//! Times, owners, extended attributes and ACLs of one inode, whatever it is.

use std::ffi::CStr;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{self, AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::umask as umask_of_process;
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::calls::{Stat, Symlinks, set_mode};
use super::path_fd::{At, InodeError, InodeOp, PathFd, SetTimes, Xattr};
use super::times::{FileTime, modified, times};

/// What the access ACL is called.
pub(crate) const ACCESS_ACL: &CStr = c"system.posix_acl_access";
/// What a directory gives to what is made in it.
pub(crate) const DEFAULT_ACL: &CStr = c"system.posix_acl_default";

/// An inode that is held by a descriptor. Those that only name it can do less: the rest takes other ways.
#[derive(Clone, Copy)]
pub(crate) enum Inode<'a> {
    Opened(BorrowedFd<'a>),
    PathOnly(PathFd<'a>),
}

/// Opens a name that may be anything, for its attributes alone.
pub(crate) fn open_path_only(at: &At<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | at.symlinks.open_flag();
    retry_on_intr(|| fs::openat(at.dir, at.name, flags, Mode::empty()))
}

impl<'a> Inode<'a> {
    /// A directory of which `fd` may be a mere path descriptor.
    pub(crate) fn directory(fd: BorrowedFd<'a>) -> Self {
        Self::PathOnly(PathFd { fd, at: None })
    }

    pub(crate) fn stat(&self) -> Result<Stat, Errno> {
        let (Self::Opened(fd) | Self::PathOnly(PathFd { fd, .. })) = self;
        super::stat_open(fd)
    }

    pub(crate) fn set_times(&self, of: &Stat) -> Result<(), InodeError> {
        let [accessed, modified, _] = times(of).map(timespec);
        self.set(accessed, modified)
    }

    /// The same, but for the time of access.
    pub(crate) fn set_modified(&self, of: &Stat) -> Result<(), InodeError> {
        self.set(UNCHANGED, timespec(modified(of)))
    }

    pub(crate) fn set_accessed(&self, at: FileTime) -> Result<(), InodeError> {
        self.set(timespec(at), UNCHANGED)
    }

    fn set(&self, last_access: Timespec, last_modification: Timespec) -> Result<(), InodeError> {
        let times = Timestamps {
            last_access,
            last_modification,
        };
        match self {
            Self::Opened(fd) => Ok(fs::futimens(fd, &times)?),
            Self::PathOnly(path_fd) => {
                match fs::utimensat(path_fd.fd, c"", &times, AtFlags::EMPTY_PATH) {
                    // Before Linux 5.8.
                    Err(Errno::INVAL) => path_fd.apply(SetTimes(&times)),
                    result => Ok(result?),
                }
            }
        }
    }

    pub(crate) fn set_owner(&self, user: Option<u32>, group: u32) -> Result<(), Errno> {
        let (user, group) = (user.map(Uid::from_raw), Some(Gid::from_raw(group)));
        match self {
            Self::Opened(fd) => fs::fchown(fd, user, group),
            Self::PathOnly(PathFd { fd, .. }) => {
                fs::chownat(fd, c"", user, group, AtFlags::EMPTY_PATH)
            }
        }
    }

    pub(crate) fn set_mode(&self, mode: u32) -> Result<(), Errno> {
        match self {
            Self::Opened(fd) => set_mode(fd, mode),
            Self::PathOnly(path_fd) => path_fd.set_mode(mode),
        }
    }

    /// The names of all extended attributes that may be listed, each followed by a NUL.
    pub(crate) fn xattr_names(&self) -> Result<Vec<u8>, InodeError> {
        filled(|buffer| self.call(Xattr::List(buffer)))
    }

    pub(crate) fn xattr(&self, name: &CStr) -> Result<Vec<u8>, InodeError> {
        filled(|buffer| self.call(Xattr::Get(name, buffer)))
    }

    pub(crate) fn set_xattr(&self, name: &CStr, value: &[u8]) -> Result<(), InodeError> {
        self.call(Xattr::Set(name, value)).map(drop)
    }

    pub(crate) fn remove_xattr(&self, name: &CStr) -> Result<(), InodeError> {
        self.call(Xattr::Remove(name)).map(drop)
    }

    fn call(&self, mut call: Xattr<'_>) -> Result<usize, InodeError> {
        match self {
            Self::Opened(fd) => Ok(call.on_open(*fd)?),
            Self::PathOnly(path_fd) => path_fd.apply(call),
        }
    }
}

const UNCHANGED: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: fs::UTIME_OMIT,
};

fn timespec(time: FileTime) -> Timespec {
    Timespec {
        tv_sec: time.seconds as _,
        tv_nsec: time.nanoseconds.into(),
    }
}

/// What `read` puts into a buffer, which grows until it is large enough.
fn filled(
    mut read: impl FnMut(&mut [u8]) -> Result<usize, InodeError>,
) -> Result<Vec<u8>, InodeError> {
    /// No attribute, and no list of them, is larger.
    const MOST_BYTES: usize = 64 << 10;
    let mut small = [0; 256];
    match read(&mut small) {
        Ok(length) => Ok(small[..length].to_vec()),
        Err(InodeError::Failed(Errno::RANGE)) => {
            let mut large = vec![0; MOST_BYTES];
            let length = read(&mut large)?;
            large.truncate(length);
            Ok(large)
        }
        Err(error) => Err(error),
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

/// What listing a directory leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trace {
    None,
    /// Another time of access.
    Access,
}

/// Opens a directory to list it, without a trace where the kernel grants that: to its owner and to root.
pub(crate) fn open_directory_untouched(
    dir: BorrowedFd<'_>,
    name: &CStr,
    symlinks: Symlinks,
) -> Result<(OwnedFd, Trace), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | symlinks.open_flag();
    let open = |flags| retry_on_intr(|| fs::openat(dir, name, flags, Mode::empty()));
    match open(flags | OFlags::NOATIME) {
        Err(Errno::PERM) => Ok((open(flags)?, Trace::Access)),
        result => Ok((result?, Trace::None)),
    }
}

/// The bits that this process withholds from what it creates, which stay as they are.
pub(crate) fn umask() -> u32 {
    umask_told_in("/proc/self/status")
        .or_else(umask_of_a_thread)
        // Too little is better than too much.
        .unwrap_or(0o077)
}

fn umask_told_in(status: &str) -> Option<u32> {
    let status = std::fs::read_to_string(status).ok()?;
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(mask.trim(), 8).ok()
}

/// It can only be read by setting it, which changes what other threads create meanwhile; so
/// that is done by a thread that has one of its own.
fn umask_of_a_thread() -> Option<u32> {
    let ask = || {
        // SAFETY: no table of descriptors is unshared, but umask, working directory and root,
        // of which this thread, which ends here, needs none.
        unsafe { unshare_unsafe(UnshareFlags::FS) }.ok()?;
        Some(umask_of_process(Mode::empty()).as_raw_mode())
    };
    let asking = std::thread::Builder::new().spawn(ask).ok()?;
    asking.join().ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn the_umask_is_known_without_proc() {
        let told = umask_told_in("/proc/self/status");
        assert_eq!(umask_told_in("/nowhere/status"), None);
        if let (Some(told), Some(asked)) = (told, umask_of_a_thread()) {
            assert_eq!(asked, told);
            // It has stayed.
            assert_eq!(umask_told_in("/proc/self/status"), Some(told));
        }
    }

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
            Err(InodeError::Failed(Errno::OPNOTSUPP)) => {}
            set => {
                set.unwrap();
                assert_eq!(fs::fstat(&file).unwrap().st_mode & 0o7777, 0o751);
            }
        }
    }
}
