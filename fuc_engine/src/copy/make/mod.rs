//! Makes copies: here those without content, and links instead of copies. Holds the state that a worker keeps from file
//! to file.
//!
//! - [`mod@file`]: regular files, and the content of special files.
//! - [`hardlink`]: sources with several names, and links to the first copy of each.
//! - [`directory`]: directories, which are entered, and finished after their last entry.

use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes;
use super::changes::Spot;
use super::content::Next;
use super::context::Failure;
use super::decide::clear::{Clear, Making, RemovalEvent};
use super::decide::mode::{self, Origin};
use super::dest::backup::BackupNumbers;
use super::dest::{clear_dest, decide_to_clear};
use super::diagnose;
use super::entry::Entry;
use super::facts::{CopyNode, DestState, FileId, Symlinks};
use super::options::{LinkKind, ModePolicy};
use crate::error::{Error, Operation, Refusal};
use crate::node::Side;
use crate::observer::Event;
use crate::paths;
use crate::sys::{self, Fd, PathOnly, Stat, Storage};

pub(super) mod directory;
pub(super) mod file;
pub(super) mod hardlink;

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
    /// The last link got another inode number than its first name, so the next one probably
    /// will, too.
    pub(super) links_change_ids: bool,
    pub(super) backup_numbers: BackupNumbers,
}

/// The finished directory to which this worker made its last hard link. The next link
/// probably leads there too.
pub(super) struct LinkedTo {
    pub(super) node: CopyNode,
    pub(super) dir: Fd,
}

impl CopyScratch {
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

/// The part of a worker that the stages use.
pub(super) trait CopyWorker {
    fn scratch(&mut self) -> &mut CopyScratch;

    /// Accounts for a piece of a large file that was copied, and lets other workers have queued
    /// work before the next piece. Returns [`Next::Piece`], or [`Next::Cancel`] if the run was cancelled.
    fn copied_piece(&mut self, bytes: u64) -> Next;

    /// Returns `true` if another engine wants a part of the content that this worker copies. To be called before
    /// [`copied_piece`](Self::copied_piece), which drops a request that queued tasks do not answer.
    fn is_asked(&self) -> bool;
}

/// Says whether a copy was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Created {
    Yes,
    /// The dest is another name of the source, so it has all attributes already.
    AlreadyThere,
}

/// Creates a copy that has no content by `create`, which gets its name. Something else at the dest is removed first, or
/// replaced, unless that was `decided` before. Returns an errno if the copy could not be created.
fn create_or_replace(
    entry: &Entry<'_>,
    making: Making,
    decided: Option<Clear>,
    mut create: impl FnMut(&CStr) -> Result<(), Errno>,
) -> Result<Result<Created, Errno>, Failure> {
    let (ctx, spot) = (entry.ctx, entry.spot());
    let mut create_at = |spot: Spot<'_>| ctx.changes.create(spot, || create(spot.name));
    let created = create_at(spot);
    if created != Err(Errno::EXIST) {
        return Ok(created.map(|()| Created::Yes));
    }
    let decision = match (decided, entry.dest_state) {
        (Some(_), _) => decided,
        (None, DestState::Replaced) => Some(Clear::Replace(RemovalEvent::Silent)),
        (None, _) => clear_dest(entry, making, None)?,
    };
    // As cp, which does so to a dangling link that is named with a trailing slash. A server may say that a dest is there,
    // and not show it.
    let is_replaced_unseen = match making {
        Making::LinkToCopy(_) => true,
        Making::Special | Making::File => false,
        Making::Symlink | Making::Link(_) => {
            ctx.policy.options.force && spot.name.to_bytes().ends_with(b"/")
        }
    };
    let created = match decision {
        // Nothing is there any more.
        None | Some(Clear::Unlink) => {
            let spot = match decision {
                None => spot,
                Some(_) => spot.vacated(),
            };
            match create_at(spot) {
                Err(Errno::EXIST) if is_replaced_unseen => ctx.changes.replace(spot, create),
                created => created,
            }
        }
        Some(Clear::AlreadyThere) => return Ok(Ok(Created::AlreadyThere)),
        Some(Clear::Replace(removal)) => {
            let replaced = ctx.changes.replace(spot, create);
            replaced.inspect(|()| {
                if removal == RemovalEvent::Reported {
                    entry.emit(|_, dest, _| Event::RemovedDest(dest));
                }
            })
        }
        Some(Clear::KeepDirectory) => Err(Errno::ISDIR),
        Some(_) => Err(Errno::EXIST),
    };
    Ok(created.map(|()| Created::Yes))
}

