//! Keeps the number of open directories within a budget, and reopens closed ones.
//!
//! Unless the budget is small, its first half is *resident*: directories opened within
//! it are never evicted and cost one atomic addition each. Directories opened beyond it
//! are listed. To make room for one more, the oldest of them that no worker uses is
//! closed. Of a depth-first walk, that is the one needed last.
//!
//! An evicted directory is opened again through `..` of the child that is about to be
//! closed, or by a walk down from the nearest open ancestor. Either way it must be the
//! directory that was evicted, by its identity.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};

use rustix::io::Errno;

use crate::node::{Dir, Node, Side};
use crate::sync::{Mutex, MutexGuard};
use crate::sys::{self, DirSlot, Fd, Pinned, SharedFd, Symlinks};

/// The budget until the limit on open files is known. A run that opens no more
/// directories than this saves the system calls that ask for the limit.
const INITIAL_BUDGET: usize = 6;
/// With fewer descriptors than this, no directory is resident, so that each of them can
/// be evicted.
const FEW_DESCRIPTORS: usize = 256;
/// The smallest budget: a source and a dest.
const MIN_BUDGET: usize = 2;
/// The largest budget. Only a tree deeper than this could use a larger one.
const MAX_BUDGET: usize = 4096;
/// The most descriptors that waiting tasks may hold, if a quarter of the budget is not
/// even fewer.
const MAX_LENT: usize = 64;
/// The most directories that one worker opens outside the budget: a source, a dest, and
/// the directory that it steps through to reopen another.
const OPEN_PER_WORKER: usize = 3;
/// Free descriptors per worker. A worker pins up to four directories and opens
/// [`OPEN_PER_WORKER`] others, and half of the budget cannot be evicted.
const DESCRIPTORS_PER_WORKER: usize = 12;

/// Finds the directories of a walk by their names, also on the way down to an evicted one.
pub(crate) trait Roots {
    /// Opens an operand, which must be a directory, by its own path.
    fn open_operand(&self, operand: u32, side: Side) -> Result<Fd, Errno>;

    /// Opens a directory in `dir` in the same way as when it was entered.
    fn open_below(&self, dir: BorrowedFd<'_>, name: &CStr, _side: Side) -> Result<Fd, Errno> {
        sys::open_directory(dir, name, Symlinks::NoFollow)
    }
}

/// The open directories of a run.
pub(crate) struct Descriptors<D: Dir> {
    open: AtomicUsize,
    /// If more directories than this are open, the next one is listed in `evictable`.
    resident: AtomicUsize,
    /// If more directories than this are open, one is evicted for each that is opened.
    budget: AtomicUsize,
    /// Descriptors, counted in `open` too, that waiting tasks hold and that cannot be evicted.
    lent: AtomicUsize,
    /// Open directories that may be evicted, oldest first. The entry of a closed directory stays
    /// until it is swept.
    evictable: Mutex<VecDeque<(Arc<Node<D>>, Side)>>,
}

impl<D: Dir> Descriptors<D> {
    pub(crate) fn new() -> Self {
        let resident = if are_few() { 0 } else { INITIAL_BUDGET };
        Self {
            open: AtomicUsize::new(0),
            resident: AtomicUsize::new(resident),
            budget: AtomicUsize::new(INITIAL_BUDGET),
            lent: AtomicUsize::new(0),
            evictable: Mutex::new(VecDeque::new()),
        }
    }

    /// Returns `true` if the number of open directories is so large that some may be evicted soon.
    pub(crate) fn are_short(&self) -> bool {
        self.open.load(Relaxed) > self.resident.load(Relaxed)
    }

    /// Returns `true` if a waiting task may keep a descriptor, until [`take_back`](Self::take_back). It cannot be evicted, so
    /// only few are lent.
    pub(crate) fn lend(&self) -> bool {
        if self.budget.load(Relaxed) == INITIAL_BUDGET {
            self.set_budget(self.open.load(Relaxed));
        }
        let most = (self.budget.load(Relaxed) / 4).min(MAX_LENT);
        if self.lent.fetch_add(1, Relaxed) >= most {
            self.lent.fetch_sub(1, Relaxed);
            return false;
        }
        self.open.fetch_add(1, Relaxed);
        true
    }

    /// Counts a lent descriptor as closed.
    pub(crate) fn take_back(&self) {
        self.lent.fetch_sub(1, Relaxed);
        self.open.fetch_sub(1, Relaxed);
    }

