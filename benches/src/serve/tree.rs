//! The files of the filesystem, in memory.
//!
//! Inodes stay until the end, so a file can be used after it was unlinked. A cell of the benchmarks makes 60 MB at most.
//! Numbers are never used twice. There are no hard links, so an entry is identified by its number.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::{OsStr, OsString},
    time::{SystemTime, UNIX_EPOCH},
};

use fuser::{Errno, FileAttr, FileType, INodeNo};

pub(super) type Result<T> = std::result::Result<T, Errno>;

/// All inodes.
pub(super) struct Tree {
    inodes: HashMap<INodeNo, Inode>,
    next: INodeNo,
}

struct Inode {
    attributes: FileAttr,
    content: Content,
}

enum Content {
    Directory(Directory),
    File(Vec<u8>),
}

#[derive(Default)]
struct Directory {
    numbers: HashMap<OsString, INodeNo>,
    /// The names by number. A new entry has the highest number, so a listing goes on correctly after any change.
    names: BTreeMap<u64, OsString>,
}

/// The owner, the type and the permissions of a new inode.
#[derive(Clone, Copy)]
pub(super) struct New {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) kind: FileType,
    pub(super) mode: u32,
}

impl Tree {
    /// Makes an empty root directory, which belongs to `uid` and `gid`.
    pub(super) fn new(uid: u32, gid: u32) -> Self {
        let mut tree = Self {
            inodes: HashMap::new(),
            next: INodeNo::ROOT,
        };
        tree.add(New {
            uid,
            gid,
            kind: FileType::Directory,
            mode: 0o755,
        });
        tree
    }

    pub(super) fn attributes(&self, number: INodeNo) -> Result<FileAttr> {
        let inode = self.inodes.get(&number).ok_or(Errno::ESTALE)?;
        Ok(inode.attributes)
    }

    /// Returns the attributes of an entry.
    pub(super) fn lookup(&mut self, parent: INodeNo, name: &OsStr) -> Result<FileAttr> {
        let found = self.directory(parent)?.numbers.get(name).copied();
        self.attributes(found.ok_or(Errno::ENOENT)?)
    }

    /// Makes a new entry.
    pub(super) fn make(&mut self, parent: INodeNo, name: &OsStr, new: New) -> Result<FileAttr> {
        if self.directory(parent)?.numbers.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        let number = self.add(new);
        let directory = self.directory(parent)?;
        directory.numbers.insert(name.to_owned(), number);
        directory.names.insert(number.0, name.to_owned());
        self.modified(parent)?;
        self.attributes(number)
    }

    /// Removes an entry. The kernel has checked that its type fits the request.
    ///
    /// # Errors
    /// If it does not exist, or is a directory that is not empty.
    pub(super) fn remove(&mut self, parent: INodeNo, name: &OsStr) -> Result<()> {
        let found = self.directory(parent)?.numbers.get(name).copied();
        let number = found.ok_or(Errno::ENOENT)?;
        let inode = self.inode(number)?;
        if matches!(&inode.content, Content::Directory(directory) if !directory.names.is_empty()) {
            return Err(Errno::ENOTEMPTY);
        }
        inode.attributes.nlink = 0;
        let directory = self.directory(parent)?;
        directory.numbers.remove(name);
        directory.names.remove(&number.0);
        self.modified(parent)
    }

    /// Returns the next entry of a directory after `cookie`. Its number is the cookie of the one after it.
    pub(super) fn next_entry(
        &mut self,
        dir: INodeNo,
        cookie: u64,
    ) -> Result<Option<(OsString, FileAttr)>> {
        let directory = self.directory(dir)?;
        let entry = directory.names.range(cookie + 1..).next();
        let entry = entry.map(|(number, name)| (name.clone(), INodeNo(*number)));
        entry
            .map(|(name, number)| Ok((name, self.attributes(number)?)))
            .transpose()
    }

    /// Returns the bytes of a regular file.
    pub(super) fn data(&mut self, number: INodeNo) -> Result<&mut Vec<u8>> {
        match &mut self.inode(number)?.content {
            Content::File(data) => Ok(data),
            Content::Directory(_) => Err(Errno::EISDIR),
        }
    }

    /// Notes that the content of a file or directory has changed.
    pub(super) fn modified(&mut self, number: INodeNo) -> Result<()> {
        let inode = self.inode(number)?;
        if let Content::File(data) = &inode.content {
            inode.attributes.size = data.len() as u64;
            inode.attributes.blocks = inode.attributes.size.div_ceil(512);
        }
        let attributes = self.change(number)?;
        attributes.mtime = attributes.ctime;
        Ok(())
    }

    /// Returns the attributes of an inode, to be changed, and updates its ctime.
    pub(super) fn change(&mut self, number: INodeNo) -> Result<&mut FileAttr> {
        let attributes = &mut self.inode(number)?.attributes;
        attributes.ctime = SystemTime::now();
        Ok(attributes)
    }

    fn inode(&mut self, number: INodeNo) -> Result<&mut Inode> {
        self.inodes.get_mut(&number).ok_or(Errno::ESTALE)
    }

    fn directory(&mut self, number: INodeNo) -> Result<&mut Directory> {
        match &mut self.inode(number)?.content {
            Content::Directory(directory) => Ok(directory),
            Content::File(_) => Err(Errno::ENOTDIR),
        }
    }

    /// Adds an inode without a name.
    fn add(&mut self, new: New) -> INodeNo {
        let number = self.next;
        self.next.0 += 1;
        let now = SystemTime::now();
        let (content, nlink) = match new.kind {
            FileType::Directory => (Content::Directory(Directory::default()), 2),
            _ => (Content::File(Vec::new()), 1),
        };
        let attributes = FileAttr {
            ino: number,
            size: 0,
            blocks: 0,
            atime: now,
            mtime: now,
            ctime: now,
            crtime: UNIX_EPOCH,
            kind: new.kind,
            perm: (new.mode & 0o7777) as u16,
            nlink,
            uid: new.uid,
            gid: new.gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        };
        let inode = Inode {
            attributes,
            content,
        };
        self.inodes.insert(number, inode);
        number
    }
}