/// Gives a new dest without content the attributes of its source.
fn set_attributes(entry: &Entry<'_>, source: &PathOnly) -> Result<(), Failure> {
    let dest = PathOnly::find(entry.dest_at());
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
    let preserve = &entry.ctx.policy.options.preserve;
    let has_other_mode = preserve.mode == ModePolicy::Preserve && source.st_mode != dest.st_mode;
    let differs = has_other_mode || preserve.ownership && attributes::has_other_owner(source, dest);
    if !differs {
        return Ok(());
    }
    entry.ctx.changes.really(|| {
        let hold =
            |at| PathOnly::find(at).map_err(|errno| entry.making_failure(Operation::Stat, errno));
        let (from, to) = (hold(entry.source_at())?, hold(entry.dest_at())?);
        // A link may lead to the dest, or another process has replaced one of them.
        let is_same = |held: &PathOnly, seen| FileId::of(held.stat()) == FileId::of(seen);
        match is_same(&from, source) && is_same(&to, dest) {
            true => transfer(entry, [&from, &to], Origin::Existing),
            false => Ok(()),
        }
    })
}

/// Makes a copy of a link, unless the dest is another name of it.
pub(super) fn copy_symlink(entry: &Entry<'_>) -> Result<Created, Failure> {
    let failed = |errno| diagnose::reading(entry, Operation::ReadLink, errno);
    if !entry.ctx.policy.sets_attributes {
        let target = sys::read_link(entry.source_dir, entry.source_name).map_err(failed)?;
        return create_symlink(entry, &target);
    }
    // Stat the link before reading it, because reading changes its time of access.
    let source = PathOnly::find(entry.source_at()).map_err(failed)?;
    let target = source.read_link().map_err(failed)?;
    let created = create_symlink(entry, &target)?;
    if created == Created::Yes {
        set_attributes(entry, &source)?;
    }
    Ok(created)
}

fn create_symlink(entry: &Entry<'_>, target: &CStr) -> Result<Created, Failure> {
    let create = |name: &CStr| sys::create_symlink(target, entry.dest_dir, name);
    create_or_replace(entry, Making::Symlink, None, create)?
        .map_err(|errno| diagnose::creation(entry, Operation::CreateSymlink, errno))
}

/// Makes a copy of a FIFO, socket or device that was seen as `source`. It is never read or written.
pub(super) fn copy_special(entry: &Entry<'_>, source: &Stat) -> Result<(), Failure> {
    if !entry.ctx.policy.sets_attributes {
        return create_special(entry, source).map(drop);
    }
    // Another process may have replaced the source since it was seen. So all facts, and all
    // attributes, are those of one inode that is held.
    let held = PathOnly::find(entry.source_at());
    let held = held.map_err(|errno| Failure::making(entry.source_error(Operation::Stat, errno)))?;
    if sys::file_type(held.stat()) != sys::file_type(source) {
        return Err(entry.source_refused(Refusal::SourceReplaced));
    }
    match create_special(entry, held.stat())? {
        Created::Yes => set_attributes(entry, &held),
        Created::AlreadyThere => Ok(()),
    }
}

