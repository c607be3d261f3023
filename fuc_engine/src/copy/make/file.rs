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
use crate::copy::content::{ContentCopy, ContentError, Divide, Moved, Next, OnPiece, Sink};
use crate::copy::context::Failure;
use crate::copy::decide::mode::Origin;
use crate::copy::dest::{Naming, OpenDest};
use crate::copy::durability::Durability;
use crate::copy::entry::Entry;
use crate::copy::facts::{CopyNode, FileId};
use crate::copy::options::Reflink;
use crate::error::{Error, Operation, Refusal};
use crate::node::{Dir, Side};
use crate::sys::{self, Blocking, Fd, Identity, Inode, Stat, WriteBack};

/// Opens a source to read it.
pub(crate) fn open_source(entry: &Entry<'_>, blocking: Blocking) -> Result<Fd, Errno> {
    let open = || sys::open_source(entry.source, blocking);
    entry.ctx.descriptors.making_room(open)
}

/// Returns `true` if a source that should be a regular file cannot be opened because it is a symbolic link, which
/// `O_NOFOLLOW` refuses, or a socket.
pub(crate) fn is_other_type(errno: Errno) -> bool {
    matches!(errno, Errno::LOOP | Errno::NXIO)
}

/// Opens a source that was seen as `seen`, to read its content. Waits for a writer of a FIFO. Returns what it is now.
pub(crate) fn open_seen(entry: &Entry<'_>, seen: &Stat) -> Result<(Fd, Stat), Failure> {
    let opened = if sys::is_regular(seen) {
        match open_source(entry, entry.blocking()).and_then(with_stat) {
            Ok((fd, stat)) if sys::is_regular(&stat) => Ok((fd, stat)),
            Err(errno) if !is_other_type(errno) => Err(errno),
            Ok(_) | Err(_) => return Err(entry.source_refused(Refusal::SourceReplaced)),
        }
    } else {
        let open = || open_source(entry, Blocking::MayBlock).and_then(with_stat);
        let changes = &entry.ctx.changes;
        changes.open_special(entry.source, open, |fd| (fd, *seen))
    };
    opened.map_err(|errno| Failure::making(entry.source_error(Operation::OpenSource, errno)))
}

fn with_stat(fd: Fd) -> Result<(Fd, Stat), Errno> {
    let stat = sys::stat_open(&fd)?;
    Ok((fd, stat))
}

/// Creates an empty file as the copy of an empty file. Returns `false` if the source is not empty,
/// or if its copy needs more than creation. Nothing was made in that case.
///
/// It takes the entry by value: no other function has the address of this one, so its fields stay in registers.
pub(crate) fn try_copy_empty(entry: Entry<'_>, scratch: &mut CopyScratch) -> bool {
    // A process that watches an older directory waits for a file to be closed.
    let is_new = |node: &&CopyNode| node.state.origin() == Origin::Created;
    let Some(node) = entry.node.filter(is_new) else {
        return false;
    };
    if !entry.ctx.policy.creates_empty_files {
        return false;
    }
    let Ok(stat) = entry.stat_source() else {
        return false;
    };
    let is_on_filesystem = |dir: Identity| dir.device() == FileId::of(&stat).device;
    let is_in = |side| node.dir.slot(side).identity().is_some_and(is_on_filesystem);
    let is_empty = sys::is_regular(&stat)
        && stat.st_size == 0
        && !entry.has_other_names(&stat)
        && is_in(Side::Source)
        && scratch
            .storage(stat.st_dev, entry.source.dir)
            .reports_true_size();
    scratch.expects_empty = is_empty;
    // The mode alone shows that this process may read the file.
    let is_own = || stat.st_uid == entry.ctx.policy.user;
    let may_read = stat.st_mode & 0o444 == 0o444 || stat.st_mode & 0o400 != 0 && is_own();
    if !is_empty || !may_read {
        return false;
    }
    let mode = stat.st_mode & (FileType::RegularFile.as_raw_mode() | 0o777);
    // On failure the dest exists, or the filesystem cannot make files this way. Opening both files
    // then shows which.
    if is_in(Side::Dest) || entry.ctx.is_node_native(node, entry.dest.dir) {
        return sys::create_node(entry.dest.dir, entry.dest.name, mode, 0).is_ok();
    }
    // As cp does it.
    let create = || sys::create_file(entry.dest.dir, entry.dest.name, mode);
    let created = entry.ctx.descriptors.making_room(create);
    created.and_then(sys::close_checked).is_ok()
}

