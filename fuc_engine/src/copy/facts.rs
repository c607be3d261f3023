//! Facts about a file, made once from a stat, and the entry that the facts are about.
//!
//! Nothing here makes a system call.

use std::ffi::CStr;
use std::hash::BuildHasher;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::fs::FileType;

use super::node::{CopyDir, CopyNode};
use crate::hashing::Seeded;
use crate::node::Place;
use crate::sys::{self, At, Blocking, Device, Stat};

pub(super) use crate::sys::{FileId, FileTime, Symlinks};

/// The part of a stat that decisions are based on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) id: FileId,
    pub(super) kind: FileType,
    /// Number of hard links.
    pub(super) links: u64,
    pub(super) bytes: u64,
    /// Times of access, modification and status change, in this order.
    pub(super) times: [FileTime; 3],
    /// The number of the device that a special file stands for.
    pub(super) number: Device,
}

impl Facts {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            id: FileId::of(stat),
            kind: sys::file_type(stat),
            // The type of the field depends on the architecture.
            #[allow(clippy::unnecessary_cast)]
            links: stat.st_nlink as u64,
            bytes: stat.st_size as u64,
            times: sys::times(stat),
            number: stat.st_rdev,
        }
    }

    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        self.id == other.id
    }

    pub(super) fn modified(&self) -> FileTime {
        self.times[1]
    }
}

#[cfg(test)]
impl Facts {
    /// Returns a file with one name and the times of 1970.
    pub(super) fn example(kind: FileType, inode: u64) -> Self {
        Self {
            id: FileId { device: 0, inode },
            kind,
            links: 1,
            bytes: 0,
            times: [FileTime::START; 3],
            number: 0,
        }
    }
}

/// Type, mode, owner, size and time of modification of a file. They show whether it is the file that
/// was seen before, if its inode number does not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint(NonZeroU64);

impl Fingerprint {
    pub(super) fn of(stat: &Stat) -> Self {
        let [_, modified, _] = sys::times(stat);
        let owner = (stat.st_uid, stat.st_gid);
        let modified = (modified.seconds, modified.nanoseconds);
        let facts = (stat.st_mode, owner, stat.st_size, modified);
        let hash = Seeded::default().hash_one(facts);
        Self(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN))
    }
}

/// The knowledge about the dest of an entry before its copy is made. `N` holds the name of a backup.
#[derive(Clone, Copy)]
pub(super) enum DestState<N> {
    /// Unknown: no rules apply, so the dest is looked at only if creation fails.
    Unchecked,
    /// A file that may be written to.
    Occupied,
    /// Nothing is there: it never was, was unlinked, or was renamed to `backup`. A file that
    /// another process creates there now is not written to.
    Vacant {
        /// New name of the file that was there, relative to the directory of the dest.
        backup: Option<N>,
    },
}

impl<N> DestState<N> {
    /// Changes the way in which the name of the backup is held.
    pub(super) fn map<'s, M>(&'s self, name: impl FnOnce(&'s N) -> M) -> DestState<M> {
        match self {
            Self::Unchecked => DestState::Unchecked,
            Self::Occupied => DestState::Occupied,
            Self::Vacant { backup } => DestState::Vacant {
                backup: backup.as_ref().map(name),
            },
        }
    }

    pub(super) fn backup(self) -> Option<N> {
        match self {
            Self::Vacant { backup } => backup,
            Self::Unchecked | Self::Occupied => None,
        }
    }
}

/// A source to copy, and the name of its dest: an entry of a node, or an operand.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) source_dir: BorrowedFd<'a>,
    /// One component, or the whole path of an operand.
    pub(super) source_name: &'a CStr,
    pub(super) dest_dir: BorrowedFd<'a>,
    pub(super) dest_name: &'a CStr,
    /// The type that the entry was visited with.
    pub(super) kind: FileType,
    /// Says whether a source that is a symbolic link is followed.
    pub(super) symlinks: Symlinks,
    pub(super) dest_state: DestState<&'a CStr>,
    /// `None` for an operand.
    pub(super) node: Option<&'a CopyNode>,
    /// Index of the operand that the entry is or lies below.
    pub(super) operand: u32,
}

impl<'a> Entry<'a> {
    /// Describes an entry of `node`, whose directories are open. A symbolic link is not followed.
    pub(super) fn listed(
        node: &'a CopyNode,
        source_dir: BorrowedFd<'a>,
        dest_dir: BorrowedFd<'a>,
        listed: sys::Entry<'a>,
    ) -> Self {
        Self {
            source_dir,
            source_name: listed.name,
            dest_dir,
            dest_name: listed.name,
            kind: listed.kind(),
            symlinks: Symlinks::NoFollow,
            dest_state: DestState::Unchecked,
            node: Some(node),
            operand: node.place.operand,
        }
    }

    pub(super) fn following(self, symlinks: Symlinks) -> Self {
        Self { symlinks, ..self }
    }

    pub(super) fn is_operand(&self) -> bool {
        self.node.is_none()
    }

    /// Returns whether opening may wait for another process: for the other end of a FIFO that is
    /// an operand, but not below operands. Opening always waits for the holder of a lease.
    pub(super) fn blocking(&self) -> Blocking {
        match self.node {
            Some(_) => Blocking::OnlyForLease,
            None => Blocking::MayBlock,
        }
    }

    pub(super) fn source_at(&self) -> At<'a> {
        At {
            dir: self.source_dir,
            name: self.source_name,
            symlinks: self.symlinks,
        }
    }

    /// Returns the place of the dest itself, even if it is a symbolic link.
    pub(super) fn dest_at(&self) -> At<'a> {
        At {
            dir: self.dest_dir,
            name: self.dest_name,
            symlinks: Symlinks::NoFollow,
        }
    }
}

/// An entry that is kept for later, without the directories that it was found in. It delays the finish of its node.
pub(super) struct StoredEntry {
    /// `None` for an operand.
    pub(super) node: Option<CopyNode>,
    /// Name of the dest. In a node the source has the same name.
    pub(super) name: Box<CStr>,
    pub(super) operand: u32,
    kind: FileType,
    symlinks: Symlinks,
    dest_state: DestState<Box<CStr>>,
}

impl StoredEntry {
    pub(super) fn of(entry: &Entry<'_>) -> Self {
        if let Some(node) = entry.node {
            node.retain();
        }
        Self {
            node: entry.node.map(Arc::clone),
            name: entry.dest_name.into(),
            operand: entry.operand,
            kind: entry.kind,
            symlinks: entry.symlinks,
            dest_state: entry.dest_state.map(|&name| name.into()),
        }
    }

    /// Keeps a source of type `kind` that was queued as a directory. Takes over the use of its parent.
    pub(super) fn of_place(place: Place<CopyDir>, kind: FileType, symlinks: Symlinks) -> Self {
        Self {
            node: place.parent,
            name: (*place.name).into(),
            operand: place.operand,
            kind,
            symlinks,
            dest_state: DestState::Unchecked,
        }
    }

    /// Returns the entry as its directory lists it.
    pub(super) fn listed(&self) -> sys::Entry<'_> {
        sys::Entry::new(&self.name, self.kind)
    }

    /// Returns the entry as it was when it was stored. `entry` holds its names and directories.
    pub(super) fn restore<'a>(&'a self, entry: Entry<'a>) -> Entry<'a> {
        Entry {
            symlinks: self.symlinks,
            dest_state: self.dest_state.map(|name| &**name),
            ..entry
        }
    }
}
