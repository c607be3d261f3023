//! A disk that loses power. It logs what a filesystem writes, and shows what a power cut at any time may leave.
//!
//! ```text
//!   filesystem ──▶ loop device ──▶ file served by FUSE:  write, write, flush, write, write │ write ...
//!                                                        └── on the disk ──┘  └ perhaps ─┘ cut
//! ```
//!
//! What was written before the last flush is on the disk. Of what was written after it, a disk may have stored
//! nothing, everything, or any part, because it has a cache and reorders writes.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs::{File, OpenOptions},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant, UNIX_EPOCH},
};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyWrite, Request, WriteFlags,
};
use rustix::fs::{OFlags, syncfs};

use super::{Fs, Mounted, Skip, need_program, need_root, run};
use crate::tree::Scratch;

const PAGE_BYTES: usize = 4096;
const PAGE: u64 = PAGE_BYTES as u64;
/// Time that a recorded write or flush takes, so that other threads go on during it.
const DELAY: Duration = Duration::from_micros(200);

/// The pages of the disk that are not zero.
type Image = HashMap<u64, Arc<[u8; PAGE_BYTES]>>;

fn put(image: &mut Image, offset: u64, data: &[u8]) {
    let mut at = offset;
    let mut rest = data;
    while !rest.is_empty() {
        let start = (at % PAGE) as usize;
        let (piece, others) = rest.split_at(rest.len().min(PAGE_BYTES - start));
        let page = image
            .entry(at / PAGE)
            .or_insert_with(|| Arc::new([0; PAGE_BYTES]));
        Arc::make_mut(page)[start..start + piece.len()].copy_from_slice(piece);
        if page.iter().all(|&byte| byte == 0) {
            image.remove(&(at / PAGE));
        }
        at += piece.len() as u64;
        rest = others;
    }
}

enum Record {
    Write(u64, Box<[u8]>),
    Flush,
}

#[derive(Default)]
struct State {
    image: Image,
    log: Option<Vec<Record>>,
}

struct LoggedDisk {
    state: Arc<Mutex<State>>,
    bytes: u64,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LoggedDisk {
    fn record(&self, record: impl FnOnce() -> Record) {
        let is_recorded = {
            let log = &mut lock(&self.state).log;
            log.as_mut().map(|log| log.push(record())).is_some()
        };
        if is_recorded {
            thread::sleep(DELAY);
        }
    }

    fn attributes(&self, number: INodeNo) -> FileAttr {
        let is_root = number == INodeNo::ROOT;
        FileAttr {
            ino: number,
            size: self.bytes,
            blocks: self.bytes / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_root {
                FileType::Directory
            } else {
                FileType::RegularFile
            },
            perm: 0o700,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: PAGE_BYTES as u32,
            flags: 0,
        }
    }
}

impl Filesystem for LoggedDisk {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name == "disk" {
            true => reply.entry(&Duration::MAX, &self.attributes(INodeNo(2)), Generation(0)),
            false => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&Duration::ZERO, &self.attributes(number));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let bytes = u64::from(size).min(self.bytes.saturating_sub(offset));
        let mut data = Vec::with_capacity(bytes as usize + PAGE_BYTES);
        let skipped = (offset % PAGE) as usize;
        let state = lock(&self.state);
        for page in offset / PAGE..(offset + bytes).div_ceil(PAGE) {
            match state.image.get(&page) {
                Some(page) => data.extend_from_slice(&**page),
                None => data.resize(data.len() + PAGE_BYTES, 0),
            }
        }
        drop(state);
        reply.data(&data[skipped..skipped + bytes as usize]);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        put(&mut lock(&self.state).image, offset, data);
        self.record(|| Record::Write(offset, data.into()));
        reply.written(data.len() as u32);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.record(|| Record::Flush);
        reply.ok();
    }
}

/// The use of the disk by other programs while it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// There are none.
    Idle,
    /// One writes a file of its own to the disk all the time, which commits the journal, and the whole filesystem now and
    /// then, as the kernel does.
    Sync,
}

/// A disk with a filesystem, of which everything is forgotten when this is dropped.
#[derive(Debug)]
pub struct FailingDisk {
    fs: Fs,
    device: PathBuf,
    state: Arc<Mutex<State>>,
    // Fields are dropped in this order: the server ends before its directory is removed.
    _session: BackgroundSession,
    _served: Scratch,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} pages", self.image.len())
    }
}

/// The writes and flushes of a [`FailingDisk`], in order.
pub struct Recording {
    before: Image,
    log: Vec<Record>,
    /// The length of the log when the recorded command had ended.
    ended: usize,
}

impl FailingDisk {
    /// Makes a disk with an empty filesystem.
    ///
    /// # Errors
    /// Fails without root, if a program is missing, or if the kernel refuses FUSE or the loop device.
    pub fn new(fs: Fs) -> Result<Self, Skip> {
        need_root("FUSE")?;
        let (name, mib, options) = fs.facts();
        let served = Scratch::in_memory();
        let state = Arc::default();
        let server = LoggedDisk {
            state: Arc::clone(&state),
            bytes: mib.max(64) << 20,
        };
        let mut config = Config::default();
        (config.n_threads, config.clone_fd) = (Some(4), true);
        let session = fuser::spawn_mount(server, served.path(), &config)
            .map_err(|e| Skip(format!("no FUSE: {e}")))?;
        let losetup = Command::new(need_program("losetup")?)
            .args(["--find", "--show"])
            .arg(served.path().join("disk"))
            .output()
            .map_err(|e| Skip(format!("losetup does not run: {e}")))?;
        if !losetup.status.success() {
            let complaint = String::from_utf8_lossy(&losetup.stderr);
            return Err(Skip(format!("losetup refuses: {}", complaint.trim())));
        }
        let disk = Self {
            fs,
            device: String::from_utf8_lossy(&losetup.stdout).trim().into(),
            state,
            _session: session,
            _served: served,
        };
        let keep = if fs == Fs::Ext4 {
            ["-E", "nodiscard"]
        } else {
            ["-K", "-q"]
        };
        let options = options.iter().copied().chain(keep).map(OsStr::new);
        run(
            &format!("mkfs.{name}"),
            options.chain([disk.device.as_os_str()]),
        )?;
        Ok(disk)
    }

