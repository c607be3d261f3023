//! Copies regular files, and the content of special files.
//!
//! ```text
//!   empty, as the last one was, in a new directory:
//!                    stat, create_node                                 2 calls
//!   with content:    open, fstat, create, copy_range, close, close       6 calls
//!   of at least 1 MiB, into a directory that existed:
//!                    as above, and stat, link, open, close            10 calls
//!   the dest exists: see `dest::open`
//! ```
//!
//! Files in one directory are alike, so the last one decides which way is tried first. A wrong
//! guess costs one call. Copying 50,000 empty files by `stat` and `mknodat` took 0.67 of the
//! time of opening both sides (tmpfs, 2 cores; repeat it with the benchmark cell `copy-100k`).

use std::os::fd::AsFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::copy::attributes::{self, AttributeError, Attributes, path_only};
use crate::copy::content::{ContentCopy, ContentError, Moved, Sink, Source, Ways};
use crate::copy::context::{Context, Failure};
use crate::copy::decide::clear::{Making, links_at_dest};
use crate::copy::decide::mode::{DestAcl, Origin};
use crate::copy::dest::clear::clear_dest;
use crate::copy::dest::open::{OpenDest, is_behind_link};
use crate::copy::dest::overwrite;
use crate::copy::diagnose;
use crate::copy::facts::{Entry, Facts, FileId, Symlinks};
use crate::copy::large::naming::{self, Naming};
use crate::copy::look;
use crate::copy::options::Reflink;
use crate::copy::scratch::{CopyScratch, CopyWorker};
use crate::copy::source::OpenSource;
use crate::error::{Error, Operation, Refusal};
use crate::node::Side;
use crate::sys::{self, At, Blocking, Inode, Stat, Storage};

/// Opens a source that was listed as a regular file. Returns `None` if its type has changed.
#[inline(always)]
pub(in crate::copy) fn open_listed(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    scratch: &mut CopyScratch,
) -> Result<Option<OpenSource>, Failure> {
    match open(ctx, entry, Blocking::OnlyForLease, scratch) {
        Ok(source) if source.is_regular() => Ok(Some(source)),
        // `O_NOFOLLOW` fails with ELOOP on a symbolic link, and a socket fails with ENXIO.
        Ok(_) | Err(Errno::LOOP | Errno::NXIO) => Ok(None),
        Err(errno) => Err(diagnose::reading(ctx, entry, Operation::OpenSource, errno)),
    }
}

/// Opens a source that was just seen as a regular file.
pub(in crate::copy) fn open_seen(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    scratch: &mut CopyScratch,
) -> Result<OpenSource, Failure> {
    let source = open(ctx, entry, entry.blocking(), scratch)
        .map_err(|errno| diagnose::reading(ctx, entry, Operation::OpenSource, errno))?;
    if !entry.is_operand() && !source.is_regular() {
        return Err(ctx.source_refused(entry, Refusal::SourceReplaced));
    }
    Ok(source)
}

/// Opens a FIFO or a device to read its content, which may wait for a writer. So the dest is checked
/// first, and removed if it is in the way.
pub(in crate::copy) fn open_special(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    stat: &Stat,
    scratch: &mut CopyScratch,
) -> Result<OpenSource, Failure> {
    overwrite::check(ctx, entry, &Facts::of(stat))?;
    // As with a regular file, a dangling link at the dest stays, and is refused.
    let is_in_the_way =
        entry.symlinks == Symlinks::NoFollow && look::at_dest(ctx, entry, Symlinks::Follow).is_ok();
    if is_in_the_way {
        clear_dest(ctx, entry, Making::Special, None)?;
    }
    let opened = ctx.changes.open_special(
        entry.source_at(),
        || open(ctx, entry, Blocking::MayBlock, scratch),
        |fd| OpenSource {
            fd,
            stat: *stat,
            storage: Storage::Other,
        },
    );
    opened.map_err(|errno| diagnose::reading(ctx, entry, Operation::OpenSource, errno))
}

// If this function and its caller are not inlined, each call copies the stat of the source, which has 144 bytes. That
// takes 115 more instructions for each file with data. The guard's case `cpz-files-with-data` counts them.
#[inline(always)]
fn open(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    blocking: Blocking,
    scratch: &mut CopyScratch,
) -> Result<OpenSource, Errno> {
    let fd = ctx.descriptors.making_room(|| {
        sys::open_source(
            entry.source_dir,
            entry.source_name,
            entry.symlinks,
            blocking,
        )
    })?;
    let stat = sys::stat_open(&fd)?;
    let storage = match sys::file_type(&stat) {
        FileType::RegularFile => scratch.storage(&stat, fd.as_fd()),
        _ => Storage::Other,
    };
    Ok(OpenSource { fd, stat, storage })
}

