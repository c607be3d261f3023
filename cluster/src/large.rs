//! Does the steps of large files that several ranks copy together; see [`crate::division`].
//!
//! A file has a hidden name until it has all of its content and its attributes, so no incomplete copy is taken for a
//! complete one. Each rank finds both directories by their paths, opens one component after the other below the operand,
//! and compares the inode numbers with those that the engine has seen.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use fuc_cli::console::Console;
use fuc_cli::wording;
use fuc_engine::distribute::LargeCopy;
use fuc_engine::{
    Cancel, CopyOp, Counts, Dereference, Dest, DestRules, Error, Observer, Reflink, Sparse,
    Summary, Throttle,
};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, SeekFrom, Stat, Timespec, Timestamps, copy_file_range,
    ioctl_ficlone, major, minor, openat, renameat, renameat_with, seek, statat, unlinkat,
    utimensat,
};
use rustix::io::Errno;

use crate::message::{Outgoing, Step, Task};
use crate::order::{Order, Work};
use crate::pace::Pace;
use crate::sys;

/// The size from which the ranks copy a file together.
pub(crate) const DIVIDED_FROM: u64 = 32 << 20;
/// Bytes that are read and written by one call.
const PIECE_BYTES: u64 = 1 << 20;
/// Bytes that a server is asked to copy, and the time for them from which the kernel probably sends them to it one request
/// after the other. The engine has the same limits.
const REQUEST_BYTES: usize = 64 << 10;
const SLOW_REQUEST: Duration = Duration::from_micros(50);
/// The time after which MooseFS 3.0.117 has replaced the time of modification of a file that two clients have written to.
/// It does so a second after both have closed the file.
const LATE: Duration = Duration::from_millis(1200);
/// The most times that the times of a file are set again.
const MOST_LOOKS: usize = 5;

/// The part of a rank in the copies of large files.
pub(crate) struct LargeFiles<'a> {
    order: &'a Order,
    options: &'a CopyOp<'static>,
    cancel: &'a Cancel,
    pace: Option<&'a Pace>,
    console: &'a Console,
    observer: &'a dyn Observer,
    outgoing: Sender<Outgoing>,
    /// The bytes that this rank has copied.
    bytes: AtomicU64,
    mine: Mutex<Mine>,
}

/// The files that this rank has met.
#[derive(Debug, Default)]
struct Mine {
    /// Those that have a hidden name, which contains the number of the file.
    begun: BTreeMap<u64, LargeCopy>,
    /// Those that are complete, with the time of each that several ranks have written to.
    complete: Vec<(LargeCopy, Option<(i64, i64)>)>,
    summary: Summary,
}

/// The directories of a file, and its names in them.
struct Places<'c> {
    source_dir: File,
    source: &'c OsStr,
    dest_dir: File,
    dest: &'c OsStr,
}

impl<'a> LargeFiles<'a> {
    /// Returns the part of a rank, or `None` in a removal.
    pub(crate) fn of_job(
        order: &'a Order,
        (cancel, pace): (&'a Cancel, Option<&'a Pace>),
        (console, observer): (&'a Console, &'a dyn Observer),
        outgoing: Sender<Outgoing>,
    ) -> Option<Self> {
        let Work::Copy(options, _) = &order.work else {
            return None;
        };
        Some(Self {
            order,
            options,
            cancel,
            pace,
            console,
            observer,
            outgoing,
            bytes: AtomicU64::new(0),
            mine: Mutex::default(),
        })
    }

    /// Does a step, and sends the result.
    pub(crate) fn work(&self, step: &Step) {
        let result = match &step.task {
            _ if self.cancel.is_cancelled() => None,
            Task::Begin => self.begin(step).ok(),
            Task::Copy { inode, part } => self.copy(step, *inode, part.clone()).ok(),
            Task::Complete { inode } => {
                let completed = inode.map(|inode| self.complete(step, inode));
                if !matches!(completed, Some(Ok(()))) {
                    self.copy_alone(step);
                }
                Some(0)
            }
        };
        // The main thread listens until all steps are done.
        let _ = self.outgoing.send(Outgoing::Stepped(step.number, result));
    }

