//! A FUSE filesystem without stable inode numbers, as sshfs is one.
//!
//! It stores everything in a directory of another filesystem. Each path has a number of its own, so the
//! hard links of a file have different numbers.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs::{self, File},
    io,
    os::unix::fs::{FileExt, MetadataExt, PermissionsExt, lchown, symlink},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    Generation, INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{
    AtFlags, CWD, Mode, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, mknodat, utimensat,
};

use super::{Skip, is_root};
use crate::tree::Scratch;

/// Says how long a path keeps its inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// Until the file is removed.
    Lasting,
    /// Until a hard link to the file is made. This stands for a kernel that forgets the inode because
    /// it is short of memory.
    Forgetful,
}

/// A mounted FUSE filesystem, which is unmounted when this is dropped.
#[derive(Debug)]
pub struct FuseMount {
    // Fields are dropped in this order: the server ends before its directories are removed.
    session: Option<BackgroundSession>,
    point: Scratch,
    stored: Scratch,
}

impl FuseMount {
    /// Mounts an empty filesystem, which a thread of this process serves.
    ///
    /// # Errors
    /// Fails without root, or if the kernel refuses the mount.
    pub fn new(numbering: Numbering) -> Result<Self, Skip> {
        Self::mount(numbering, Duration::ZERO)
    }

    /// Mounts an empty filesystem that answers each read this late.
    ///
    /// # Errors
    /// Fails as [`new`](Self::new) does.
    pub fn with_late_reads(latency: Duration) -> Result<Self, Skip> {
        Self::mount(Numbering::Lasting, latency)
    }

    fn mount(numbering: Numbering, read_latency: Duration) -> Result<Self, Skip> {
        if !is_root() {
            return Err(Skip("mounting FUSE takes root".to_owned()));
        }
        let [point, stored] = [Scratch::new(), Scratch::in_memory()];
        let server = Server {
            numbering,
            read_latency,
            paths: Mutex::new(Paths::new(stored.path())),
        };
        let session = fuser::spawn_mount(server, point.path(), &Config::default())
            .map_err(|e| Skip(format!("no FUSE: {e}")))?;
        Ok(Self {
            session: Some(session),
            point,
            stored,
        })
    }

    /// Returns the mount point.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.point.path()
    }

    /// Returns the directory in which the filesystem stores everything. The numbers there are true.
    #[must_use]
    pub fn stored(&self) -> &Path {
        self.stored.path()
    }
}

impl Drop for FuseMount {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            // If this fails, the removal of the mount point reports it.
            let _ = session.umount_and_join();
        }
    }
}

/// Attributes and names are asked for again each time.
const TTL: Duration = Duration::ZERO;

struct Server {
    numbering: Numbering,
    read_latency: Duration,
    paths: Mutex<Paths>,
}

/// The paths that have a number, and those that had one.
struct Paths {
    /// The path of the number `n` is at `n - 1`.
    all: Vec<PathBuf>,
    numbers: HashMap<PathBuf, u64>,
}

impl Paths {
    fn new(root: &Path) -> Self {
        let mut paths = Self {
            all: Vec::new(),
            numbers: HashMap::new(),
        };
        paths.number(root);
        paths
    }

    fn path(&self, number: INodeNo) -> PathBuf {
        self.all[number.0 as usize - 1].clone()
    }

    /// Returns the number of `path`, which gets one if it has none.
    fn number(&mut self, path: &Path) -> INodeNo {
        let number = self.numbers.entry(path.to_owned()).or_insert_with(|| {
            self.all.push(path.to_owned());
            self.all.len() as u64
        });
        INodeNo(*number)
    }

    fn forget(&mut self, path: &Path) {
        self.numbers.remove(path);
    }
}

