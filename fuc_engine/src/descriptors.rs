//! How many directories are open at once, and whose descriptor goes when there are too many.
//!
//! Unless there are few, the first half of the budget is given to whoever comes first and never
//! taken back: those directories cost one atomic addition. Directories opened
//! beyond it are listed, and the oldest of them that nobody uses is closed to
//! make room for one more: of a depth-first walk, that is the one needed last.
//!
//! An evicted directory is opened again by `..` from the child that is about
//! to let it go, or by a walk down from the nearest open ancestor. Either way
//! it must be the very directory that was evicted.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use crate::node::{Dir, Node, Side};
use crate::sys::{self, Pinned, Symlinks};

/// Until this many are open, the real limit is not even asked for.
const INITIAL_BUDGET: usize = 6;
/// With fewer than this, every directory is evictable.
const FEW_DESCRIPTORS: usize = 256;
/// More are of no use: it takes a tree that deep to need them.
const MAX_BUDGET: usize = 4096;
/// Descriptors that waiting tasks may hold, if the budget is not even smaller.
const MAX_LENT: usize = 64;
/// What one worker may have open beside directories in the budget: a source, a
/// dest, and the directory that it is stepping through to reopen another.
const OPEN_PER_WORKER: usize = 3;
/// Free descriptors per worker.
const DESCRIPTORS_PER_WORKER: usize = 12;

/// Where the walk down to an evicted directory begins.
pub(crate) trait Roots {
    /// Opens an operand, which must be a directory, by its own path.
    fn open_operand(&self, operand: u32, side: Side) -> Result<OwnedFd, Errno>;

    /// Opens a directory in `dir`, as it was opened at first.
    fn open_below(&self, dir: BorrowedFd<'_>, name: &CStr, _side: Side) -> Result<OwnedFd, Errno> {
        sys::open_directory(dir, name, Symlinks::NoFollow)
    }
}

/// See [`Descriptors::visit`].
pub(crate) enum Visited<'n> {
    Open(Pinned<'n>),
    /// The caller's own.
    Reopened(OwnedFd),
}

pub(crate) struct Descriptors<D: Dir> {
    open: AtomicUsize,
    /// Above this many, a directory is listed in `evictable`.
    resident: AtomicUsize,
    /// Above this many, one is evicted for each that is opened.
    budget: AtomicUsize,
    /// Those of `open` that cannot be evicted, since waiting tasks hold them.
    lent: AtomicUsize,
    evictable: Mutex<VecDeque<(Arc<Node<D>>, Side)>>,
}

impl<D: Dir> Descriptors<D> {
    pub(crate) fn new() -> Self {
        let resident = if sys::descriptor_limit() < FEW_DESCRIPTORS {
            0
        } else {
            INITIAL_BUDGET
        };
        Self {
            open: AtomicUsize::new(0),
            resident: AtomicUsize::new(resident),
            budget: AtomicUsize::new(INITIAL_BUDGET),
            lent: AtomicUsize::new(0),
            evictable: Mutex::new(VecDeque::new()),
        }
    }

    /// Whether so many directories are open that some may be evicted soon.
    pub(crate) fn are_short(&self) -> bool {
        self.open.load(Ordering::Relaxed) > self.resident.load(Ordering::Relaxed)
    }

    /// Whether `count` descriptors may be kept for a task that waits, until
    /// [`take_back`](Self::take_back): they cannot be evicted, so they are few.
    pub(crate) fn lend(&self, count: usize) -> bool {
        if self.budget.load(Ordering::Relaxed) == INITIAL_BUDGET {
            self.set_budget(self.open.load(Ordering::Relaxed));
        }
        let most = (self.budget.load(Ordering::Relaxed) / 4).min(MAX_LENT);
        let lent = self.lent.fetch_add(count, Ordering::Relaxed);
        if lent + count > most {
            self.lent.fetch_sub(count, Ordering::Relaxed);
            return false;
        }
        self.open.fetch_add(count, Ordering::Relaxed);
        true
    }

    pub(crate) fn take_back(&self, count: usize) {
        self.lent.fetch_sub(count, Ordering::Relaxed);
        self.open.fetch_sub(count, Ordering::Relaxed);
    }

    /// Runs `open`; when the process is out of descriptors, evicts and tries again.
    pub(crate) fn making_room<T>(
        &self,
        mut open: impl FnMut() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        loop {
            match open() {
                Err(Errno::MFILE | Errno::NFILE) if self.evict_oldest() => {}
                result => return result,
            }
        }
    }

