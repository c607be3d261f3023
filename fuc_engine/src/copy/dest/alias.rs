//! Finds out whether an existing dest is its source, or has the content of its source already.
//!
//! In most cases the inode numbers show it, and [`sameness`] compares them before anything is opened.
//!
//! On some filesystems a file has several inode numbers: one for each path, for each spelling of its name, or for a
//! directory and its mirror. Emptying the dest would empty the source then. So if both have the same size and nearly the
//! same time, and one is not on a native filesystem, both are read before the dest is emptied. A dest that has the
//! content is not written to. If it turns out to be the source, it is refused: another time of the dest is that of the
//! source, too. If the two cannot be compared, the copy fails and the dest stays.
//!
//! A filesystem may show the time of a file by one of its names, and remember an older one by another name. So a dest
//! that seems to be another file is only unlinked, which leaves the source its name.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::copy::attributes;
use crate::copy::content::OpenSource;
use crate::copy::context::Failure;
use crate::copy::decide::overwrite::{DestTreatment, NamedFile, NamedFiles, Sameness};
use crate::copy::entry::Entry;
use crate::copy::facts::{Facts, FileId, FileTime, Symlinks};
use crate::error::{Operation, Refusal};
use crate::paths;
use crate::sys::{self, At, Blocking, Fd, Inode, Stat, Storage};

/// Largest difference of two times of one file, which one of its filesystems rounds. FAT stores even seconds.
const ROUNDED_SECONDS: u64 = 2;
/// Bytes that are read by one call from each side. As many as for a copy.
const READ_BYTES: usize = 128 << 10;

/// Says how alike an existing dest and its source are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    Different,
    /// It has the content, and is another file or seems to be one.
    Equal,
    /// It has the content. Whether it is the source is unknown.
    Unclear,
}

/// A dest that is created, or opened and emptied.
#[derive(Clone, Copy)]
pub(super) struct Opening<'o> {
    pub(super) entry: &'o Entry<'o>,
    pub(super) source: &'o OpenSource,
}

