//! Reads facts about files: identity, type, mode, times, the target of a link, permission to write.
//!
//! A [`FileId`] is unique among all files that exist at one moment. Two stats are of one file if their
//! `FileId`s are equal.
//!
//! An [`Identity`] also has the time of birth. So a new directory is not taken for a removed one whose
//! inode number it got. It is for directories that are closed and opened again. The time is compared
//! only on filesystems where it never changes. Each directory in flight stores one `Identity`, so the
//! time is packed and the whole takes 16 bytes.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{
    self, Access, AtFlags, Dev, FileType, Stat, Statx, StatxAttributes, StatxFlags, accessat,
    major, minor,
};
use rustix::io::Errno;

use super::calls::{At, Symlinks, retry_on_intr};
use super::filesystem::keeps_identities;

/// Facts about an open directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirStat {
    pub(crate) identity: Identity,
    /// The `st_mode`, including the type.
    pub(crate) mode: u32,
    pub(crate) owner: u32,
}

pub(crate) fn stat_directory(dir: BorrowedFd<'_>) -> Result<DirStat, Errno> {
    let wanted = StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::UID | StatxFlags::INO;
    Ok(
        match statx(dir, c"", AtFlags::EMPTY_PATH, wanted | StatxFlags::BTIME)? {
            Ok(stat) => {
                let birth = (stat.stx_mask & StatxFlags::BTIME.bits() != 0)
                    .then_some((stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec));
                DirStat {
                    identity: Identity::new(FileId::new(device(&stat), stat.stx_ino), birth),
                    mode: u32::from(stat.stx_mode),
                    owner: stat.stx_uid,
                }
            }
            Err(stat) => DirStat {
                identity: Identity::new(FileId::of(&stat), None),
                mode: stat.st_mode,
                owner: stat.st_uid,
            },
        },
    )
}

/// Returns the user and the group of an open file. Unlike a stat after a write, this is a request to a server only if its client
/// does not trust them any more.
pub(super) fn owner_of_open(file: BorrowedFd<'_>) -> Result<(u32, u32), Errno> {
    let wanted = StatxFlags::UID | StatxFlags::GID;
    Ok(match statx(file, c"", AtFlags::EMPTY_PATH, wanted)? {
        Ok(stat) => (stat.stx_uid, stat.stx_gid),
        Err(stat) => (stat.st_uid, stat.st_gid),
    })
}

/// Returns `true` if `dir` is the directory that `known` was read from.
///
/// The time of birth is compared only if the filesystem keeps it, and the number only if it shows the same one at each
/// look. These questions take more calls, so they are asked only after a difference.
pub(crate) fn is_same_directory(dir: BorrowedFd<'_>, known: Identity) -> Result<bool, Errno> {
    let found = stat_directory(dir)?.identity;
    if found == known || keeps_identities(dir) {
        return Ok(found == known);
    }
    Ok(found.file() == known.file() || stat_directory(dir)?.identity.file() != found.file())
}

/// Looks at `name` in `dir`, or at `dir` itself if the name is empty. Returns an older stat as an error if the kernel is
/// older than Linux 4.11, or if a sandbox does not know the call.
///
/// The time of birth is only asked of `dir` itself. Some FUSE servers fail because of that question.
// Otherwise the stat is copied, which takes 50 instructions for each directory.
#[inline(always)]
fn statx(
    dir: BorrowedFd<'_>,
    name: &CStr,
    flags: AtFlags,
    wanted: StatxFlags,
) -> Result<Result<Statx, Stat>, Errno> {
    match retry_on_intr(|| fs::statx(dir, name, flags, wanted)) {
        Err(_) if wanted.contains(StatxFlags::BTIME) => stat_open(dir).map(Err),
        Err(Errno::NOSYS | Errno::PERM) if name.is_empty() => stat_open(dir).map(Err),
        Err(Errno::NOSYS | Errno::PERM) => stat(dir, name, Symlinks::NoFollow).map(Err),
        found => found.map(Ok),
    }
}

fn device(stat: &Statx) -> Dev {
    fs::makedev(stat.stx_dev_major, stat.stx_dev_minor)
}

