//! Answers the requests of the kernel: does each one at once, and hands the reply to the queue.

use std::{
    ffi::OsStr,
    fmt, io,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite,
    Request, TimeOrNow, WriteFlags,
};

use super::{
    replies::Replies,
    tree::{CONTROL, Kind, New, Place, Result, Taken, Tree},
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
/// The most bytes of a read or write, as with NFS.
const MOST_BYTES: u32 = 1 << 20;
/// The size of the filesystem, of which all is free. It is not a limit.
const BLOCKS: u64 = 1 << 24;
const BLOCK_BYTES: u32 = 4096;
/// The largest size of a file. Holes take memory, so a larger file could end the server.
const LARGEST_FILE: u64 = 1 << 30;

/// The filesystem. Extended attributes, holes, and copies by the server are not supported.
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

    /// Calls `send` when the reply to a request about `inode` is due. The control file is always fast.
    fn reply(&self, inode: INodeNo, send: impl FnOnce() + Send + 'static) {
        if inode == CONTROL {
            send();
        } else {
            self.replies.push(send);
        }
    }

    fn reply_entry(&self, made: Result<FileAttr>, reply: ReplyEntry) {
        let inode = made.map_or(INodeNo::ROOT, |attributes| attributes.ino);
        self.reply(inode, move || match made {
            Ok(attributes) => reply.entry(&TTL, &attributes, GENERATION),
            Err(e) => reply.error(e),
        });
    }

    fn reply_attributes(&self, inode: INodeNo, found: Result<FileAttr>, reply: ReplyAttr) {
        self.reply(inode, move || match found {
            Ok(attributes) => reply.attr(&TTL, &attributes),
            Err(e) => reply.error(e),
        });
    }

    fn reply_empty(&self, inode: INodeNo, done: Result<()>, reply: ReplyEmpty) {
        self.reply(inode, move || match done {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(e),
        });
    }

    fn make(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        kind: Kind<'_>,
    ) -> Result<FileAttr> {
        let (uid, gid) = (request.uid(), request.gid());
        self.tree().make(parent, name, &New { uid, gid, kind })
    }

    fn read_data(&self, inode: INodeNo, offset: u64, size: u32) -> Result<Vec<u8>> {
        let shown;
        let data = self.tree().data(inode)?;
        let data = data.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = if inode == CONTROL {
            shown = self.replies.counts().to_string();
            shown.as_bytes()
        } else {
            data.as_slice()
        };
        let start = bytes.len().min(offset as usize);
        let end = bytes.len().min(start + size as usize);
        Ok(bytes[start..end].to_vec())
    }

    fn write_data(&self, inode: INodeNo, offset: u64, bytes: &[u8]) -> Result<()> {
        if inode == CONTROL {
            let text = str::from_utf8(bytes).map_err(|_| Errno::EINVAL)?;
            let latency_us = text.trim().parse().map_err(|_| Errno::EINVAL)?;
            self.replies.set_latency(Duration::from_micros(latency_us));
            return Ok(());
        }
        let data = self.tree().data(inode)?;
        let mut data = data.lock().unwrap_or_else(PoisonError::into_inner);
        let end = offset.saturating_add(bytes.len() as u64);
        if (data.len() as u64) < end {
            resize(&mut data, end)?;
        }
        data[offset as usize..end as usize].copy_from_slice(bytes);
        self.tree().written(inode, data.len() as u64)
    }

    fn truncate(&self, inode: INodeNo, bytes: u64) -> Result<()> {
        let data = self.tree().data(inode)?;
        let mut data = data.lock().unwrap_or_else(PoisonError::into_inner);
        resize(&mut data, bytes)?;
        self.tree().written(inode, bytes)
    }
}