    fn mine(&self) -> MutexGuard<'_, Mine> {
        self.mine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hidden_name(&self, file: u64) -> String {
        format!(".cpz-{:016x}-{file}", self.order.number)
    }

    fn places<'c>(&self, copy: &'c LargeCopy) -> io::Result<Places<'c>> {
        let followed = match self.options.dereference {
            Dereference::Always => OFlags::empty(),
            _ => OFlags::NOFOLLOW,
        };
        let [source_inode, dest_inode] = copy.directories;
        let open = |path: &Path, flags, inode| open_directory(path, copy.names_below, flags, inode);
        Ok(Places {
            source_dir: open(&copy.source, followed, source_inode)?,
            source: copy.source.file_name().ok_or(Errno::NOENT)?,
            dest_dir: open(&copy.dest, OFlags::NOFOLLOW, dest_inode)?,
            dest: copy.dest.file_name().ok_or(Errno::NOENT)?,
        })
    }

    /// Returns the links that the engine follows if the file is an operand.
    fn dereference(&self, copy: &LargeCopy) -> Dereference {
        match self.options.dereference {
            Dereference::Operands if copy.names_below > 0 => Dereference::Never,
            dereference => dereference,
        }
    }

    /// Opens the source, if it still is what the engine has seen.
    fn open_source(&self, copy: &LargeCopy, places: &Places<'_>) -> io::Result<(File, Metadata)> {
        let followed = match self.dereference(copy) {
            Dereference::Never => OFlags::NOFOLLOW,
            _ => OFlags::empty(),
        };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | followed;
        let (file, found) = open_file(&places.source_dir, places.source, flags, copy.inode)?;
        let is_same = found.len() == copy.bytes;
        is_same.then_some((file, found)).ok_or(stale())
    }

    /// Creates the hidden file in its full size, so that its parts can be written in any order. Returns its inode number.
    fn begin(&self, step: &Step) -> io::Result<u64> {
        let places = self.places(&step.copy)?;
        let (source, source_found) = self.open_source(&step.copy, &places)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(step.copy.mode);
        let name = self.hidden_name(step.file);
        let dest = File::from(openat(&places.dest_dir, name, flags, mode)?);
        self.mine().begun.insert(step.file, step.copy.clone());
        let may_share =
            self.options.reflink != Reflink::Never && self.options.sparse == Sparse::Auto;
        let is_beside = || {
            dest.metadata()
                .is_ok_and(|dest| dest.dev() == source_found.dev())
        };
        if may_share && is_beside() && server_copies(&source, &dest) {
            // The engine lets the server copy the whole file.
            return Err(ErrorKind::Unsupported.into());
        }
        dest.set_len(step.copy.bytes)?;
        // Some servers return success and extend nothing.
        let found = dest.metadata()?;
        let has_size = found.len() == step.copy.bytes;
        has_size.then_some(found.ino()).ok_or(stale())
    }

    /// Copies a part to the hidden file. Holes stay holes. Returns how many bytes there were.
    fn copy(&self, step: &Step, inode: u64, part: Range<u64>) -> io::Result<u64> {
        let places = self.places(&step.copy)?;
        let (source, found) = self.open_source(&step.copy, &places)?;
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW;
        let name = self.hidden_name(step.file);
        let (dest, _) = open_file(&places.dest_dir, name.as_ref(), flags, inode)?;
        let keeps_holes =
            self.options.sparse != Sparse::Never && found.blocks() < found.len() / 512;
        let mut buffer = vec![0; PIECE_BYTES as usize];
        let (mut at, mut copied) = (part.start, 0);
        while at < part.end {
            let data = match keeps_holes {
                true => next_data(&source, at..part.end)?,
                false => at..part.end,
            };
            at = data.start;
            while at < data.end {
                if self.cancel.is_cancelled() {
                    return Err(ErrorKind::Interrupted.into());
                }
                let piece = &mut buffer[..PIECE_BYTES.min(data.end - at) as usize];
                source.read_exact_at(piece, at)?;
                dest.write_all_at(piece, at)?;
                let bytes = piece.len() as u64;
                at += bytes;
                copied += bytes;
                if let Some(counts) = self.observer.counts() {
                    counts.add_shared(0, bytes, 0);
                }
                if let Some(pace) = self.pace {
                    pace.wait(0, bytes);
                }
            }
        }
        if self.options.durable {
            dest.sync_all()?;
        }
        // A server may report only now that it has not stored the content.
        sys::close(dest)?;
        self.bytes.fetch_add(copied, Ordering::Relaxed);
        Ok(copied)
    }

    /// Gives the hidden file its attributes, and then its name.
    fn complete(&self, step: &Step, inode: u64) -> io::Result<()> {
        let copy = &step.copy;
        let places = self.places(copy)?;
        self.open_source(copy, &places)?;
        let hidden = self.hidden_name(step.file);
        let silent = Reports::new(self, copy, true);
        let mut summary = self.set_attributes(&places, hidden.as_ref(), &silent);
        let found = statat(&places.dest_dir, &hidden, AtFlags::SYMLINK_NOFOLLOW)?;
        if summary.cancelled || found.st_ino != inode || found.st_size as u64 != copy.bytes {
            return Err(stale());
        }
        rename_to_new(&places, &hidden)?;
        self.mine().begun.remove(&step.file);
        if silent.received.into_inner() > 0 {
            // These messages have the name that the user knows.
            let loud = Reports::new(self, copy, false);
            summary.failures = self.set_attributes(&places, places.dest, &loud).failures;
        }
        if self.options.durable {
            open_directory_in(&places.dest_dir, ".", OFlags::RDONLY)?.sync_all()?;
        }
        let mut mine = self.mine();
        mine.summary += summary;
        mine.complete.push((copy.clone(), Some(modified(&found))));
        Ok(())
    }

    /// Copies a file as if it were not large. Removes its hidden name before.
    fn copy_alone(&self, step: &Step) {
        let copy = &step.copy;
        let was_begun = self.mine().begun.remove(&step.file).is_some();
        let run = self.places(copy).map(|places| {
            if was_begun {
                let _ = unlinkat(
                    &places.dest_dir,
                    self.hidden_name(step.file),
                    AtFlags::empty(),
                );
            }
            self.run(
                &places,
                places.dest,
                &Reports::new(self, copy, false),
                |_| {},
            )
        });
        let failed = |error| self.failed("cannot reach the directory of", copy, &error);
        let summary = run.unwrap_or_else(failed);
        let mut mine = self.mine();
        mine.summary += summary;
        mine.complete.push((copy.clone(), None));
    }

    /// Gives a dest the attributes of its source.
    fn set_attributes(&self, places: &Places<'_>, dest: &OsStr, reports: &Reports<'_>) -> Summary {
        self.run(places, dest, reports, |options| {
            options.attributes_only = true;
            options.rules = DestRules::default();
        })
    }

    /// Runs the engine for one file.
    fn run(
        &self,
        places: &Places<'_>,
        dest: &OsStr,
        reports: &Reports<'_>,
        change: impl FnOnce(&mut CopyOp<'_>),
    ) -> Summary {
        let mut options = self.options.clone().with(|options| {
            options.dereference = self.dereference(reports.copy);
            options.delete = None;
            options.preserve.links = false;
        });
        change(&mut options);
        if let Some(pace) = self.pace {
            options = options.throttled_by(pace);
        }
        options
            .cancelled_by(self.cancel.clone())
            .in_dir(&places.source_dir)
            .dest_in_dir(&places.dest_dir)
            .run([places.source.into()], &Dest::Exactly(dest.into()), reports)
    }

    /// Reports a failure of this rank itself.
    fn failed(&self, what: &str, copy: &LargeCopy, error: &io::Error) -> Summary {
        let dest = self.console.quoted(&copy.dest);
        let reason = wording::errno_text(error);
        self.console.error(format!("{what} {dest}: {reason}"));
        let mut summary = Summary::default();
        summary.failures = 1;
        summary
    }

    /// Removes what is incomplete after the job was cancelled. Otherwise looks at the times of the files once more. Returns
    /// the totals of this rank's large files.
    pub(crate) fn finish(&self) -> Summary {
        let mut mine = std::mem::take(&mut *self.mine());
        for (file, copy) in &mine.begun {
            let removed = self.places(copy).and_then(|places| {
                let name = self.hidden_name(*file);
                Ok(unlinkat(&places.dest_dir, name, AtFlags::empty())?)
            });
            mine.summary.discarded += u64::from(removed.is_ok());
        }
        if self.options.preserve.timestamps {
            mine.summary += self.keep_times(&mut mine.complete);
        }
        mine.summary.bytes += self.bytes.load(Ordering::Relaxed);
        mine.summary
    }

    /// Sets the times of files again until they stay, and then those of their directories.
    fn keep_times(&self, files: &mut [(LargeCopy, Option<(i64, i64)>)]) -> Summary {
        let mut summary = Summary::default();
        let late = late_filesystems();
        let mut is_late = !late.is_empty()
            && files.iter().any(|(copy, _)| {
                let places = self.places(copy);
                places.is_ok_and(|places| is_one_of(&late, &places.dest_dir))
            });
        for _ in 0..MOST_LOOKS {
            if is_late {
                thread::sleep(LATE);
            }
            is_late = false;
            for (copy, time) in &mut *files {
                let Some(time) = time else {
                    continue;
                };
                match self.keep_time(copy, time) {
                    Ok(changed) => is_late |= changed,
                    Err(error) => summary += self.failed("cannot keep the times of", copy, &error),
                }
            }
            if !is_late {
                break;
            }
        }
        let below = files.iter().filter(|(copy, _)| copy.names_below > 0);
        let directories = below.map(|(copy, _)| (copy.dest.parent(), copy));
        for copy in BTreeMap::from_iter(directories).into_values() {
            let set = self.places(copy).and_then(|places| {
                let found = places.source_dir.metadata()?;
                set_times(&places.dest_dir, OsStr::new("."), &found)
            });
            if let Err(error) = set {
                let what = "cannot keep the times of the directory of";
                summary += self.failed(what, copy, &error);
            }
        }
        summary
    }

    /// Returns `true` if the time of a file was replaced, and sets it again.
    fn keep_time(&self, copy: &LargeCopy, time: &mut (i64, i64)) -> io::Result<bool> {
        let places = self.places(copy)?;
        let look = || {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            statat(&places.dest_dir, places.dest, flags).map(|found| modified(&found))
        };
        if look()? == *time {
            return Ok(false);
        }
        let (_, source) = self.open_source(copy, &places)?;
        set_times(&places.dest_dir, places.dest, &source)?;
        *time = look()?;
        Ok(true)
    }
}

