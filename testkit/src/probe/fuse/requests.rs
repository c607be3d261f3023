//! The requests of the kernel, each of which becomes calls of the [`Server`] and a reply.

use std::{
    ffi::OsStr,
    fs::{self, File, Permissions},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, FileExt as _, PermissionsExt as _, lchown, symlink},
    },
    path::Path,
    time::SystemTime,
};

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs,
    ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use rustix::{
    fs::{CWD, Mode, OFlags, SeekFrom, mknodat, renameat_with, statvfs},
    io::Errno,
};

use super::{
    Names, Numbering,
    replies::answer,
    server::{Open, Server, begins_with, refuse, sized, writes},
    tables::{fresh_number, lock},
};

/// The most requests without a waiting process, such as reads ahead, that the kernel sends before the first is answered.
const MOST_BACKGROUND: u16 = u16::MAX;

impl Filesystem for Server {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let mut wanted = InitFlags::FUSE_ATOMIC_O_TRUNC | InitFlags::FUSE_PARALLEL_DIROPS;
        let keeps_writes = self.habits.write_back.is_some();
        wanted.set(InitFlags::FUSE_WRITEBACK_CACHE, keeps_writes);
        let missing = |flags| io::Error::other(format!("the kernel lacks {flags:?}"));
        config.add_capabilities(wanted).map_err(missing)?;
        if self.habits.is_client() {
            let wanted = InitFlags::FUSE_DO_READDIRPLUS;
            config.add_capabilities(wanted).map_err(missing)?;
            // A smaller number is possible, too: then some of them wait.
            let _ = config.set_max_background(MOST_BACKGROUND);
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let path = self.child(parent, name);
        let found = path.and_then(|path| self.node_attributes(&path));
        self.entry(reply, found);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.wait_for_look(number);
        let attributes = self.shown_attributes(number);
        self.attr(reply, attributes);
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
            self.set_times(&path, atime, mtime)?;
            self.shown_attributes(number)
        };
        self.attr(reply, change());
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        let target = fs::read_link(self.path(number));
        answer!(self, reply, target, target => reply.data(target.as_os_str().as_bytes()));
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let kind = rustix::fs::FileType::from_raw_mode(mode);
        self.make(request, parent, name, Some(mode), reply, |path| {
            refuse(self.habits.mknod)?;
            Ok(mknodat(CWD, path, kind, Mode::RUSR, rdev.into())?)
        });
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let make = |path: &Path| {
            fs::DirBuilder::new().mode(mode).create(path)?;
            refuse(self.habits.after_mkdir)
        };
        self.make(request, parent, name, Some(mode), reply, make);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let make = |path: &Path| refuse(self.habits.symlink).and_then(|()| symlink(target, path));
        self.make(request, parent, name, None, reply, make);
    }

    fn link(&self, _: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let linked = self.path(number);
        if self.habits.numbering == Numbering::Forgetful {
            lock(&self.nodes).forget(&linked);
        }
        let made = self.new_child(parent, name).and_then(|path| {
            refuse(self.habits.link)?;
            fs::hard_link(&linked, &path)?;
            self.node_attributes(&path)
        });
        self.entry(reply, made);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = self.remove(parent, name, |path| self.unlink_stored(path));
        self.done(
            reply,
            removed.and_then(|()| refuse(self.habits.after_unlink)),
        );
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.done(
            reply,
            self.remove(parent, name, |path| fs::remove_dir(path)),
        );
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
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
        let rename = || {
            let (from, to) = (
                self.child(parent, name)?,
                self.new_child(new_parent, new_name)?,
            );
            let is_dir = fs::symlink_metadata(&from)?.is_dir();
            let replaces = fs::symlink_metadata(&to).is_ok();
            refuse(self.habits.rename)?;
            refuse(self.habits.rename_directory.filter(|_| is_dir))?;
            refuse(self.habits.rename_over.filter(|_| replaces))?;
            self.refuse_busy(&from)?;
            self.refuse_busy(&to)?;
            // An exchange would rename both.
            let is_plain = rustix::fs::RenameFlags::NOREPLACE.contains(flags);
            refuse((!is_plain).then_some(Errno::INVAL))?;
            renameat_with(CWD, &from, CWD, &to, flags)?;
            lock(&self.nodes).rename(&from, &to);
            Ok(())
        };
        self.done(reply, rename());
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let flags = OFlags::from_bits_retain(flags.0 as u32);
        let refused = match writes(flags) {
            _ if flags.contains(OFlags::NONBLOCK) => self.habits.open_nonblocking,
            true if flags.contains(OFlags::TRUNC) => self.habits.open_truncated,
            true => self.habits.open_untruncated,
            false => None,
        };
        let opened = refuse(refused).and_then(|()| self.open_stored(&self.path(number), flags));
        answer!(self, reply, opened, (handle, flags) => reply.opened(handle, flags));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let flags = OFlags::from_bits_retain(flags as u32) | OFlags::CREATE;
        let created = self.new_child(parent, name).and_then(|path| {
            let existed = fs::symlink_metadata(&path).is_ok();
            let opened = self.open_stored(&path, flags)?;
            if !existed {
                Self::finish(request, &path, Some(mode))?;
                let is_readonly = mode & 0o200 == 0;
                refuse(self.habits.create_readonly.filter(|_| is_readonly))?;
            }
            Ok((self.node_attributes(&path)?, opened))
        });
        answer!(self, reply, created, (attributes, (handle, flags)) => {
            reply.created(&self.habits.client_caches, &attributes, Generation(0), handle, flags);
        });
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let waits = !OFlags::from_bits_retain(flags.0 as u32).contains(OFlags::NONBLOCK);
        let read = refuse(self.habits.read)
            .and_then(|()| refuse(self.habits.read_nonblocking.filter(|_| !waits)))
            .and_then(|()| self.read_stored(handle, offset, size));
        answer!(self, reply, read, bytes => reply.data(&bytes));
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
        let longest = self.habits.longest_write.unwrap_or(usize::MAX);
        let data = &data[..data.len().min(longest)];
        self.transfer(&self.written, data.len());
        let open = self.files.get(handle).map_err(io::Error::from);
        let written = refuse(self.habits.write_back)
            .and(open)
            .and_then(|open| open.file.write_all_at(data, offset));
        answer!(self, reply, written, () => reply.written(data.len() as u32));
    }

    fn flush(&self, _: &Request, _: INodeNo, handle: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        let close = || {
            refuse(self.habits.flush)?;
            let open = self.files.get(handle)?;
            match self.habits.close_sets_time && writes(open.flags) {
                true => open.file.set_modified(SystemTime::now()),
                false => Ok(()),
            }
        };
        self.done(reply, close());
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let errno = self.habits.fsync.unwrap_or(Errno::NOSYS);
        self.done(reply, refuse(Some(errno)));
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
        answer!(self, reply, sought, offset => reply.offset(offset as i64));
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
        let handle = FileHandle(fresh_number());
        let open = || {
            let is_bad = begins_with(&path, b"bad");
            refuse(self.habits.opendir.filter(|_| is_bad))?;
            // Only this habit asks which directories are open.
            if self.habits.busy.is_some() {
                let (file, flags) = (File::open(&path)?, OFlags::RDONLY);
                self.files.set(handle, Open { file, flags });
            }
            Ok::<_, io::Error>(handle)
        };
        answer!(self, reply, open(), handle => reply.opened(handle, FopenFlags::empty()));
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let parent = self.path(number);
        answer!(self, reply, self.names(number, handle, offset), names => {
            for (position, name) in (1..).zip(&*names).skip(offset as usize) {
                // An entry that has just been removed is not listed.
                let Ok((number, kind)) = self.listed(&parent.join(name)) else {
                    continue;
                };
                if reply.add(number, position, kind, name) {
                    break;
                }
            }
            reply.ok();
        });
    }

    fn readdirplus(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let (parent, ttl) = (self.path(number), &self.habits.client_caches);
        answer!(self, reply, self.names(number, handle, offset), names => {
            for (position, name) in (1..).zip(&*names).skip(offset as usize) {
                let Ok(attributes) = self.node_attributes(&parent.join(name)) else {
                    continue;
                };
                if reply.add(attributes.ino, position, name, ttl, &attributes, Generation(0)) {
                    break;
                }
            }
            reply.ok();
        });
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
        self.files.remove(handle);
        reply.ok();
    }

    fn statfs(&self, _: &Request, number: INodeNo, reply: ReplyStatfs) {
        if self.habits.zero_statfs {
            return reply.statfs(0, 0, 0, 0, 0, 0, 0, 0);
        }
        let stat = refuse(self.habits.statfs).and_then(|()| Ok(statvfs(self.path(number))?));
        answer!(self, reply, stat, s => {
            let [block, mut name, fragment] = [s.f_bsize, s.f_namemax, s.f_frsize].map(|n| n as u32);
            if let Names::Limited(bytes) = self.habits.names {
                name = bytes as u32;
            }
            reply.statfs(s.f_blocks, s.f_bfree, s.f_bavail, s.f_files, s.f_ffree, block, name, fragment);
        });
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
        self.done(reply, self.set_xattr(number, name, Some(value), flags));
    }

    fn removexattr(&self, _: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.done(reply, self.set_xattr(number, name, None, 0));
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        answer!(self, reply, self.xattr(number, name), value => sized(&value, size, reply));
    }

    fn listxattr(&self, _: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        answer!(self, reply, self.xattr_names(number), names => sized(&names, size, reply));
    }
}
