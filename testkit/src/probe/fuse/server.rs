//! The server of a [`FuseMount`](super::FuseMount): each request becomes a call on a path of the directory that
//! stores everything, unless a habit answers it.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata, Permissions},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileExt, MetadataExt, PermissionsExt, lchown, symlink},
    },
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen,
    ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::{
    fs::{
        AtFlags, CWD, Mode, OFlags, SeekFrom, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT,
        XattrFlags, mknodat, renameat_with, statvfs, utimensat,
    },
    io::Errno,
};

use super::{
    Habits, Names, Numbering, Removal,
    tables::{Handles, Nodes, lock},
};

/// Attributes and names are asked for again each time.
const TTL: Duration = Duration::ZERO;

pub(super) struct Server {
    habits: Habits,
    nodes: Mutex<Nodes>,
    files: Handles<Open>,
    directories: Handles<Mutex<Vec<Listed>>>,
    removals: Mutex<Removals>,
    fresh_number: AtomicU64,
}

struct Open {
    file: File,
    is_direct: bool,
}

struct Listed {
    number: INodeNo,
    kind: FileType,
    name: OsString,
}

#[derive(Default)]
struct Removals {
    last_success: Option<Instant>,
    tried: HashSet<PathBuf>,
}

/// Replies with an error, or with what `$ok` makes of the value.
macro_rules! answer {
    ($reply:ident, $result:expr, $value:pat => $ok:expr) => {
        match $result {
            Ok($value) => $ok,
            Err(e) => $reply.error(io::Error::from(e).into()),
        }
    };
}

fn refuse(habit: Option<Errno>) -> io::Result<()> {
    habit.map_or(Ok(()), |errno| Err(errno.into()))
}

impl Server {
    pub(super) fn new(habits: Habits, root: &Path) -> Self {
        Self {
            habits,
            nodes: Mutex::new(Nodes::new(root)),
            files: Handles::new(),
            directories: Handles::new(),
            removals: Mutex::default(),
            fresh_number: AtomicU64::new(1000),
        }
    }

    fn path(&self, number: INodeNo) -> PathBuf {
        lock(&self.nodes).path(number)
    }

    /// Returns the path of an entry by its stored name.
    fn child(&self, parent: INodeNo, name: &OsStr) -> PathBuf {
        let text = || name.to_string_lossy();
        let name = match self.habits.names {
            Names::Kept => name.to_owned(),
            Names::LowerCase => text().to_lowercase().into(),
            Names::Cut(bytes) => {
                OsStr::from_bytes(name.as_bytes().get(..bytes).unwrap_or(name.as_bytes()))
                    .to_owned()
            }
            Names::Decomposed => text().replace('\u{e9}', "e\u{301}").into(),
        };
        self.path(parent).join(name)
    }

    /// Returns the attributes that a request for a name answers. In these, fuser takes the inode number for that
    /// of the node.
    fn node_attributes(&self, path: &Path) -> io::Result<FileAttr> {
        let stat = fs::symlink_metadata(path)?;
        let number = lock(&self.nodes).number(path);
        self.attributes(&stat, number)
    }

    /// Returns the attributes that `stat` shows.
    fn shown_attributes(&self, number: INodeNo) -> io::Result<FileAttr> {
        let stat = fs::symlink_metadata(self.path(number))?;
        let mut attributes = self.attributes(&stat, self.shown_number(&stat, number))?;
        if self.habits.numbering == Numbering::Equal && !stat.is_dir() {
            attributes.nlink = 2;
        }
        Ok(attributes)
    }

    fn shown_number(&self, stat: &Metadata, node: INodeNo) -> INodeNo {
        match self.habits.numbering {
            Numbering::True => INodeNo(stat.ino()),
            Numbering::Equal if !stat.is_dir() => INodeNo(77),
            Numbering::Lasting | Numbering::Forgetful | Numbering::Equal => node,
            Numbering::Fresh => INodeNo(self.fresh_number.fetch_add(1, Ordering::Relaxed)),
        }
    }