/// Passes the failures of a run for one file on, with the paths that the user knows.
struct Reports<'r> {
    observer: &'r dyn Observer,
    copy: &'r LargeCopy,
    is_silent: bool,
    received: AtomicU64,
}

impl<'r> Reports<'r> {
    fn new(files: &'r LargeFiles<'_>, copy: &'r LargeCopy, is_silent: bool) -> Self {
        Self {
            observer: files.observer,
            copy,
            is_silent,
            received: AtomicU64::new(0),
        }
    }

    fn pass_on(&self, error: Error, receive: impl FnOnce(Error)) {
        self.received.fetch_add(1, Ordering::Relaxed);
        if !self.is_silent {
            let directory = |path: &'r Path| path.parent().unwrap_or(path);
            let [source, dest] = [&self.copy.source, &self.copy.dest].map(|path| directory(path));
            receive(error.below_each(source, dest));
        }
    }
}

impl Observer for Reports<'_> {
    fn failed(&self, error: Error) {
        self.pass_on(error, |error| self.observer.failed(error));
    }

    fn warned(&self, warning: Error) {
        self.pass_on(warning, |warning| self.observer.warned(warning));
    }

    fn counts(&self) -> Option<&Counts> {
        self.observer.counts().filter(|_| self.is_silent)
    }
}

