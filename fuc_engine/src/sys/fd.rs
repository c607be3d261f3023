//! Descriptors, the tables that they are in, and the threads that may use them.
//!
//! ```text
//!   Fd         only the thread that has opened it uses it     neither `Send` nor `Sync`
//!   SharedFd   any thread duplicates it, or takes it over     `Send` and `Sync`
//!   DirSlot    any thread pins it                             `Send` and `Sync`
//! ```
//!
//! A started thread may have a private table, so that it does not wait for the lock of a table that all threads share. A
//! number means a file only together with a [`TableId`]. So the compiler refuses to move an [`Fd`] to a thread with another
//! table.
//!
//! ```text
//!   thread A                                thread B
//!   --------                                --------
//!   opens a directory: 7 in A's table
//!                                           uses it: copies A's 7 into its own table
//!                                           is its last user: leaves 7 to A
//!   after its task: closes 7
//! ```
//!
//! Invariant: a descriptor is used and closed only by threads that use its table. A table is free for another
//! thread when no thread uses it, and no [`SharedFd`] or [`DirSlot`](super::DirSlot) refers to it.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize};
use std::sync::{Mutex, OnceLock};

use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use rustix::thread::gettid;

use super::calls;
use super::filesystem::Storage;
use super::process::has_seccomp;
use crate::sync::lock;

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
    /// [keep](super::InheritedTable::replace_table) it.
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

/// Returns a second descriptor of the same open file or directory; both share one position in it.
pub(crate) fn duplicate(file: BorrowedFd<'_>) -> Result<Fd, Errno> {
    fcntl_dupfd_cloexec(file, FIRST).map(Fd::from)
}

/// An open file that other threads may use or take over.
#[derive(Debug)]
pub(crate) struct SharedFd {
    /// In `table`, not in that of any other thread.
    fd: RawFd,
    table: TableId,
}

impl SharedFd {
    /// Returns a second descriptor of the file, for this thread.
    ///
    /// # Errors
    /// As [`TableId::import`].
    pub(crate) fn duplicate(&self) -> Result<Fd, Errno> {
        if !self.table.is_current() {
            return self.table.import(self.fd).map(Fd::from);
        }
        // SAFETY: the descriptor is in the table of this thread, and is not closed while `self` lives.
        let fd = unsafe { BorrowedFd::borrow_raw(self.fd) };
        duplicate(fd)
    }

    /// Returns the descriptor if it is in the table of this thread.
    ///
    /// # Errors
    /// The descriptor as it was, if it is in another table.
    pub(crate) fn take_over(self) -> Result<Fd, Self> {
        if !self.table.is_current() {
            return Err(self);
        }
        let taken = ManuallyDrop::new(self);
        taken.table.release();
        // SAFETY: this was the only owner, and the descriptor is in the table of this thread.
        Ok(unsafe { OwnedFd::from_raw_fd(taken.fd) }.into())
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

/// The most tables. Further threads share the table of the thread that has started them.
const TABLES: u8 = u8::MAX;
/// The first descriptor after stdin, stdout and stderr.
const FIRST: RawFd = 3;
/// The end of the descriptors that a new table has copies of. Linux copies this number at least.
const COPIED: RawFd = 64;
/// `PIDFD_THREAD`, since Linux 6.9.
const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL as u32);

/// The number of a descriptor table, which is less than [`TABLES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableId(pub(super) u8);

/// The state of a table.
struct State {
    /// Number of threads that use the table, or are being started by such a thread. The thread that calls a run is not
    /// counted.
    users: AtomicUsize,
    /// Number of references to descriptors in the table. Those in the process's table are not counted.
    references: AtomicUsize,
    /// The first thread that used the table.
    thread: AtomicI32,
    /// `true` if there may be orphans.
    has_orphans: AtomicBool,
    /// Descriptors that threads with other tables have left to a user of this one.
    orphans: Mutex<Vec<RawFd>>,
}

static STATES: [State; TABLES as usize] = [const {
    State {
        users: AtomicUsize::new(0),
        references: AtomicUsize::new(0),
        thread: AtomicI32::new(0),
        has_orphans: AtomicBool::new(false),
        orphans: Mutex::new(Vec::new()),
    }
}; TABLES as usize];

thread_local! {
    static CURRENT: Cell<TableId> = const { Cell::new(TableId::OF_PROCESS) };
    /// Threads from whose tables this one has copied descriptors.
    static OWNERS: RefCell<Vec<(Pid, OwnedFd)>> = const { RefCell::new(Vec::new()) };
}

impl TableId {
    /// Threads without a private table share it.
    const OF_PROCESS: Self = Self(0);