    fn attributes(&self, stat: &Metadata, ino: INodeNo) -> io::Result<FileAttr> {
        let size = match self.habits.hidden_sizes && stat.is_file() {
            true => 0,
            false => stat.size(),
        };
        Ok(FileAttr {
            ino,
            size,
            blocks: stat.blocks(),
            atime: self.stored_time(stat.atime(), stat.atime_nsec()),
            mtime: self.stored_time(stat.mtime(), stat.mtime_nsec()),
            ctime: system_time(stat.ctime(), stat.ctime_nsec()),
            crtime: UNIX_EPOCH,
            kind: FileType::from_std(stat.file_type()).ok_or(io::ErrorKind::Unsupported)?,
            perm: (stat.mode() & 0o7777) as u16,
            nlink: stat.nlink() as u32,
            uid: stat.uid(),
            gid: stat.gid(),
            rdev: stat.rdev() as u32,
            blksize: 4096,
            flags: 0,
        })
    }

    fn stored_time(&self, seconds: i64, nanoseconds: i64) -> SystemTime {
        let (mut seconds, mut nanoseconds) = (seconds, nanoseconds);
        let step = self.habits.time_step_seconds;
        if step > 0 {
            (seconds, nanoseconds) = (seconds - seconds.rem_euclid(step), 0);
        }
        if let Some(range) = &self.habits.time_range
            && !range.contains(&seconds)
        {
            (seconds, nanoseconds) = (seconds.clamp(*range.start(), *range.end()), 0);
        }
        system_time(seconds, nanoseconds)
    }

    /// Makes the entry at `path`, and replies with it.
    fn make(
        &self,
        request: &Request,
        path: &Path,
        mode: Option<u32>,
        make: impl FnOnce() -> io::Result<()>,
        reply: ReplyEntry,
    ) {
        let made = make()
            .and_then(|()| Self::finish(request, path, mode))
            .and_then(|()| self.node_attributes(path));
        answer!(reply, made, attributes => reply.entry(&TTL, &attributes, Generation(0)));
    }

    /// Gives the new entry at `path` its owner and, if it can have one, its mode.
    fn finish(request: &Request, path: &Path, mode: Option<u32>) -> io::Result<()> {
        let set_gid = 0o2000 & fs::metadata(path.parent().unwrap_or(path))?.mode();
        let group = (set_gid == 0).then_some(request.gid());
        lchown(path, Some(request.uid()), group)?;
        let Some(mode) = mode else {
            return Ok(());
        };
        let mode = match fs::symlink_metadata(path)?.is_dir() {
            true => mode | set_gid,
            false => mode,
        };
        fs::set_permissions(path, Permissions::from_mode(mode & 0o7777))
    }

    /// Removes one entry at a time, so that none gets past a pause.
    fn remove(&self, path: &Path, remove: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut removals = lock(&self.removals);
        let refused = match self.habits.removal {
            Removal::Honest => None,
            Removal::Pausing(errno, pause) => {
                let last = removals.last_success;
                last.and_then(|last| (last.elapsed() < pause).then_some(errno))
            }
            Removal::Hesitant(errno) => removals.tried.insert(path.to_owned()).then_some(errno),
        };
        refuse(refused)?;
        remove()?;
        lock(&self.nodes).forget(path);
        removals.last_success = Some(Instant::now());
        Ok(())
    }