/// Creates an empty file as the copy of an empty file. Returns `false` if the source is not empty,
/// or if its copy needs more than creation. Nothing was made in that case.
#[inline(always)]
pub(in crate::copy) fn try_copy_empty(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    scratch: &mut CopyScratch,
) -> bool {
    let Ok(stat) = look::at_source(entry) else {
        return false;
    };
    let is_empty = sys::file_type(&stat) == FileType::RegularFile
        && stat.st_size == 0
        && !ctx.policy.has_other_names(entry, &stat)
        && look::is_on_filesystem_of_directory(entry, &stat)
        && scratch.storage(&stat, entry.source_dir).reports_true_size();
    scratch.expects_empty = is_empty;
    if !is_empty || !ctx.policy.may_read(&stat) {
        return false;
    }
    let mode = stat.st_mode & (FileType::RegularFile.as_raw_mode() | 0o777);
    // On failure the dest exists, or the filesystem cannot make files this way. Opening both files
    // then shows which.
    sys::create_node(entry.dest_dir, entry.dest_name, mode, 0).is_ok()
}

/// The result of filling a dest.
pub(in crate::copy) enum Filled {
    Complete(Completed),
    /// The complete dest could not be given its name, so it was dropped. It must be written under its
    /// name.
    Nameless,
    /// The run was cancelled. The incomplete dest was removed if this run had created it.
    Cancelled,
}

/// A dest with all of its content.
pub(in crate::copy) struct Completed {
    pub(in crate::copy) moved: Moved,
    /// The dest is a regular file.
    pub(in crate::copy) is_file: bool,
    /// Says whether all attributes were set.
    pub(in crate::copy) attributes: Result<(), Failure>,
}

/// Copies content and attributes to a dest that is open and empty, and closes it.
pub(in crate::copy) fn fill<W: CopyWorker>(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &OpenSource,
    dest: OpenDest<'_>,
    worker: &mut W,
) -> Result<Filled, Failure> {
    let labelled = label(ctx, &dest);
    let options = ctx.policy.options;
    let has_nothing_to_move = options.attributes_only
        || dest.has_content
        || source.is_known_empty() && options.reflink != Reflink::Always;
    let moved = if has_nothing_to_move {
        Moved::nothing()
    } else {
        let moved = ctx
            .changes
            .write(&source.stat, || move_content(ctx, source, &dest, worker));
        match moved {
            Ok(moved) => moved,
            Err(error) => return content_not_moved(ctx, entry, &dest, &source.stat, error),
        }
    };
    complete(ctx, entry, source, dest, moved, labelled)
}

/// Sets the SELinux context of a dest, before there is content to read. If it cannot be set, the content is copied all
/// the same.
#[inline(always)]
pub(in crate::copy) fn label(ctx: &Context<'_>, dest: &OpenDest<'_>) -> Result<(), AttributeError> {
    match dest.is_file && ctx.policy.sets_attributes {
        true => attributes::label(&ctx.policy, dest.fd.as_fd()),
        false => Ok(()),
    }
}

/// Gives a dest with all of its content its attributes, then its name, and closes it.
#[inline(always)]
pub(in crate::copy) fn complete(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &OpenSource,
    dest: OpenDest<'_>,
    moved: Moved,
    labelled: Result<(), AttributeError>,
) -> Result<Filled, Failure> {
    let attributes = ctx
        .policy
        .sets_attributes
        .then(|| set_attributes(ctx, entry, source, &dest));
    if let Some(durability) = &ctx.durability {
        durability
            .file_complete(dest.fd.as_fd())
            .map_err(|errno| not_synced(ctx, entry, &dest, &source.stat, errno))?;
    }
    if dest.naming == Naming::WhenComplete
        && !naming::give_name(ctx, entry, dest.fd.as_fd(), dest.hidden_name())
    {
        return Ok(Filled::Nameless);
    }
    let OpenDest {
        fd,
        is_file,
        writing,
        ..
    } = dest;
    sys::close_checked(fd).map_err(|errno| not_closed(ctx, entry, is_file, &source.stat, errno))?;
    // Another worker may write to it now.
    drop(writing);
    let set = match attributes {
        Some(attributes) => {
            ctx.report_attributes(entry.operand, attributes, || ctx.path(entry, Side::Dest))
        }
        None => Ok(()),
    };
    let labelled =
        labelled.map_err(|error| ctx.making_failure(entry, error.operation, error.errno));
    Ok(Filled::Complete(Completed {
        moved,
        is_file,
        attributes: set.map_err(Failure::making).and(labelled),
    }))
}

/// Marks a dest that the kernel could not write to the disk, and returns the failure.
#[cold]
fn not_synced(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    dest: &OpenDest<'_>,
    source: &Stat,
    errno: Errno,
) -> Failure {
    // Content that was written before may be lost.
    keep_incomplete(ctx, entry, dest, source);
    ctx.making_failure(entry, Operation::Sync, errno)
}

/// Marks a dest whose content the kernel could not write when it was closed, and returns the failure.
#[cold]
fn not_closed(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    is_file: bool,
    source: &Stat,
    errno: Errno,
) -> Failure {
    if is_file {
        let symlinks = links_at_dest(ctx.dest_directory_origin(entry));
        let dest = At {
            symlinks,
            ..entry.dest_at()
        };
        // If this fails, the dest keeps its new time, as after a failed cp.
        let _ = path_only::mark_incomplete(dest, source);
    }
    ctx.making_failure(entry, Operation::Close, errno)
}

