//! Descriptors, and the threads that may use them.
//!
//! ```text
//!   Fd         only the thread that has opened it uses it     neither `Send` nor `Sync`
//!   SharedFd   any thread borrows it, or takes it over        `Send` and `Sync`
//!   DirSlot    any thread pins it                             `Send` and `Sync`
//! ```
//!
//! A number means a file only together with a [`TableId`]. So the compiler refuses to move an [`Fd`] to a
//! thread with another table.

use std::fs::File;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use rustix::io::Errno;

use super::table::TableId;

/// An open file, and the owner of its descriptor in the table of this thread.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Fd {
    fd: OwnedFd,
    /// Makes the type neither `Send` nor `Sync`.
    thread: PhantomData<*const ()>,
}

impl Fd {
    /// Returns a descriptor that all threads may use, because those with private tables
    /// [keep](super::InheritedTable::replace) it.
    pub(crate) fn into_kept(self) -> OwnedFd {
        self.fd
    }
}

impl From<OwnedFd> for Fd {
    /// `fd` must be in the table of this thread.
    fn from(fd: OwnedFd) -> Self {
        let thread = PhantomData;
        Self { fd, thread }
    }
}

impl From<Fd> for File {
    fn from(fd: Fd) -> Self {
        fd.fd.into()
    }
}

impl AsFd for Fd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Fd {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl IntoRawFd for Fd {
    fn into_raw_fd(self) -> RawFd {
        self.fd.into_raw_fd()
    }
}

/// A descriptor that this thread can use.
#[derive(Debug)]
pub(crate) enum Borrowed<'a> {
    /// It is in the table of this thread.
    Original(BorrowedFd<'a>),
    /// A copy of one that is in another table.
    Copy(Fd),
}

impl AsFd for Borrowed<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Original(fd) => *fd,
            Self::Copy(fd) => fd.as_fd(),
        }
    }
}

/// An open file that other threads may use or take over.
#[derive(Debug)]
pub(crate) struct SharedFd {
    /// In `table`, not in that of any other thread.
    fd: RawFd,
    table: TableId,
}

impl SharedFd {
    /// Returns a descriptor of the file that this thread can use.
    ///
    /// # Errors
    /// As [`TableId::import`].
    pub(crate) fn borrow(&self) -> Result<Borrowed<'_>, Errno> {
        if !self.table.is_current() {
            return self
                .table
                .import(self.fd)
                .map(|fd| Borrowed::Copy(fd.into()));
        }
        // SAFETY: the descriptor is in the table of this thread, and is not closed while `self` lives.
        Ok(Borrowed::Original(unsafe {
            BorrowedFd::borrow_raw(self.fd)
        }))
    }

    /// Returns the descriptor for this thread.
    ///
    /// # Errors
    /// As [`TableId::import`], and the descriptor as it was.
    pub(crate) fn take(self) -> Result<Fd, (Errno, Self)> {
        if !self.table.is_current() {
            let copied = self.table.import(self.fd);
            return copied.map(Fd::from).map_err(|errno| (errno, self));
        }
        let taken = ManuallyDrop::new(self);
        taken.table.release();
        // SAFETY: this was the only owner, and the descriptor is in the table of this thread.
        Ok(unsafe { OwnedFd::from_raw_fd(taken.fd) }.into())
    }
}

#[cfg(test)]
impl SharedFd {
    /// Returns the number in the table of the thread that has opened it.
    pub(super) fn fd(&self) -> RawFd {
        self.fd
    }
}

impl From<Fd> for SharedFd {
    fn from(fd: Fd) -> Self {
        let table = TableId::current();
        table.retain();
        let fd = fd.into_raw_fd();
        Self { fd, table }
    }
}

impl Drop for SharedFd {
    fn drop(&mut self) {
        self.table.close(self.fd);
    }
}