    /// Removes a file, or renames it to `.nfs…` if it is in use on a server like NFS.
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let name = path.file_name().unwrap_or_default().as_bytes();
        let is_left = self.habits.silly_renames && name.starts_with(b".nfs");
        refuse(is_left.then_some(Errno::BUSY))?;
        if !self.habits.silly_renames || !name.starts_with(b"open") {
            return fs::remove_file(path);
        }
        let number = fs::symlink_metadata(path)?.ino();
        let left = path.with_file_name(format!(".nfs{number:08x}"));
        fs::rename(path, &left)?;
        lock(&self.nodes).rename(path, &left);
        Ok(())
    }

    /// Opens or creates the file at `path` as `flags` say, for this server's own reads and writes.
    fn open_stored(&self, path: &Path, flags: OFlags) -> io::Result<(FileHandle, FopenFlags)> {
        let used = OFlags::RWMODE | OFlags::CREATE | OFlags::EXCL | OFlags::TRUNC;
        let own = OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path, flags & used | own, Mode::RUSR | Mode::WUSR)?;
        let mut reply = FopenFlags::empty();
        // The kernel passes these on only if it does not cache.
        if self.habits.hidden_sizes || self.habits.longest_write.is_some() {
            reply |= FopenFlags::FOPEN_DIRECT_IO;
        }
        if self.habits.nonseekable && writes(flags) {
            reply |= FopenFlags::FOPEN_NONSEEKABLE;
        }
        let open = Open {
            file: file.into(),
            is_direct: flags.contains(OFlags::DIRECT),
        };
        Ok((self.files.add(open), reply))
    }

    fn list(&self, number: INodeNo) -> io::Result<Vec<Listed>> {
        let path = self.path(number);
        let mut list = Vec::new();
        for entry in fs::read_dir(&path)? {
            let name = entry?.file_name();
            let path = path.join(&name);
            let Ok(stat) = fs::symlink_metadata(&path) else {
                continue;
            };
            let node = lock(&self.nodes).number(&path);
            let number = self.shown_number(&stat, node);
            let mut kind = self.attributes(&stat, number)?.kind;
            if let Some(claimed) = self.habits.listed_type
                && name.as_bytes().starts_with(b"odd")
            {
                kind = claimed;
            }
            list.push(Listed { number, kind, name });
        }
        list.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(list)
    }

    fn xattr(&self, number: INodeNo, name: &OsStr) -> io::Result<Vec<u8>> {
        if name.as_bytes().starts_with(b"system.") {
            refuse(self.habits.get_system_xattr)?;
        }
        if self.habits.meaningless_xattrs {
            let value = lock(&self.nodes).xattrs(number).get(name).cloned();
            return value.ok_or(Errno::NODATA.into());
        }
        let path = self.path(number);
        let mut value = vec![0; 1 << 16];
        let bytes = rustix::fs::lgetxattr(&path, name, &mut value[..])?;
        value.truncate(bytes);
        Ok(value)
    }

    /// Returns the names of attributes, each with a zero byte behind it.
    fn xattr_names(&self, number: INodeNo) -> io::Result<Vec<u8>> {
        refuse(self.habits.listxattr)?;
        if self.habits.get_system_xattr.is_some() {
            return Ok(Vec::new());
        }
        if self.habits.meaningless_xattrs {
            let mut nodes = lock(&self.nodes);
            let names = nodes.xattrs(number).keys();
            return Ok(names
                .flat_map(|name| [name.as_bytes(), b"\0"].concat())
                .collect());
        }
        let mut names = vec![0; 1 << 16];
        let bytes = rustix::fs::llistxattr(self.path(number), &mut names[..])?;
        names.truncate(bytes);
        Ok(names)
    }

    fn set_xattr(
        &self,
        number: INodeNo,
        name: &OsStr,
        value: Option<&[u8]>,
        flags: i32,
    ) -> io::Result<()> {
        if name.as_bytes().starts_with(b"system.posix_acl_") {
            refuse(self.habits.set_acl)?;
        }
        if self.habits.meaningless_xattrs {
            let mut nodes = lock(&self.nodes);
            let xattrs = nodes.xattrs(number);
            let old = match value {
                Some(value) => {
                    xattrs.insert(name.to_owned(), value.to_owned());
                    return Ok(());
                }
                None => xattrs.remove(name),
            };
            return old.map(|_| ()).ok_or(Errno::NODATA.into());
        }
        let path = self.path(number);
        match value {
            Some(value) => {
                let flags = XattrFlags::from_bits_retain(flags as u32);
                Ok(rustix::fs::lsetxattr(&path, name, value, flags)?)
            }
            None => Ok(rustix::fs::lremovexattr(&path, name)?),
        }
    }
}

