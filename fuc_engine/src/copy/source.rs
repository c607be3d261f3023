//! Sources that are open.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, SeekFrom};
use rustix::io::Errno;

use super::context::{Context, Failure};
use super::diagnose;
use super::facts::Entry;
use crate::error::Operation;
use crate::sys::{self, Borrowed, Fd, SharedFd, Stat, Storage};

/// A source that is open.
pub(super) struct OpenSource {
    pub(super) fd: Fd,
    /// Stat of the source when it was opened.
    pub(super) stat: Stat,
    /// Says where the content is, if the source is a regular file.
    pub(super) storage: Storage,
}

impl OpenSource {
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn is_regular(&self) -> bool {
        sys::file_type(&self.stat) == FileType::RegularFile
    }

    pub(super) fn is_known_empty(&self) -> bool {
        self.storage.reports_true_size() && self.stat.st_size == 0
    }

    /// Returns the same open file with another descriptor.
    pub(super) fn duplicate(&self) -> Result<Self, Errno> {
        let Self { stat, storage, .. } = *self;
        let fd = sys::duplicate(self.fd())?;
        Ok(Self { fd, stat, storage })
    }

    /// Prepares to copy the content of a regular file once more.
    pub(super) fn rewind(&self) -> Result<(), Errno> {
        sys::seek(self.fd.as_fd(), SeekFrom::Start(0)).map(drop)
    }
}

/// A source that was opened, perhaps by another worker.
pub(super) struct SharedSource {
    fd: SharedFd,
    pub(super) stat: Stat,
    storage: Storage,
}

impl From<OpenSource> for SharedSource {
    fn from(OpenSource { fd, stat, storage }: OpenSource) -> Self {
        let fd = fd.into();
        Self { fd, stat, storage }
    }
}

impl SharedSource {
    pub(super) fn fd(&self) -> Result<Borrowed<'_>, Errno> {
        self.fd.borrow()
    }

    /// Returns the source for this worker.
    pub(super) fn take(self, ctx: &Context<'_>, entry: &Entry<'_>) -> Result<OpenSource, Failure> {
        let Self { fd, stat, storage } = self;
        let fd = ctx
            .descriptors
            .take(fd)
            .map_err(|errno| diagnose::reading(ctx, entry, Operation::OpenSource, errno))?;
        Ok(OpenSource { fd, stat, storage })
    }
}
