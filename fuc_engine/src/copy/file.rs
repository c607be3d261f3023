//! Regular files.
//!
//! ```text
//!   empty, by the look of the last one:  stat, create_node           2 calls
//!   with data:        open, fstat, create, copy_range, close, close  6 calls
//!   the dest exists:  the careful path: `open_existing`
//! ```
//!
//! The files of a directory are alike, so the last one decides which way is
//! tried first; a wrong guess costs one call. Copying 50 000 empty files by
//! `stat` and `mknodat` took 0.67 times as long as by opening both (tmpfs).

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::Reflink;
use super::attributes::Age;
use super::backup::BackupNumbers;
use super::data::{DataCopy, DataError, Dest, Moved, Source, Ways};
use super::item::Item;
use super::links::LinkedTo;
use super::node::CopyNode;
use super::settle::Ground;
use super::tree::{CopyTask, Copying};
use crate::error::{Error, Operation, Refusal};
use crate::node::Side;
use crate::observer::CopyMethod;
use crate::sys::{self, Blocking, CWD, Identity, Inode, Stat, Symlinks};
use crate::walk::{self, Task, Walker};

/// Files from this size on are tasks of their own, so that several workers can
/// share a directory of large files.
const LARGE: u64 = 4 << 20;
/// Bytes that cost about as much as creating one more file.
const BYTES_PER_WORK: u64 = 16 << 10;

/// What a worker remembers from file to file.
#[derive(Default)]
pub(super) struct CopyScratch {
    /// The last file was empty.
    expects_empty: bool,
    /// The entry that is copied has turned out to be a directory, which was queued.
    pub(super) queued: bool,
    /// The device asked last, and whether its sizes are to be believed.
    truthful: Option<(u64, bool)>,
    buffer: Vec<u8>,
    pub(super) linked_to: Option<LinkedTo>,
    pub(super) backup_numbers: BackupNumbers,
}

impl CopyScratch {
    fn is_truthful(&mut self, stat: &Stat, file: BorrowedFd<'_>) -> bool {
        match self.truthful {
            Some((device, truthful)) if device == stat.st_dev => truthful,
            _ => {
                let truthful = sys::reports_true_size(file);
                self.truthful = Some((stat.st_dev, truthful));
                truthful
            }
        }
    }
}

/// A large file whose content is still to be copied.
pub(super) struct LargeFile {
    opened: Opened,
    dest: OpenDest,
    node: CopyNode,
    name: Box<CStr>,
    /// What has been renamed to make room for it.
    backup: Option<Box<CStr>>,
}

impl LargeFile {
    const DESCRIPTORS: usize = 2;
}

/// A dest that is open and empty.
pub(super) struct OpenDest {
    pub(super) fd: OwnedFd,
    /// A regular one, so it can be longer than what is written to it.
    pub(super) is_file: bool,
    pub(super) age: Age,
}

impl OpenDest {
    pub(super) fn new_file(fd: OwnedFd) -> Self {
        Self {
            fd,
            is_file: true,
            age: Age::New,
        }
    }
}

/// A source that was opened, and what it was then.
struct Opened {
    fd: OwnedFd,
    stat: Stat,
    is_truthful: bool,
}

impl Opened {
    fn is_large(&self) -> bool {
        self.stat.st_size as u64 >= LARGE
    }
}

