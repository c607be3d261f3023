//! Answers the requests of the kernel: does each one at once, and hands the reply to the queue.

use std::{
    ffi::OsStr,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};

use super::{
    replies::Replies,
    tree::{New, Result, Tree},
};

/// How long the kernel trusts names and attributes: as long as an NFS client trusts the attributes of a file that
/// has just changed, by default (`acregmin`).
const TTL: Duration = Duration::from_secs(3);
/// Numbers are never used twice.
const GENERATION: Generation = Generation(0);
/// No open file has a state of its own.
const HANDLE: FileHandle = FileHandle(0);
/// The most requests without a waiting process, such as releases, that the kernel sends before the first is answered.
const MOST_BACKGROUND: u16 = u16::MAX;
/// The largest size of a file. Holes take memory, so a larger file could end the server.
const LARGEST_FILE: u64 = 1 << 30;

/// The filesystem. Links, special files, renames, extended attributes and holes are not supported.
pub(super) struct Server {
    tree: Mutex<Tree>,
    replies: Replies,
}

impl Server {
    /// Makes a filesystem whose root directory belongs to `uid` and `gid`.
    pub(super) fn new(uid: u32, gid: u32, replies: Replies) -> Self {
        Self {
            tree: Mutex::new(Tree::new(uid, gid)),
            replies,
        }
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reply_entry(&self, found: Result<FileAttr>, reply: ReplyEntry) {
        self.replies.push(move || match found {
            Ok(attributes) => reply.entry(&TTL, &attributes, GENERATION),
            Err(e) => reply.error(e),
        });
    }

    fn reply_attributes(&self, found: Result<FileAttr>, reply: ReplyAttr) {
        self.replies.push(move || match found {
            Ok(attributes) => reply.attr(&TTL, &attributes),
            Err(e) => reply.error(e),
        });
    }

    fn reply_empty(&self, done: Result<()>, reply: ReplyEmpty) {
        self.replies.push(move || match done {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(e),
        });
    }

    fn reply_open(&self, reply: ReplyOpen) {
        self.replies
            .push(move || reply.opened(HANDLE, FopenFlags::empty()));
    }

    fn make(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        kind: FileType,
        mode: u32,
    ) -> Result<FileAttr> {
        let (uid, gid) = (request.uid(), request.gid());
        self.tree().make(
            parent,
            name,
            New {
                uid,
                gid,
                kind,
                mode,
            },
        )
    }

    fn read_data(&self, inode: INodeNo, offset: u64, size: u32) -> Result<Vec<u8>> {
        let mut tree = self.tree();
        let data = tree.data(inode)?;
        let start = data.len().min(offset as usize);
        let end = data.len().min(start + size as usize);
        Ok(data[start..end].to_vec())
    }

    fn write_data(&self, inode: INodeNo, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut tree = self.tree();
        let data = tree.data(inode)?;
        let end = offset.saturating_add(bytes.len() as u64);
        if (data.len() as u64) < end {
            resize(data, end)?;
        }
        data[offset as usize..end as usize].copy_from_slice(bytes);
        tree.modified(inode)
    }

    fn truncate(&self, inode: INodeNo, bytes: u64) -> Result<()> {
        let mut tree = self.tree();
        resize(tree.data(inode)?, bytes)?;
        tree.modified(inode)
    }
}

impl Filesystem for Server {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let refused = |answer| io::Error::other(format!("the kernel lacks {answer:?}"));
        // Listings bring the attributes along, and lookups in one directory overlap, as with NFS.
        let wanted = InitFlags::FUSE_DO_READDIRPLUS | InitFlags::FUSE_PARALLEL_DIROPS;
        config.add_capabilities(wanted).map_err(refused)?;
        // A smaller number is possible, too: then some releases wait.
        let _ = config.set_max_background(MOST_BACKGROUND);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.tree().lookup(parent, name);
        self.reply_entry(found, reply);
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let found = self.tree().attributes(inode);
        self.reply_attributes(found, reply);
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = || {
            if let Some(bytes) = size {
                self.truncate(inode, bytes)?;
            }
            let mut tree = self.tree();
            let attributes = tree.change(inode)?;
            if let Some(mode) = mode {
                attributes.perm = (mode & 0o7777) as u16;
            }
            attributes.uid = uid.unwrap_or(attributes.uid);
            attributes.gid = gid.unwrap_or(attributes.gid);
            attributes.atime = atime.map_or(attributes.atime, time);
            attributes.mtime = mtime.map_or(attributes.mtime, time);
            Ok(*attributes)
        };
        self.reply_attributes(set(), reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let made = self.make(request, parent, name, FileType::Directory, mode);
        self.reply_entry(made, reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let done = self.tree().remove(parent, name);
        self.reply_empty(done, reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let done = self.tree().remove(parent, name);
        self.reply_empty(done, reply);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.reply_open(reply);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let made = self.make(request, parent, name, FileType::RegularFile, mode);
        self.replies.push(move || match made {
            Ok(attributes) => {
                reply.created(&TTL, &attributes, GENERATION, HANDLE, FopenFlags::empty());
            }
            Err(e) => reply.error(e),
        });
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let data = self.read_data(inode, offset, size);
        self.replies.push(move || match data {
            Ok(data) => reply.data(&data),
            Err(e) => reply.error(e),
        });
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self.write_data(inode, offset, data);
        let bytes = data.len() as u32;
        self.replies.push(move || match written {
            Ok(()) => reply.written(bytes),
            Err(e) => reply.error(e),
        });
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        self.reply_empty(Ok(()), reply);
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.reply_open(reply);
    }

    fn readdirplus(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let mut list = || {
            let mut tree = self.tree();
            let mut cookie = offset;
            while let Some((name, attributes)) = tree.next_entry(inode, cookie)? {
                cookie = attributes.ino.0;
                if reply.add(attributes.ino, cookie, &name, &TTL, &attributes, GENERATION) {
                    break;
                }
            }
            Ok(())
        };
        let listed = list();
        self.replies.push(move || match listed {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(e),
        });
    }
}

/// Cuts a file, or appends zeros.
fn resize(data: &mut Vec<u8>, bytes: u64) -> Result<()> {
    if bytes > LARGEST_FILE {
        return Err(Errno::EFBIG);
    }
    data.resize(bytes as usize, 0);
    Ok(())
}

fn time(time: TimeOrNow) -> SystemTime {
    match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemTime::now(),
    }
}
