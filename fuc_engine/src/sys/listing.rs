//! Reads directory entries, a buffer at a time.
//!
//! A filled [`Listing`] owns its entries. So it can be given to another thread while the next
//! entries of the directory go into a second listing.

use std::ffi::CStr;
use std::mem::offset_of;
use std::os::fd::BorrowedFd;

use linux_raw_sys::general::linux_dirent64;
use rustix::fs::{FileType, SeekFrom};
use rustix::io::Errno;

use super::calls::{getdents64, retry_on_intr};
use super::data::seek;

// The offsets within the record of one entry.
const RECLEN: usize = offset_of!(linux_dirent64, d_reclen);
const TYPE: usize = offset_of!(linux_dirent64, d_type);
const NAME: usize = offset_of!(linux_dirent64, d_name);

/// The bit of a record's type that marks a skipped directory. The types of directory entries have four bits.
const SKIPPED: u8 = 0x80;

/// A buffer of directory entries.
pub(crate) struct Listing {
    bytes: Vec<u8>,
}

impl Listing {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
        }
    }

    /// Returns `true` if one more entry might not have fitted, so that the directory probably has more.
    pub(crate) fn is_nearly_full(&self) -> bool {
        /// More than a record with a name of 255 bytes, as some filesystems leave a bit more room.
        const RECORD_BYTES: usize = 1024;
        self.bytes.capacity() - self.bytes.len() < RECORD_BYTES
    }

    /// Replaces the content by the directory's next entries. Returns `false` at the end of the directory.
    ///
    /// # Errors
    /// `ENOENT` if another process has removed the directory, which must have been empty for that. But some FUSE servers
    /// say so about a directory that is there.
    pub(crate) fn refill(&mut self, dir: BorrowedFd<'_>) -> Result<bool, Errno> {
        retry_on_intr(|| getdents64(dir, &mut self.bytes))?;
        Ok(!self.bytes.is_empty())
    }

    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Removes the entries for which `decide` returns `None`. The others get the kind and the mark that it returns.
    pub(crate) fn retain(&mut self, mut decide: impl FnMut(Listed<'_>) -> Option<Listed<'_>>) {
        let mut kept_bytes = 0;
        let mut start = 0;
        loop {
            let mut entries = Entries {
                rest: &self.bytes[start..],
            };
            let Some(entry) = entries.next_record() else {
                break;
            };
            let end = self.bytes.len() - entries.rest.len();
            let kept = if entry.is_dot() { None } else { decide(entry) };
            if let Some(record_type) = kept.map(|entry| entry.record_type) {
                self.bytes.copy_within(start..end, kept_bytes);
                self.bytes[kept_bytes + TYPE] = record_type;
                kept_bytes += end - start;
            }
            start = end;
        }
        self.bytes.truncate(kept_bytes);
    }

    /// Returns `true` if there are no entries, not even `.` and `..`.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the entries without `.` and `..`.
    pub(crate) fn entries(&self) -> Entries<'_> {
        Entries { rest: &self.bytes }
    }
}

/// Adds entries, whose names must not be longer than 65,000 bytes.
impl<'a> Extend<Listed<'a>> for Listing {
    fn extend<T: IntoIterator<Item = Listed<'a>>>(&mut self, entries: T) {
        for entry in entries {
            let name = entry.name.to_bytes_with_nul();
            let start = self.bytes.len();
            let length = (NAME + name.len()) as u16;
            self.bytes.resize(start + usize::from(length), 0);
            let record = &mut self.bytes[start..];
            record[RECLEN..RECLEN + 2].copy_from_slice(&length.to_ne_bytes());
            record[TYPE] = entry.record_type;
            record[NAME..].copy_from_slice(name);
        }
    }
}

/// One name in a directory.
#[derive(Clone, Copy)]
pub(crate) struct Listed<'a> {
    pub(crate) name: &'a CStr,
    /// The type in the record, perhaps with [`SKIPPED`]. One byte for both: with two fields, the removal of a file
    /// takes 12 more instructions. The guard's case `rmz-files` counts them.
    pub(crate) record_type: u8,
}

impl<'a> Listed<'a> {
    pub(crate) fn new(name: &'a CStr, kind: FileType) -> Self {
        // The types of directory entries are the types of st_mode, shifted.
        let record_type = (kind.as_raw_mode() >> 12) as u8;
        Self { name, record_type }
    }

    /// Marks a directory that the filter skips: only its entries are processed.
    pub(crate) fn as_skipped(self) -> Self {
        let record_type = self.record_type | SKIPPED;
        Self {
            record_type,
            ..self
        }
    }

    /// Returns the type that the directory records, or `Unknown` if the filesystem records none. If there is a
    /// filter, returns the type that the filter was told.
    #[inline]
    pub(crate) fn kind(self) -> FileType {
        // The bits that do not belong to a type are ignored.
        FileType::from_raw_mode(u32::from(self.record_type) << 12)
    }

    pub(crate) fn is_skipped(self) -> bool {
        self.record_type & SKIPPED != 0
    }

    #[inline]
    fn is_dot(self) -> bool {
        matches!(self.name.to_bytes(), b"." | b"..")
    }
}