impl Copying<'_> {
    /// Copies what is, or was when it was listed, a regular file.
    pub(super) fn copy_file(
        &self,
        item: &Item<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Error> {
        if worker.scratch.own.expects_empty
            && self.creates_empty_files
            && self.try_copy_empty(item, worker)?
        {
            return Ok(());
        }
        let opened = self.open_source(item, Blocking::Never, worker);
        let opened = match opened {
            Ok(opened) => opened,
            // Not a regular file any more.
            Err(Errno::LOOP | Errno::NXIO) => return self.copy_whatever(item, worker),
            Err(errno) => return Err(self.reading_error(item, Operation::OpenSource, errno)),
        };
        if sys::file_type(&opened.stat) != FileType::RegularFile {
            return self.copy_whatever(item, worker);
        }
        self.copy_opened(item, opened, worker)
    }

    /// Copies the content of what is, or was when it was looked at, a regular file.
    pub(super) fn copy_content(
        &self,
        item: &Item<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Error> {
        let opened = self
            .open_source(item, item.blocking(), worker)
            .map_err(|errno| self.reading_error(item, Operation::OpenSource, errno))?;
        if item.node.is_some() && sys::file_type(&opened.stat) != FileType::RegularFile {
            let path = self.item_path(item, Side::Source);
            return Err(Error::refused(Refusal::SourceReplaced, path));
        }
        self.copy_opened(item, opened, worker)
    }

    /// Copies what is read from a FIFO or a device, which is waited for.
    pub(super) fn copy_special_content(
        &self,
        item: &Item<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Error> {
        let opened = self
            .open_source(item, Blocking::MayBlock, worker)
            .map_err(|errno| self.reading_error(item, Operation::OpenSource, errno))?;
        let is_in_the_way =
            item.symlinks == Symlinks::NoFollow && item.stat_dest(Symlinks::NoFollow).is_ok();
        if is_in_the_way {
            self.make_way(item, Operation::CreateFile)?;
        }
        self.copy_opened(item, opened, worker)
    }

    /// Creates an empty file as the copy of an empty file; `false` if it takes more than that.
    fn try_copy_empty(
        &self,
        item: &Item<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<bool, Error> {
        let Ok(stat) = item.stat_source() else {
            return Ok(false);
        };
        let is_empty = sys::file_type(&stat) == FileType::RegularFile
            && stat.st_size == 0
            && !self.has_other_names(item, &stat)
            && item.is_on_the_device_of_its_directory(&stat)
            && worker.scratch.own.is_truthful(&stat, item.source_dir);
        worker.scratch.own.expects_empty = is_empty;
        if !is_empty || !self.may_read(&stat) {
            return Ok(false);
        }
        let mode = stat.st_mode & (FileType::RegularFile.as_raw_mode() | 0o777);
        if sys::create_node(item.dest_dir, item.dest_name, mode, 0).is_err() {
            // It exists, or the filesystem makes no files this way: the other way tells.
            return Ok(false);
        }
        self.count_copied(0, worker);
        self.tell_copied_by(item, CopyMethod::default());
        Ok(true)
    }

    /// Whether the mode alone shows that opening would not be refused.
    fn may_read(&self, stat: &Stat) -> bool {
        stat.st_mode & 0o444 == 0o444 || stat.st_mode & 0o400 != 0 && stat.st_uid == self.user
    }

    fn open_source(
        &self,
        item: &Item<'_>,
        blocking: Blocking,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Opened, Errno> {
        let fd = self.descriptors.making_room(|| {
            sys::open_source(item.source_dir, item.source_name, item.symlinks, blocking)
        })?;
        let stat = sys::stat_open(&fd)?;
        let is_truthful = sys::file_type(&stat) == FileType::RegularFile
            && worker.scratch.own.is_truthful(&stat, fd.as_fd());
        Ok(Opened {
            fd,
            stat,
            is_truthful,
        })
    }

    fn copy_opened(
        &self,
        item: &Item<'_>,
        source: Opened,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Error> {
        worker.scratch.own.expects_empty = source.is_truthful && source.stat.st_size == 0;
        let stat = source.stat;
        self.copy_or_link(item, &stat, worker, |worker| {
            self.copy_into_dest(item, source, worker)
        })
    }

    /// Returns what was written to, if its source may be met again.
    fn copy_into_dest(
        &self,
        item: &Item<'_>,
        source: Opened,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Option<Identity>, Error> {
        let mode = self.creation_mode(source.stat.st_mode);
        let created = self
            .descriptors
            .making_room(|| sys::create_file(item.dest_dir, item.dest_name, mode));
        let dest = match created {
            Ok(dest) => OpenDest::new_file(dest),
            Err(Errno::EXIST) => self.open_existing(item, &source.stat)?,
            Err(errno) => return Err(self.create_error(item, errno)),
        };
        match item.node {
            Some(node)
                if self.is_own_task(item, &source)
                    && self.descriptors.lend(LargeFile::DESCRIPTORS) =>
            {
                node.retain();
                let name = item.source_name.into();
                let file = LargeFile {
                    opened: source,
                    dest,
                    node: Arc::clone(node),
                    name,
                    backup: item.ground.backup().map(Into::into),
                };
                worker.push(Task::Own(CopyTask::Large(Box::new(file))));
                Ok(None)
            }
            _ => {
                let written = if self.has_other_names(item, &source.stat) {
                    let stat = sys::stat_open(&dest.fd);
                    let stat =
                        stat.map_err(|errno| self.dest_error(item, Operation::Stat, errno))?;
                    Some(sys::identity(&stat))
                } else {
                    None
                };
                self.fill(item, &source, dest, worker)?;
                Ok(written)
            }
        }
    }

    /// Whether others may want to do it. What is cloned is done at once.
    fn is_own_task(&self, item: &Item<'_>, source: &Opened) -> bool {
        source.is_large()
            && self.options().reflink != Reflink::Always
            && !self.options().attributes_only
            // Who waits for the first copy is served when this returns.
            && !self.has_other_names(item, &source.stat)
    }

    /// Copies the content, and closes the dest.
    fn fill(
        &self,
        item: &Item<'_>,
        source: &Opened,
        dest: OpenDest,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Error> {
        // Before there is anything to read. Without it the content is copied all the same.
        let labelled = if dest.is_file {
            self.give_context(&Inode::Opened(dest.fd.as_fd()))
        } else {
            Ok(())
        };
        let is_known_empty = source.is_truthful && source.stat.st_size == 0;
        let moved = if self.options().attributes_only
            || is_known_empty && self.options().reflink != Reflink::Always
        {
            Moved::nothing()
        } else {
            let moved = self.move_data(source, &dest, worker);
            moved.map_err(|error| self.data_error(item, &dest, error))?
        };
        let finished = (dest.fd.as_fd(), dest.age);
        self.finish_file(item, (source.fd.as_fd(), &source.stat), finished)?;
        sys::close_checked(dest.fd)
            .map_err(|errno| self.dest_error(item, Operation::Close, errno))?;
        labelled.map_err(|(operation, error)| self.dest_error(item, operation, error.errno()))?;
        self.count_copied(moved.bytes, worker);
        self.tell_copied_by(item, moved.method);
        Ok(())
    }

    /// The bytes that are returned were moved since the last count.
    fn move_data(
        &self,
        source: &Opened,
        dest: &OpenDest,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Moved, DataError> {
        let mut buffer = std::mem::take(&mut worker.scratch.own.buffer);
        let from = Source::new(source.fd.as_fd(), &source.stat, source.is_truthful);
        let to = Dest {
            fd: dest.fd.as_fd(),
            is_file: dest.is_file,
        };
        let ways = Ways::new(self.options());
        let mut counted = 0;
        let moved = DataCopy::new(from, to, ways, &mut buffer).run(&mut |moved| {
            counted += moved;
            worker.scratch.tally.bytes += moved;
            self.report.publish(&mut worker.scratch.tally);
            worker.count(moved / BYTES_PER_WORK);
            worker.checkpoint();
        });
        worker.scratch.own.buffer = buffer;
        moved.map(|moved| Moved {
            bytes: moved.bytes.saturating_sub(counted),
            ..moved
        })
    }

    fn data_error(&self, item: &Item<'_>, dest: &OpenDest, error: DataError) -> Error {
        match error {
            DataError::Clone(errno) => {
                if dest.age == Age::New && !self.is_through_link(item) {
                    // It is empty and serves nobody; what matters is why.
                    let _ = sys::unlink(item.dest_dir, item.dest_name);
                }
                self.dest_error(item, Operation::Clone, errno)
                    .with_other(self.item_path(item, Side::Source))
            }
            DataError::Read(errno) => self.source_error(item, Operation::Read, errno),
            DataError::Write(errno) => self.dest_error(item, Operation::Write, errno),
            DataError::Copy(errno) => self
                .source_error(item, Operation::CopyData, errno)
                .with_other(self.item_path(item, Side::Dest)),
        }
    }

    pub(super) fn copy_large(&self, file: LargeFile, worker: &mut Walker<'_, '_, Self>) {
        let LargeFile {
            opened,
            dest,
            node,
            name,
            backup,
        } = file;
        let item = Item {
            // Only its paths are needed: both files are open.
            source_dir: CWD,
            dest_dir: CWD,
            source_name: &name,
            dest_name: &name,
            symlinks: Symlinks::NoFollow,
            ground: Ground::Free {
                backup: backup.as_deref(),
            },
            node: Some(&node),
            operand: node.place.operand,
        };
        if let Err(error) = self.fill(&item, &opened, dest, worker) {
            self.report_item(&item, error);
            self.restore_backup_in(&node, &item);
        }
        drop(opened);
        self.descriptors.take_back(LargeFile::DESCRIPTORS);
        walk::leave(self, Some(node), worker);
    }

    /// Counts and tells what is complete.
    pub(super) fn copied(&self, item: &Item<'_>, bytes: u64, worker: &mut Walker<'_, '_, Self>) {
        self.count_copied(bytes, worker);
        self.tell_copied(item);
    }

    #[inline]
    fn count_copied(&self, bytes: u64, worker: &mut Walker<'_, '_, Self>) {
        worker.scratch.tally.entries += 1;
        worker.scratch.tally.bytes += bytes;
        worker.count(1 + bytes.min(sys::PIECE as u64) / BYTES_PER_WORK);
    }
}