/// The filesystem of a file, and the mount through which the file is reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mount {
    device: Dev,
    /// Is `None` if the kernel does not know it: before Linux 5.8, or in a sandbox.
    id: Option<u64>,
}

impl Mount {
    /// Looks at `name` in `dir`, or at `dir` itself if the name is empty. A symlink is not followed, and nothing is
    /// mounted because of the call.
    pub(crate) fn of(dir: BorrowedFd<'_>, name: &CStr) -> Result<Self, Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::EMPTY_PATH;
        Ok(match statx(dir, name, flags, StatxFlags::MNT_ID)? {
            Ok(stat) => Self {
                device: device(&stat),
                id: (stat.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(stat.stx_mnt_id),
            },
            Err(stat) => Self {
                device: stat.st_dev,
                id: None,
            },
        })
    }

    /// Returns `true` if both files are on one filesystem, and a mount of it does not lie between them. Two mounts of
    /// one filesystem cannot be told apart if the kernel does not know their numbers.
    pub(crate) fn is_same(self, other: Self) -> bool {
        let has_other_id = self.id.zip(other.id).is_some_and(|(one, two)| one != two);
        self.device == other.device && !has_other_id
    }
}

pub(crate) fn stat(dir: BorrowedFd<'_>, name: &CStr, symlinks: Symlinks) -> Result<Stat, Errno> {
    retry_on_intr(|| fs::statat(dir, name, symlinks.at_flag()))
}

pub(crate) fn stat_open(file: impl AsFd) -> Result<Stat, Errno> {
    retry_on_intr(|| fs::fstat(&file))
}

pub(crate) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

pub(crate) fn is_regular(stat: &Stat) -> bool {
    file_type(stat) == FileType::RegularFile
}

pub(crate) fn is_directory(stat: &Stat) -> bool {
    file_type(stat) == FileType::Directory
}

pub(crate) fn read_link(dir: BorrowedFd<'_>, name: &CStr) -> Result<CString, Errno> {
    retry_on_intr(|| fs::readlinkat(dir, name, Vec::new()))
}

/// Returns `true` if names can be created in a directory, but not renamed or removed. `path` leads from `dir` to it.
pub(crate) fn is_append_only(dir: BorrowedFd<'_>, path: &CStr) -> bool {
    let seen = retry_on_intr(|| fs::statx(dir, path, AtFlags::empty(), StatxFlags::empty()));
    seen.is_ok_and(|seen| seen.stx_attributes.contains(StatxAttributes::APPEND))
}

/// Fails with the kernel's error if this process may not create, rename or remove names in a directory. `path` leads from
/// `dir` to that directory. Says nothing about single names, which sticky directories and attributes can protect.
pub(crate) fn check_adding(dir: BorrowedFd<'_>, path: &CStr) -> Result<(), Errno> {
    let directory = At {
        dir,
        name: path,
        symlinks: Symlinks::Follow,
    };
    check_access(directory, Access::WRITE_OK | Access::EXEC_OK)
}

/// Fails with the kernel's error if this process may not write to the file at `at`, which must exist: with `EACCES` because
/// of its mode or an ACL.
pub(crate) fn check_writing(at: At<'_>) -> Result<(), Errno> {
    check_access(at, Access::WRITE_OK)
}

/// Fails with the kernel's error if this process may not read the file at `at`.
pub(crate) fn check_reading(at: At<'_>) -> Result<(), Errno> {
    check_access(at, Access::READ_OK)
}

/// Fails with the kernel's error if this process may not access the file at `at` in this way.
///
/// The kernel is asked about the effective user. Before Linux 5.8, and in a sandbox that refuses the newer call, it is asked
/// about the real user and follows symlinks.
fn check_access(at: At<'_>, wanted: Access) -> Result<(), Errno> {
    check_access_by(at.symlinks, |flags| {
        accessat(at.dir, at.name, wanted, flags)
    })
}

fn check_access_by(
    symlinks: Symlinks,
    mut access: impl FnMut(AtFlags) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let mut ask = |flags| retry_on_intr(|| access(flags));
    match ask(AtFlags::EACCESS | symlinks.at_flag()) {
        Err(Errno::NOSYS | Errno::PERM) => ask(AtFlags::empty()),
        answer => answer,
    }
}

/// A point in time: seconds since 1970, and nanoseconds of the next second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileTime {
    pub(crate) seconds: i64,
    /// Less than 1,000,000,000.
    pub(crate) nanoseconds: u32,
}