/// The file or directory is not the one that the engine has seen.
fn stale() -> io::Error {
    Errno::STALE.into()
}

/// Opens the directory of a path, of which so many names at the end are below an operand. No link among these is followed
/// if `flags` say so.
fn open_directory(path: &Path, names_below: usize, flags: OFlags, inode: u64) -> io::Result<File> {
    let names: Vec<&OsStr> = path.iter().collect();
    let (above, below) = names.split_at(names.len().saturating_sub(names_below.max(1)));
    let above = Path::new(".").join(above.iter().collect::<PathBuf>());
    let mut directory = open_directory_in(CWD, above, OFlags::PATH)?;
    for &name in below.split_last().map_or(&[][..], |(_, names)| names) {
        directory = open_directory_in(&directory, name, OFlags::PATH | flags)?;
    }
    let is_same = directory.metadata()?.ino() == inode;
    is_same.then_some(directory).ok_or(stale())
}

fn open_directory_in(
    directory: impl std::os::fd::AsFd,
    name: impl rustix::path::Arg,
    flags: OFlags,
) -> io::Result<File> {
    let flags = flags | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(directory, name, flags, Mode::empty())?.into())
}

/// Opens a regular file with this inode number.
fn open_file(dir: &File, name: &OsStr, flags: OFlags, inode: u64) -> io::Result<(File, Metadata)> {
    let file = File::from(openat(dir, name, flags | OFlags::CLOEXEC, Mode::empty())?);
    let found = file.metadata()?;
    let is_same = found.is_file() && found.ino() == inode;
    is_same.then_some((file, found)).ok_or(stale())
}