impl Filesystem for Server {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Listings bring the attributes along, and lookups in one directory overlap, as with NFS.
        let wanted = InitFlags::FUSE_DO_READDIRPLUS | InitFlags::FUSE_PARALLEL_DIROPS;
        config.add_capabilities(wanted).map_err(refused)?;
        config.set_max_write(MOST_BYTES).map_err(refused)?;
        config
            .set_max_background(MOST_BACKGROUND)
            .map_err(refused)?;
        config
            .set_congestion_threshold(MOST_BACKGROUND)
            .map_err(refused)?;
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.tree().lookup(parent, name);
        self.reply_entry(found, reply);
    }

    fn forget(&self, _: &Request, inode: INodeNo, lookups: u64) {
        self.tree().forget(inode, lookups);
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let found = self.tree().attributes(inode);
        self.reply_attributes(inode, found, reply);
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
        self.reply_attributes(inode, set(), reply);
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        let target = self.tree().target(inode).map(Path::to_owned);
        self.reply(inode, move || match target {
            Ok(target) => reply.data(target.as_os_str().as_encoded_bytes()),
            Err(e) => reply.error(e),
        });
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let kind = if rustix::fs::FileType::from_raw_mode(mode).is_file() {
            Kind::File { mode }
        } else {
            Kind::Special { mode, rdev }
        };
        self.reply_entry(self.make(request, parent, name, kind), reply);
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
        let made = self.make(request, parent, name, Kind::Directory { mode });
        self.reply_entry(made, reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let done = self.tree().remove(parent, name);
        self.reply_empty(parent, done, reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let done = self.tree().remove(parent, name);
        self.reply_empty(parent, done, reply);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let made = self.make(request, parent, name, Kind::Symlink(target));
        self.reply_entry(made, reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let to = Place {
            parent: new_parent,
            name: new_name,
        };
        let done = self.tree().rename(&Place { parent, name }, &to, flags);
        self.reply_empty(parent, done, reply);
    }

    fn link(&self, _: &Request, inode: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let made = self.tree().link(inode, parent, name);
        self.reply_entry(made, reply);
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // The control file has no size by which the kernel could limit a read.
        let flags = if inode == CONTROL {
            FopenFlags::FOPEN_DIRECT_IO
        } else {
            FopenFlags::empty()
        };
        self.reply(inode, move || reply.opened(HANDLE, flags));
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
        let made = self.make(request, parent, name, Kind::File { mode });
        self.reply(parent, move || match made {
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
        self.reply(inode, move || match data {
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
        self.reply(inode, move || match written {
            Ok(()) => reply.written(bytes),
            Err(e) => reply.error(e),
        });
    }

    fn flush(&self, _: &Request, inode: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        self.reply_empty(inode, Ok(()), reply);
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.reply_empty(inode, Ok(()), reply);
    }

    fn release(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.reply_empty(inode, Ok(()), reply);
    }

    fn opendir(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.reply(inode, move || reply.opened(HANDLE, FopenFlags::empty()));
    }

    fn readdir(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listed = self.tree().list(inode, offset, |entry| {
            let attributes = &entry.attributes;
            match reply.add(attributes.ino, entry.cookie, attributes.kind, entry.name) {
                true => Taken::NoRoom,
                false => Taken::NameOnly,
            }
        });
        self.reply(inode, move || match listed {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(e),
        });
    }

    fn readdirplus(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let listed = self.tree().list(inode, offset, |entry| {
            let attributes = &entry.attributes;
            let (number, cookie) = (attributes.ino, entry.cookie);
            match reply.add(number, cookie, entry.name, &TTL, attributes, GENERATION) {
                true => Taken::NoRoom,
                false => Taken::WithInode,
            }
        });
        self.reply(inode, move || match listed {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(e),
        });
    }

    fn releasedir(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.reply_empty(inode, Ok(()), reply);
    }

    fn fsyncdir(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.reply_empty(inode, Ok(()), reply);
    }

    fn statfs(&self, _: &Request, inode: INodeNo, reply: ReplyStatfs) {
        let files = BLOCKS;
        self.reply(inode, move || {
            reply.statfs(
                BLOCKS,
                BLOCKS,
                BLOCKS,
                files,
                files,
                BLOCK_BYTES,
                255,
                BLOCK_BYTES,
            );
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

/// Returns an error about flags that the kernel lacks, or about a limit that it would accept instead.
fn refused(answer: impl fmt::Debug) -> io::Error {
    io::Error::other(format!("the kernel has other limits: {answer:?}"))
}