impl FileTime {
    /// The start of 1970, before nearly all files were written.
    pub(crate) const START: Self = Self {
        seconds: 0,
        nanoseconds: 0,
    };

    /// Returns a time before this one: the start of 1970, if that is before.
    pub(crate) fn earlier(self) -> Self {
        if self > Self::START {
            return Self::START;
        }
        Self {
            seconds: self.seconds.saturating_sub(1),
            ..self
        }
    }

    /// Returns the number of nanoseconds since the start of 1970, negative for an earlier time.
    pub(crate) fn nanoseconds_since_start(self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanoseconds)
    }

    /// Returns the last time up to this one that is a multiple of `step` nanoseconds since the start of 1970.
    pub(crate) fn cut_to(self, step: i128) -> Self {
        self.moved(-self.nanoseconds_since_start().rem_euclid(step))
    }

    /// Returns the time that is later by this number of nanoseconds.
    pub(crate) fn moved(self, nanoseconds: i128) -> Self {
        let moved = self.nanoseconds_since_start() + nanoseconds;
        Self {
            seconds: moved.div_euclid(1_000_000_000) as i64,
            nanoseconds: moved.rem_euclid(1_000_000_000) as u32,
        }
    }
}

/// Returns the number of hard links.
pub(crate) fn links(stat: &Stat) -> u64 {
    // The type of the field depends on the architecture.
    #[allow(clippy::unnecessary_cast)]
    let links = stat.st_nlink as u64;
    links
}

/// Returns the time of the content's last modification.
pub(crate) fn modified(stat: &Stat) -> FileTime {
    times(stat)[1]
}

/// Returns the time of the inode's last change.
pub(crate) fn changed(stat: &Stat) -> FileTime {
    times(stat)[2]
}

/// Returns the times of access, of modification and of the last change of the inode.
pub(crate) fn times(stat: &Stat) -> [FileTime; 3] {
    [
        (stat.st_atime, stat.st_atime_nsec),
        (stat.st_mtime, stat.st_mtime_nsec),
        (stat.st_ctime, stat.st_ctime_nsec),
    ]
    .map(|(seconds, nanoseconds)| FileTime {
        seconds,
        nanoseconds: nanoseconds as u32,
    })
}

/// The device and the inode number of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct FileId {
    /// The device number in the kernel's form: 12 bits of major, 20 bits of minor.
    pub(crate) device: u32,
    pub(crate) inode: u64,
}

impl FileId {
    #[inline]
    pub(crate) fn of(stat: &Stat) -> Self {
        Self::new(stat.st_dev as Dev, stat.st_ino)
    }

    #[inline]
    fn new(device: Dev, inode: u64) -> Self {
        Self {
            device: major(device) << 20 | minor(device) & 0xf_ffff,
            inode,
        }
    }
}

/// A directory's [`FileId`] and its time of birth, if the filesystem keeps one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(super) inode: u64,
    /// The device number in the upper half. The lower half is a hash of the time of birth, or 0.
    pub(super) device_and_birth: u64,
}

impl Identity {
    /// Packs the device number, the inode number, and a hash of the time of birth. `birth` holds
    /// seconds and nanoseconds.
    pub(crate) fn new(file: FileId, birth: Option<(i64, u32)>) -> Self {
        let birth = birth.map_or(0, |(seconds, nanos)| {
            nanos ^ (seconds as u32).rotate_left(16)
        });
        Self {
            inode: file.inode,
            device_and_birth: u64::from(file.device) << 32 | u64::from(birth),
        }
    }

    /// Returns the device and inode numbers without the time of birth, for a comparison with
    /// other files.
    pub(crate) fn file(self) -> FileId {
        FileId {
            device: self.device(),
            inode: self.inode,
        }
    }

