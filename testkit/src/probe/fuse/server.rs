//! The server of a [`FuseMount`](super::FuseMount). It makes calls on paths of the directory that stores everything,
//! unless a habit answers a request.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata, Permissions},
    io,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, lchown},
    },
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use fuser::{FileAttr, FileHandle, FileType, FopenFlags, INodeNo, ReplyXattr, Request, TimeOrNow};
use rustix::{
    fs::{
        AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, XattrFlags,
        utimensat,
    },
    io::Errno,
};

use super::{
    Habits, Names, Numbering, Removal,
    tables::{Handles, Nodes, lock},
};

pub(super) struct Server {
    pub(super) habits: Habits,
    pub(super) nodes: Mutex<Nodes>,
    pub(super) files: Handles<Open>,
    pub(super) directories: Handles<Mutex<Vec<Listed>>>,
    /// Each reply waits so many microseconds.
    latency_micros: Arc<AtomicU64>,
    removals: Mutex<Removals>,
    looked_at: Mutex<HashSet<INodeNo>>,
    /// When the content of the last read, and that of the last write, has been transferred.
    transferred: [Mutex<Option<Instant>>; 2],
    fresh_number: AtomicU64,
}

#[derive(Clone, Copy)]
pub(super) enum Direction {
    Read,
    Write,
}

pub(super) struct Open {
    pub(super) file: File,
    pub(super) is_direct: bool,
}

pub(super) struct Listed {
    pub(super) number: INodeNo,
    pub(super) kind: FileType,
    pub(super) name: OsString,
}

/// The beginning of the stored names of attributes without a meaning.
const MEANINGLESS: &[u8] = b"trusted.";

#[derive(Default)]
struct Removals {
    last_success: Option<Instant>,
    tried: HashSet<PathBuf>,
}

pub(super) fn refuse(habit: Option<Errno>) -> io::Result<()> {
    habit.map_or(Ok(()), |errno| Err(errno.into()))
}

impl Server {
    pub(super) fn new(habits: Habits, root: &Path, latency_micros: Arc<AtomicU64>) -> Self {
        Self {
            latency_micros,
            habits,
            nodes: Mutex::new(Nodes::new(root)),
            files: Handles::new(),
            directories: Handles::new(),
            removals: Mutex::default(),
            looked_at: Mutex::default(),
            transferred: Default::default(),
            fresh_number: AtomicU64::new(1000),
        }
    }

    pub(super) fn wait(&self) {
        // Relaxed: the number publishes nothing.
        let micros = self.latency_micros.load(Ordering::Relaxed);
        if micros > 0 {
            thread::sleep(Duration::from_micros(micros));
        }
    }

    /// Waits if the attributes of a late directory are asked for the first time.
    pub(super) fn wait_for_look(&self, number: INodeNo) {
        let delay = self.habits.first_look;
        let is_late = !delay.is_zero() && self.begins_with(number, b"late");
        if is_late && lock(&self.looked_at).insert(number) {
            thread::sleep(delay);
        }
    }

    /// Returns `true` if the stored name of an entry begins with `prefix`.
    pub(super) fn begins_with(&self, number: INodeNo, prefix: &[u8]) -> bool {
        let path = self.path(number);
        path.file_name()
            .is_some_and(|name| name.as_bytes().starts_with(prefix))
    }

    /// Waits until `bytes` were transferred.
    pub(super) fn transfer(&self, direction: Direction, bytes: usize) {
        let Some(bandwidth) = self.habits.bandwidth else {
            return;
        };
        let now = Instant::now();
        let mut last = lock(&self.transferred[direction as usize]);
        let begin = last.map_or(now, |last| last.max(now));
        let end = begin + Duration::from_secs_f64(bytes as f64 / bandwidth as f64);
        *last = Some(end);
        drop(last);
        thread::sleep(end - now);
    }

    pub(super) fn path(&self, number: INodeNo) -> PathBuf {
        lock(&self.nodes).path(number)
    }

