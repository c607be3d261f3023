//! The server of a [`FuseMount`](super::FuseMount). It makes calls on paths of the directory that stores everything,
//! unless a habit answers a request.

use std::{
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata, Permissions},
    io,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::{MetadataExt as _, PermissionsExt as _, lchown},
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
    buffer::spare_capacity,
    fs::{
        AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, XattrFlags,
        utimensat,
    },
    io::Errno,
};

use super::{
    Habits, Names, Numbering, Removal,
    tables::{Handles, Nodes, fresh_number, lock},
};
use crate::snapshot::XATTR_MAX_BYTES;

pub(super) struct Server {
    pub(super) habits: Habits,
    pub(super) nodes: Mutex<Nodes>,
    pub(super) files: Handles<Open>,
    /// The names in each open directory.
    pub(super) directories: Handles<Vec<OsString>>,
    /// Each reply waits so many microseconds.
    latency_micros: Arc<AtomicU64>,
    /// The last removal in each directory, and that in any as the one in [`ANYWHERE`].
    removals: Mutex<HashMap<PathBuf, Instant>>,
    /// The paths that were looked at late, or that a hesitant server was to remove.
    tried: Mutex<HashSet<PathBuf>>,
    /// When the content of the last read has been transferred.
    read: Mutex<Option<Instant>>,
    /// When the content of the last write has been transferred.
    pub(super) written: Mutex<Option<Instant>>,
}

pub(super) struct Open {
    pub(super) file: File,
    pub(super) flags: OFlags,
}

/// Stands for all directories.
const ANYWHERE: &str = "";