impl Opening<'_> {
    /// Compares an open dest, which was seen as `present`, with its source.
    ///
    /// # Errors
    /// If the dest is the source, or if that cannot be found out.
    #[inline]
    pub(super) fn likeness(
        self,
        dest: BorrowedFd<'_>,
        present: &Stat,
    ) -> Result<Likeness, Failure> {
        let Self { entry, source } = self;
        let ctx = entry.ctx;
        let device = FileId::of(present).device;
        let is_native = source.storage == Storage::Native && ctx.writers.is_native(device, dest);
        if is_native || !sys::is_regular(&source.stat) {
            return Ok(Likeness::Different);
        }
        match ctx.changes.are_visible() {
            true => self.compare(dest, present),
            false => Ok(Likeness::Different),
        }
    }

    #[cold]
    fn compare(self, dest: BorrowedFd<'_>, present: &Stat) -> Result<Likeness, Failure> {
        let Self { entry, source } = self;
        let unread = |errno| Failure::making(entry.source_error(Operation::Read, errno));
        let dest_unread = |errno| entry.making_failure(Operation::Read, errno);
        // One of the two names may have been changed since the other one was looked at.
        let (bytes, modified) = sys::size_and_time(source.fd()).map_err(unread)?;
        let (dest_bytes, dest_modified) = sys::size_and_time(dest).map_err(dest_unread)?;
        if bytes != dest_bytes || !is_near(modified, dest_modified) {
            return Ok(Likeness::Different);
        }
        let readable = match self.open_to_read(dest, present) {
            Ok(readable) => readable,
            // A user that may read the source may also read it under its other name.
            Err(Errno::ACCESS) => return Ok(Likeness::Different),
            Err(errno) => return Err(dest_unread(errno)),
        };
        let mut buffers = [vec![0; READ_BYTES], vec![0; READ_BYTES]];
        let mut at = 0;
        loop {
            if entry.ctx.report.must_stop() {
                return Err(unread(Errno::INTR));
            }
            let [from, to] = &mut buffers;
            let bytes = sys::read_at(source.fd(), from, at).map_err(unread)?;
            let found = read_full(readable.as_fd(), &mut to[..bytes.max(1)], at);
            if found.map_err(dest_unread)? != bytes || from[..bytes] != to[..bytes] {
                return Ok(Likeness::Different);
            }
            if bytes == 0 {
                break;
            }
            at += bytes as u64;
        }
        let inode = Inode::Opened(dest);
        let marked = attributes::mark_incomplete(&inode, &source.stat);
        let now = |file| sys::size_and_time(file).ok().map(|(_, time)| time);
        let (source_now, dest_now) = (now(source.fd()), now(dest));
        let mark = dest_now.filter(|time| marked.is_ok() && *time != dest_modified);
        // Another process may have changed the source, too, but not to this time.
        let is_mark = |time| time != modified && mark.is_some_and(|mark| is_near(mark, time));
        if source_now.is_some_and(is_mark) {
            // Set them by the name that was changed, because an overlay copies a file up if it is changed by another name.
            let _ = inode.set_times(&source.stat);
            // The dest may have the coarser times.
            if now(source.fd()) != Some(modified) {
                let _ = Inode::Opened(source.fd()).set_times(&source.stat);
            }
            return Err(entry.refused(Refusal::SameFile));
        }
        let keeps_times = entry.ctx.policy.options.preserve.timestamps;
        if keeps_times || inode.touch().is_err() {
            // A copy gets its times in the end.
            let _ = inode.set_times(present);
        }
        Ok(match (mark, source_now) {
            (Some(_), Some(_)) => Likeness::Equal,
            _ => Likeness::Unclear,
        })
    }

    /// Opens a dest, which is open to write to it or only held, to read it.
    pub(super) fn open_to_read(self, dest: BorrowedFd<'_>, present: &Stat) -> Result<Fd, Errno> {
        let entry = self.entry;
        let by_name = || {
            let at = At {
                symlinks: Symlinks::Follow,
                ..entry.dest_at()
            };
            let opened = sys::open_source(at, Blocking::OnlyForLease)?;
            match FileId::of(&sys::stat_open(&opened)?) == FileId::of(present) {
                true => Ok(opened),
                false => Err(Errno::STALE),
            }
        };
        entry
            .ctx
            .descriptors
            .making_room(|| match sys::reopen(dest, sys::Access::Read) {
                // /proc is missing.
                Err(Errno::NOENT | Errno::NOTDIR) => by_name(),
                opened => opened,
            })
    }
}

/// Compares the file that is at the dest, which is about to be unlinked, with its source. It may be the only name of the
/// source.
///
/// # Errors
/// As [`Opening::likeness`].
#[cold]
pub(super) fn likeness_of(entry: &Entry<'_>, source: &Stat) -> Result<Likeness, Failure> {
    let open = |at| {
        let opened = || sys::open_source(at, Blocking::OnlyForLease);
        let fd = entry.ctx.descriptors.making_room(opened)?;
        let stat = sys::stat_open(&fd)?;
        Ok((fd, stat))
    };
    let looked_at = sys::stat(entry.dest_dir, entry.dest_name, Symlinks::NoFollow);
    let may_be_alias = |dest: &Stat| {
        let device = FileId::of(dest).device;
        sys::is_regular(dest)
            && dest.st_size == source.st_size
            && FileId::of(dest) != FileId::of(source)
            && (device != FileId::of(source).device
                || !entry.ctx.writers.is_native(device, entry.dest_dir))
    };
    if !sys::is_regular(source) || !looked_at.is_ok_and(|dest| may_be_alias(&dest)) {
        return Ok(Likeness::Different);
    }
    let opened: Result<_, Errno> =
        open(entry.source_at()).and_then(|source| Ok((source, open(entry.dest_at())?)));
    let Ok(((fd, stat), (dest, present))) = opened else {
        return Ok(Likeness::Different);
    };
    let storage = Storage::of(fd.as_fd());
    let source = OpenSource { fd, stat, storage };
    let source = &source;
    Opening { entry, source }.likeness(dest.as_fd(), &present)
}

