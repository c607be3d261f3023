//! The files of the filesystem, in memory.
//!
//! An inode stays as long as it has a name or the kernel knows its number, so a file can be used after it was
//! unlinked. Numbers are never used twice.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{SystemTime, UNIX_EPOCH},
};

use fuser::{Errno, FileAttr, FileType, INodeNo, RenameFlags};

pub(super) type Result<T> = std::result::Result<T, Errno>;

/// The bytes of a regular file. They have a lock of their own, so that large reads and writes overlap with other
/// requests. It is taken before the lock of the tree.
pub(super) type Data = Arc<Mutex<Vec<u8>>>;

/// The control file. It is in the root directory, but not in its listing.
pub(super) const CONTROL: INodeNo = INodeNo(2);
/// The name of the control file.
pub(crate) const CONTROL_NAME: &str = ".server";

/// All inodes.
pub(super) struct Tree {
    inodes: HashMap<u64, Inode>,
    next: u64,
}

struct Inode {
    attributes: FileAttr,
    content: Content,
    /// How often the kernel was given the number, minus how often it forgot it.
    lookups: u64,
}

enum Content {
    Directory(Directory),
    File(Data),
    Symlink(PathBuf),
    Special,
}

/// The names in a directory.
struct Directory {
    parent: INodeNo,
    /// The cookie of each name.
    cookies: HashMap<OsString, u64>,
    /// The entries by cookie. A new entry has the highest one, so a listing goes on correctly after any change.
    entries: BTreeMap<u64, (OsString, INodeNo)>,
    next_cookie: u64,
}

/// The owner and the type of a new inode.
pub(super) struct New<'a> {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) kind: Kind<'a>,
}

/// The type of a new inode, with its permissions if they can be chosen.
pub(super) enum Kind<'a> {
    File { mode: u32 },
    Directory { mode: u32 },
    Special { mode: u32, rdev: u32 },
    Symlink(&'a Path),
}

/// A name in a directory.
pub(super) struct Place<'a> {
    pub(super) parent: INodeNo,
    pub(super) name: &'a OsStr,
}

/// One entry of a listing.
pub(super) struct Listed<'a> {
    /// The offset at which the listing goes on after this entry.
    pub(super) cookie: u64,
    pub(super) name: &'a OsStr,
    pub(super) attributes: FileAttr,
}

/// The part of an entry that a listing has room for.
#[derive(PartialEq, Eq)]
pub(super) enum Taken {
    /// The entry is in the reply, with its inode's number and attributes.
    WithInode,
    /// The entry is in the reply, with its name alone.
    NameOnly,
    /// The reply has no room for the entry.
    NoRoom,
}

const DOT: u64 = 1;
const DOT_DOT: u64 = 2;
const PERMISSIONS: u32 = 0o7777;
const SETGID: u16 = 0o2000;
/// The size of every directory.
const DIRECTORY_BYTES: u64 = 4096;

impl Tree {
    /// Makes an empty root directory, which belongs to `uid` and `gid`, and the control file.
    pub(super) fn new(uid: u32, gid: u32) -> Self {
        let mut tree = Self {
            inodes: HashMap::new(),
            next: INodeNo::ROOT.0,
        };
        let inode = |kind| New { uid, gid, kind };
        let root = tree.add(&inode(Kind::Directory { mode: 0o755 }), INodeNo::ROOT);
        let control = tree.add(&inode(Kind::File { mode: 0o644 }), INodeNo::ROOT);
        assert_eq!((root, control), (INodeNo::ROOT, CONTROL));
        tree
    }

    pub(super) fn attributes(&self, number: INodeNo) -> Result<FileAttr> {
        Ok(self.inode(number)?.attributes)
    }

    /// Returns the attributes of an entry, and counts that the kernel knows it.
    pub(super) fn lookup(&mut self, parent: INodeNo, name: &OsStr) -> Result<FileAttr> {
        let number = match self.directory(parent)?.get(name) {
            None if parent == INodeNo::ROOT && name == CONTROL_NAME => CONTROL,
            found => found.ok_or(Errno::ENOENT)?,
        };
        self.known(number)
    }

    /// Counts that the kernel has forgotten an inode `lookups` times.
    pub(super) fn forget(&mut self, number: INodeNo, lookups: u64) {
        if let Ok(inode) = self.inode_mut(number) {
            inode.lookups = inode.lookups.saturating_sub(lookups);
            self.free_unused(number);
        }
    }

    /// Makes a new entry. Like [`lookup`](Self::lookup), it counts that the kernel knows it.
    pub(super) fn make(
        &mut self,
        parent: INodeNo,
        name: &OsStr,
        new: &New<'_>,
    ) -> Result<FileAttr> {
        if self.directory(parent)?.get(name).is_some() {
            return Err(Errno::EEXIST);
        }
        let number = self.add(new, parent);
        self.insert(parent, name, number)?;
        self.known(number)
    }