/// The entries of a [`Listing`].
#[derive(Clone)]
pub(crate) struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Entries<'a> {
    #[inline]
    fn next_record(&mut self) -> Option<Listed<'a>> {
        let header = self.rest.get(..NAME)?;
        let length = usize::from(u16::from_ne_bytes([header[RECLEN], header[RECLEN + 1]]));
        let (record, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        let name = CStr::from_bytes_until_nul(record.get(NAME..)?).ok()?;
        Some(Listed {
            name,
            record_type: header[TYPE],
        })
    }
}

impl Entries<'_> {
    /// Returns a listing of the entries that have not been returned yet, without the room of a buffer.
    pub(crate) fn to_listing(&self) -> Listing {
        Listing {
            bytes: self.rest.to_vec(),
        }
    }

    /// Returns the first half and moves the rest to `second`. A single entry stays in the first half.
    pub(crate) fn halve(self, second: &mut Listing) -> Self {
        let count = self.clone().count();
        let mut left = self.clone();
        left.by_ref().take(count.div_ceil(2)).for_each(drop);
        let (first, left) = self.rest.split_at(self.rest.len() - left.rest.len());
        second.bytes.clear();
        second.bytes.extend_from_slice(left);
        Entries { rest: first }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Listed<'a>;

    #[inline]
    fn next(&mut self) -> Option<Listed<'a>> {
        loop {
            let entry = self.next_record()?;
            if !entry.is_dot() {
                return Some(entry);
            }
        }
    }
}

/// Returns `true` if a directory has no entries.
///
/// The listing of `dir` must be at its beginning. It is there again afterwards.
pub(crate) fn is_empty_directory(dir: BorrowedFd<'_>) -> Result<bool, Errno> {
    let mut listing = Listing::with_capacity(1024);
    let mut is_empty = true;
    while is_empty && listing.refill(dir)? {
        is_empty = listing.entries().next().is_none();
    }
    seek(dir, SeekFrom::Start(0))?;
    Ok(is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    /// Lists a directory of files with these names.
    fn listing_of(names: &[&str]) -> Listing {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let open = std::fs::File::open(dir.path()).unwrap();
        let mut listing = Listing::with_capacity(1024);
        assert!(listing.refill(open.as_fd()).unwrap());
        listing
    }

    #[test]
    fn the_rest_is_all_that_was_not_returned() {
        let listing = listing_of(&["a", "b", "c"]);
        let mut entries = listing.entries();
        let first = entries.next().unwrap().name;
        let rest = entries.to_listing();
        assert_eq!(rest.entries().count(), 2);
        assert!(rest.entries().all(|entry| entry.name != first));
        entries.by_ref().for_each(drop);
        assert!(entries.to_listing().is_empty());
    }

    #[test]
    fn given_entries_are_listed_as_they_are() {
        let mut listing = Listing::with_capacity(16);
        let given = [
            Listed::new(c"a", FileType::RegularFile),
            Listed::new(c"a longer name", FileType::Symlink),
            Listed::new(c"b", FileType::Unknown),
        ];
        listing.extend(given);
        let listed = listing.entries().map(|entry| (entry.name, entry.kind()));
        let given = given.map(|entry| (entry.name, entry.kind()));
        assert_eq!(listed.collect::<Vec<_>>(), given);
    }

    #[test]
    fn entries_that_are_retained_may_get_another_type() {
        const KINDS: [FileType; 8] = [
            FileType::RegularFile,
            FileType::Directory,
            FileType::Symlink,
            FileType::Fifo,
            FileType::Socket,
            FileType::CharacterDevice,
            FileType::BlockDevice,
            FileType::Unknown,
        ];
        let mut listing = listing_of(&["a"]);
        for kind in KINDS {
            for is_skipped in [true, false] {
                listing.retain(|entry| {
                    let entry = Listed::new(entry.name, kind);
                    Some(if is_skipped {
                        entry.as_skipped()
                    } else {
                        entry
                    })
                });
                let left: Vec<_> = listing.entries().collect();
                let [entry] = left[..] else {
                    panic!("{} entries", left.len());
                };
                assert_eq!(
                    (entry.name, entry.kind(), entry.is_skipped()),
                    (c"a", kind, is_skipped)
                );
            }
        }
    }

    #[test]
    fn a_half_that_is_split_off_is_listed_elsewhere() {
        let listing = listing_of(&["a", "b", "c", "d", "e", "f"]);
        let mut entries = listing.entries();
        let mut names = vec![entries.next().unwrap().name.to_owned()];
        let mut half = Listing::with_capacity(1024);
        names.extend(entries.halve(&mut half).map(|entry| entry.name.to_owned()));
        assert_eq!((names.len(), half.entries().count()), (4, 2));
        names.extend(half.entries().map(|entry| entry.name.to_owned()));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 6);
        let mut last = half.entries();
        last.next();
        let mut none = Listing::with_capacity(1024);
        assert_eq!(
            (last.halve(&mut none).count(), none.entries().count()),
            (1, 0)
        );
    }

    #[test]
    fn a_check_for_emptiness_leaves_a_directory_at_its_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let is_empty = |open: &std::fs::File| crate::sys::is_empty_directory(open.as_fd());
        let open = std::fs::File::open(dir.path()).unwrap();
        assert_eq!(is_empty(&open), Ok(true));
        std::fs::write(dir.path().join("a"), "").unwrap();
        assert_eq!(is_empty(&open), Ok(false));
        let mut listing = Listing::with_capacity(1024);
        assert!(listing.refill(open.as_fd()).unwrap());
        assert_eq!(listing.entries().count(), 1);
    }
}