    /// Returns the path of an entry by its stored name.
    pub(super) fn child(&self, parent: INodeNo, name: &OsStr) -> PathBuf {
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
    pub(super) fn node_attributes(&self, path: &Path) -> io::Result<FileAttr> {
        let stat = fs::symlink_metadata(path)?;
        self.attributes(&stat, self.node(path, &stat))
    }

    /// Returns the number of the node for `path`. All clients of one server have the same.
    fn node(&self, path: &Path, stat: &Metadata) -> INodeNo {
        let mut nodes = lock(&self.nodes);
        match self.habits.is_client() {
            true => nodes.set_number(path, stat.ino()),
            false => nodes.number(path),
        }
    }

    /// Returns the attributes that `stat` shows.
    pub(super) fn shown_attributes(&self, number: INodeNo) -> io::Result<FileAttr> {
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
            Numbering::Zero => INodeNo(0),
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

    /// Sets the times that are given, perhaps only both.
    pub(super) fn set_times(
        &self,
        path: &Path,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
    ) -> io::Result<()> {
        let sets_times = match self.habits.lone_times_ignored {
            true => atime.is_some() && mtime.is_some(),
            false => atime.is_some() || mtime.is_some(),
        };
        if !sets_times {
            return Ok(());
        }
        refuse(self.habits.utimens)?;
        let times = Timestamps {
            last_access: timespec(atime),
            last_modification: timespec(mtime),
        };
        Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Gives the new entry at `path` its owner and, if it can have one, its mode.
    pub(super) fn finish(request: &Request, path: &Path, mode: Option<u32>) -> io::Result<()> {
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
    pub(super) fn remove(
        &self,
        path: &Path,
        remove: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
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

    /// Opens or creates the file at `path` as `flags` say, for this server's own reads and writes.
    pub(super) fn open_stored(
        &self,
        path: &Path,
        flags: OFlags,
    ) -> io::Result<(FileHandle, FopenFlags)> {
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

    pub(super) fn read_stored(
        &self,
        handle: FileHandle,
        offset: u64,
        size: u32,
    ) -> io::Result<Vec<u8>> {
        thread::sleep(self.habits.read_latency);
        let open = self.files.get(handle)?;
        refuse(self.habits.direct_read.filter(|_| open.is_direct))?;
        let end = self.habits.unreadable_from.unwrap_or(u64::MAX);
        refuse((offset + u64::from(size) > end).then_some(Errno::IO))?;
        let mut buffer = vec![0; size as usize];
        let bytes = open.file.read_at(&mut buffer, offset)?;
        buffer.truncate(bytes);
        self.transfer(Direction::Read, bytes);
        Ok(buffer)
    }

    /// Returns the entries of an open directory, as they were when `offset` was 0.
    pub(super) fn listing(
        &self,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
    ) -> io::Result<Arc<Mutex<Vec<Listed>>>> {
        let listing = self.directories.get(handle)?;
        if offset == 0 || self.habits.skipping_lists {
            *lock(&listing) = self.list(number)?;
        }
        Ok(listing)
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
            let number = self.shown_number(&stat, self.node(&path, &stat));
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

    pub(super) fn xattr(&self, number: INodeNo, name: &OsStr) -> io::Result<Vec<u8>> {
        if name.as_bytes().starts_with(b"system.") {
            refuse(self.habits.get_system_xattr)?;
        }
        let mut value = vec![0; 1 << 16];
        let name = self.stored_xattr(name);
        let bytes = rustix::fs::lgetxattr(self.path(number), name, &mut value[..])?;
        value.truncate(bytes);
        Ok(value)
    }

    /// Returns the names of attributes, each with a zero byte behind it.
    pub(super) fn xattr_names(&self, number: INodeNo) -> io::Result<Vec<u8>> {
        if self.habits.get_system_xattr.is_some() {
            return Ok(Vec::new());
        }
        let mut names = vec![0; 1 << 16];
        let bytes = rustix::fs::llistxattr(self.path(number), &mut names[..])?;
        names.truncate(bytes);
        if !self.habits.meaningless_xattrs {
            return Ok(names);
        }
        let names = names.split_inclusive(|&byte| byte == 0);
        let shown = names.filter_map(|name| name.strip_prefix(MEANINGLESS));
        Ok(shown.collect::<Vec<_>>().concat())
    }

    /// Returns the name by which an attribute is stored.
    fn stored_xattr(&self, name: &OsStr) -> OsString {
        match self.habits.meaningless_xattrs {
            true => OsString::from_vec([MEANINGLESS, name.as_bytes()].concat()),
            false => name.to_owned(),
        }
    }

    pub(super) fn set_xattr(
        &self,
        number: INodeNo,
        name: &OsStr,
        value: Option<&[u8]>,
        flags: i32,
    ) -> io::Result<()> {
        if name.as_bytes().starts_with(b"system.posix_acl_") {
            refuse(self.habits.set_acl)?;
        }
        let name = self.stored_xattr(name);
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

pub(super) fn writes(flags: OFlags) -> bool {
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

/// Replies with `bytes`, or with their number if the request asks for it by the size 0.
pub(super) fn sized(bytes: &[u8], size: u32, reply: ReplyXattr) {
    match size as usize {
        0 => reply.size(bytes.len() as u32),
        size if size < bytes.len() => reply.error(fuser::Errno::ERANGE),
        _ => reply.data(bytes),
    }
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