    pub(super) fn link(
        &mut self,
        number: INodeNo,
        parent: INodeNo,
        name: &OsStr,
    ) -> Result<FileAttr> {
        if self.directory(parent)?.get(name).is_some() {
            return Err(Errno::EEXIST);
        }
        self.change(number)?.nlink += 1;
        self.insert(parent, name, number)?;
        self.known(number)
    }

    /// Removes an entry. The kernel has checked that its type fits the request.
    ///
    /// # Errors
    /// If it does not exist, or is a directory that is not empty.
    pub(super) fn remove(&mut self, parent: INodeNo, name: &OsStr) -> Result<()> {
        let number = self.directory(parent)?.get(name).ok_or(Errno::ENOENT)?;
        let is_directory = match &self.inode(number)?.content {
            Content::Directory(directory) if !directory.entries.is_empty() => {
                return Err(Errno::ENOTEMPTY);
            }
            content => matches!(content, Content::Directory(_)),
        };
        self.take(parent, name)?;
        let removed = self.change(number)?;
        removed.nlink = if is_directory { 0 } else { removed.nlink - 1 };
        self.free_unused(number);
        Ok(())
    }

    /// Moves an entry. The kernel has checked that the types fit, and that no directory is moved into itself.
    pub(super) fn rename(
        &mut self,
        from: &Place<'_>,
        to: &Place<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        let number = self.directory(from.parent)?.get(from.name);
        let number = number.ok_or(Errno::ENOENT)?;
        if !(flags - RenameFlags::RENAME_NOREPLACE).is_empty() {
            return Err(Errno::EINVAL);
        }
        match self.directory(to.parent)?.get(to.name) {
            Some(_) if !flags.is_empty() => return Err(Errno::EEXIST),
            Some(same) if same == number => return Ok(()),
            Some(_) => self.remove(to.parent, to.name)?,
            None => {}
        }
        self.take(from.parent, from.name)?;
        self.insert(to.parent, to.name, number)?;
        self.change(number)?;
        if let Content::Directory(directory) = &mut self.inode_mut(number)?.content {
            directory.parent = to.parent;
        }
        Ok(())
    }

    pub(super) fn target(&self, number: INodeNo) -> Result<&Path> {
        match &self.inode(number)?.content {
            Content::Symlink(target) => Ok(target),
            _ => Err(Errno::EINVAL),
        }
    }