fn create_special(entry: &Entry<'_>, source: &Stat) -> Result<Created, Failure> {
    let kind = sys::file_type(source);
    let permissions = mode::for_special_file(&entry.ctx.policy.options.preserve, source.st_mode);
    let mode = kind.as_raw_mode() | permissions;
    let operation = match kind {
        FileType::Fifo => Operation::CreateFifo,
        _ => Operation::CreateSpecial,
    };
    let create = |name: &CStr| sys::create_node(entry.dest_dir, name, mode, source.st_rdev);
    let created = match create_or_replace(entry, Making::Special, None, create)? {
        // As cp, try a FIFO again. A server that cannot store one may have made a file, which is reported then.
        Err(errno)
            if kind == FileType::Fifo
                && errno != Errno::EXIST
                && !matches!(entry.dest_state, DestState::Replaced) =>
        {
            let again = || create(entry.dest_name);
            let created = entry.ctx.changes.create(entry.spot(), again);
            created.map(|()| Created::Yes)
        }
        created => created,
    };
    created.map_err(|errno| diagnose::creation(entry, operation, errno))
}

/// Makes a link instead of a copy of a source that is not a directory.
pub(super) fn make_link(entry: &Entry<'_>, kind: LinkKind) -> Result<Created, Failure> {
    let ctx = entry.ctx;
    let source = entry.source_at();
    let (target, operation) = match kind {
        LinkKind::Hard => (None, Operation::CreateHardLink),
        LinkKind::Symbolic => {
            let Some(target) = symlink_target(entry)? else {
                return refuse_relative_link(entry);
            };
            (Some(target), Operation::CreateSymlink)
        }
    };
    let create = |name: &CStr| match &target {
        Some(target) => sys::create_symlink(target, entry.dest_dir, name),
        None => sys::create_hard_link(source, entry.dest_dir, name),
    };
    let created = create_or_replace(entry, Making::Link(kind), None, create)?;
    let created = created.map_err(|errno| diagnose::linking(entry, operation, errno))?;
    let keeps_times = ctx.policy.sets_attributes && ctx.policy.options.preserve.timestamps;
    if created == Created::Yes && kind == LinkKind::Symbolic && keeps_times {
        let source = entry.stat_source();
        let source =
            source.map_err(|errno| Failure::making(entry.source_error(Operation::Stat, errno)))?;
        attributes::set_link_times(entry.dest_at(), &source)
            .map_err(|errno| entry.making_failure(Operation::KeepTimes, errno))?;
    }
    Ok(created)
}

/// Refuses to make a symbolic link that would lead elsewhere because the source is relative. A dest in
/// the way is reported first.
fn refuse_relative_link(entry: &Entry<'_>) -> Result<Created, Failure> {
    match decide_to_clear(entry, Making::Link(LinkKind::Symbolic), None)? {
        Some(Clear::AlreadyThere) => Ok(Created::AlreadyThere),
        Some(Clear::Refuse(refusal)) => Err(entry.refused(refusal)),
        _ => {
            let dest = entry.path(Side::Dest);
            let error = Error::refused(Refusal::RelativeSymlink, dest).at_dest();
            Err(Failure::making(error))
        }
    }
}

/// Returns the path of the source as the target of a symbolic link, or `None` if that would lead
/// elsewhere.
fn symlink_target(entry: &Entry<'_>) -> Result<Option<CString>, Failure> {
    // The kernel would make a link to a source that does not exist.
    entry
        .stat_source()
        .map_err(|errno| entry.source_stat_failure(errno))?;
    let path = entry.path(Side::Source);
    if path.is_relative() && !is_in_source_base(entry) {
        return Ok(None);
    }
    Ok(Some(paths::c_string(path.as_os_str().as_bytes())))
}

/// Returns `true` if the dest is in the directory in which relative sources are looked up. Also `true` if
/// either directory cannot be stat'ed; creating the link then reports the error.
fn is_in_source_base(entry: &Entry<'_>) -> bool {
    if entry.ctx.changes.is_absent(entry.dest_dir) {
        return false;
    }
    let dest = paths::directory_id_of(entry.dest_dir, entry.dest_name);
    let base = sys::stat(entry.ctx.bases.source, c".", Symlinks::Follow);
    match (dest, base) {
        (Some(dest), Ok(base)) => dest == FileId::of(&base),
        _ => true,
    }
}
