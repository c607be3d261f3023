//! Makes copies: here those without content, and links instead of copies. Holds the state that a worker keeps from file
//! to file.
//!
//! - [`mod@file`]: regular files, and the content of special files.
//! - [`hardlink`]: sources with several names, and links to the first copy of each.
//! - [`unchanged`]: links to the unchanged files of an older copy.
//! - [`directory`]: directories, which are entered, and finished after their last entry.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes;
use super::content::OpenSource;
use super::context::Failure;
use super::decide::mode::{self, Origin};
use super::decide::settle::{RemovalEvent, Way};
use super::dest::backup::BackupNumbers;
use super::entry::Entry;
use super::facts::{CopyNode, FileId, Symlinks};
use super::options::LinkKind;
use crate::error::{Error, Operation, Refusal};
use crate::node::Side;
use crate::observer::Event;
use crate::paths;
use crate::sys::{self, Fd, PathOnly, Stat, Storage};

pub(super) mod directory;
pub(super) mod file;
pub(super) mod hardlink;
pub(super) mod unchanged;

/// State of one worker. All of it is a cache or a guess: losing it costs time only.
#[derive(Default)]
pub(super) struct CopyScratch {
    /// `true` if the last file was empty, so that the next one probably is, too.
    pub(super) expects_empty: bool,
    /// The filesystem that was queried last, by its device number.
    storage: Option<(u64, Storage)>,
    /// Buffer for content that is read.
    pub(super) buffer: Vec<u8>,
    pub(super) linked_to: Option<LinkedTo>,
    older: Option<unchanged::OlderDir>,
    pub(super) backup_numbers: BackupNumbers,
}

/// The finished directory to which this worker made its last hard link. The next link
/// probably leads there too.
pub(super) struct LinkedTo {
    pub(super) node: CopyNode,
    pub(super) dir: Fd,
}

impl CopyScratch {
    /// Describes an open source, which is `stat`.
    pub(super) fn describe_source<'s>(&mut self, fd: Fd, stat: &'s Stat) -> OpenSource<'s> {
        let storage = match sys::is_regular(stat) {
            true => self.storage(stat.st_dev, fd.as_fd()),
            false => Storage::Other,
        };
        OpenSource { fd, stat, storage }
    }

    /// Returns the storage of the filesystem with this device number, on which `file` is.
    #[inline]
    pub(super) fn storage(&mut self, device: u64, file: BorrowedFd<'_>) -> Storage {
        match self.storage {
            Some((known, storage)) if known == device => storage,
            _ => {
                let storage = Storage::of(file);
                self.storage = Some((device, storage));
                storage
            }
        }
    }
}

/// Creates a copy that has no content by `create`, which gets its name, in the way that was settled. Returns `None` if it
/// should be created, and something is there.
fn create_in_way(
    entry: &Entry<'_>,
    way: Way,
    mut create: impl FnMut(&CStr) -> Result<(), Errno>,
) -> Result<Option<()>, Errno> {
    let (changes, spot) = (&entry.ctx.changes, entry.dest);
    match way {
        Way::Stay(errno) => Err(errno),
        Way::Replace(removal) => {
            changes.replace(spot, create)?;
            if removal == RemovalEvent::Reported {
                entry.emit(|_, dest, _| Event::RemovedDest(dest));
            }
            Ok(Some(()))
        }
        // No content is written.
        Way::Create | Way::CreateThrough | Way::Write(_) | Way::StayLink => {
            match changes.create(spot, || create(spot.name)) {
                Err(Errno::EXIST) => Ok(None),
                created => created.map(Some),
            }
        }
    }
}