    pub(super) fn data(&self, number: INodeNo) -> Result<Data> {
        match &self.inode(number)?.content {
            Content::File(data) => Ok(Arc::clone(data)),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Notes that a file was written to or truncated, and has `bytes` now.
    pub(super) fn written(&mut self, number: INodeNo, bytes: u64) -> Result<()> {
        let attributes = self.change(number)?;
        attributes.size = bytes;
        attributes.blocks = bytes.div_ceil(512);
        attributes.mtime = attributes.ctime;
        Ok(())
    }

    /// Returns the attributes of an inode, to be changed, and updates its ctime.
    pub(super) fn change(&mut self, number: INodeNo) -> Result<&mut FileAttr> {
        let attributes = &mut self.inode_mut(number)?.attributes;
        attributes.ctime = SystemTime::now();
        Ok(attributes)
    }

    /// Lists a directory from `offset` on, until `take` has no room.
    pub(super) fn list(
        &mut self,
        number: INodeNo,
        offset: u64,
        mut take: impl FnMut(&Listed<'_>) -> Taken,
    ) -> Result<()> {
        let directory = self.directory(number)?;
        let dots = [
            (DOT, OsStr::new("."), number),
            (DOT_DOT, OsStr::new(".."), directory.parent),
        ];
        let entries = directory.entries.range(offset + 1..);
        let entries = entries.map(|(cookie, (name, number))| (*cookie, name.as_os_str(), *number));
        let mut known = Vec::new();
        for (cookie, name, number) in dots.into_iter().filter(|dot| dot.0 > offset).chain(entries) {
            let attributes = self.attributes(number)?;
            let listed = Listed {
                cookie,
                name,
                attributes,
            };
            match take(&listed) {
                Taken::NoRoom => break,
                Taken::WithInode if cookie > DOT_DOT => known.push(number),
                Taken::WithInode | Taken::NameOnly => {}
            }
        }
        for number in known {
            self.known(number)?;
        }
        Ok(())
    }

    fn inode(&self, number: INodeNo) -> Result<&Inode> {
        self.inodes.get(&number.0).ok_or(Errno::ESTALE)
    }

    fn inode_mut(&mut self, number: INodeNo) -> Result<&mut Inode> {
        self.inodes.get_mut(&number.0).ok_or(Errno::ESTALE)
    }

    fn directory(&self, number: INodeNo) -> Result<&Directory> {
        match &self.inode(number)?.content {
            Content::Directory(directory) => Ok(directory),
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn directory_mut(&mut self, number: INodeNo) -> Result<&mut Directory> {
        match &mut self.inode_mut(number)?.content {
            Content::Directory(directory) => Ok(directory),
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn known(&mut self, number: INodeNo) -> Result<FileAttr> {
        let inode = self.inode_mut(number)?;
        inode.lookups += 1;
        Ok(inode.attributes)
    }

    fn free_unused(&mut self, number: INodeNo) {
        let unused = |inode: &Inode| inode.lookups == 0 && inode.attributes.nlink == 0;
        if self.inode(number).is_ok_and(unused) {
            self.inodes.remove(&number.0);
        }
    }

    /// Adds an inode without a name.
    fn add(&mut self, new: &New<'_>, parent: INodeNo) -> INodeNo {
        let number = INodeNo(self.next);
        self.next += 1;
        let now = SystemTime::now();
        let (kind, mode, content) = new.parts(parent);
        let mut attributes = FileAttr {
            ino: number,
            size: match &content {
                Content::Directory(_) => DIRECTORY_BYTES,
                Content::Symlink(target) => target.as_os_str().len() as u64,
                Content::File(_) | Content::Special => 0,
            },
            blocks: 0,
            atime: now,
            mtime: now,
            ctime: now,
            crtime: UNIX_EPOCH,
            kind,
            perm: (mode & PERMISSIONS) as u16,
            nlink: if kind == FileType::Directory { 2 } else { 1 },
            uid: new.uid,
            gid: new.gid,
            rdev: match new.kind {
                Kind::Special { rdev, .. } => rdev,
                _ => 0,
            },
            blksize: 4096,
            flags: 0,
        };
        if let Ok(parent) = self.attributes(parent)
            && parent.perm & SETGID != 0
        {
            attributes.gid = parent.gid;
            if kind == FileType::Directory {
                attributes.perm |= SETGID;
            }
        }
        let inode = Inode {
            attributes,
            content,
            lookups: 0,
        };
        self.inodes.insert(number.0, inode);
        number
    }

    /// Gives an inode a new name, which does not exist yet.
    fn insert(&mut self, parent: INodeNo, name: &OsStr, number: INodeNo) -> Result<()> {
        let directory = self.directory_mut(parent)?;
        let cookie = directory.next_cookie;
        directory.next_cookie += 1;
        directory.cookies.insert(name.to_owned(), cookie);
        directory.entries.insert(cookie, (name.to_owned(), number));
        self.renamed_in(parent, number, 1)
    }

    /// Takes an entry out of its directory.
    fn take(&mut self, parent: INodeNo, name: &OsStr) -> Result<()> {
        let directory = self.directory_mut(parent)?;
        let cookie = directory.cookies.remove(name).ok_or(Errno::ENOENT)?;
        let (_, number) = directory.entries.remove(&cookie).ok_or(Errno::ENOENT)?;
        self.renamed_in(parent, number, -1)
    }

    /// Updates the attributes of a directory that has got or lost an entry.
    fn renamed_in(&mut self, parent: INodeNo, entry: INodeNo, change: i32) -> Result<()> {
        let is_directory = self.attributes(entry)?.kind == FileType::Directory;
        let attributes = self.change(parent)?;
        attributes.mtime = attributes.ctime;
        if is_directory {
            attributes.nlink = attributes.nlink.saturating_add_signed(change);
        }
        Ok(())
    }
}

impl New<'_> {
    fn parts(&self, parent: INodeNo) -> (FileType, u32, Content) {
        match self.kind {
            Kind::File { mode } => (FileType::RegularFile, mode, Content::File(Data::default())),
            Kind::Directory { mode } => {
                let directory = Directory {
                    parent,
                    cookies: HashMap::new(),
                    entries: BTreeMap::new(),
                    next_cookie: DOT_DOT + 1,
                };
                (FileType::Directory, mode, Content::Directory(directory))
            }
            Kind::Special { mode, .. } => (special(mode), mode, Content::Special),
            Kind::Symlink(target) => {
                let target = Content::Symlink(target.to_owned());
                (FileType::Symlink, 0o777, target)
            }
        }
    }
}

fn special(mode: u32) -> FileType {
    use rustix::fs::FileType as Type;
    match Type::from_raw_mode(mode) {
        Type::Fifo => FileType::NamedPipe,
        Type::CharacterDevice => FileType::CharDevice,
        Type::BlockDevice => FileType::BlockDevice,
        _ => FileType::Socket,
    }
}

impl Directory {
    fn get(&self, name: &OsStr) -> Option<INodeNo> {
        let cookie = self.cookies.get(name)?;
        Some(self.entries.get(cookie)?.1)
    }
}