    /// Returns the table of the calling thread.
    #[inline]
    pub(super) fn current() -> Self {
        CURRENT.get()
    }

    /// Returns `true` if this is the table of the calling thread.
    #[inline]
    pub(super) fn is_current(self) -> bool {
        self == Self::current()
    }

    fn state(self) -> &'static State {
        &STATES[usize::from(self.0)]
    }

    /// Returns a free table, which then has one user. Returns `None` if there is none.
    fn take_free() -> Option<Self> {
        static CLAIMING: Mutex<()> = Mutex::new(());
        let _one_at_a_time = lock(&CLAIMING);
        // Acquire: pairs with the Releases of `release`, `end_use` and `InheritedTable`, so all uses are over.
        let is_free = |table: &Self| {
            let State {
                users, references, ..
            } = table.state();
            users.load(Acquire) == 0 && references.load(Acquire) == 0
        };
        let table = (1..TABLES).map(Self).find(is_free)?;
        let state = table.state();
        // The last user may have been a thread that was being started. Then descriptors may have been left to the table.
        lock(&state.orphans).clear();
        state.has_orphans.store(false, Relaxed);
        state.users.store(1, Relaxed);
        Some(table)
    }

    /// Counts one more reference to a descriptor.
    #[inline]
    pub(super) fn retain(self) {
        if self != Self::OF_PROCESS {
            // Relaxed: the calling thread uses the table, so it is not free.
            self.state().references.fetch_add(1, Relaxed);
        }
    }

    /// Counts one reference less.
    #[inline]
    pub(super) fn release(self) {
        if self != Self::OF_PROCESS {
            // Release: pairs with the Acquire of `take_free`.
            self.state().references.fetch_sub(1, Release);
        }
    }

    /// Copies a descriptor of this table into that of the calling thread.
    ///
    /// # Errors
    /// The reason why the kernel does not copy it, such as `EMFILE`.
    #[cold]
    pub(super) fn import(self, fd: RawFd) -> Result<OwnedFd, Errno> {
        let thread = match self {
            Self::OF_PROCESS => Some(getpid()),
            _ => Pid::from_raw(self.state().thread.load(Relaxed)),
        };
        let thread = thread.ok_or(Errno::SRCH)?;
        OWNERS.with_borrow_mut(|owners| {
            let known = owners.iter().position(|(owner, _)| *owner == thread);
            let index = match known {
                Some(index) => index,
                None => {
                    owners.push((thread, pidfd_open(thread, THREAD)?));
                    owners.len() - 1
                }
            };
            pidfd_getfd(&owners[index].1, fd, PidfdGetfdFlags::empty())
        })
    }

    /// Closes a descriptor of the table, or leaves it to a user of the table. The caller gives up a reference.
    #[inline]
    pub(super) fn close(self, fd: RawFd) {
        if self.is_current() {
            // SAFETY: the caller was the only owner, and the descriptor is in the table of this thread.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
            self.release();
        } else {
            self.leave_orphan(fd);
        }
    }

