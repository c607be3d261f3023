//! One entry of a snapshot, and its description.

use std::{ffi::OsString, fmt::Write as _, ops::RangeInclusive, time::Duration};

use rustix::fs::FileType;

use super::{Snapshot, content::Content, shortened};

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A Unix-domain socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// Any other type.
    Unknown,
}

impl Kind {
    pub(super) fn of(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice => Self::CharDevice,
            FileType::BlockDevice => Self::BlockDevice,
            FileType::Unknown => Self::Unknown,
        }
    }
}

/// A timestamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    At {
        seconds: i64,
        nanos: i64,
    },
    /// Some time during the run. Such times differ from run to run, so all of them are equal.
    Fresh,
}

/// An entry of a tree. An attribute is `None` if it does not count, or if entries of this type do not have it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Number of the parent directory. The root is its own parent.
    pub(super) parent: usize,
    pub(super) name: OsString,
    pub(super) kind: Kind,
    pub(super) mode: Option<u32>,
    pub(super) size_bytes: Option<u64>,
    pub(super) content: Option<Content>,
    pub(super) target: Option<OsString>,
    /// Number of the first entry with the same inode, if there are several.
    pub(super) same_inode_as: Option<usize>,
    pub(super) device: Option<(u32, u32)>,
    pub(super) owner: Option<(u32, u32)>,
    pub(super) mtime: Option<Moment>,
    pub(super) atime: Option<Moment>,
    pub(super) xattrs: Option<Vec<(OsString, Vec<u8>)>>,
    pub(super) has_holes: Option<bool>,
    /// `true` if the entries of this directory could not be listed or looked up.
    pub(super) locked: bool,
}

impl Entry {
    pub(super) fn freshen(&mut self, period: &RangeInclusive<Duration>) {
        for time in [&mut self.mtime, &mut self.atime].into_iter().flatten() {
            if let Moment::At { seconds, nanos } = *time
                && let (Ok(seconds), Ok(nanos)) = (u64::try_from(seconds), u32::try_from(nanos))
                && period.contains(&Duration::new(seconds, nanos))
            {
                *time = Moment::Fresh;
            }
        }
    }
}

impl Snapshot {
    /// Describes an entry by labelled facts. Facts of two entries are compared if they have the same label.
    pub(super) fn facts(&self, index: usize) -> Vec<(&'static str, String)> {
        let entry = &self.entries[index];
        let mut facts = vec![("type", format!("{:?}", entry.kind))];
        let mut tell = |label, fact: Option<String>| facts.extend(fact.map(|fact| (label, fact)));
        tell("mode", entry.mode.map(|mode| format!("mode {mode:o}")));
        tell("size", entry.size_bytes.map(|s| format!("{s} bytes")));
        tell("content", entry.content.as_ref().map(ToString::to_string));
        tell("target", entry.target.as_ref().map(|t| format!("-> {t:?}")));
        let link = entry.same_inode_as;
        tell("link", link.map(|i| format!("= {}", self.full_path(i))));
        let pair = |name, pair: Option<(u32, u32)>| pair.map(|(a, b)| format!("{name} {a}:{b}"));
        tell("device", pair("device", entry.device));
        tell("owner", pair("owner", entry.owner));
        tell("mtime", entry.mtime.as_ref().map(|t| t.told("mtime")));
        tell("atime", entry.atime.as_ref().map(|t| t.told("atime")));
        tell("xattrs", entry.xattrs.as_deref().and_then(told_xattrs));
        let holes = entry.has_holes.filter(|&has| has);
        tell("holes", holes.map(|_| "has holes".to_owned()));
        tell("locked", entry.locked.then(|| "locked".to_owned()));
        facts
    }

    /// Returns the path of an entry for messages: a long path is shortened.
    pub(super) fn shown_path(&self, index: usize) -> String {
        shortened(&self.full_path(index))
    }

    fn full_path(&self, mut index: usize) -> String {
        let mut names = Vec::new();
        while index != 0 {
            names.push(self.entries[index].name.to_string_lossy());
            index = self.entries[index].parent;
        }
        names.reverse();
        if names.is_empty() {
            ".".to_owned()
        } else {
            names.join("/").escape_debug().to_string()
        }
    }
}

impl Moment {
    fn told(&self, name: &str) -> String {
        match self {
            Self::At { seconds, nanos } => format!("{name} {seconds}.{nanos:09}"),
            Self::Fresh => format!("{name} fresh"),
        }
    }
}

fn told_xattrs(xattrs: &[(OsString, Vec<u8>)]) -> Option<String> {
    let mut told = String::new();
    for (name, value) in xattrs {
        write!(told, "{}={} ", name.display(), value.escape_ascii())
            .expect("BUG: a string can't fail");
    }
    (!told.is_empty()).then(|| format!("xattrs {}", told.trim_end()))
}