/// Returns `true` if two times may be one that a filesystem has rounded.
fn is_near(a: FileTime, b: FileTime) -> bool {
    a.seconds.abs_diff(b.seconds) <= ROUNDED_SECONDS
}

/// Reads until the buffer is full or the file ends. Returns the number of bytes.
fn read_full(file: BorrowedFd<'_>, buffer: &mut [u8], at: u64) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < buffer.len() {
        match sys::read_at(file, &mut buffer[filled..], at + filled as u64)? {
            0 => break,
            bytes => filled += bytes,
        }
    }
    Ok(filled)
}

/// Finds out whether a copy would destroy its source. `dest` holds the facts about the dest,
/// looked at with [`symlinks_of_dest`](crate::copy::policy::Policy::symlinks_of_dest).
pub(crate) fn sameness(
    entry: &Entry<'_>,
    treatment: DestTreatment,
    source: &Facts,
    dest: &Facts,
) -> Sameness {
    let is_same_file = source.is_same_file(dest);
    if entry.ctx.policy.makes_hard_links() {
        // A link that leads from one to the other does not matter, because no content is written.
        return match is_same_file {
            true => Sameness::AlreadyThere,
            false => Sameness::Distinct,
        };
    }
    let is_link = |facts: &Facts| facts.kind == FileType::Symlink;
    let may_lead_there = entry.symlinks == Symlinks::NoFollow && (is_link(source) || is_link(dest));
    if !is_same_file && !may_lead_there {
        return Sameness::Distinct;
    }
    let look = |symlinks| {
        let stat = sys::stat(entry.source_dir, entry.source_name, symlinks);
        stat.ok().map(|stat| Facts::of(&stat))
    };
    let name = |itself: Option<Facts>, target, known: &Facts| NamedFile {
        itself: itself.unwrap_or(*known),
        target,
    };
    let names = NamedFiles {
        source: name(look(Symlinks::NoFollow), look(Symlinks::Follow), source),
        dest: name(
            entry.dest_facts(Symlinks::NoFollow),
            entry.dest_facts(Symlinks::Follow),
            dest,
        ),
        symlinks: entry.symlinks,
        treatment,
    };
    names.sameness(|| names_same_entry(entry))
}

/// Returns `true` if a link leads from the source to the dest or back, so that replacing the
/// dest would lose the only copy of the content.
pub(super) fn one_leads_to_other(entry: &Entry<'_>, source: &Facts, dest: &Facts) -> bool {
    let target = sys::stat(entry.source_dir, entry.source_name, Symlinks::Follow);
    let is_target = |target: Stat| Facts::of(&target).is_same_file(dest);
    target.is_ok_and(is_target)
        || entry
            .dest_facts(Symlinks::Follow)
            .is_some_and(|through| source.is_same_file(&through))
}

/// Returns `true` if source and dest are the same name in the same directory.
pub(super) fn names_same_entry(entry: &Entry<'_>) -> bool {
    let (_, source) = paths::split(entry.source_name.to_bytes());
    let (_, dest) = paths::split(entry.dest_name.to_bytes());
    let is_in_source_directory = || {
        let source = paths::directory_id_of(entry.source_dir, entry.source_name);
        source.is_some() && paths::directory_id_of(entry.dest_dir, entry.dest_name) == source
    };
    source == dest && is_in_source_directory()
}

/// Returns `true` if source and dest are symbolic links to the same path.
pub(super) fn targets_are_equal(entry: &Entry<'_>) -> bool {
    let source = sys::read_link(entry.source_dir, entry.source_name);
    let dest = sys::read_link(entry.dest_dir, entry.dest_name);
    matches!((source, dest), (Ok(source), Ok(dest)) if source == dest)
}
