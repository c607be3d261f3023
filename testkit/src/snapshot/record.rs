//! Takes a snapshot. It records the entries of a directory in the order of their names, and then enters the
//! sub-directories in the same order.

use std::{
    collections::HashMap,
    ffi::{CStr, CString, OsStr, OsString},
    io,
    os::{
        fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, Mode, OFlags, Stat, StatxFlags, Timestamps, lgetxattr, llistxattr, major, minor,
        openat, readlinkat, statat, statx, utimensat,
    },
    io::Errno,
};

use super::{Attributes, Entry, Kind, content::content, full_path};
use crate::{
    tree::OMIT,
    walk::{Start, Visitor, file_type, identity, names, times, walk},
};

/// The kernel's limit for the value of an extended attribute and for the list of their names.
const XATTR_MAX_BYTES: usize = 64 * 1024;

pub(super) fn record(path: &Path, attributes: Attributes) -> io::Result<Vec<Entry>> {
    let start = Start::at(path)?;
    let mut recorder = Recorder {
        attributes,
        entries: Vec::new(),
        first_of: HashMap::new(),
    };
    let kind = recorder.record(start.parent.as_fd(), &start.name, 0)?;
    // Forget the name of the root, because two equal trees may have roots of different names.
    recorder.entries[0].name = OsString::new();
    if kind == Kind::Directory {
        walk(start, 0, &mut recorder)?;
    }
    Ok(recorder.entries)
}

struct Recorder {
    attributes: Attributes,
    entries: Vec<Entry>,
    /// The first entry of each inode that has several names.
    first_of: HashMap<(u64, u64), usize>,
}

impl Visitor for Recorder {
    type Mark = usize;

    fn arrive(&mut self, dir: BorrowedFd<'_>, this: usize) -> io::Result<Vec<(CString, usize)>> {
        let mut below = Vec::new();
        for name in names(dir)? {
            match self.record(dir, &name, this) {
                Ok(Kind::Directory) => below.push((name, self.entries.len() - 1)),
                Ok(_) => {}
                // The directory can be listed but not searched, so its entries cannot be looked up.
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                    self.lock(this);
                }
                Err(e) => return Err(e),
            }
        }
        Ok(below)
    }

    fn locked_out(&mut self, this: usize, error: Errno) -> io::Result<()> {
        if error != Errno::ACCESS {
            return Err(error.into());
        }
        self.lock(this);
        Ok(())
    }
}

impl Recorder {
    /// Adds the entry `name` of `dir`, whose number is `parent`.
    fn record(&mut self, dir: BorrowedFd<'_>, name: &CStr, parent: usize) -> io::Result<Kind> {
        // A kernel that caches attributes for a server may show the number of links from before a link was made.
        let fresh = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_FORCE_SYNC;
        let _ = statx(dir, name, fresh, StatxFlags::BASIC_STATS);
        let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = file_type(&stat);
        let place = Place { dir, name };
        let wanted = self.attributes;
        let facts = place.facts(wanted, &stat)?;
        let read = times(&stat);
        let times = [
            ("mtime", Attributes::MTIME, read.last_modification),
            ("atime", Attributes::ATIME, read.last_access),
        ];
        let times = times
            .into_iter()
            .filter(|&(_, attribute, _)| wanted.contains(attribute));
        let times = times.map(|(label, _, time)| (label, Some((time.tv_sec, time.tv_nsec))));
        self.entries.push(Entry {
            parent,
            name: OsStr::from_bytes(name.to_bytes()).to_owned(),
            kind,
            facts,
            times: times.collect(),
        });
        if kind != Kind::Directory && stat.st_nlink > 1 && wanted.contains(Attributes::LINKS) {
            self.link(identity(&stat));
        }
        Ok(kind)
    }

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

    /// Marks a directory whose entries cannot be listed or looked up.
    fn lock(&mut self, directory: usize) {
        self.mark(directory, ("locked", "locked".to_owned()));
    }

    fn mark(&mut self, entry: usize, fact: (&'static str, String)) {
        let facts = &mut self.entries[entry].facts;
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    }
}

/// The place of an entry: its directory and its name.
struct Place<'a> {
    dir: BorrowedFd<'a>,
    name: &'a CStr,
}

type Fact<'a> = &'a dyn Fn() -> io::Result<String>;

