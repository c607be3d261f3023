//! Entries on their way from one engine to another.

use std::ffi::CStr;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::io::Errno;
#[cfg(feature = "distribute")]
use serde::{Deserialize, Serialize};

use super::Ticket;
use crate::node::Side;
use crate::sys::{self, Identity};

/// Entries of one directory that a victim gives to a thief or to their home.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "distribute", derive(Serialize, Deserialize))]
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
    pub(crate) path: Vec<FileName>,
    /// The entries were not asked for: the engine that gets them is their home.
    pub(crate) is_for_home: bool,
    /// The time after which an engine that could not reach the parent gives up.
    #[cfg_attr(feature = "distribute", serde(skip))]
    pub(crate) last_try: Option<Instant>,
    /// Names of entries, after the type of each as in [`Listed::record_type`](sys::Listed::record_type).
    pub(crate) names: Vec<(u8, FileName)>,
}

/// A name in a directory: a single component, and neither `.` nor `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "distribute",
    derive(Serialize, Deserialize),
    serde(try_from = "Box<CStr>")
)]
pub(crate) struct FileName(Box<CStr>);

impl From<&CStr> for FileName {
    /// `name` comes from the kernel.
    fn from(name: &CStr) -> Self {
        Self(name.into())
    }
}

impl Deref for FileName {
    type Target = CStr;

    fn deref(&self) -> &CStr {
        &self.0
    }
}

#[cfg(feature = "distribute")]
impl TryFrom<Box<CStr>> for FileName {
    type Error = &'static str;

    fn try_from(name: Box<CStr>) -> Result<Self, Self::Error> {
        let bytes = name.to_bytes();
        let is_one_name = !matches!(bytes, b"" | b"." | b"..")
            && !bytes.contains(&b'/')
            && bytes.len() <= LONGEST_NAME;
        match is_one_name {
            true => Ok(Self(name)),
            false => Err("not a name in a directory"),
        }
    }
}

/// The longest name that is accepted, in bytes. No filesystem has longer ones.
#[cfg(feature = "distribute")]
const LONGEST_NAME: usize = 4095;

/// The identity of a directory, as far as all machines agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "distribute", derive(Serialize, Deserialize))]
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
    /// Returns the ticket by which the engine that has given it knows it.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what another engine gets.
    fn travelled<T: Serialize + for<'a> Deserialize<'a>>(sent: &T) -> postcard::Result<T> {
        postcard::from_bytes(&postcard::to_allocvec(sent).unwrap())
    }

    #[test]
    fn what_is_stolen_arrives_as_it_was_sent() {
        let names = (0..=u8::MAX).map(|record_type| (record_type, c"\xff\n".into()));
        let sent = Stolen {
            ticket: Ticket {
                victim: 1,
                number: 7,
            },
            operand: 2,
            source: ParentId {
                inode: u64::MAX,
                birth: 9,
            },
            dest: ParentId::UNKNOWN,
            inheritance: 4,
            path: vec![c"b".into(), c"...".into()],
            is_for_home: true,
            last_try: None,
            names: names.collect(),
        };
        assert_eq!(travelled(&sent), Ok(sent));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let long = std::ffi::CString::new([b'a'; LONGEST_NAME + 1]).unwrap();
        for name in [c"", c".", c"..", c"/", c"a/b", &*long] {
            assert!(travelled(&FileName::from(name)).is_err(), "{name:?}");
        }
    }
}