    pub(crate) fn device(self) -> u32 {
        (self.device_and_birth >> 32) as u32
    }

    /// Returns a hash of the time of birth, or 0 if it is unknown.
    pub(crate) fn birth(self) -> u32 {
        self.device_and_birth as u32
    }

    /// Returns `true` if all but the device is equal. That says little if the time of birth is unknown.
    pub(crate) fn may_be_shown_as(self, other: Self) -> bool {
        self.birth() == other.birth() && self.inode == other.inode
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_device_or_another_known_mount_is_not_the_same() {
        let mount = |device, id| Mount { device, id };
        for (other, expected) in [
            (mount(1, Some(7)), true),
            (mount(1, None), true),
            (mount(1, Some(8)), false),
            (mount(2, Some(7)), false),
            (mount(2, None), false),
        ] {
            assert_eq!(mount(1, Some(7)).is_same(other), expected, "{other:?}");
            assert_eq!(other.is_same(mount(1, Some(7))), expected, "{other:?}");
        }
    }

    /// Answers `first` to the call that knows flags, `second` to the older one.
    fn check_where(first: Result<(), Errno>, second: Result<(), Errno>) -> Result<(), Errno> {
        check_access_by(Symlinks::NoFollow, |flags| match flags.is_empty() {
            false => first,
            true => second,
        })
    }

    #[test]
    fn a_call_that_is_missing_or_refused_by_a_sandbox_falls_back_on_the_older_one() {
        for refused in [Errno::NOSYS, Errno::PERM] {
            // The older call returns EPERM for an immutable file.
            for answer in [Ok(()), Err(Errno::ACCESS), Err(Errno::PERM)] {
                assert_eq!(check_where(Err(refused), answer), answer);
            }
        }
    }

    #[test]
    fn the_answer_of_the_newer_call_is_final() {
        for answer in [Ok(()), Err(Errno::ACCESS), Err(Errno::ROFS)] {
            let found = check_access_by(Symlinks::Follow, |flags| {
                assert_eq!(flags, AtFlags::EACCESS);
                answer
            });
            assert_eq!(found, answer);
        }
    }

    #[test]
    fn a_time_is_cut_to_a_step() {
        let at = |seconds, nanoseconds| FileTime {
            seconds,
            nanoseconds,
        };
        for (time, step, cut) in [
            (at(9, 123_456_789), 1, at(9, 123_456_789)),
            (at(9, 123_456_789), 10_000_000, at(9, 120_000_000)),
            (at(9, 123_456_789), 2_000_000_000, at(8, 0)),
            (at(-9, 123_456_789), 1_000_000_000, at(-9, 0)),
            (at(-9, 123_456_789), 2_000_000_000, at(-10, 0)),
        ] {
            assert_eq!(time.cut_to(step), cut, "{time:?} {step}");
        }
    }

    #[test]
    fn an_earlier_time_is_the_start_if_that_is_earlier() {
        let at = |seconds, nanoseconds| FileTime {
            seconds,
            nanoseconds,
        };
        for (time, earlier) in [
            (at(7, 5), FileTime::START),
            (at(0, 1), FileTime::START),
            (FileTime::START, at(-1, 0)),
            (at(-7, 5), at(-8, 5)),
        ] {
            assert_eq!(time.earlier(), earlier, "{time:?}");
        }
    }

    #[test]
    fn a_directory_that_was_born_later_is_another_one_with_the_same_numbers() {
        let file = FileId {
            device: 0xffff_ffff,
            inode: 7,
        };
        let [none, early, late] =
            [None, Some((1, 2)), Some((3, 2))].map(|birth| Identity::new(file, birth));
        assert!(none != early && early != late);
        for identity in [none, early, late] {
            assert_eq!(identity.file(), file);
        }
    }

    #[test]
    fn stat_and_statx_report_the_same_device_number() {
        let open = std::fs::File::open("/").unwrap();
        let stat = rustix::fs::fstat(&open).unwrap();
        let directory = crate::sys::stat_directory(std::os::fd::AsFd::as_fd(&open)).unwrap();
        assert_eq!(directory.identity.file(), FileId::of(&stat));
    }
}