impl Place<'_> {
    /// Describes the `wanted` attributes except times, by labelled facts.
    fn facts(&self, wanted: Attributes, stat: &Stat) -> io::Result<Vec<(&'static str, String)>> {
        let kind = file_type(stat);
        let (is_file, is_link) = (kind == Kind::RegularFile, kind == Kind::Symlink);
        let is_device = matches!(kind, Kind::CharacterDevice | Kind::BlockDevice);
        let has_holes = is_file && stat.st_blocks * 512 < stat.st_size;
        let mode = || Ok(format!("mode {:o}", stat.st_mode & 0o7777));
        let size = || Ok(format!("{} bytes", stat.st_size));
        let content = || Ok(self.content());
        let target = || self.target(wanted, stat);
        let number = (major(stat.st_rdev), minor(stat.st_rdev));
        let device = || Ok(format!("device {}:{}", number.0, number.1));
        let owner = || Ok(format!("owner {}:{}", stat.st_uid, stat.st_gid));
        let xattrs = || self.xattrs();
        let holes = || Ok("has holes".to_owned());
        let changed = (stat.st_ino, stat.st_ctime, stat.st_ctime_nsec);
        let change = || Ok(format!("inode and change {changed:?}"));
        let all: [(_, _, _, Fact<'_>); 9] = [
            ("mode", Attributes::MODE, !is_link, &mode),
            ("size", Attributes::SIZE, is_file, &size),
            ("content", Attributes::DATA, is_file, &content),
            ("target", Attributes::NAMES, is_link, &target),
            ("device", Attributes::DEVICE, is_device, &device),
            ("owner", Attributes::OWNER, true, &owner),
            ("xattrs", Attributes::XATTRS, true, &xattrs),
            ("holes", Attributes::HOLES, has_holes, &holes),
            ("change", Attributes::CHANGE, true, &change),
        ];
        let told = all
            .into_iter()
            .filter(|&(_, attribute, has_it, _)| has_it && wanted.contains(attribute));
        let facts = told.map(|(label, _, _, fact)| Ok((label, fact()?)));
        let facts: io::Result<Vec<_>> = facts.collect();
        Ok(facts?
            .into_iter()
            .filter(|(_, fact)| !fact.is_empty())
            .collect())
    }

    fn content(&self) -> String {
        let content = self.open().and_then(|file| content(file.as_fd()));
        content.unwrap_or_else(|e| format!("unreadable ({e})"))
    }

    fn open(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat(self.dir, self.name, flags | OFlags::NOATIME, Mode::empty()) {
            // Only the owner of a file may use O_NOATIME.
            Err(Errno::PERM) => openat(self.dir, self.name, flags, Mode::empty()),
            outcome => outcome,
        }
    }

    fn target(&self, wanted: Attributes, stat: &Stat) -> io::Result<String> {
        let target = readlinkat(self.dir, self.name, Vec::new())?;
        if wanted.contains(Attributes::ATIME) {
            let times = Timestamps {
                last_modification: OMIT,
                ..times(stat)
            };
            // Reading a link changes its atime. Only its owner may restore it, so ignore a failure.
            let _ = utimensat(self.dir, self.name, &times, AtFlags::SYMLINK_NOFOLLOW);
        }
        Ok(format!("-> {:?}", OsStr::from_bytes(target.to_bytes())))
    }

    /// Returns all extended attributes, sorted by name. A path through /proc also serves links, special files
    /// and files that may not be opened.
    fn xattrs(&self) -> io::Result<String> {
        let mut path = format!("/proc/self/fd/{}/", self.dir.as_raw_fd()).into_bytes();
        path.extend(self.name.to_bytes());
        let path = OsStr::from_bytes(&path);
        let mut list = vec![0; XATTR_MAX_BYTES];
        match llistxattr(path, &mut list) {
            Ok(len) => list.truncate(len),
            Err(Errno::OPNOTSUPP) => list.clear(),
            Err(e) => return Err(e.into()),
        }
        let mut xattrs = Vec::new();
        for name in list
            .split(|&byte| byte == 0)
            .filter(|name| !name.is_empty())
        {
            let mut value = vec![0; XATTR_MAX_BYTES];
            match lgetxattr(path, name, &mut value) {
                Ok(len) => value.truncate(len),
                // Some attributes can be listed, but not read without permission to read the file.
                Err(Errno::ACCESS | Errno::PERM | Errno::NODATA) => value = b"unreadable".to_vec(),
                Err(e) => return Err(e.into()),
            }
            xattrs.push(format!(" {}={}", name.escape_ascii(), value.escape_ascii()));
        }
        xattrs.sort();
        let label = if xattrs.is_empty() { "" } else { "xattrs" };
        Ok(label.to_owned() + &xattrs.concat())
    }
}