fn set_attributes(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &OpenSource,
    dest: &OpenDest<'_>,
) -> Attributes {
    let (policy, stat) = (&ctx.policy, &source.stat);
    let (source, origin) = (source.fd.as_fd(), dest.origin);
    let acl = match origin {
        Origin::Created => ctx.inherited_acl(entry),
        Origin::Existing => DestAcl::Possible,
    };
    attributes::between_files(policy, source, stat, dest.fd.as_fd(), origin, acl).run(policy)
}

/// Moves the content. Returns only the bytes not yet reported through `copied_piece`.
fn move_content<W: CopyWorker>(
    ctx: &Context<'_>,
    source: &OpenSource,
    dest: &OpenDest<'_>,
    worker: &mut W,
) -> Result<Moved, ContentError> {
    let mut buffer = std::mem::take(&mut worker.scratch().buffer);
    let from = Source::new(source.fd.as_fd(), &source.stat, source.storage);
    let to = Sink {
        fd: dest.fd.as_fd(),
        is_file: dest.is_file,
    };
    let ways = Ways::new(ctx.policy.options);
    let mut accounted = 0;
    let mut progress = |bytes| {
        accounted += bytes;
        worker.copied_piece(&ctx.report, bytes)
    };
    let moved = ContentCopy::new(from, to, ways, &mut buffer, &mut progress).run();
    worker.scratch().buffer = buffer;
    moved.map(|moved| Moved {
        bytes: moved.bytes.saturating_sub(accounted),
        ..moved
    })
}

/// Removes a dest that is incomplete, if this run created it and its name still leads to it. Marks
/// one that existed before, and returns an error about it.
fn discard(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    dest: &OpenDest<'_>,
    source: &Stat,
) -> Result<(), Error> {
    if dest.naming == Naming::WhenComplete {
        if let Some(hidden) = dest.hidden_name() {
            naming::remove_hidden(entry, hidden, dest.fd.as_fd());
        }
        ctx.report.discarded();
        return Ok(());
    }
    if !dest.is_file {
        return Ok(());
    }
    if dest.origin != Origin::Created {
        mark_incomplete(dest, source);
        let path = ctx.path(entry, Side::Dest);
        return Err(Error::refused(Refusal::LeftIncomplete, path).at_dest());
    }
    let opened = sys::stat_open(&dest.fd).map(|stat| FileId::of(&stat));
    let named = look::dest_facts(ctx, entry, Symlinks::NoFollow).map(|facts| facts.id);
    if opened.ok() == named && sys::unlink(entry.dest_dir, entry.dest_name).is_ok() {
        ctx.report.discarded();
    }
    Ok(())
}

/// Marks an incomplete dest that is a regular file.
fn mark_incomplete(dest: &OpenDest<'_>, source: &Stat) {
    if dest.is_file {
        // If this fails, the dest keeps its new time, as after a failed cp.
        let _ = attributes::mark_incomplete(&Inode::Opened(dest.fd.as_fd()), source);
    }
}

/// Leaves the content that was moved before an error at the dest, as cp does.
fn keep_incomplete(ctx: &Context<'_>, entry: &Entry<'_>, dest: &OpenDest<'_>, source: &Stat) {
    mark_incomplete(dest, source);
    if dest.naming == Naming::WhenComplete {
        // If this fails, the dest has no content. The error to report is that of moving it.
        let _ = naming::give_name(ctx, entry, dest.fd.as_fd(), dest.hidden_name());
    }
}

/// Cleans up after content was not moved, and returns the reason.
pub(in crate::copy) fn content_not_moved(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    dest: &OpenDest<'_>,
    source: &Stat,
    error: ContentError,
) -> Result<Filled, Failure> {
    if let Some(mode) = dest.mode_before {
        attributes::restore_permissions(mode, dest.fd.as_fd());
    }
    let error = match error {
        ContentError::Cancelled => {
            return match discard(ctx, entry, dest, source) {
                Ok(()) => Ok(Filled::Cancelled),
                Err(error) => Err(Failure::making(error)),
            };
        }
        ContentError::Clone(errno) => {
            let has_name = dest.naming == Naming::AtOnce;
            if has_name && dest.origin == Origin::Created && !is_behind_link(ctx, entry) {
                // The dest is empty. The failure to report is that of the clone.
                let _ = sys::unlink(entry.dest_dir, entry.dest_name);
            }
            ctx.dest_error(entry, Operation::Clone, errno)
                .with_other(Side::Source, ctx.path(entry, Side::Source))
        }
        ContentError::Read(errno) => {
            keep_incomplete(ctx, entry, dest, source);
            ctx.source_error(entry, Operation::Read, errno)
        }
        ContentError::Write(errno) => {
            keep_incomplete(ctx, entry, dest, source);
            ctx.dest_error(entry, Operation::Write, errno)
        }
    };
    Err(Failure::making(error))
}
