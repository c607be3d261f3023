//! Takes a snapshot. It records the entries of a directory in the order of their names, and then enters the
//! sub-directories in the same order.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    io,
    ops::RangeInclusive,
    os::{
        fd::{AsFd as _, AsRawFd as _},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use rustix::{
    buffer::spare_capacity,
    fs::{
        AtFlags, OFlags, Timespec, Timestamps, lgetxattr, llistxattr, major, minor, readlinkat,
        utimensat,
    },
    io::Errno,
};

use super::{Attributes, Entry, Kind, content::content, full_path};
use crate::{
    tree::OMIT,
    walk::{Found, Visitor, open_unnoticed, walk},
};

/// The kernel's limit for the value of an extended attribute and for the list of their names.
pub(crate) const XATTR_MAX_BYTES: usize = 64 * 1024;

pub(super) fn record(
    path: &Path,
    attributes: Attributes,
    fresh: &RangeInclusive<i64>,
) -> io::Result<Vec<Entry>> {
    let mut recorder = Recorder {
        attributes,
        fresh,
        entries: Vec::new(),
        first_of: HashMap::new(),
    };
    walk(path, &mut recorder)?;
    // Forget the name of the root, because two equal trees may have roots of different names.
    recorder.entries[0].name = OsString::new();
    Ok(recorder.entries)
}

struct Recorder<'a> {
    attributes: Attributes,
    /// Times within this period, in seconds since 1970, are equal.
    fresh: &'a RangeInclusive<i64>,
    entries: Vec<Entry>,
    /// The first entry of each inode that has several names.
    first_of: HashMap<(u64, u64), usize>,
}

impl Visitor for Recorder<'_> {
    fn visit(&mut self, found: &Found<'_>, parent: usize) -> io::Result<usize> {
        let wanted = self.attributes;
        let mut facts = found.facts(wanted)?;
        let time = |time: Timespec| match self.fresh.contains(&time.tv_sec) {
            true => "fresh".to_owned(),
            false => format!("{}.{:09}", time.tv_sec, time.tv_nsec),
        };
        let times = found.times();
        for (attribute, label, value) in [
            (Attributes::MTIME, "mtime", times.last_modification),
            (Attributes::ATIME, "atime", times.last_access),
        ] {
            if wanted.contains(attribute) {
                facts.push((label, format!("{label} {}", time(value))));
            }
        }
        let kind = found.kind();
        self.entries.push(Entry {
            parent,
            name: OsStr::from_bytes(found.name.to_bytes()).to_owned(),
            kind,
            facts,
        });
        let has_links = kind != Kind::Directory && found.stat.st_nlink > 1;
        if has_links && wanted.contains(Attributes::LINKS) {
            self.link(found.identity());
        }
        Ok(self.entries.len() - 1)
    }

    fn locked_out(&mut self, directory: usize) {
        self.mark(directory, ("locked", "locked".to_owned()));
    }
}

impl Recorder<'_> {
    /// Marks the last entry and the first one of this inode as names of one file.
    fn link(&mut self, inode: (u64, u64)) {
        let this = self.entries.len() - 1;
        let first = *self.first_of.entry(inode).or_insert(this);
        if first != this {
            let link = ("link", format!("= {}", full_path(&self.entries, first)));
            self.mark(first, link.clone());
            self.mark(this, link);
        }
    }

    fn mark(&mut self, entry: usize, fact: (&'static str, String)) {
        let facts = &mut self.entries[entry].facts;
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    }
}

impl Found<'_> {
    /// Describes the type and the `wanted` attributes except times, by labelled facts.
    fn facts(&self, wanted: Attributes) -> io::Result<Vec<(&'static str, String)>> {
        let (kind, stat) = (self.kind(), &self.stat);
        let is_file = kind == Kind::RegularFile;
        let wants = |attribute| wanted.contains(attribute);
        let mut facts = Vec::new();
        let mut add = |label, fact| facts.push((label, fact));
        add("type", format!("{kind:?}"));
        if wants(Attributes::MODE) && kind != Kind::Symlink {
            add("mode", format!("mode {:o}", stat.st_mode & 0o7777));
        }
        if wants(Attributes::SIZE) && is_file {
            add("size", format!("{} bytes", stat.st_size));
        }
        if wants(Attributes::DATA) && is_file {
            add("content", self.content());
        }
        if kind == Kind::Symlink {
            add("target", self.target(wanted)?);
        }
        if wants(Attributes::DEVICE) && matches!(kind, Kind::CharacterDevice | Kind::BlockDevice) {
            let (major, minor) = (major(stat.st_rdev), minor(stat.st_rdev));
            add("device", format!("device {major}:{minor}"));
        }
        if wants(Attributes::OWNER) {
            add("owner", format!("owner {}:{}", stat.st_uid, stat.st_gid));
        }
        let xattrs = match wants(Attributes::XATTRS) {
            true => self.xattrs()?,
            false => Vec::new(),
        };
        if !xattrs.is_empty() {
            add("xattrs", format!("xattrs {}", xattrs.join(" ")));
        }
        if wants(Attributes::HOLES) && is_file && stat.st_blocks * 512 < stat.st_size {
            add("holes", "has holes".to_owned());
        }
        if wants(Attributes::CHANGE) {
            let changed = (stat.st_ino, stat.st_ctime, stat.st_ctime_nsec);
            add("change", format!("inode and change {changed:?}"));
        }
        Ok(facts)
    }

    fn content(&self) -> String {
        let file = open_unnoticed(self.dir, self.name, OFlags::NONBLOCK);
        let content = file.and_then(|file| content(file.as_fd()));
        content.unwrap_or_else(|e| format!("unreadable ({e})"))
    }

    fn target(&self, wanted: Attributes) -> io::Result<String> {
        let target = readlinkat(self.dir, self.name, Vec::new())?;
        if wanted.contains(Attributes::ATIME) {
            let times = Timestamps {
                last_modification: OMIT,
                ..self.times()
            };
            // Reading a link changes its atime. Only its owner may restore it, so ignore a failure.
            let _ = utimensat(self.dir, self.name, &times, AtFlags::SYMLINK_NOFOLLOW);
        }
        Ok(format!("-> {:?}", OsStr::from_bytes(target.to_bytes())))
    }

    /// Returns all extended attributes, sorted by name. A path through /proc also serves links, special files
    /// and files that may not be opened.
    fn xattrs(&self) -> io::Result<Vec<String>> {
        let mut path = format!("/proc/self/fd/{}/", self.dir.as_raw_fd()).into_bytes();
        path.extend(self.name.to_bytes());
        let path = OsStr::from_bytes(&path);
        let mut list = Vec::with_capacity(XATTR_MAX_BYTES);
        match llistxattr(path, spare_capacity(&mut list)) {
            Ok(_) | Err(Errno::OPNOTSUPP) => {}
            Err(e) => return Err(e.into()),
        }
        let mut xattrs = Vec::new();
        for name in list
            .split(|&byte| byte == 0)
            .filter(|name| !name.is_empty())
        {
            let mut value = Vec::with_capacity(XATTR_MAX_BYTES);
            match lgetxattr(path, name, spare_capacity(&mut value)) {
                Ok(_) => {}
                // Some attributes can be listed, but not read without permission to read the file.
                Err(Errno::ACCESS | Errno::PERM | Errno::NODATA) => value = b"unreadable".to_vec(),
                Err(e) => return Err(e.into()),
            }
            xattrs.push(format!("{}={}", name.escape_ascii(), value.escape_ascii()));
        }
        xattrs.sort();
        Ok(xattrs)
    }
}
