//! The form in which entries and ranges of files go from one engine to another.

use std::ffi::CStr;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use super::{Ticket, take};
use crate::node::Side;
use crate::sys::{self, Identity};

/// Entries of one directory that a victim gives to a thief or to their home, or a range of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stolen {
    pub(crate) ticket: Ticket,
    /// The index of the operand below which the entries are.
    pub(crate) operand: u32,
    pub(crate) source: ParentId,
    /// The parent on the other side of a copy. It is unknown in a removal.
    pub(crate) dest: ParentId,
    /// The part of the parent's state that its entries need, in a form that only a removal or only a copy knows.
    pub(crate) inheritance: u8,
    /// The names on the way from the operand to the parent. There are none if the operand is the parent.
    pub(crate) path: Vec<Box<CStr>>,
    /// The entries' names in the parent, after the type of each as in [`Entry::record_type`]. There is at least one.
    pub(crate) names: Vec<(u8, Box<CStr>)>,
    /// The entries were not asked for: the engine that gets them is their home.
    pub(crate) is_for_home: bool,
    /// The part of the only entry that the thief copies. `None`: all of each entry.
    pub(crate) range: Option<Box<FileRange>>,
}

/// The identity of a directory, as far as all machines agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParentId {
    /// The inode number, or 0 if the victim does not know it. Then no engine reaches the parent.
    pub(crate) inode: u64,
    /// A hash of the time of birth, or 0 if it is unknown.
    pub(crate) birth: u32,
}

impl ParentId {
    pub(crate) const UNKNOWN: Self = Self { inode: 0, birth: 0 };

    pub(crate) fn of(identity: Identity) -> Self {
        Self {
            inode: identity.file().inode,
            birth: identity.birth(),
        }
    }

    fn encode(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.inode.to_le_bytes());
        bytes.extend_from_slice(&self.birth.to_le_bytes());
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self {
            inode: u64::from_le_bytes(take(bytes)?),
            birth: u32::from_le_bytes(take(bytes)?),
        })
    }

    /// Returns the identity of `dir` on this machine. Fails unless it is this directory.
    pub(crate) fn check(self, dir: BorrowedFd<'_>) -> Result<Identity, Errno> {
        let found = sys::stat_directory(dir)?.identity;
        let id = Self::of(found);
        let is_same_birth = id.birth == self.birth || id.birth == 0 || self.birth == 0;
        let is_same = id.inode == self.inode && (is_same_birth || !sys::keeps_identities(dir));
        is_same.then_some(found).ok_or(Errno::STALE)
    }
}

impl Stolen {
    /// Returns the ticket by which the engine that has given the entries knows them.
    #[must_use]
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Returns the identity of the parent on one side.
    pub(crate) fn parent(&self, side: Side) -> ParentId {
        match side {
            Side::Source => self.source,
            Side::Dest => self.dest,
        }
    }

    /// Appends a form that [`decode`](Self::decode) reads.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        self.ticket.encode(bytes);
        bytes.extend_from_slice(&self.operand.to_le_bytes());
        self.source.encode(bytes);
        self.dest.encode(bytes);
        bytes.extend_from_slice(&[self.inheritance, u8::from(self.is_for_home)]);
        bytes.extend_from_slice(&(self.path.len() as u32).to_le_bytes());
        for name in &self.path {
            bytes.extend_from_slice(name.to_bytes_with_nul());
        }
        bytes.extend_from_slice(&(self.names.len() as u32).to_le_bytes());
        for (record_type, name) in &self.names {
            bytes.push(*record_type);
            bytes.extend_from_slice(name.to_bytes_with_nul());
        }
        bytes.push(u8::from(self.range.is_some()));
        if let Some(range) = &self.range {
            range.encode(bytes);
        }
    }

    /// Reads what [`encode`](Self::encode) has written, from the start of `bytes`, which it shortens. Returns `None`
    /// if these bytes cannot come from there. Each name is then a single component, and is neither `.` nor `..`.
    #[must_use]
    pub fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let ticket = Ticket::decode(bytes)?;
        let operand = u32::from_le_bytes(take(bytes)?);
        let (source, dest) = (ParentId::decode(bytes)?, ParentId::decode(bytes)?);
        let [inheritance, is_for_home] = take(bytes)?;
        let path = take_list(bytes, take_name)?;
        let names = take_list(bytes, |bytes| {
            let [record_type] = take(bytes)?;
            Some((record_type, take_name(bytes)?))
        })?;
        let range = match take(bytes)? {
            [0] => None,
            [1] if names.len() == 1 => Some(Box::new(FileRange::decode(bytes)?)),
            _ => return None,
        };
        (!names.is_empty()).then_some(Self {
            ticket,
            operand,
            source,
            dest,
            inheritance,
            path,
            names,
            is_for_home: is_for_home != 0,
            range,
        })
    }
}

/// A range of one file that is copied by several engines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileRange {
    /// The inode number of the source.
    pub(crate) source_inode: u64,
    /// The name of the incomplete dest, in the parent.
    pub(crate) dest_name: Box<CStr>,
    /// The inode number of the incomplete dest.
    pub(crate) dest_inode: u64,
    /// Positions of the content. The range is not empty.
    pub(crate) content: Range<u64>,
}

impl FileRange {
    pub(super) fn encode(&self, bytes: &mut Vec<u8>) {
        let Range { start, end } = self.content;
        for number in [self.source_inode, self.dest_inode, start, end] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(self.dest_name.to_bytes_with_nul());
    }

