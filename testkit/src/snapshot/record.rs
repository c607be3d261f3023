//! Takes a snapshot. It records the entries of a directory in the order of their names, and then enters the
//! sub-directories in the same order.

use std::{
    collections::HashMap,
    ffi::{CStr, CString, OsStr, OsString},
    io,
    os::{
        fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt as _, OsStringExt as _},
    },
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, Mode, OFlags, Stat, StatxFlags, Timespec, Timestamps, lgetxattr, llistxattr,
        major, minor, openat, readlinkat, statat, statx, utimensat,
    },
    io::Errno,
};

use super::{
    Attributes,
    content::Content,
    entry::{Entry, Kind, Moment},
};
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
                    self.entries[this].locked = true;
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
        self.entries[this].locked = true;
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
        let kind = Kind::of(file_type(&stat));
        let place = Place { dir, name };
        let wanted = self.attributes;
        let file = |attribute| wanted.contains(attribute) && kind == Kind::File;
        let target = match kind {
            Kind::Symlink => Some(place.target(wanted, &stat)?),
            _ => None,
        };
        let xattrs = match wanted.contains(Attributes::XATTRS) {
            true => Some(place.xattrs()?),
            false => None,
        };
        let device = matches!(kind, Kind::CharDevice | Kind::BlockDevice)
            && wanted.contains(Attributes::DEVICE);
        let read = times(&stat);
        let mode = kind != Kind::Symlink && wanted.contains(Attributes::MODE);
        let entry = Entry {
            parent,
            name: OsStr::from_bytes(name.to_bytes()).to_owned(),
            kind,
            mode: mode.then_some(stat.st_mode & 0o7777),
            size_bytes: file(Attributes::SIZE).then_some(stat.st_size.unsigned_abs()),
            content: file(Attributes::DATA).then(|| place.content()),
            target,
            same_inode_as: self.link(kind, &stat),
            device: device.then(|| (major(stat.st_rdev), minor(stat.st_rdev))),
            owner: wanted.when(Attributes::OWNER, || (stat.st_uid, stat.st_gid)),
            mtime: wanted.when(Attributes::MTIME, || moment(read.last_modification)),
            atime: wanted.when(Attributes::ATIME, || moment(read.last_access)),
            xattrs,
            has_holes: file(Attributes::HOLES).then(|| stat.st_blocks * 512 < stat.st_size),
            locked: false,
        };
        self.entries.push(entry);
        Ok(kind)
    }

    /// Returns the first entry of this inode, and marks that entry as one of several names.
    fn link(&mut self, kind: Kind, stat: &Stat) -> Option<usize> {
        let lonely = kind == Kind::Directory || stat.st_nlink < 2;
        if lonely || !self.attributes.contains(Attributes::LINKS) {
            return None;
        }
        let this = self.entries.len();
        let first = *self.first_of.entry(identity(stat)).or_insert(this);
        if first == this {
            return None;
        }
        self.entries[first].same_inode_as = Some(first);
        Some(first)
    }
}

/// The place of an entry: its directory and its name.
struct Place<'a> {
    dir: BorrowedFd<'a>,
    name: &'a CStr,
}

impl Place<'_> {
    fn content(&self) -> Content {
        let opened = self.open();
        Content::of(opened.as_ref().map(OwnedFd::as_fd).map_err(|&e| e))
    }

    fn open(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat(self.dir, self.name, flags | OFlags::NOATIME, Mode::empty()) {
            // Only the owner of a file may use O_NOATIME.
            Err(Errno::PERM) => openat(self.dir, self.name, flags, Mode::empty()),
            outcome => outcome,
        }
    }

    fn target(&self, wanted: Attributes, stat: &Stat) -> io::Result<OsString> {
        let target = readlinkat(self.dir, self.name, Vec::new())?;
        if wanted.contains(Attributes::ATIME) {
            let times = Timestamps {
                last_modification: OMIT,
                ..times(stat)
            };
            // Reading a link changes its atime. Only its owner may restore it, so ignore a failure.
            let _ = utimensat(self.dir, self.name, &times, AtFlags::SYMLINK_NOFOLLOW);
        }
        Ok(OsString::from_vec(target.into_bytes()))
    }

    /// Returns all extended attributes, sorted by name. A path through /proc also serves links, special files
    /// and files that may not be opened.
    fn xattrs(&self) -> io::Result<Vec<(OsString, Vec<u8>)>> {
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
            xattrs.push((OsStr::from_bytes(name).to_owned(), value));
        }
        xattrs.sort();
        Ok(xattrs)
    }
}

fn moment(time: Timespec) -> Moment {
    Moment::At {
        seconds: time.tv_sec,
        nanos: time.tv_nsec,
    }
}
