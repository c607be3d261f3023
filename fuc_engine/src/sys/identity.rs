//! Identifies files.
//!
//! A [`FileId`] is unique among all files that exist at one moment. Two stats are of one file if their
//! `FileId`s are equal.
//!
//! An [`Identity`] also has the time of birth. So a new directory is not taken for a removed one whose
//! inode number it got. It is for directories that are closed and opened again. The time is compared
//! only on filesystems where it never changes. Each directory in flight stores one `Identity`, so the
//! time is packed and the whole takes 16 bytes.

use rustix::fs::{Dev, Stat, major, minor};

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
    pub(super) fn new(device: Dev, inode: u64) -> Self {
        Self {
            device: major(device) << 20 | minor(device) & 0xf_ffff,
            inode,
        }
    }
}

/// Returns the device number of a file, in the form of a stat.
pub(crate) fn device_of(id: FileId) -> Dev {
    rustix::fs::makedev(id.device >> 20, id.device & 0xf_ffff)
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