/// Returns the next data in a range of a file. It is empty if there is none.
fn next_data(file: &File, range: Range<u64>) -> io::Result<Range<u64>> {
    let start = match seek(file, SeekFrom::Data(range.start)) {
        Err(Errno::NXIO) => return Ok(range.end..range.end),
        // The filesystem does not say where data is.
        Err(_) => return Ok(range),
        Ok(start) => start.min(range.end),
    };
    let end = seek(file, SeekFrom::Hole(start)).unwrap_or(range.end);
    Ok(start..end.clamp(start, range.end))
}

/// Returns `true` if the filesystem can share the blocks of the source, or if its server copies by itself. If it cannot, the
/// time grows with the number of bytes.
fn server_copies(source: &File, dest: &File) -> bool {
    if ioctl_ficlone(dest, source).is_ok() {
        return true;
    }
    let mut at = [0; 2];
    let mut time = |bytes: usize| {
        let began = Instant::now();
        let [from, to] = &mut at;
        let copied = copy_file_range(source, Some(from), dest, Some(to), bytes);
        (copied == Ok(bytes)).then(|| began.elapsed())
    };
    // The first call also waits for the first bytes of the source.
    let times =
        time(REQUEST_BYTES).and_then(|_| Some([time(REQUEST_BYTES)?, time(4 * REQUEST_BYTES)?]));
    times.is_some_and(|[one, four]| one < SLOW_REQUEST || four < 2 * one)
}

/// Renames the hidden file to its name, unless something has that. A filesystem that cannot promise it is asked before.
fn rename_to_new(places: &Places<'_>, hidden: &str) -> io::Result<()> {
    let Places {
        dest_dir: dir,
        dest,
        ..
    } = places;
    match renameat_with(dir, hidden, dir, *dest, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => match statat(dir, *dest, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(renameat(dir, hidden, dir, *dest)?),
            Err(errno) => Err(errno.into()),
            Ok(_) => Err(ErrorKind::AlreadyExists.into()),
        },
        renamed => Ok(renamed?),
    }
}

/// Returns the time of modification: seconds, and nanoseconds.
fn modified(found: &Stat) -> (i64, i64) {
    (found.st_mtime, found.st_mtime_nsec as i64)
}

/// Gives an entry the times of its source.
fn set_times(dir: &File, name: &OsStr, source: &Metadata) -> io::Result<()> {
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    let times = Timestamps {
        last_access: time(source.atime(), source.atime_nsec()),
        last_modification: time(source.mtime(), source.mtime_nsec()),
    };
    Ok(utimensat(dir, name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Returns the devices of filesystems that replace times a second later, each as `MAJOR:MINOR`.
fn late_filesystems() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let is_late = |mount: &&str| mount.contains(" - fuse.mfs ") || mount.contains(" mfs#");
    let late = mounts.lines().filter(is_late);
    let device = |mount: &str| mount.split(' ').nth(2).map(str::to_owned);
    late.filter_map(device).collect()
}

/// Returns `true` if a directory is on one of the filesystems with these devices.
fn is_one_of(devices: &[String], dir: &File) -> bool {
    let found = dir.metadata().map(|found| found.dev());
    found.is_ok_and(|device| devices.contains(&format!("{}:{}", major(device), minor(device))))
}