    /// Leaves a descriptor to a user of the table. The caller gives up a reference.
    #[cold]
    fn leave_orphan(self, fd: RawFd) {
        let state = self.state();
        let mut orphans = lock(&state.orphans);
        // The last user has closed everything. Relaxed: `end_use` counts under the lock, and `take_free` drops an orphan
        // that is left while an `InheritedTable` ends.
        let is_gone = self != Self::OF_PROCESS && state.users.load(Relaxed) == 0;
        if !is_gone {
            orphans.push(fd);
            // Relaxed: the lock publishes the descriptor. A user that looks too early looks again later.
            state.has_orphans.store(true, Relaxed);
        }
        drop(orphans);
        self.release();
    }

    #[cold]
    fn close_orphans(self) {
        let state = self.state();
        let mut orphans = lock(&state.orphans);
        state.has_orphans.store(false, Relaxed);
        let left = std::mem::take(&mut *orphans);
        // Closing may wait for a server, which must not happen under the lock.
        drop(orphans);
        for fd in left {
            // SAFETY: the thread that left it was the only owner, and it is in the table of this thread.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }

    /// Counts one thread less that uses the table. The last one closes all descriptors of a private table, because the
    /// kernel does that only after the thread was joined.
    fn end_use(self) {
        self.close_orphans();
        let state = self.state();
        // Under the lock, so that no descriptor is left to a table without users.
        let orphans = lock(&state.orphans);
        // Release: pairs with the Acquire of `take_free`.
        let was_last = state.users.fetch_sub(1, Release) == 1;
        drop(orphans);
        if was_last && self != Self::OF_PROCESS {
            calls::close_from(FIRST);
        }
    }
}

/// Returns `true` if the kernel lets one thread copy descriptors of another.
fn can_import() -> bool {
    static CAN_IMPORT: OnceLock<bool> = OnceLock::new();
    *CAN_IMPORT.get_or_init(|| {
        // A sandbox may end the process because of an unusual call.
        if has_seccomp() {
            return false;
        }
        let copied = pidfd_open(gettid(), THREAD)
            .and_then(|thread| pidfd_getfd(&thread, thread.as_raw_fd(), PidfdGetfdFlags::empty()));
        copied.is_ok()
    })
}

/// Closes the descriptors that other threads have left to this one.
#[inline]
pub(crate) fn close_orphans() {
    let table = TableId::current();
    if table.state().has_orphans.load(Relaxed) {
        table.close_orphans();
    }
}

/// Closes what the calling thread keeps open because of a run, when all other threads of the run have ended.
pub(crate) fn end_run() {
    close_orphans();
    OWNERS.with_borrow_mut(Vec::clear);
}

/// Without its feature, the permission cannot be made.
#[cfg(not(feature = "private-tables"))]
#[derive(Clone, Copy, Debug)]
pub(crate) enum PrivateTables {}

/// The permission to give threads private descriptor tables.
///
/// In a process, all threads share one table of descriptors, and each `open` and `close` takes its lock. With private
/// tables, threads do not wait for each other there. A started thread then has a table without the descriptors above 2
/// that others have opened.
#[cfg(feature = "private-tables")]
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct PrivateTables(());

#[cfg(feature = "private-tables")]
impl PrivateTables {
    /// Gives the permission.
    ///
    /// It is unsafe because the number of a descriptor means another file in each table. No call can find out whether other
    /// code of the process still uses a number. Only the author of a whole program knows all of its threads, so the
    /// permission is for programs, and not for libraries.
    ///
    /// # Safety
    /// The observer, the filter and signal handlers run on the engine's threads. The caller promises:
    ///
    /// - They use no descriptor above 2 but those that they open and close in the same call. The files that the engine
    ///   opens for the filter are among these.
    /// - They start no threads.
    /// - The run is called on a thread that shares the table of the process's main thread, which ends after the run.
    /// - During the run, no other thread writes, locks or closes a file on a server with a descriptor below 64.
    ///
    /// Otherwise, a number may mean another file, which is then closed or written. With files on servers, errors may
    /// be lost.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

/// The table of a thread that starts another one. At first, both share it.
pub(crate) struct InheritedTable(TableId);

impl InheritedTable {
    /// Returns the table of the calling thread, for a thread that it starts.
    pub(crate) fn of_this_thread() -> Self {
        let table = TableId::current();
        // Relaxed: the calling thread uses the table, so it is not free.
        table.state().users.fetch_add(1, Relaxed);
        Self(table)
    }

    /// Lets the calling thread, which was started with this table, share it until the result is dropped.
    pub(crate) fn share_table(self) -> ThreadUse {
        let table = ManuallyDrop::new(self).0;
        CURRENT.set(table);
        ThreadUse(table)
    }

    /// Gives the calling thread, which was started with this table, a private one until the result is dropped. The
    /// private table has the descriptors 0 to 2, those of `kept`, and copies of files that are being
    /// [written](close_copies). If that is not possible without harm, the thread keeps this table.
    ///
    /// The thread must end after the result is dropped.
    pub(crate) fn replace_table(
        self,
        _permit: PrivateTables,
        kept: &[BorrowedFd<'_>],
    ) -> ThreadUse {
        let output = [std::io::stdout().as_raw_fd(), std::io::stderr().as_raw_fd()];
        let may_write = |number| may_write_when_closed(number) == Some(true);
        let is_possible = kept.iter().all(|fd| fd.as_raw_fd() < COPIED)
            && can_import()
            // The end of the thread closes its copies of them.
            && !output.into_iter().any(may_write);
        let claimed = is_possible.then(TableId::take_free).flatten();
        let Some(table) = claimed else {
            return self.share_table();
        };
        if calls::unshare_descriptors_below(COPIED).is_err() {
            // Relaxed: nothing has used the table.
            table.state().users.store(0, Relaxed);
            return self.share_table();
        }
        close_copies(kept);
        let thread = gettid().as_raw_nonzero().get();
        // Relaxed: whatever hands a descriptor of this table to another thread publishes it.
        table.state().thread.store(thread, Relaxed);
        CURRENT.set(table);
        ThreadUse(table)
    }
}

impl Drop for InheritedTable {
    fn drop(&mut self) {
        // Release: pairs with the Acquire of `take_free`.
        self.0.state().users.fetch_sub(1, Release);
    }
}

/// Closes the copies that a new table has of the descriptors of another one, except those of `kept`.
///
/// A copy that may write when it is closed stays open until the thread ends. By then, the engine has closed the
/// original, and has seen the errors.
fn close_copies(kept: &[BorrowedFd<'_>]) {
    let is_kept = |number: RawFd| kept.iter().any(|fd| fd.as_raw_fd() == number);
    for number in FIRST..COPIED {
        if !is_kept(number) && may_write_when_closed(number) == Some(false) {
            // SAFETY: the copy is open, and nothing else knows of it.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }
}

/// Returns `true` if closing a copy of an open descriptor may write to a file, on a filesystem that writes when files
/// are closed. The owner of the original would not see an error of that. Returns `None` if the number is not that of an
/// open descriptor.
fn may_write_when_closed(number: RawFd) -> Option<bool> {
    let flags = calls::status_flags(number)?;
    // The filesystem is not asked about other files, because its server may not answer.
    if flags & libc::O_PATH != 0 || flags & libc::O_ACCMODE == libc::O_RDONLY {
        return Some(false);
    }
    // SAFETY: the descriptor is open, and not closed by another thread.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    let file_type = fstat(fd).map(|stat| FileType::from_raw_mode(stat.st_mode));
    let may_be_file = matches!(file_type, Ok(FileType::RegularFile) | Err(_));
    Some(may_be_file && Storage::of(fd) != Storage::Native)
}

/// The use of a table by the calling thread. It ends when this is dropped.
pub(crate) struct ThreadUse(TableId);

impl Drop for ThreadUse {
    fn drop(&mut self) {
        OWNERS.with_borrow_mut(Vec::clear);
        self.0.end_use();
    }
}

#[cfg(test)]
mod tests;