impl Server {
    fn paths(&self) -> MutexGuard<'_, Paths> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, number: INodeNo) -> PathBuf {
        self.paths().path(number)
    }

    fn attributes(path: &Path, number: INodeNo) -> io::Result<FileAttr> {
        let stat = fs::symlink_metadata(path)?;
        let time = |seconds: i64, nanoseconds: i64| {
            UNIX_EPOCH + Duration::new(seconds as u64, nanoseconds as u32)
        };
        Ok(FileAttr {
            ino: number,
            size: stat.size(),
            blocks: stat.blocks(),
            atime: time(stat.atime(), stat.atime_nsec()),
            mtime: time(stat.mtime(), stat.mtime_nsec()),
            ctime: time(stat.ctime(), stat.ctime_nsec()),
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

    /// Runs `make` on the path of `name`, and replies with the entry that is there then.
    fn entry(
        &self,
        parent: INodeNo,
        name: &OsStr,
        make: impl FnOnce(&Path) -> io::Result<()>,
        reply: ReplyEntry,
    ) {
        let path = self.path(parent).join(name);
        let found = make(&path).and_then(|()| {
            fs::symlink_metadata(&path)?;
            Self::attributes(&path, self.paths().number(&path))
        });
        match found {
            Ok(attributes) => reply.entry(&TTL, &attributes, Generation(0)),
            Err(e) => reply.error(e.into()),
        }
    }

    fn remove(
        &self,
        parent: INodeNo,
        name: &OsStr,
        remove: impl FnOnce(&Path) -> io::Result<()>,
        reply: ReplyEmpty,
    ) {
        let path = self.path(parent).join(name);
        self.paths().forget(&path);
        match remove(&path) {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(e.into()),
        }
    }
}

impl Filesystem for Server {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(parent, name, |_| Ok(()), reply);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match Self::attributes(&self.path(number), number) {
            Ok(attributes) => reply.attr(&TTL, &attributes),
            Err(e) => reply.error(e.into()),
        }
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
        _: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let path = self.path(number);
        let set = || {
            if let Some(size) = size {
                File::options().write(true).open(&path)?.set_len(size)?;
            }
            if uid.is_some() || gid.is_some() {
                lchown(&path, uid, gid)?;
            }
            if let Some(mode) = mode {
                fs::set_permissions(&path, fs::Permissions::from_mode(mode & 0o7777))?;
            }
            let times = Timestamps {
                last_access: timespec(atime),
                last_modification: timespec(mtime),
            };
            utimensat(CWD, &path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
            Self::attributes(&path, number)
        };
        match set() {
            Ok(attributes) => reply.attr(&TTL, &attributes),
            Err(e) => reply.error(e.into()),
        }
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        match fs::read_link(self.path(number)) {
            Ok(target) => reply.data(target.as_os_str().as_encoded_bytes()),
            Err(e) => reply.error(e.into()),
        }
    }

    fn mknod(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let make = |path: &Path| {
            let kind = rustix::fs::FileType::from_raw_mode(mode);
            mknodat(
                CWD,
                path,
                kind,
                Mode::from_raw_mode(mode & 0o7777),
                rdev.into(),
            )?;
            fs::set_permissions(path, fs::Permissions::from_mode(mode & !umask & 0o7777))
        };
        self.entry(parent, name, make, reply);
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let make = |path: &Path| {
            fs::create_dir(path)?;
            fs::set_permissions(path, fs::Permissions::from_mode(mode & !umask & 0o7777))
        };
        self.entry(parent, name, make, reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.remove(parent, name, |path| fs::remove_file(path), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.remove(parent, name, |path| fs::remove_dir(path), reply);
    }

    fn symlink(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        self.entry(parent, name, |path| symlink(target, path), reply);
    }

    fn link(&self, _: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let linked = self.path(number);
        if self.numbering == Numbering::Forgetful {
            self.paths().forget(&linked);
        }
        self.entry(parent, name, |path| fs::hard_link(&linked, path), reply);
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut buffer = vec![0; size as usize];
        thread::sleep(self.read_latency);
        let read = File::open(self.path(number)).and_then(|file| file.read_at(&mut buffer, offset));
        match read {
            Ok(bytes) => reply.data(&buffer[..bytes]),
            Err(e) => reply.error(e.into()),
        }
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let file = File::options().write(true).open(self.path(number));
        match file.and_then(|file| file.write_all_at(data, offset)) {
            Ok(()) => reply.written(data.len() as u32),
            Err(e) => reply.error(e.into()),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let path = self.path(number);
        let Ok(entries) = fs::read_dir(&path) else {
            return reply.error(Errno::EIO);
        };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        for (position, name) in (1..).zip(&names).skip(offset as usize) {
            let path = path.join(name);
            let number = self.paths().number(&path);
            let Ok(attributes) = Self::attributes(&path, number) else {
                continue;
            };
            if reply.add(number, position, attributes.kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

fn timespec(time: Option<TimeOrNow>) -> Timespec {
    let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    match time {
        None => special(UTIME_OMIT),
        Some(TimeOrNow::Now) => special(UTIME_NOW),
        Some(TimeOrNow::SpecificTime(time)) => {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            Timespec {
                tv_sec: since.as_secs() as i64,
                tv_nsec: since.subsec_nanos().into(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{or_skip, tree::Tree};

    #[test]
    fn each_path_has_a_number_of_its_own() {
        for numbering in [Numbering::Lasting, Numbering::Forgetful] {
            let mount = or_skip!(FuseMount::new(numbering));
            let path = mount.path().to_owned();
            let number = |name: &str| fs::metadata(path.join(name)).unwrap().ino();
            let tree = Tree::at(&path);
            tree.file("d/one", b"content");
            let before = number("d/one");
            tree.hardlink("d/one", "d/two");
            assert_ne!(number("d/one"), number("d/two"));
            assert_eq!(number("d/one") == before, numbering == Numbering::Lasting);
            assert_eq!(fs::read(path.join("d/two")).unwrap(), b"content");
            assert_eq!(
                fs::metadata(mount.stored().join("d/two")).unwrap().nlink(),
                2
            );
            drop(mount);
            assert!(!path.exists());
        }
    }
}