    /// Runs `open`. If the process is out of descriptors, evicts a directory and tries again.
    // If it is not inlined into the creation of a dest, that takes 35 more instructions for each file.
    #[inline(always)]
    pub(crate) fn making_room<T>(
        &self,
        mut open: impl FnMut() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        loop {
            match open() {
                Err(Errno::MFILE | Errno::NFILE) if self.evict_oldest() => sys::close_orphans(),
                result => return result,
            }
        }
    }

    /// Returns a descriptor that another worker may have opened.
    pub(crate) fn take_over(&self, fd: SharedFd) -> Result<Fd, Errno> {
        let taken = fd.take_over();
        taken.or_else(|fd| self.making_room(|| fd.duplicate()))
    }

    /// Stores and pins a new descriptor of `node`'s directory, and makes room for it. Returns
    /// `None` if another worker has reopened the directory first.
    fn install<'n>(&self, node: &'n Arc<Node<D>>, side: Side, fd: Fd) -> Option<Pinned<'n>> {
        let pin = node.dir.slot(side).install(fd).ok()?;
        let open = self.open.fetch_add(1, Relaxed) + 1;
        if open > self.resident.load(Relaxed) {
            self.register(node, side, open);
        }
        Some(pin)
    }

    /// Stores the descriptor of a new node's directory, and makes room for it.
    pub(crate) fn adopt(&self, node: &Arc<Node<D>>, side: Side, fd: Fd) {
        let pin = self.install(node, side, fd);
        debug_assert!(pin.is_some(), "BUG: a new node had a descriptor");
    }

    /// Lists a directory as evictable, and evicts others if too many are open.
    #[cold]
    fn register(&self, node: &Arc<Node<D>>, side: Side, open: usize) {
        let budget = self.budget.load(Relaxed);
        if budget == INITIAL_BUDGET {
            self.set_budget(open);
            if open <= self.resident.load(Relaxed) {
                return;
            }
        }
        let mut evictable = self.lock();
        evictable.push_back((Arc::clone(node), side));
        // The entries of closed directories keep nodes in memory. Sweep them when they
        // may be the majority.
        let live = open.saturating_sub(self.resident.load(Relaxed));
        if evictable.len() > 64 + 2 * live {
            evictable.retain(|(node, side)| node.dir.slot(*side).is_open());
        }
        drop(evictable);
        // This evicts more than one directory if descriptors have been lent.
        let budget = self.budget.load(Relaxed);
        while self.open.load(Relaxed) > budget && self.evict_oldest() {}
    }

    /// Sets the budget by the limit on open files.
    #[cold]
    fn set_budget(&self, open: usize) {
        let free = free_descriptors().saturating_add(open).min(MAX_BUDGET);
        let workers = max_workers_with(free);
        let budget = match free.saturating_sub(OPEN_PER_WORKER * workers) {
            // This number means that the budget is not set.
            INITIAL_BUDGET => INITIAL_BUDGET - 1,
            budget => budget.max(MIN_BUDGET),
        };
        let resident = if free + open < FEW_DESCRIPTORS {
            0
        } else {
            budget / 2
        };
        self.resident.store(resident, Relaxed);
        self.budget.store(budget, Relaxed);
    }

    /// Closes the oldest evictable directory that no worker uses. Returns `true` if
    /// there was one.
    fn evict_oldest(&self) -> bool {
        let mut evictable = self.lock();
        for _ in 0..evictable.len() {
            let Some((node, side)) = evictable.pop_front() else {
                return false;
            };
            let slot = node.dir.slot(side);
            if slot.evict() {
                self.open.fetch_sub(1, Relaxed);
                return true;
            }
            if slot.is_open() {
                evictable.push_back((node, side));
            }
        }
        false
    }

    /// Closes the directory of a finished node.
    #[inline(always)]
    pub(crate) fn close(&self, node: &Node<D>, side: Side) {
        if node.dir.slot(side).close() {
            self.open.fetch_sub(1, Relaxed);
        }
    }

    /// Pins the directory of `node`, and opens it again if it was evicted.
    pub(crate) fn pin<'n>(
        &self,
        node: &'n Arc<Node<D>>,
        side: Side,
        roots: &dyn Roots,
    ) -> Result<Pinned<'n>, Errno> {
        self.pin_or_open(node, side, || self.walk_down(node, side, roots))
    }

    /// Opens a closed directory that may be finished. The descriptor is the caller's. It is not installed
    /// in the node, because nothing would close it there.
    pub(crate) fn reopen(
        &self,
        node: &Arc<Node<D>>,
        side: Side,
        roots: &dyn Roots,
    ) -> Result<Fd, Errno> {
        let fd = self.walk_down(node, side, roots)?;
        check_is_of(node.dir.slot(side), fd.as_fd())?;
        Ok(fd)
    }

    /// Does the same as [`pin`](Self::pin) for the parent of `child`, which is usually still open.
    pub(crate) fn pin_parent<'n>(
        &self,
        parent: &'n Arc<Node<D>>,
        side: Side,
        child: &Node<D>,
        roots: &dyn Roots,
    ) -> Result<Pinned<'n>, Errno> {
        let by_child = || match self.try_pin(child.dir.slot(side))? {
            Some(child) => self.making_room(|| open_as(side, child.as_fd(), c"..")),
            None => self.walk_down(parent, side, roots),
        };
        match self.pin_or_open(parent, side, by_child) {
            // The child was moved, is no longer searchable, or was reached through a
            // symlink. Its parent may still be at its old place.
            Err(_) => self.pin(parent, side, roots),
            pin => pin,
        }
    }

    /// Pins a directory if it is open. If it is open in the table of another thread, opens a copy.
    #[inline]
    pub(crate) fn try_pin<'n>(&self, slot: &'n DirSlot) -> Result<Option<Pinned<'n>>, Errno> {
        match slot.try_pin() {
            Some(pin) => Ok(Some(pin)),
            None => self.making_room(|| slot.try_pin_or_import()),
        }
    }

    fn pin_or_open<'n>(
        &self,
        node: &'n Arc<Node<D>>,
        side: Side,
        open: impl Fn() -> Result<Fd, Errno>,
    ) -> Result<Pinned<'n>, Errno> {
        let slot = node.dir.slot(side);
        loop {
            if let Some(pin) = self.try_pin(slot)? {
                return Ok(pin);
            }
            let fd = open()?;
            check_is_of(slot, fd.as_fd())?;
            if let Some(pin) = self.install(node, side, fd) {
                return Ok(pin);
            }
        }
    }

    /// Opens the directory of `node` by a walk down from its nearest open ancestor.
    #[cold]
    fn walk_down(&self, node: &Arc<Node<D>>, side: Side, roots: &dyn Roots) -> Result<Fd, Errno> {
        let mut below = vec![&node.place];
        let mut top = node.place.parent.as_ref();
        let mut start = None;
        while let Some(ancestor) = top {
            start = self.try_pin(ancestor.dir.slot(side))?;
            if start.is_some() {
                break;
            }
            below.push(&ancestor.place);
            top = ancestor.place.parent.as_ref();
        }
        let mut fd = None;
        if start.is_none() {
            below.pop();
            fd = Some(self.making_room(|| roots.open_operand(node.place.operand, side))?);
        }
        while let Some(place) = below.pop() {
            let from = match (&fd, &start) {
                (Some(fd), _) => fd.as_fd(),
                (None, Some(pin)) => pin.as_fd(),
                (None, None) => unreachable!("BUG: a walk without a start"),
            };
            let next = self.making_room(|| roots.open_below(from, &place.name, side))?;
            fd = Some(next);
        }
        fd.ok_or(Errno::STALE)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Arc<Node<D>>, Side)>> {
        self.evictable
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fails unless `dir` is the directory that was evicted from `slot`.
fn check_is_of(slot: &DirSlot, dir: BorrowedFd<'_>) -> Result<(), Errno> {
    match slot.identity() {
        Some(evicted) if sys::is_same_directory(dir, evicted)? => Ok(()),
        _ => Err(Errno::STALE),
    }
}

/// Opens a source for listing, and a dest only for paths through it.
fn open_as(side: Side, dir: BorrowedFd<'_>, name: &CStr) -> Result<Fd, Errno> {
    match side {
        Side::Source => sys::open_directory(dir, name, Symlinks::NoFollow),
        Side::Dest => sys::open_path_directory(dir, name, Symlinks::NoFollow),
    }
}

/// Returns `true` if the limit on open files is so low that every descriptor counts.
pub(crate) fn are_few() -> bool {
    sys::descriptor_limit() < FEW_DESCRIPTORS
}

/// Returns how many workers the limit on open files allows for.
pub(crate) fn max_workers() -> usize {
    max_workers_with(free_descriptors())
}

fn max_workers_with(free_descriptors: usize) -> usize {
    (free_descriptors / DESCRIPTORS_PER_WORKER).max(1)
}

/// Returns how many descriptors the main thread of the process can still open. Others can open more.
fn free_descriptors() -> usize {
    /// The number of open files that is assumed without /proc: more than any shell leaves open.
    const GUESS: usize = 16;
    let used = std::fs::read_dir("/proc/self/fd").map_or(GUESS, Iterator::count);
    sys::descriptor_limit().saturating_sub(used)
}

#[cfg(all(test, fuc_loom))]
mod models;