/// Gives a new dest without content the attributes of its source.
fn set_attributes(entry: &Entry<'_>, source: &PathOnly) -> Result<(), Failure> {
    let dest = PathOnly::find(entry.dest.at(Symlinks::NoFollow));
    let dest = dest.map_err(|errno| entry.making_failure(Operation::Stat, errno))?;
    if sys::is_of_another(dest.as_fd(), dest.stat().st_uid, entry.ctx.policy.user) {
        return Err(entry.making_failure(Operation::Stat, Errno::STALE));
    }
    transfer(entry, [source, &dest], Origin::Created)
}

fn transfer(
    entry: &Entry<'_>,
    [source, dest]: [&PathOnly; 2],
    origin: Origin,
) -> Result<(), Failure> {
    let acl = entry.dest_acl(origin);
    let set = attributes::transfer(&entry.ctx.policy, source, dest, origin, acl);
    let set = set.map_err(|errno| entry.making_failure(Operation::Stat, errno))?;
    entry.report_attributes(set).map_err(Failure::making)
}

/// Gives a dest that is kept the attributes of its source, if mode or owner differ. Both were seen before.
pub(super) fn update_attributes(
    entry: &Entry<'_>,
    source: &Stat,
    dest: &Stat,
) -> Result<(), Failure> {
    if !attributes::need_update(&entry.ctx.policy, source, dest) {
        return Ok(());
    }
    entry.ctx.changes.really(|| {
        let hold =
            |at| PathOnly::find(at).map_err(|errno| entry.making_failure(Operation::Stat, errno));
        let from = hold(entry.source)?;
        let to = hold(entry.dest.at(Symlinks::NoFollow))?;
        // A link may lead to the dest, or another process has replaced one of them.
        let is_same = |held: &PathOnly, seen| FileId::of(held.stat()) == FileId::of(seen);
        match is_same(&from, source) && is_same(&to, dest) {
            true => transfer(entry, [&from, &to], Origin::Existing),
            false => Ok(()),
        }
    })
}

/// A source without content: a symbolic link or a special file.
pub(super) struct Contentless {
    /// The source, if its attributes are copied. All facts and attributes are those of one inode.
    held: Option<PathOnly>,
    original: Original,
}

enum Original {
    Link(CString),
    Special(Stat),
}

/// Holds the source if its attributes are copied.
fn hold_source(entry: &Entry<'_>) -> Result<Option<PathOnly>, Errno> {
    let is_held = entry.ctx.policy.sets_attributes;
    is_held.then(|| PathOnly::find(entry.source)).transpose()
}

/// Reads a symbolic link.
pub(super) fn read_link(entry: &Entry<'_>) -> Result<Contentless, Errno> {
    // Stat the link before reading it, because reading changes its time of access.
    let held = hold_source(entry)?;
    let target = match &held {
        Some(held) => held.read_link(),
        None => sys::read_link(entry.source.dir, entry.source.name),
    };
    let original = Original::Link(target?);
    Ok(Contentless { held, original })
}

/// Finds a FIFO, socket or device that was seen as `source`. It is never read or written.
pub(super) fn find_special(entry: &Entry<'_>, source: &Stat) -> Result<Contentless, Failure> {
    let held = hold_source(entry)
        .map_err(|errno| Failure::making(entry.source_error(Operation::Stat, errno)))?;
    let found = held.as_ref().map_or(source, PathOnly::stat);
    // Another process may have replaced the source since it was seen.
    if sys::file_type(found) != sys::file_type(source) {
        return Err(entry.source_refused(Refusal::SourceReplaced));
    }
    let original = Original::Special(*found);
    Ok(Contentless { held, original })
}

/// Makes a copy of a symbolic link or a special file, and returns whether it has its attributes. Returns `None` if something
/// is there.
pub(super) fn copy_contentless(
    entry: &Entry<'_>,
    source: &Contentless,
    way: Way,
) -> Result<Option<Result<(), Failure>>, Failure> {
    let (created, operation) = match &source.original {
        Original::Link(target) => {
            let link = |name: &CStr| sys::create_symlink(target, entry.dest.dir, name);
            (create_in_way(entry, way, link), Operation::CreateSymlink)
        }
        Original::Special(stat) => create_special(entry, stat, way),
    };
    let created = created.map_err(|errno| entry.making_failure(operation, errno))?;
    let held = source.held.as_ref();
    let attributes = |()| held.map_or(Ok(()), |held| set_attributes(entry, held));
    Ok(created.map(attributes))
}