    /// Mounts the filesystem, calls `act` with the mount point, and unmounts it.
    ///
    /// # Panics
    /// If it cannot be mounted, or not be unmounted within a minute.
    pub fn mounted<T>(&self, act: impl FnOnce(&Path) -> T) -> T {
        let options = ["-t", self.fs.name()];
        let mounted = Mounted::new(Scratch::new(), None, &options, self.device.as_os_str());
        let mounted = mounted.unwrap_or_else(|skip| panic!("{:?}: {skip:?}", self.fs));
        let result = act(mounted.path());
        drop(mounted);
        // A child of another test may have copied the mount.
        let start = Instant::now();
        let is_free = || {
            let exclusive = OFlags::EXCL.bits() as i32;
            let mut options = OpenOptions::new();
            options
                .read(true)
                .custom_flags(exclusive)
                .open(&self.device)
                .is_ok()
        };
        while !is_free() {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "{:?} stays mounted",
                self.fs
            );
            thread::sleep(Duration::from_millis(5));
        }
        result
    }

    /// Does the same as [`mounted`](Self::mounted), and logs what is written until the filesystem is unmounted.
    pub fn record(&self, others: Others, act: impl FnOnce(&Path)) -> Recording {
        let before = {
            let mut state = lock(&self.state);
            state.log = Some(Vec::new());
            state.image.clone()
        };
        let length = || lock(&self.state).log.as_ref().map_or(0, Vec::len);
        let ended = self.mounted(|point| {
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                if others == Others::Sync {
                    scope.spawn(|| write_own_files(point, &stop));
                }
                act(point);
                let ended = length();
                // Relaxed: it publishes nothing.
                stop.store(true, Ordering::Relaxed);
                ended
            })
        });
        let log = lock(&self.state).log.take().unwrap_or_default();
        Recording { before, log, ended }
    }

    /// Calls `check` with the place at which the disk is mounted after a power cut, and a name of the cut.
    fn cut(&self, recording: &Recording, cut: Cut, check: &mut impl FnMut(&Path, &str)) {
        lock(&self.state).image = recording.left_by(cut);
        // Another program may have looked at the device, and so filled the kernel's cache.
        let _ = run(
            "blockdev",
            ["--flushbufs".as_ref(), self.device.as_os_str()],
        );
        let name = format!("{:?}: {cut:?} of {}", self.fs, recording.log.len());
        self.mounted(|point| check(point, &name));
    }

    /// Calls `check` after some power cuts while the recorded command ran, or later. The first is at the end of the log, and
    /// the second at its start. It also gets a name of each cut.
    pub fn cut_during(&self, recording: &Recording, cuts: u64, mut check: impl FnMut(&Path, &str)) {
        for seed in 1..=cuts {
            let at = match seed {
                1 => recording.log.len(),
                2 => 0,
                _ => Random(seed).below(recording.log.len() + 1),
            };
            self.cut(recording, Cut { at, seed }, &mut check);
        }
    }

    /// Calls `check` after some power cuts directly after the end of the recorded command.
    pub fn cut_at_end(&self, recording: &Recording, mut check: impl FnMut(&Path, &str)) {
        for seed in 1..=3 {
            let at = recording.ended;
            self.cut(recording, Cut { at, seed }, &mut check);
        }
    }
}

impl Drop for FailingDisk {
    fn drop(&mut self) {
        let _ = run("losetup", ["-d".as_ref(), self.device.as_os_str()]);
    }
}

/// A power cut before the write or flush of this number. The seed says which writes have reached the disk.
#[derive(Clone, Copy, Debug)]
struct Cut {
    at: usize,
    seed: u64,
}

impl Recording {
    fn left_by(&self, Cut { at, seed }: Cut) -> Image {
        let log = &self.log[..at];
        let is_flush = |record: &Record| matches!(record, Record::Flush);
        let flushed = log.iter().rposition(is_flush).unwrap_or(0);
        let mut random = Random(seed);
        let mut image = self.before.clone();
        for (number, record) in log.iter().enumerate() {
            let Record::Write(offset, data) = record else {
                continue;
            };
            match seed % 3 {
                _ if number < flushed => put(&mut image, *offset, data),
                0 => {}
                1 => put(&mut image, *offset, data),
                _ if random.below(3) == 0 => put(&mut image, *offset, data),
                // A part of the pages reaches the disk.
                _ => {
                    let pages = (*offset..).step_by(PAGE_BYTES).zip(data.chunks(PAGE_BYTES));
                    let kept = pages.filter(|_| random.below(2) == 0);
                    kept.for_each(|(offset, page)| put(&mut image, offset, page));
                }
            }
        }
        image
    }
}

/// A small generator of numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        // The constants are those of splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

/// Writes a file to the disk again and again, and sometimes everything.
fn write_own_files(point: &Path, stop: &AtomicBool) {
    let path = point.join(".others");
    let dir = File::open(point).expect("it is mounted");
    for number in 1.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(b"others")?;
            file.sync_all()
        });
        written.expect("there is room for a small file");
        if number % 8 == 0 {
            syncfs(&dir).expect("the disk has no errors");
        }
        thread::sleep(Duration::from_millis(4));
    }
}
