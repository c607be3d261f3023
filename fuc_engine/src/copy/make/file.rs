//! Copies regular files, and the content of special files.
//!
//! ```text
//!   empty, as the last one was, in a new directory:
//!                    stat, create_node                                 2 calls
//!   with content:    open, fstat, create, copy_range, close, close       6 calls
//!   of at least 1 MiB, into a directory that existed:
//!                    as above, and stat, link, open, close            10 calls
//!   the dest exists: see `decide::settle`
//! ```
//!
//! Files in one directory are alike, so the last one decides which way is tried first. A wrong
//! guess costs one call. Copying 50,000 empty files by `stat` and `mknodat` took 0.67 of the
//! time of opening both sides (tmpfs, 2 cores; repeat it with the benchmark cell `copy-100k`).

use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::AsFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::CopyScratch;
use crate::copy::attributes::{self, AttributeError, Attributes, Transfer};
use crate::copy::changes::Replaces;
use crate::copy::content::{
    ContentCopy, ContentError, Divide, Moved, Next, OnPiece, OpenSource, Sink,
};
use crate::copy::context::Failure;
use crate::copy::decide::mode::Origin;
use crate::copy::dest::{Naming, OpenDest};
use crate::copy::durability::Durability;
use crate::copy::entry::Entry;
use crate::copy::facts::{CopyNode, FileId};
use crate::copy::options::Reflink;
use crate::error::{Error, Operation, Refusal};
use crate::node::{Dir, Side};
use crate::observer::CopyMethod;
use crate::sys::{self, Blocking, Identity, Inode, Stat, Storage, WriteBack};