/// The beginning of the stored names of attributes without a meaning.
const MEANINGLESS: &[u8] = b"trusted.";

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
            tried: Mutex::default(),
            read: Mutex::default(),
            written: Mutex::default(),
        }
    }

    pub(super) fn wait(&self) {
        // Relaxed: the number publishes nothing.
        let micros = self.latency_micros.load(Ordering::Relaxed);
        thread::sleep(Duration::from_micros(micros));
    }

    /// Waits if the attributes of a late entry are asked for the first time.
    pub(super) fn wait_for_look(&self, number: INodeNo) {
        let (path, delay) = (self.path(number), self.habits.first_look);
        if !delay.is_zero() && begins_with(&path, b"late") && lock(&self.tried).insert(path) {
            thread::sleep(delay);
        }
    }

    /// Waits until `bytes` were transferred, in the direction of `last`.
    pub(super) fn transfer(&self, last: &Mutex<Option<Instant>>, bytes: usize) {
        let Some(bandwidth) = self.habits.bandwidth else {
            return;
        };
        let now = Instant::now();
        let mut last = lock(last);
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
    pub(super) fn child(&self, parent: INodeNo, name: &OsStr) -> io::Result<PathBuf> {
        let text = || name.to_string_lossy();
        let name = match self.habits.names {
            Names::Kept => name.as_bytes().to_owned(),
            Names::LowerCase => text().to_lowercase().into(),
            Names::Cut(bytes) => name.as_bytes()[..bytes.min(name.len())].to_owned(),
            Names::Limited(bytes) => {
                refuse((name.len() > bytes).then_some(Errno::NAMETOOLONG))?;
                name.as_bytes().to_owned()
            }
            Names::Trimmed => text().trim_end_matches(['.', ' ']).into(),
            Names::Decomposed => text().replace('\u{e9}', "e\u{301}").into(),
        };
        Ok(self.path(parent).join(OsString::from_vec(name)))
    }

    /// Returns the path of an entry that is about to be made.
    pub(super) fn new_child(&self, parent: INodeNo, name: &OsStr) -> io::Result<PathBuf> {
        let has_colon = name.as_bytes().contains(&b':');
        refuse(self.habits.colon.filter(|_| has_colon))?;
        self.child(parent, name)
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
        self.attributes(&stat, self.shown_number(&stat, number))
    }

    fn shown_number(&self, stat: &Metadata, node: INodeNo) -> INodeNo {
        match self.habits.numbering {
            Numbering::EqualDirectories if stat.is_dir() => INodeNo(7),
            Numbering::True | Numbering::EqualDirectories => INodeNo(stat.ino()),
            Numbering::Equal if !stat.is_dir() => INodeNo(77),
            Numbering::Lasting | Numbering::Forgetful | Numbering::Equal => node,
            Numbering::Zero => INodeNo(0),
            Numbering::Fresh => INodeNo(fresh_number()),
        }
    }

    fn attributes(&self, stat: &Metadata, ino: INodeNo) -> io::Result<FileAttr> {
        let size = match self.habits.hidden_sizes && stat.is_file() {
            true => 0,
            false => stat.size(),
        };
        let nlink = match self.habits.numbering {
            _ if self.habits.zero_links => 0,
            Numbering::Equal if !stat.is_dir() => 2,
            Numbering::Zero if stat.is_dir() => 0,
            _ => stat.nlink() as u32,
        };
        Ok(FileAttr {
            ino,
            size,
            blocks: if self.habits.zero_blocks {
                0
            } else {
                stat.blocks()
            },
            atime: self.stored_time(stat.atime(), stat.atime_nsec()),
            mtime: self.stored_time(stat.mtime(), stat.mtime_nsec()),
            ctime: system_time(stat.ctime(), stat.ctime_nsec()),
            crtime: UNIX_EPOCH,
            kind: FileType::from_std(stat.file_type()).ok_or(io::ErrorKind::Unsupported)?,
            perm: (stat.mode() & 0o7777) as u16,
            nlink,
            uid: stat.uid(),
            gid: stat.gid(),
            rdev: stat.rdev() as u32,
            blksize: self.habits.block_bytes.unwrap_or(4096),
            flags: 0,
        })
    }

    fn stored_time(&self, mut seconds: i64, mut nanoseconds: i64) -> SystemTime {
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

    /// Gives the new entry at `path` its owner and, if it can have one, its mode, from which the kernel has taken the umask.
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
        parent: INodeNo,
        name: &OsStr,
        remove: impl FnOnce(&Path) -> io::Result<()>,
    ) -> io::Result<()> {
        let path = self.child(parent, name)?;
        let mut removals = lock(&self.removals);
        let is_recent =
            |dir: &Path, pause| removals.get(dir).is_some_and(|at| at.elapsed() < pause);
        let refused = match self.habits.removal {
            Removal::Honest | Removal::Silly => None,
            Removal::Pausing(errno, pause) => is_recent(ANYWHERE.as_ref(), pause).then_some(errno),
            Removal::Settling(errno, pause) => is_recent(&path, pause).then_some(errno),
            Removal::Hesitant(errno) => lock(&self.tried).insert(path.clone()).then_some(errno),
        };
        refuse(refused)?;
        self.refuse_busy(&path)?;
        remove(&path)?;
        lock(&self.nodes).forget(&path);
        let above = path.parent().expect("the root cannot be removed");
        for dir in [ANYWHERE.as_ref(), above] {
            removals.insert(dir.to_owned(), Instant::now());
        }
        self.remove_implicit(above);
        Ok(())
    }

    /// Removes `dir` and the directories above it, as far as they are empty, if that is a habit.
    fn remove_implicit(&self, dir: &Path) {
        let root = self.path(INodeNo::ROOT);
        let below_root = dir.ancestors().take_while(|dir| *dir != root);
        let is_habit = self.habits.implicit_directories;
        for dir in below_root.take_while(|dir| is_habit && fs::remove_dir(dir).is_ok()) {
            lock(&self.nodes).forget(dir);
        }
    }

    /// Unlinks the entry at `path`, or does instead what the habits say.
    pub(super) fn unlink_stored(&self, path: &Path) -> io::Result<()> {
        let is_readonly = fs::symlink_metadata(path)?.mode() & 0o200 == 0;
        refuse(self.habits.unlink_readonly.filter(|_| is_readonly))?;
        match self.habits.removal {
            Removal::Silly if begins_with(path, b".nfs") => Err(Errno::BUSY.into()),
            Removal::Silly if begins_with(path, b"open") => fs::rename(
                path,
                path.with_file_name(format!(".nfs{:08}", fresh_number())),
            ),
            _ => fs::remove_file(path),
        }
    }

    /// Fails if the entry at `path` is open, and may then not be removed or renamed.
    pub(super) fn refuse_busy(&self, path: &Path) -> io::Result<()> {
        let Some((errno, stat)) = self.habits.busy.zip(fs::symlink_metadata(path).ok()) else {
            return Ok(());
        };
        let same = |open: Metadata| (open.dev(), open.ino()) == (stat.dev(), stat.ino());
        let is_open = self.files.any(|open| open.file.metadata().is_ok_and(same));
        refuse(is_open.then_some(errno))
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
            flags,
        };
        let handle = FileHandle(fresh_number());
        self.files.set(handle, open);
        Ok((handle, reply))
    }

    pub(super) fn read_stored(
        &self,
        handle: FileHandle,
        offset: u64,
        size: u32,
    ) -> io::Result<Vec<u8>> {
        let open = self.files.get(handle)?;
        refuse(
            self.habits
                .direct_read
                .filter(|_| open.flags.contains(OFlags::DIRECT)),
        )?;
        let end = self.habits.unreadable_from.unwrap_or(u64::MAX);
        refuse((offset + u64::from(size) > end).then_some(Errno::IO))?;
        let mut content = Vec::with_capacity(size as usize);
        rustix::io::pread(&open.file, spare_capacity(&mut content), offset)?;
        self.transfer(&self.read, content.len());
        Ok(content)
    }

    /// Returns the sorted names in an open directory, as they were when `offset` was 0.
    pub(super) fn names(
        &self,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
    ) -> io::Result<Arc<Vec<OsString>>> {
        let path = self.path(number);
        let is_bad = begins_with(&path, b"bad");
        refuse(self.habits.readdir.filter(|_| is_bad))?;
        if offset == 0 || self.habits.skipping_lists {
            let entries = fs::read_dir(path)?;
            let names = entries.map(|entry| Ok(entry?.file_name()));
            let mut names = names.collect::<io::Result<Vec<_>>>()?;
            names.sort();
            self.directories.set(handle, names);
        }
        Ok(self.directories.get(handle)?)
    }

    /// Returns the number and the type of an entry that a listing shows.
    pub(super) fn listed(&self, path: &Path) -> io::Result<(INodeNo, FileType)> {
        let node = self.node_attributes(path)?.ino;
        let shown = self.shown_attributes(node)?;
        let claimed = self
            .habits
            .listed_type
            .filter(|_| begins_with(path, b"odd"));
        Ok((shown.ino, claimed.unwrap_or(shown.kind)))
    }

    pub(super) fn xattr(&self, number: INodeNo, name: &OsStr) -> io::Result<Vec<u8>> {
        if name.as_bytes().starts_with(b"system.") {
            refuse(self.habits.get_system_xattr)?;
        }
        let mut value = Vec::with_capacity(XATTR_MAX_BYTES);
        let (path, name) = (self.path(number), self.stored_xattr(name));
        let found = rustix::fs::lgetxattr(&path, &name, spare_capacity(&mut value));
        if found == Err(Errno::NODATA)
            && self.habits.mode_as_acl
            && name == "system.posix_acl_access"
        {
            let mode = fs::symlink_metadata(path)?.mode();
            let entry = |tag: u8, bits: u32| [tag, 0, (bits & 7) as u8, 0, 255, 255, 255, 255];
            let entries = [entry(1, mode >> 6), entry(4, mode >> 3), entry(0x20, mode)];
            return Ok([&[2, 0, 0, 0], entries.concat().as_slice()].concat());
        }
        found?;
        Ok(value)
    }

    /// Returns the names of attributes, each with a zero byte behind it.
    pub(super) fn xattr_names(&self, number: INodeNo) -> io::Result<Vec<u8>> {
        refuse(self.habits.list_xattrs)?;
        if self.habits.get_system_xattr.is_some() {
            return Ok(Vec::new());
        }
        let mut names = Vec::with_capacity(XATTR_MAX_BYTES);
        rustix::fs::llistxattr(self.path(number), spare_capacity(&mut names))?;
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

/// Returns `true` if the last name of `path` begins with `prefix`.
pub(super) fn begins_with(path: &Path, prefix: &[u8]) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_bytes().starts_with(prefix))
}

pub(super) fn writes(flags: OFlags) -> bool {
    flags.intersects(OFlags::WRONLY | OFlags::RDWR)
}

fn system_time(seconds: i64, nanoseconds: i64) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let part = UNIX_EPOCH + Duration::from_nanos(nanoseconds as u64);
    match seconds < 0 {
        true => part - whole,
        false => part + whole,
    }
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
        Some(TimeOrNow::SpecificTime(time)) => {
            let (sign, distance) = match time.duration_since(UNIX_EPOCH) {
                Ok(since) => (1, since),
                // fuser subtracts the nanoseconds of a time before 1970, where the kernel means to add them.
                Err(before) => (-1, before.duration()),
            };
            Timespec {
                tv_sec: sign * distance.as_secs() as i64,
                tv_nsec: distance.subsec_nanos().into(),
            }
        }
    }
}