/// The result of filling a dest.
pub(crate) enum Filled {
    /// The dest has all of its content.
    Complete {
        /// Bytes moved since the last piece.
        bytes: u64,
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

/// Fills the dest.
impl OpenDest<'_> {
    /// Gives the dest its SELinux context, before there is content to read. If that cannot be set, the content is copied all
    /// the same.
    pub(crate) fn label(&self) -> Result<(), AttributeError> {
        let policy = &self.entry.ctx.policy;
        match self.is_file && policy.sets_attributes {
            true => attributes::label(policy, &Inode::Opened(self.fd.as_fd())),
            false => Ok(()),
        }
    }

    /// Moves the content to the dest.
    pub(crate) fn move_content(&self, buffer: &mut Vec<u8>, on_piece: OnPiece<'_>) -> Moved {
        let Self { entry, source, .. } = *self;
        let options = entry.ctx.policy.options;
        let is_empty = source.is_known_empty()
            && options.reflink != Reflink::Always
            && !options.reports_methods;
        if options.attributes_only || is_empty {
            Moved::bytes(0)
        } else if !entry.ctx.changes.are_visible() {
            Moved::bytes(source.stat.st_size as u64)
        } else if options.drops_cache {
            self.move_past_cache(buffer, on_piece)
        } else {
            self.try_ladder(buffer, on_piece)
        }
    }

    /// Moves the content, and drops it from the page cache behind the copy.
    #[cold]
    fn move_past_cache(&self, buffer: &mut Vec<u8>, on_piece: OnPiece<'_>) -> Moved {
        let (source, dest) = (self.source.fd.as_fd(), self.fd.as_fd());
        // After holes, the source was read beyond these bytes. What was read ahead must stay.
        let mut bytes_read = 0;
        let write_back = |extent, read| {
            sys::drop_cache(source, read);
            if self.is_file {
                sys::write_back(dest, extent).map_err(ContentError::Write)?;
                sys::drop_cache(dest, None);
            }
            Ok(())
        };
        let mut written = Ok(());
        let moved = self.try_ladder(buffer, &mut |bytes| {
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

    fn try_ladder(&self, buffer: &mut Vec<u8>, on_piece: OnPiece<'_>) -> Moved {
        let is_divided = matches!(self.naming, Naming::Hidden(_, Replaces::Nothing));
        let sink = Sink {
            fd: self.fd.as_fd(),
            is_file: self.is_file,
            keeps_content: self.keeps_content,
            divide: is_divided.then_some(self),
        };
        let options = self.entry.ctx.policy.options;
        ContentCopy::new(self.source, sink, options, buffer, on_piece).copy_to_end()
    }

    /// Gives a dest with all of its content its attributes, then its name, and closes it.
    #[inline(always)]
    pub(crate) fn complete_dest(
        self,
        bytes: u64,
        labelled: Result<(), AttributeError>,
    ) -> Result<Filled, Failure> {
        let entry = self.entry;
        let mut attributes = None;
        if entry.ctx.policy.sets_attributes {
            if let Err((operation, errno)) = self.store_content() {
                return Err(self.give_up(operation, errno));
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
            return Err(self.give_up(Operation::Sync, errno));
        }
        let is_file = self.is_file;
        let has_name = match self.naming {
            Naming::Hidden(_, replaces) => self.close_and_rename(replaces)?,
            Naming::WhenComplete if !self.give_name() => false,
            Naming::WhenComplete | Naming::AtOnce => {
                let source = self.source.stat;
                sys::close_checked(self.fd)
                    .map_err(|errno| not_closed(entry, is_file, source, errno))?;
                // Another worker may write to it now.
                drop(self.writing);
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
            is_file,
            attributes: set.and(labelled),
        })
    }

    /// Stores the content before the dest gets the times of its source. Otherwise a power cut could leave it without its
    /// content, and a server could set the time again when it stores the content. Until then, another client could take the
    /// dest for complete.
    fn store_content(&self) -> Result<(), (Operation, Errno)> {
        let Self { entry, fd, .. } = self;
        let ctx = entry.ctx;
        if !ctx.policy.options.preserve.timestamps || !self.is_file {
            return Ok(());
        }
        if ctx.durability.is_some() {
            let written = sys::write_back(fd.as_fd(), WriteBack::All);
            written.map_err(|errno| (Operation::Sync, errno))?;
        }
        if !entry.has_native_dest() {
            let closed = sys::duplicate(fd.as_fd()).and_then(sys::close_checked);
            closed.map_err(|errno| (Operation::Close, errno))?;
        }
        Ok(())
    }

    /// Writes the dest to the disk, or leaves that to the end of the run. A file must be there before it replaces another
    /// one, and so must the first copy of a source whose other names replace files.
    fn sync(&self, durability: &Durability) -> Result<(), Errno> {
        let Self {
            entry, source, fd, ..
        } = self;
        let dests_are_replaced = entry.ctx.policy.options.rules.atomic;
        match matches!(self.naming, Naming::Hidden(_, Replaces::Files))
            || dests_are_replaced && entry.has_other_names(source.stat)
        {
            true => sys::sync_file(fd.as_fd()),
            false => durability.file_complete(fd.as_fd()),
        }
    }

    fn set_attributes(&self) -> Attributes {
        let (policy, origin) = (&self.entry.ctx.policy, self.origin);
        let (stat, dest) = (self.source.stat, Inode::Opened(self.fd.as_fd()));
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
                && !self.has_rights
                && !self.entry.has_native_dest()
                && dest.has_owner_of(stat),
            has_rights: self.has_rights,
        };
        transfer.set_all()
    }

    /// Cleans up after a call has shown that content may be lost, and returns the failure.
    #[cold]
    fn give_up(self, operation: Operation, errno: Errno) -> Failure {
        let entry = self.entry;
        self.keep_incomplete();
        entry.making_failure(operation, errno)
    }

    /// Cleans up after content was not moved, and returns the reason.
    #[cold]
    pub(crate) fn abandon(self, error: ContentError) -> Result<Filled, Failure> {
        let entry = self.entry;
        if let Some(mode) = self.mode_before {
            attributes::restore_permissions(mode, self.fd.as_fd());
        }
        let error = match error {
            ContentError::Cancelled => {
                return match self.discard() {
                    Ok(()) => Ok(Filled::Cancelled),
                    Err(error) => Err(Failure::making(error)),
                };
            }
            ContentError::Clone(errno) => {
                match self.naming {
                    // The dest is empty. It stays if it was created through a link. The failure to report is that of the
                    // clone.
                    Naming::AtOnce if self.origin == Origin::Created => {
                        let _ = self.remove();
                    }
                    Naming::AtOnce | Naming::WhenComplete => {}
                    Naming::Hidden(..) => self.remove_hidden(),
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
        let entry = self.entry;
        if !self.is_file {
            return Ok(());
        }
        let is_new = self.origin == Origin::Created;
        let name = self.naming.hidden_name().unwrap_or(entry.dest.name);
        let left = Error::refused(Refusal::LeftIncomplete, entry.path_beside(name)).at_dest();
        let removed = match self.naming {
            Naming::WhenComplete => Ok(()),
            _ => {
                self.mark_incomplete();
                match is_new {
                    true => self.remove(),
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
        if self.naming.hidden_name().is_some() {
            return self.remove_hidden();
        }
        self.mark_incomplete();
        // If the dest gets no name, it has no content. The error to report is that of moving it.
        let is_file = self.is_file;
        let has_name = match self.naming {
            Naming::WhenComplete => self.give_name(),
            Naming::AtOnce | Naming::Hidden(..) => true,
        };
        if is_file && has_name {
            let left = Error::refused(Refusal::LeftIncomplete, entry.path(Side::Dest));
            entry.ctx.report.warn(entry.operand, left.at_dest());
        }
    }

    /// Marks an incomplete dest that is a regular file.
    fn mark_incomplete(&self) {
        if self.is_file {
            let dest = &Inode::Opened(self.fd.as_fd());
            // If this fails, the dest keeps its new time, as after a failed cp.
            let _ = attributes::mark_incomplete(dest, self.source.stat);
        }
    }
}

impl Divide for OpenDest<'_> {
    #[cfg(not(feature = "distribute"))]
    fn divide(&self, _: Range<u64>, _: &mut dyn FnMut() -> bool) -> bool {
        false
    }

    #[cfg(feature = "distribute")]
    fn divide(&self, range: Range<u64>, goes_on: &mut dyn FnMut() -> bool) -> bool {
        let Self {
            entry, source, fd, ..
        } = self;
        let exchange = entry.ctx.policy.options.setup.exchange;
        let (Some(exchange), Some(hidden), Ok(seen)) =
            (exchange, self.naming.hidden_name(), sys::stat_open(fd))
        else {
            return false;
        };
        let file = crate::distribute::LargeCopy {
            source: entry.path(Side::Source),
            dest: entry.path_beside(hidden),
            names_below: entry
                .node
                .map_or(0, |node| 1 + node.place.names_up().count()),
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