fn create_special(
    entry: &Entry<'_>,
    source: &Stat,
    way: Way,
) -> (Result<Option<()>, Errno>, Operation) {
    let kind = sys::file_type(source);
    let permissions = mode::for_special_file(&entry.ctx.policy.options.preserve, source.st_mode);
    let mode = kind.as_raw_mode() | permissions;
    let node = |name: &CStr| sys::create_node(entry.dest.dir, name, mode, source.st_rdev);
    let created = create_in_way(entry, way, node);
    match (kind, created) {
        // As cp, try a FIFO again. A server that cannot store one may have made a file, which is reported then.
        (FileType::Fifo, Err(_)) if way == Way::Create => {
            let again = || node(entry.dest.name);
            let created = entry.ctx.changes.create(entry.dest, again);
            (created.map(Some), Operation::CreateFifo)
        }
        (FileType::Fifo, created) => (created, Operation::CreateFifo),
        (_, created) => (created, Operation::CreateSpecial),
    }
}

/// Makes a link instead of a copy of a source that is not a directory. Returns `None` if something is there.
pub(super) fn make_link(
    entry: &Entry<'_>,
    kind: LinkKind,
    way: Way,
) -> Result<Option<()>, Failure> {
    let ctx = entry.ctx;
    let source = entry.source;
    let (target, operation) = match kind {
        LinkKind::Hard => (None, Operation::CreateHardLink),
        LinkKind::Symbolic => (Some(symlink_target(entry)?), Operation::CreateSymlink),
    };
    let created = create_in_way(entry, way, |name| match &target {
        Some(target) => sys::create_symlink(target, entry.dest.dir, name),
        None => sys::create_hard_link(source, entry.dest.dir, name),
    });
    let created = created.map_err(|errno| {
        let error = entry.dest_error(operation, errno);
        Failure::making(error.with_other(Side::Source, entry.path(Side::Source)))
    })?;
    let keeps_times = ctx.policy.sets_attributes && ctx.policy.options.preserve.timestamps;
    if created.is_some() && kind == LinkKind::Symbolic && keeps_times {
        let source = entry.stat_source();
        let source =
            source.map_err(|errno| Failure::making(entry.source_error(Operation::Stat, errno)))?;
        attributes::set_link_times(entry.dest.at(Symlinks::NoFollow), &source)
            .map_err(|errno| entry.making_failure(Operation::KeepTimes, errno))?;
    }
    Ok(created)
}

/// Returns the path of the source, which was seen, as the target of a symbolic link.
///
/// # Errors
/// The path is relative, and would lead elsewhere.
fn symlink_target(entry: &Entry<'_>) -> Result<CString, Failure> {
    let path = entry.path(Side::Source);
    if path.is_relative() && !is_in_source_base(entry) {
        let dest = entry.path(Side::Dest);
        let error = Error::refused(Refusal::RelativeSymlink, dest).at_dest();
        return Err(Failure::making(error));
    }
    Ok(paths::c_string(path.as_os_str().as_bytes()))
}

/// Returns `true` if the dest is in the directory in which relative sources are looked up. Also `true` if
/// either directory cannot be stat'ed; creating the link then reports the error.
fn is_in_source_base(entry: &Entry<'_>) -> bool {
    if entry.ctx.changes.is_absent(entry.dest.dir) {
        return false;
    }
    let dest = paths::directory_id_of(entry.dest.dir, entry.dest.name);
    let base = paths::id_of(entry.ctx.bases.source, c".");
    dest.is_none() || base.is_none() || dest == base
}