impl Filesystem for Server {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = InitFlags::FUSE_ATOMIC_O_TRUNC | InitFlags::FUSE_PARALLEL_DIROPS;
        let missing = |flags| io::Error::other(format!("the kernel lacks {flags:?}"));
        config.add_capabilities(wanted).map_err(missing)
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.node_attributes(&self.child(parent, name));
        answer!(reply, found, attributes => reply.entry(&TTL, &attributes, Generation(0)));
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let attributes = self.shown_attributes(number);
        answer!(reply, attributes, attributes => reply.attr(&TTL, &attributes));
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let path = self.path(number);
        let change = || {
            if let Some(size) = size {
                refuse(self.habits.truncate)?;
                match handle {
                    Some(handle) => self.files.get(handle)?.file.set_len(size)?,
                    None => File::options().write(true).open(&path)?.set_len(size)?,
                }
            }
            if uid.is_some() || gid.is_some() {
                refuse(self.habits.chown)?;
                lchown(&path, uid, gid)?;
            }
            if let Some(mode) = mode {
                refuse(self.habits.chmod)?;
                fs::set_permissions(&path, Permissions::from_mode(mode & 0o7777))?;
            }
            let sets_times = match self.habits.lone_times_ignored {
                true => atime.is_some() && mtime.is_some(),
                false => atime.is_some() || mtime.is_some(),
            };
            if sets_times {
                refuse(self.habits.utimens)?;
                let times = Timestamps {
                    last_access: timespec(atime),
                    last_modification: timespec(mtime),
                };
                utimensat(CWD, &path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            self.shown_attributes(number)
        };
        answer!(reply, change(), attributes => reply.attr(&TTL, &attributes));
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        let target = fs::read_link(self.path(number));
        answer!(reply, target, target => reply.data(target.as_os_str().as_bytes()));
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let path = self.child(parent, name);
        let kind = rustix::fs::FileType::from_raw_mode(mode);
        let mknod = || Ok(mknodat(CWD, &path, kind, Mode::RUSR, rdev.into())?);
        self.make(request, &path, Some(mode & !umask), mknod, reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let path = self.child(parent, name);
        let mkdir = || {
            rustix::fs::mkdir(&path, Mode::from_raw_mode(mode & !umask))?;
            refuse(self.habits.mkdir_exists.then_some(Errno::EXIST))
        };
        self.make(request, &path, Some(mode & !umask), mkdir, reply);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let path = self.child(parent, name);
        self.make(request, &path, None, || symlink(target, &path), reply);
    }

    fn link(&self, _: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (linked, path) = (self.path(number), self.child(parent, name));
        if self.habits.numbering == Numbering::Forgetful {
            lock(&self.nodes).forget(&linked);
        }
        let made = refuse(self.habits.link)
            .and_then(|()| fs::hard_link(&linked, &path))
            .and_then(|()| self.node_attributes(&path));
        answer!(reply, made, attributes => reply.entry(&TTL, &attributes, Generation(0)));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let path = self.child(parent, name);
        answer!(reply, self.remove(&path, || self.remove_file(&path)), () => reply.ok());
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let path = self.child(parent, name);
        answer!(reply, self.remove(&path, || fs::remove_dir(&path)), () => reply.ok());
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
        let (from, to) = (self.child(parent, name), self.child(new_parent, new_name));
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
        // An exchange would rename both.
        let supported = rustix::fs::RenameFlags::NOREPLACE.contains(flags);
        let renamed = match supported {
            true => renameat_with(CWD, &from, CWD, &to, flags),
            false => Err(Errno::INVAL),
        };
        answer!(reply, renamed, () => {
            lock(&self.nodes).rename(&from, &to);
            reply.ok();
        });
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let flags = OFlags::from_bits_retain(flags.0 as u32);
        let keeps_content = writes(flags) && !flags.contains(OFlags::TRUNC);
        let refused = keeps_content.then_some(self.habits.open_untruncated);
        let opened =
            refuse(refused.flatten()).and_then(|()| self.open_stored(&self.path(number), flags));
        answer!(reply, opened, (handle, flags) => reply.opened(handle, flags));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let path = self.child(parent, name);
        let flags = OFlags::from_bits_retain(flags as u32) | OFlags::CREATE;
        let existed = fs::symlink_metadata(&path).is_ok();
        let created = self.open_stored(&path, flags).and_then(|opened| {
            if !existed {
                Self::finish(request, &path, Some(mode & !umask))?;
            }
            Ok((self.node_attributes(&path)?, opened))
        });
        answer!(reply, created, (attributes, (handle, flags)) => {
            reply.created(&TTL, &attributes, Generation(0), handle, flags);
        });
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        thread::sleep(self.habits.read_latency);
        let mut buffer = vec![0; size as usize];
        let read = self
            .files
            .get(handle)
            .map_err(io::Error::from)
            .and_then(|open| {
                refuse(self.habits.direct_read.filter(|_| open.is_direct))?;
                let end = self.habits.unreadable_from.unwrap_or(u64::MAX);
                refuse((offset + u64::from(size) > end).then_some(Errno::IO))?;
                open.file.read_at(&mut buffer, offset)
            });
        answer!(reply, read, bytes => reply.data(&buffer[..bytes]));
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        thread::sleep(self.habits.write_latency);
        let longest = self.habits.longest_write.unwrap_or(usize::MAX);
        let data = &data[..data.len().min(longest)];
        let open = self.files.get(handle).map_err(io::Error::from);
        let written = open.and_then(|open| open.file.write_all_at(data, offset));
        answer!(reply, written, () => reply.written(data.len() as u32));
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        answer!(reply, refuse(self.habits.flush), () => reply.ok());
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.files.remove(handle);
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer!(reply, refuse(self.habits.fsync), () => reply.ok());
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer!(reply, refuse(self.habits.fsync), () => reply.ok());
    }

    fn lseek(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let to = match whence {
            3 => SeekFrom::Data(offset as u64),
            _ => SeekFrom::Hole(offset as u64),
        };
        let sought = refuse(self.habits.seek)
            .and_then(|()| Ok(rustix::fs::seek(&self.files.get(handle)?.file, to)?));
        answer!(reply, sought, offset => reply.offset(offset as i64));
    }

    fn copy_file_range(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let errno = self.habits.copy_file_range.unwrap_or(Errno::NOSYS);
        reply.error(io::Error::from(errno).into());
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let path = self.path(number);
        let name = path.file_name().unwrap_or_default();
        let is_bad = name.as_bytes().starts_with(b"bad");
        let refused = self.habits.opendir.filter(|_| is_bad);
        answer!(reply, refuse(refused), () => {
            reply.opened(self.directories.add(Mutex::default()), FopenFlags::empty());
        });
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let directory = match self.directories.get(handle) {
            Ok(directory) => directory,
            Err(e) => return reply.error(io::Error::from(e).into()),
        };
        let mut list = lock(&directory);
        if offset == 0 || self.habits.skipping_lists {
            match self.list(number) {
                Ok(all) => *list = all,
                Err(e) => return reply.error(e.into()),
            }
        }
        for (position, entry) in (1..).zip(&*list).skip(offset as usize) {
            if reply.add(entry.number, position, entry.kind, &entry.name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.directories.remove(handle);
        reply.ok();
    }

    fn statfs(&self, _: &Request, number: INodeNo, reply: ReplyStatfs) {
        if self.habits.zero_statfs {
            return reply.statfs(0, 0, 0, 0, 0, 0, 0, 0);
        }
        let stat = refuse(self.habits.statfs).and_then(|()| Ok(statvfs(self.path(number))?));
        answer!(reply, stat, s => reply.statfs(
            s.f_blocks,
            s.f_bfree,
            s.f_bavail,
            s.f_files,
            s.f_ffree,
            s.f_bsize as u32,
            s.f_namemax as u32,
            s.f_frsize as u32,
        ));
    }

    fn setxattr(
        &self,
        _: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        answer!(reply, self.set_xattr(number, name, Some(value), flags), () => reply.ok());
    }

    fn removexattr(&self, _: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.set_xattr(number, name, None, 0), () => reply.ok());
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        answer!(reply, self.xattr(number, name), value => sized(&value, size, reply));
    }

    fn listxattr(&self, _: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        answer!(reply, self.xattr_names(number), names => sized(&names, size, reply));
    }
}

/// Replies with `bytes`, or with their number if the request asks for it by the size 0.
fn sized(bytes: &[u8], size: u32, reply: ReplyXattr) {
    match size as usize {
        0 => reply.size(bytes.len() as u32),
        size if size < bytes.len() => reply.error(fuser::Errno::ERANGE),
        _ => reply.data(bytes),
    }
}

fn writes(flags: OFlags) -> bool {
    flags.intersects(OFlags::WRONLY | OFlags::RDWR)
}

fn system_time(seconds: i64, nanoseconds: i64) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = match seconds < 0 {
        true => UNIX_EPOCH - whole,
        false => UNIX_EPOCH + whole,
    };
    base + Duration::from_nanos(nanoseconds as u64)
}

fn timespec(time: Option<TimeOrNow>) -> Timespec {
    let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    match time {
        None => special(UTIME_OMIT),
        Some(TimeOrNow::Now) => special(UTIME_NOW),
        Some(TimeOrNow::SpecificTime(time)) => match time.duration_since(UNIX_EPOCH) {
            Ok(since) => Timespec {
                tv_sec: since.as_secs() as i64,
                tv_nsec: since.subsec_nanos().into(),
            },
            // fuser subtracts the nanoseconds of a time before 1970, where the kernel means to add them.
            Err(before) => Timespec {
                tv_sec: -(before.duration().as_secs() as i64),
                tv_nsec: before.duration().subsec_nanos().into(),
            },
        },
    }
}
