//! The form in which entries and ranges of files go from one engine to another.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::Ticket;
use super::bytes::{take, take_names};
use super::range::FileRange;
use crate::node::Side;
use crate::sys::{self, Identity};

/// Directories with the same parent that a victim gives to a thief, or other entries of one directory that are
/// entrusted to their home, or a range of a file.
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
    /// The type of the entries, as their directory has listed them. Directories are stolen, and others are entrusted.
    pub(crate) kind: FileType,
    /// The names on the way from the operand to the parent. There are none if the operand is the parent.
    pub(crate) path: Vec<Box<CStr>>,
    /// The entries' names in the parent. There is at least one.
    pub(crate) names: Vec<Box<CStr>>,
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
        bytes.push(self.inheritance);
        bytes.push((self.kind.as_raw_mode() >> KIND_SHIFT) as u8);
        for names in [&self.path, &self.names] {
            bytes.extend_from_slice(&(names.len() as u32).to_le_bytes());
            names
                .iter()
                .for_each(|name| bytes.extend_from_slice(name.to_bytes_with_nul()));
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
        let [inheritance, kind] = take(bytes)?;
        let kind = FileType::from_raw_mode(u32::from(kind) << KIND_SHIFT);
        let (path, names) = (take_names(bytes)?, take_names(bytes)?);
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
            kind,
            path,
            names,
            range,
        })
    }
}

/// Position of the type in a mode. What is left of the mode fits into a byte.
const KIND_SHIFT: u32 = 12;

#[cfg(test)]
mod tests {
    use super::super::bytes::LONGEST_NAME;
    use super::*;
    use std::ffi::CString;

    fn stolen(path: &[&CStr], names: &[&CStr]) -> Stolen {
        let boxed = |names: &[&CStr]| names.iter().map(|&name| name.into()).collect();
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
            kind: FileType::Directory,
            path: boxed(path),
            names: boxed(names),
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
            kind: FileType::RegularFile,
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
        use FileType::*;
        for kind in [RegularFile, Directory, Symlink, Fifo, Socket, Unknown] {
            let stolen = Stolen {
                kind,
                ..stolen(&[], &[c"a"])
            };
            let bytes = encoded(&stolen);
            assert_eq!(Stolen::decode(&mut &bytes[..]), Some(stolen));
        }
    }

    #[test]
    fn ranges_are_read_as_they_were_written() {
        let [first, second] = [0..1, 7..u64::MAX].map(|content| range(c".cpz-1", content));
        assert_read_as_written(first, second);
    }

    #[test]
    fn ranges_that_make_no_sense_are_refused() {
        let of_two_files = Stolen {
            names: vec![c"a".into(), c"b".into()],
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