    /// Takes over the descriptor of `node`'s directory, pinned; makes room for
    /// it. `None` if another worker was quicker to reopen it.
    fn install<'n>(&self, node: &'n Arc<Node<D>>, side: Side, fd: OwnedFd) -> Option<Pinned<'n>> {
        let pin = node.dir.slot(side).install(fd).ok()?;
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        if open > self.resident.load(Ordering::Relaxed) {
            self.register(node, side, open);
        }
        Some(pin)
    }

    /// Takes over the descriptor of a new node's directory; makes room for it.
    pub(crate) fn adopt(&self, node: &Arc<Node<D>>, side: Side, fd: OwnedFd) {
        let pin = self.install(node, side, fd);
        debug_assert!(pin.is_some(), "BUG: a new node had a descriptor");
    }

    #[cold]
    fn register(&self, node: &Arc<Node<D>>, side: Side, open: usize) {
        let budget = self.budget.load(Ordering::Relaxed);
        if budget == INITIAL_BUDGET {
            self.set_budget(open);
            if open <= self.resident.load(Ordering::Relaxed) {
                return;
            }
        }
        let mut evictable = self.lock();
        evictable.push_back((Arc::clone(node), side));
        // Finished directories leave their entry behind, which keeps their memory;
        // sweep when they may be the most.
        let live = open.saturating_sub(self.resident.load(Ordering::Relaxed));
        if evictable.len() > 64 + 2 * live {
            evictable.retain(|(node, side)| node.dir.slot(*side).is_open());
        }
        drop(evictable);
        // More than one, if descriptors were lent meanwhile.
        let budget = self.budget.load(Ordering::Relaxed);
        while self.open.load(Ordering::Relaxed) > budget && self.evict_oldest() {}
    }

    #[cold]
    fn set_budget(&self, open: usize) {
        let free = free_descriptors().saturating_add(open).min(MAX_BUDGET);
        let workers = max_workers_with(free);
        let budget = free
            .saturating_sub(OPEN_PER_WORKER * workers)
            .max(INITIAL_BUDGET + 1);
        let resident = if free + open < FEW_DESCRIPTORS {
            0
        } else {
            budget / 2
        };
        self.resident.store(resident, Ordering::Relaxed);
        self.budget.store(budget, Ordering::Relaxed);
    }

    /// Closes the oldest evictable directory that nobody uses; whether there was one.
    fn evict_oldest(&self) -> bool {
        let mut evictable = self.lock();
        for _ in 0..evictable.len() {
            let Some((node, side)) = evictable.pop_front() else {
                return false;
            };
            let slot = node.dir.slot(side);
            if slot.evict() {
                self.open.fetch_sub(1, Ordering::Relaxed);
                return true;
            }
            if slot.is_open() {
                evictable.push_back((node, side));
            }
        }
        false
    }

    /// Closes the directory of a finished node.
    pub(crate) fn close(&self, node: &Node<D>, side: Side) {
        if node.dir.slot(side).close() {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The directory's descriptor, opened again if it was evicted.
    pub(crate) fn pin<'n>(
        &self,
        node: &'n Arc<Node<D>>,
        side: Side,
        roots: &dyn Roots,
    ) -> Result<Pinned<'n>, Errno> {
        self.pin_or_open(node, side, || self.walk_down(node, side, roots))
    }

    /// A descriptor of a directory that may be finished: nobody would close it, had it been installed.
    pub(crate) fn visit<'n>(
        &self,
        node: &'n Arc<Node<D>>,
        side: Side,
        roots: &dyn Roots,
    ) -> Result<Visited<'n>, Errno> {
        let slot = node.dir.slot(side);
        if let Some(pin) = slot.try_pin() {
            return Ok(Visited::Open(pin));
        }
        let fd = self.walk_down(node, side, roots)?;
        if slot.identity() != Some(sys::stat_directory(fd.as_fd())?.identity) {
            return Err(Errno::STALE);
        }
        Ok(Visited::Reopened(fd))
    }

    /// The same as [`pin`](Self::pin) for the parent of `child`, which as a rule is still open itself.
    pub(crate) fn pin_parent<'n>(
        &self,
        parent: &'n Arc<Node<D>>,
        side: Side,
        child: &Node<D>,
        roots: &dyn Roots,
    ) -> Result<Pinned<'n>, Errno> {
        let by_child = || match child.dir.slot(side).try_pin() {
            Some(child) => self.making_room(|| open_as(side, child.as_fd(), c"..")),
            None => self.walk_down(parent, side, roots),
        };
        match self.pin_or_open(parent, side, by_child) {
            // The child was moved elsewhere, may not be searched any more, or was
            // reached through a link; its parent may still be where it was.
            Err(_) => self.pin(parent, side, roots),
            pin => pin,
        }
    }

    fn pin_or_open<'n>(
        &self,
        node: &'n Arc<Node<D>>,
        side: Side,
        open: impl Fn() -> Result<OwnedFd, Errno>,
    ) -> Result<Pinned<'n>, Errno> {
        let slot = node.dir.slot(side);
        loop {
            if let Some(pin) = slot.try_pin() {
                return Ok(pin);
            }
            let fd = open()?;
            if slot.identity() != Some(sys::stat_directory(fd.as_fd())?.identity) {
                return Err(Errno::STALE);
            }
            if let Some(pin) = self.install(node, side, fd) {
                return Ok(pin);
            }
        }
    }

    #[cold]
    fn walk_down(
        &self,
        node: &Arc<Node<D>>,
        side: Side,
        roots: &dyn Roots,
    ) -> Result<OwnedFd, Errno> {
        let mut below = vec![&node.place];
        let mut top = node.place.parent.as_ref();
        let mut start = None;
        while let Some(ancestor) = top {
            start = ancestor.dir.slot(side).try_pin();
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

/// A source is opened to be listed, a dest only to be passed through.
fn open_as(side: Side, dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    match side {
        Side::Source => sys::open_directory(dir, name, Symlinks::NoFollow),
        Side::Dest => sys::open_path_directory(dir, name, Symlinks::NoFollow),
    }
}

/// Workers that the limit on descriptors allows for.
pub(crate) fn max_workers() -> usize {
    max_workers_with(free_descriptors())
}

/// A worker has up to four directories pinned and [`OPEN_PER_WORKER`] others open,
/// and half of the budget is not evictable.
fn max_workers_with(free_descriptors: usize) -> usize {
    (free_descriptors / DESCRIPTORS_PER_WORKER).max(1)
}

/// Descriptors that the process could still open.
fn free_descriptors() -> usize {
    /// Without /proc: more than any shell leaves open.
    const GUESS: usize = 16;
    let used = std::fs::read_dir("/proc/self/fd").map_or(GUESS, Iterator::count);
    sys::descriptor_limit().saturating_sub(used)
}