/// Opens a source that was listed or seen as a regular file. Returns `None` if its type has changed.
#[inline(always)]
pub(crate) fn open_regular(
    entry: &Entry<'_>,
    scratch: &mut CopyScratch,
) -> Result<Option<OpenSource>, Errno> {
    match open_source(entry, entry.blocking(), scratch) {
        Ok(source) if source.is_regular() => Ok(Some(source)),
        // `O_NOFOLLOW` fails with ELOOP on a symbolic link, and a socket fails with ENXIO.
        Ok(_) | Err(Errno::LOOP | Errno::NXIO) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Opens a source that was seen as `stat`, to read its content. Waits for a writer of a FIFO.
pub(crate) fn open_seen(
    entry: &Entry<'_>,
    stat: &Stat,
    scratch: &mut CopyScratch,
) -> Result<OpenSource, Failure> {
    let opened = if sys::is_regular(stat) {
        match open_regular(entry, scratch) {
            Ok(None) => return Err(entry.source_refused(Refusal::SourceReplaced)),
            Ok(Some(source)) => Ok(source),
            Err(errno) => Err(errno),
        }
    } else {
        entry.ctx.changes.open_special(
            entry.source_at(),
            || open_source(entry, Blocking::MayBlock, scratch),
            |fd| OpenSource {
                fd,
                stat: *stat,
                storage: Storage::Other,
            },
        )
    };
    opened.map_err(|errno| Failure::making(entry.source_error(Operation::OpenSource, errno)))
}

// If this function and its caller are not inlined, each call copies the stat of the source, which has 144 bytes. That
// takes 115 more instructions for each file with data. The guard's case `cpz-files-with-data` counts them.
#[inline(always)]
fn open_source(
    entry: &Entry<'_>,
    blocking: Blocking,
    scratch: &mut CopyScratch,
) -> Result<OpenSource, Errno> {
    let fd = entry
        .ctx
        .descriptors
        .making_room(|| sys::open_source(entry.source_at(), blocking))?;
    let stat = sys::stat_open(&fd)?;
    let storage = match sys::file_type(&stat) {
        FileType::RegularFile => scratch.storage(stat.st_dev, fd.as_fd()),
        _ => Storage::Other,
    };
    Ok(OpenSource { fd, stat, storage })
}

/// Creates an empty file as the copy of an empty file. Returns `false` if the source is not empty,
/// or if its copy needs more than creation. Nothing was made in that case.
#[inline(always)]
pub(crate) fn try_copy_empty(given: &Entry<'_>, scratch: &mut CopyScratch) -> bool {
    // No other function has the address of this copy, so its fields are not read again after each system call. Without it,
    // an empty file takes five more instructions. The guard's case `cpz-empty-files` counts them.
    let entry = *given;
    let Ok(stat) = entry.stat_source() else {
        return false;
    };
    let is_on_filesystem = |dir: Identity| dir.device() == FileId::of(&stat).device;
    let is_empty = sys::is_regular(&stat)
        && stat.st_size == 0
        && !entry.has_other_names(&stat)
        && entry.source_directory().is_some_and(is_on_filesystem)
        && scratch
            .storage(stat.st_dev, entry.source_dir)
            .reports_true_size();
    scratch.expects_empty = is_empty;
    if !is_empty || !entry.ctx.policy.may_read(&stat) {
        return false;
    }
    let mode = stat.st_mode & (FileType::RegularFile.as_raw_mode() | 0o777);
    // On failure the dest exists, or the filesystem cannot make files this way. Opening both files
    // then shows which.
    let dest = |node: &CopyNode| node.dir.slot(Side::Dest).identity();
    let is_beside = entry.node.and_then(dest).is_some_and(is_on_filesystem);
    if is_beside || given.has_native_dest() {
        return sys::create_node(entry.dest_dir, entry.dest_name, mode, 0).is_ok();
    }
    // As cp does it.
    let create = || sys::create_file(entry.dest_dir, entry.dest_name, mode);
    let created = entry.ctx.descriptors.making_room(create);
    created.and_then(sys::close_checked).is_ok()
}

/// The result of filling a dest.
pub(crate) enum Filled {
    /// The dest has all of its content.
    Complete {
        /// Bytes moved since the last piece.
        bytes: u64,
        method: CopyMethod,
        /// The dest is a regular file.
        is_file: bool,
        /// Says whether all attributes were set.
        attributes: Result<(), Error>,
    },
    /// The complete dest could not be given its name, so it was dropped. It must be written under its
    /// name.
    Nameless,
    /// The run was cancelled. The incomplete dest was removed if this run had created it.
    Cancelled,
}

/// A dest that is open and empty, and its source.
pub(crate) struct Filling<'f> {
    pub(crate) entry: &'f Entry<'f>,
    pub(crate) source: &'f OpenSource,
    pub(crate) dest: OpenDest<'f>,
    /// Says whether the dest has got its SELinux context.
    pub(crate) labelled: Result<(), AttributeError>,
}

impl<'f> Filling<'f> {
    /// Prepares to fill a dest. It gets its SELinux context before there is content to read. If that cannot be set, the
    /// content is copied all the same.
    #[inline(always)]
    pub(crate) fn new(entry: &'f Entry<'f>, source: &'f OpenSource, dest: OpenDest<'f>) -> Self {
        let policy = &entry.ctx.policy;
        let labelled = match dest.is_file && policy.sets_attributes {
            true => attributes::label(policy, &Inode::Opened(dest.fd.as_fd())),
            false => Ok(()),
        };
        Self {
            entry,
            source,
            dest,
            labelled,
        }
    }

    /// Copies content and attributes to the dest, and closes it.
    #[inline(always)]
    pub(crate) fn fill(
        self,
        buffer: &mut Vec<u8>,
        on_piece: OnPiece<'_>,
    ) -> Result<Filled, Failure> {
        let Self { entry, source, .. } = self;
        let options = entry.ctx.policy.options;
        let is_empty = source.is_known_empty()
            && options.reflink != Reflink::Always
            && !options.reports_methods;
        let Moved { bytes, method } = if options.attributes_only || is_empty {
            Moved::bytes(0)
        } else if !entry.ctx.changes.are_visible() {
            Moved::bytes(source.stat.st_size as u64)
        } else if options.drops_cache {
            self.move_past_cache(buffer, on_piece)
        } else {
            self.move_content(buffer, on_piece)
        };
        let filled = match bytes {
            Ok(bytes) => self.complete(bytes, method),
            Err(error) => self.abandon(error),
        };
        filled.map_err(|failure| failure.with_method(method))
    }

    /// Moves the content, and drops it from the page cache behind the copy.
    #[cold]
    fn move_past_cache(&self, buffer: &mut Vec<u8>, on_piece: OnPiece<'_>) -> Moved {
        let (source, dest) = (self.source.fd.as_fd(), &self.dest);
        // After holes, the source was read beyond these bytes. What was read ahead must stay.
        let mut bytes_read = 0;
        let write_back = |extent, read| {
            sys::drop_cache(source, read);
            if dest.is_file {
                sys::write_back(dest.fd.as_fd(), extent).map_err(ContentError::Write)?;
                sys::drop_cache(dest.fd.as_fd(), None);
            }
            Ok(())
        };
        let mut written = Ok(());
        let moved = self.move_content(buffer, &mut |bytes| {
            if bytes == 0 {
                // Other engines copy.
                return on_piece(bytes);
            }
            bytes_read += bytes;
            written = write_back(WriteBack::UpToLast, NonZeroU64::new(bytes_read));
            match on_piece(bytes) {
                next if written.is_ok() => next,
                _ => Next::Cancel,
            }
        });
        let bytes = written.and(moved.bytes);
        let is_all_written = |bytes| write_back(WriteBack::All, None).map(|()| bytes);
        Moved {
            bytes: bytes.and_then(is_all_written),
            ..moved
        }
    }

    #[inline(always)]
    fn move_content(&self, buffer: &mut Vec<u8>, on_piece: OnPiece<'_>) -> Moved {
        let naming = &self.dest.naming;
        let is_divided = matches!(naming, Naming::Hidden(_, Replaces::Nothing));
        let sink = Sink {
            fd: self.dest.fd.as_fd(),
            is_file: self.dest.is_file,
            keeps_content: self.dest.keeps_content,
            divide: is_divided.then_some(self),
        };
        let options = self.entry.ctx.policy.options;
        ContentCopy::new(self.source, sink, options, buffer, on_piece).run()
    }

    /// Gives a dest with all of its content its attributes, then its name, and closes it.
    #[inline(always)]
    fn complete(self, bytes: u64, method: CopyMethod) -> Result<Filled, Failure> {
        let entry = self.entry;
        let mut attributes = None;
        if entry.ctx.policy.sets_attributes {
            if let Err((operation, errno)) = self.store_content() {
                return Err(self.fail(operation, errno));
            }
            attributes = Some(self.set_attributes());
        }
        if let Some(errno) = attributes.as_ref().and_then(Attributes::lost_content) {
            return self.abandon(ContentError::Write(errno));
        }
        if let Some(durability) = &entry.ctx.durability
            && let Err(errno) = self.sync(durability)
        {
            // Content that was written before may be lost.
            return Err(self.fail(Operation::Sync, errno));
        }
        let Self {
            source,
            dest,
            labelled,
            ..
        } = self;
        let is_file = dest.is_file;
        let has_name = match dest.naming {
            Naming::Hidden(_, replaces) => dest.close_and_rename(entry, replaces)?,
            Naming::WhenComplete if !dest.give_name(entry) => false,
            Naming::WhenComplete | Naming::AtOnce => {
                let OpenDest { fd, writing, .. } = dest;
                sys::close_checked(fd)
                    .map_err(|errno| not_closed(entry, is_file, &source.stat, errno))?;
                // Another worker may write to it now.
                drop(writing);
                true
            }
        };
        if !has_name {
            return Ok(Filled::Nameless);
        }
        let set = match attributes {
            Some(attributes) => entry.report_attributes(attributes),
            None => Ok(()),
        };
        let labelled = labelled.map_err(|error| entry.dest_error(error.operation, error.errno));
        Ok(Filled::Complete {
            bytes,
            method,
            is_file,
            attributes: set.and(labelled),
        })
    }

    /// Stores the content before the dest gets the times of its source. Otherwise a power cut could leave it without its
    /// content, and a server could set the time again when it stores the content. Until then, another client could take the
    /// dest for complete.
    fn store_content(&self) -> Result<(), (Operation, Errno)> {
        let Self { entry, dest, .. } = self;
        let ctx = entry.ctx;
        if !ctx.policy.options.preserve.timestamps || !dest.is_file {
            return Ok(());
        }
        if ctx.durability.is_some() {
            let written = sys::write_back(dest.fd.as_fd(), WriteBack::All);
            written.map_err(|errno| (Operation::Sync, errno))?;
        }
        if !entry.has_native_dest() {
            let closed = sys::duplicate(dest.fd.as_fd()).and_then(sys::close_checked);
            closed.map_err(|errno| (Operation::Close, errno))?;
        }
        Ok(())
    }

    /// Writes the dest to the disk, or leaves that to the end of the run. A file must be there before it replaces another
    /// one, and so must the first copy of a source whose other names replace files.
    fn sync(&self, durability: &Durability) -> Result<(), Errno> {
        let Self {
            entry,
            source,
            dest,
            ..
        } = self;
        let dests_are_replaced = entry.ctx.policy.options.rules.atomic;
        match matches!(dest.naming, Naming::Hidden(_, Replaces::Files))
            || dests_are_replaced && entry.has_other_names(&source.stat)
        {
            true => sys::sync_file(dest.fd.as_fd()),
            false => durability.file_complete(dest.fd.as_fd()),
        }
    }

    fn set_attributes(&self) -> Attributes {
        let (policy, origin) = (&self.entry.ctx.policy, self.dest.origin);
        let (stat, dest) = (&self.source.stat, Inode::Opened(self.dest.fd.as_fd()));
        let transfer = Transfer {
            policy,
            source: Inode::Opened(self.source.fd.as_fd()),
            stat,
            dest,
            dest_acl: self.entry.dest_acl(origin),
            has_access_time: false,
            is_parent: false,
            mode: policy.last_mode(stat.st_mode, origin),
            has_owner: policy.options.preserve.ownership
                && !self.entry.has_native_dest()
                && dest.has_owner_of(stat),
            has_rights: self.dest.has_rights,
        };
        transfer.run()
    }

    /// Cleans up after a call has shown that content may be lost, and returns the failure.
    #[cold]
    fn fail(self, operation: Operation, errno: Errno) -> Failure {
        let entry = self.entry;
        self.keep_incomplete();
        entry.making_failure(operation, errno)
    }

    /// Cleans up after content was not moved, and returns the reason.
    #[cold]
    fn abandon(self, error: ContentError) -> Result<Filled, Failure> {
        let entry = self.entry;
        if let Some(mode) = self.dest.mode_before {
            attributes::restore_permissions(mode, self.dest.fd.as_fd());
        }
        let error = match error {
            ContentError::Cancelled => {
                return match self.discard() {
                    Ok(()) => Ok(Filled::Cancelled),
                    Err(error) => Err(Failure::making(error)),
                };
            }
            ContentError::Clone(errno) => {
                match self.dest.naming {
                    // The dest is empty. It stays if it was created through a link. The failure to report is that of the
                    // clone.
                    Naming::AtOnce if self.dest.origin == Origin::Created => {
                        let _ = self.dest.remove(entry);
                    }
                    Naming::AtOnce | Naming::WhenComplete => {}
                    Naming::Hidden(..) => self.dest.remove_hidden(entry),
                }
                entry
                    .dest_error(Operation::Clone, errno)
                    .with_other(Side::Source, entry.path(Side::Source))
            }
            ContentError::Read(errno) => {
                self.keep_incomplete();
                entry.source_error(Operation::Read, errno)
            }
            ContentError::Write(errno) => {
                self.keep_incomplete();
                entry.dest_error(Operation::Write, errno)
            }
        };
        Err(Failure::making(error))
    }

    /// Removes a dest that is incomplete, if this run created it and its name still leads to it. Marks it before, and
    /// returns an error about one that stays, or existed before.
    fn discard(self) -> Result<(), Error> {
        let Self {
            entry, ref dest, ..
        } = self;
        if !dest.is_file {
            return Ok(());
        }
        let is_new = dest.origin == Origin::Created;
        let name = dest.naming.hidden_name().unwrap_or(entry.dest_name);
        let left = Error::refused(Refusal::LeftIncomplete, entry.path_beside(name)).at_dest();
        let removed = match dest.naming {
            Naming::WhenComplete => Ok(()),
            _ => {
                self.mark_incomplete();
                match is_new {
                    true => self.dest.remove(entry),
                    false => return Err(left),
                }
            }
        };
        match removed {
            Ok(()) => entry.ctx.report.count_discarded(),
            // Another process has put its own file there.
            Err(Errno::STALE) => {}
            Err(_) => return Err(left),
        }
        Ok(())
    }

    /// Leaves the content that was moved before an error at the dest, as cp does, and warns about it. Removes a dest that has
    /// a hidden name.
    fn keep_incomplete(self) {
        let entry = self.entry;
        if self.dest.naming.hidden_name().is_some() {
            return self.dest.remove_hidden(entry);
        }
        self.mark_incomplete();
        // If the dest gets no name, it has no content. The error to report is that of moving it.
        let is_file = self.dest.is_file;
        let has_name = match self.dest.naming {
            Naming::WhenComplete => self.dest.give_name(entry),
            Naming::AtOnce | Naming::Hidden(..) => true,
        };
        if is_file && has_name {
            let left = Error::refused(Refusal::LeftIncomplete, entry.path(Side::Dest));
            entry.ctx.warn(entry.operand, left.at_dest());
        }
    }

    /// Marks an incomplete dest that is a regular file.
    fn mark_incomplete(&self) {
        if self.dest.is_file {
            let dest = &Inode::Opened(self.dest.fd.as_fd());
            // If this fails, the dest keeps its new time, as after a failed cp.
            let _ = attributes::mark_incomplete(dest, &self.source.stat);
        }
    }
}

impl Divide for Filling<'_> {
    #[cfg(not(feature = "distribute"))]
    fn divide(&self, _: Range<u64>, _: &mut dyn FnMut() -> bool) -> bool {
        false
    }

    #[cfg(feature = "distribute")]
    fn divide(&self, range: Range<u64>, goes_on: &mut dyn FnMut() -> bool) -> bool {
        let Self {
            entry,
            source,
            dest,
            ..
        } = self;
        let exchange = entry.ctx.policy.options.setup.exchange;
        let (Some(exchange), Some(hidden), Ok(seen)) = (
            exchange,
            dest.naming.hidden_name(),
            sys::stat_open(&dest.fd),
        ) else {
            return false;
        };
        let file = crate::distribute::LargeCopy {
            source: entry.path(Side::Source),
            dest: entry.path_beside(hidden),
            names_below: entry.node.map_or(0, |node| 1 + crate::walk::levels(node)),
            inodes: [source.stat.st_ino, seen.st_ino],
            bytes: source.stat.st_size as u64,
            modified: source.stat.st_mtime,
        };
        exchange.divide(&file, range, goes_on)
    }
}

/// Marks a dest whose content the kernel could not write when it was closed, and returns the failure.
#[cold]
fn not_closed(entry: &Entry<'_>, is_file: bool, source: &Stat, errno: Errno) -> Failure {
    if is_file {
        // If this fails, the dest keeps its new time, as after a failed cp.
        let _ = attributes::mark_incomplete_at(entry.written_at(), source);
    }
    entry.making_failure(Operation::Close, errno)
}