    pub(super) fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let mut number = || Some(u64::from_le_bytes(take(bytes)?));
        let (source_inode, dest_inode) = (number()?, number()?);
        let content = number()?..number()?;
        let dest_name = take_name(bytes)?;
        (!content.is_empty()).then_some(Self {
            source_inode,
            dest_name,
            dest_inode,
            content,
        })
    }
}

/// The longest name that is accepted, in bytes. No filesystem has longer ones.
const LONGEST_NAME: usize = 4095;

/// Takes a name from the start of `bytes`. Returns `None` unless it is a single component, and neither `.` nor `..`.
fn take_name(bytes: &mut &[u8]) -> Option<Box<CStr>> {
    let name = CStr::from_bytes_until_nul(bytes).ok()?;
    *bytes = &bytes[name.count_bytes() + 1..];
    let is_one_name = !matches!(name.to_bytes(), b"" | b"." | b"..")
        && !name.to_bytes().contains(&b'/')
        && name.count_bytes() <= LONGEST_NAME;
    is_one_name.then(|| name.into())
}

/// Takes a list from the start of `bytes`.
fn take_list<T>(bytes: &mut &[u8], take_item: impl Fn(&mut &[u8]) -> Option<T>) -> Option<Vec<T>> {
    let count = u32::from_le_bytes(take(bytes)?);
    (0..count).map(|_| take_item(bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    const DIRECTORY: u8 = 4;

    fn stolen(path: &[&CStr], names: &[&CStr]) -> Stolen {
        let boxed =
            |names: &[&CStr]| -> Vec<Box<CStr>> { names.iter().map(|&name| name.into()).collect() };
        Stolen {
            ticket: Ticket {
                victim: 1,
                number: 7,
            },
            operand: 2,
            source: ParentId {
                inode: u64::MAX,
                birth: 9,
            },
            dest: ParentId {
                inode: 3,
                birth: u32::MAX,
            },
            inheritance: 4,
            path: boxed(path),
            names: (boxed(names).into_iter())
                .map(|name| (DIRECTORY, name))
                .collect(),
            is_for_home: path.is_empty(),
            range: None,
        }
    }

    fn range(dest_name: &CStr, content: std::ops::Range<u64>) -> Stolen {
        let range = FileRange {
            source_inode: 4,
            dest_name: dest_name.into(),
            dest_inode: u64::MAX - 1,
            content,
        };
        Stolen {
            range: Some(Box::new(range)),
            ..stolen(&[c"b"], &[c"c"])
        }
    }

    fn encoded(stolen: &Stolen) -> Vec<u8> {
        let mut bytes = Vec::new();
        stolen.encode(&mut bytes);
        bytes
    }

    #[track_caller]
    fn assert_read_as_written(first: Stolen, second: Stolen) {
        let bytes = [encoded(&first), encoded(&second), b"rest".to_vec()].concat();
        let mut bytes = &bytes[..];
        assert_eq!(Stolen::decode(&mut bytes), Some(first));
        assert_eq!(Stolen::decode(&mut bytes), Some(second));
        assert_eq!(bytes, b"rest");
    }

    #[test]
    fn stolen_directories_are_read_as_they_were_written() {
        let first = stolen(&[], &[c"a", c"\xff\n"]);
        let second = stolen(&[c"b", c"..."], &[c"c"]);
        assert_read_as_written(first, second);
    }

    #[test]
    fn each_type_is_read_as_it_was_written() {
        let names = (0..=u8::MAX).map(|record_type| (record_type, c"a".into()));
        let stolen = Stolen {
            names: names.collect(),
            ..stolen(&[], &[])
        };
        let bytes = encoded(&stolen);
        assert_eq!(Stolen::decode(&mut &bytes[..]), Some(stolen));
    }

    #[test]
    fn ranges_are_read_as_they_were_written() {
        let [first, second] = [0..1, 7..u64::MAX].map(|content| range(c".cpz-1", content));
        assert_read_as_written(first, second);
    }

    #[test]
    fn ranges_that_make_no_sense_are_refused() {
        let of_two_files = Stolen {
            names: vec![(8, c"a".into()), (8, c"b".into())],
            ..range(c"d", 0..1)
        };
        let reversed = std::ops::Range { start: 2, end: 1 };
        for stolen in [range(c"d", 1..1), range(c"d", reversed), of_two_files] {
            assert_eq!(Stolen::decode(&mut &encoded(&stolen)[..]), None);
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let long = CString::new([b'a'; LONGEST_NAME + 1]).unwrap();
        for name in [c"", c".", c"..", c"/", c"a/b", &*long] {
            for bytes in [
                encoded(&stolen(&[name], &[c"a"])),
                encoded(&stolen(&[], &[c"a", name])),
                encoded(&range(name, 0..1)),
            ] {
                assert_eq!(Stolen::decode(&mut &bytes[..]), None, "{name:?}");
            }
        }
    }

    #[test]
    fn incomplete_bytes_are_refused() {
        for stolen in [stolen(&[c"b"], &[c"c"]), range(c"d", 1..2)] {
            let bytes = encoded(&stolen);
            for end in 0..bytes.len() {
                assert_eq!(Stolen::decode(&mut &bytes[..end]), None, "{end} bytes");
            }
        }
        assert_eq!(Stolen::decode(&mut &encoded(&stolen(&[], &[]))[..]), None);
    }
}
