//! A directory's descriptor that may be closed while no thread uses it, and opened again.
//!
//! ```text
//!            install            pin (+1)
//!   empty ------------> open 0 <========> open n
//!     ^                    |   unpin (-1)
//!     +---- evict, close --+
//! ```
//!
//! Invariant: a descriptor is closed only from `open 0`. So the descriptor of a [`Pinned`] refers to
//! this directory for as long as the `Pinned` lives.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, RawFd};
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

use rustix::io::Errno;

use super::fd::{Fd, TableId};
use super::stat::{Identity, stat_directory};
use crate::sync::{self, AtomicU64};

/// No inode has this number on a filesystem in use.
const UNKNOWN: u64 = 0;

/// A descriptor in the upper 32 bits, its table in 8, and the number of pins in the lower 24.
#[derive(Clone, Copy, PartialEq, Eq)]
struct SlotState(u64);

impl SlotState {
    /// No descriptor and no table has the highest number.
    const EMPTY: Self = Self(u64::MAX << 24);

    fn pinned_once(fd: RawFd, TableId(number): TableId) -> Self {
        Self((fd as u64) << 32 | u64::from(number) << 24 | 1)
    }

    fn descriptor(self) -> RawFd {
        (self.0 >> 32) as RawFd
    }

    /// Returns the table of the descriptor.
    fn table(self) -> TableId {
        TableId((self.0 >> 24) as u8)
    }

    fn pins(self) -> u64 {
        self.0 & ((1 << 24) - 1)
    }
}

/// Holds the descriptor of one directory if it is open, and the directory's identity once recorded.
#[derive(Debug)]
pub(crate) struct DirSlot {
    /// A [`SlotState`].
    state: AtomicU64,
    inode: AtomicU64,
    device_and_birth: AtomicU64,
}

impl DirSlot {
    pub(crate) fn empty() -> Self {
        Self {
            state: AtomicU64::new(SlotState::EMPTY.0),
            inode: AtomicU64::new(UNKNOWN),
            device_and_birth: AtomicU64::new(0),
        }
    }

    /// Records the directory's identity. Without this, an eviction asks the kernel for it.
    pub(crate) fn set_identity(&self, identity: Identity) {
        // Relaxed: the Release of `install` or `evict` publishes it.
        self.inode.store(identity.inode, Relaxed);
        self.device_and_birth
            .store(identity.device_and_birth, Relaxed);
    }

    pub(crate) fn identity(&self) -> Option<Identity> {
        let inode = self.inode.load(Relaxed);
        let device_and_birth = self.device_and_birth.load(Relaxed);
        (inode != UNKNOWN).then_some(Identity {
            inode,
            device_and_birth,
        })
    }

    fn load(&self) -> SlotState {
        SlotState(self.state.load(Relaxed))
    }

    /// Empties the slot if its state is `state`. Returns `true` if it was.
    fn empty_if(&self, state: SlotState, success: Ordering) -> bool {
        let SlotState(empty) = SlotState::EMPTY;
        self.state
            .compare_exchange(state.0, empty, success, Relaxed)
            .is_ok()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.load() != SlotState::EMPTY
    }

    /// Stores the descriptor and pins it. Returns it as an error if the slot already has one.
    pub(crate) fn install(&self, fd: Fd) -> Result<Pinned<'_>, Fd> {
        let SlotState(empty) = SlotState::EMPTY;
        let table = TableId::current();
        table.retain();
        let state = SlotState::pinned_once(fd.as_raw_fd(), table);
        // Release: publishes the descriptor, its table and the identity to the Acquire of `try_pin`.
        match self
            .state
            .compare_exchange(empty, state.0, Release, Relaxed)
        {
            Ok(_) => Ok(Pinned::new(Pin(self), fd.into_raw_fd())),
            Err(_) => {
                table.release();
                Err(fd)
            }
        }
    }

    /// Prevents that the descriptor is closed while the result lives. Returns `None` if it is not open in the table of
    /// this thread.
    #[inline]
    pub(crate) fn try_pin(&self) -> Option<Pinned<'_>> {
        let current = TableId::current();
        let state = self.add_pin(|state| state.table() == current)?;
        Some(Pinned::new(Pin(self), state.descriptor()))
    }

    /// Does the same as [`try_pin`](Self::try_pin), and copies a descriptor from the table of another thread.
    ///
    /// # Errors
    /// As [`TableId::import`].
    #[cold]
    pub(crate) fn try_pin_or_import(&self) -> Result<Option<Pinned<'_>>, Errno> {
        let Some(state) = self.add_pin(|state| state != SlotState::EMPTY) else {
            return Ok(None);
        };
        let pin = Pin(self);
        if state.table().is_current() {
            return Ok(Some(Pinned::new(pin, state.descriptor())));
        }
        let copy = state.table().import(state.descriptor())?;
        let mut pinned = Pinned::new(pin, copy.as_raw_fd());
        pinned.copy = Some(copy.into());
        Ok(Some(pinned))
    }

    /// Adds a pin if `may_pin` permits it, and returns the state before.
    #[inline]
    fn add_pin(&self, may_pin: impl Fn(SlotState) -> bool) -> Option<SlotState> {
        // Acquire: pairs with the Release of `install`, which published the descriptor,
        // and with that of `evict`, which published the identity.
        let order = Acquire;
        let mut old = self.state.load(order);
        while may_pin(SlotState(old)) {
            match self.state.compare_exchange(old, old + 1, order, order) {
                Ok(_) => return Some(SlotState(old)),
                Err(now) => old = now,
            }
        }
        None
    }

    /// Closes the descriptor unless it is pinned. Returns `true` if it did.
    pub(crate) fn evict(&self) -> bool {
        let state = self.load();
        if state.pins() > 0 {
            return false;
        }
        let Ok(Some(pin)) = self.try_pin_or_import() else {
            return false;
        };
        if self.identity().is_none() {
            match stat_directory(pin.as_fd()) {
                Ok(stat) => self.set_identity(stat.identity),
                Err(_) => return false,
            }
        }
        let alone = SlotState(state.0 + 1);
        // Acquire: pairs with the Release of each unpin, so the calls on the descriptor happen before
        // it is closed. Release: pairs with the Acquire of `try_pin`, so a thread that finds the slot
        // empty also finds the identity.
        if !self.empty_if(alone, AcqRel) {
            return false;
        }
        // The exchange took the descriptor out of the slot that owned it, while the only pin was that of
        // this function. So this is its only owner.
        pin.forget();
        alone.table().close(alone.descriptor());
        true
    }

    /// Closes the descriptor of a finished directory. Returns `true` if it was open.
    ///
    /// Another thread may still hold a pin for the duration of a few calls: to evict the descriptor, or
    /// to make a link to a file in the directory. This function waits for it.
    #[inline]
    pub(crate) fn close(&self) -> bool {
        loop {
            let state = self.load();
            if state == SlotState::EMPTY {
                return false;
            }
            // Acquire: pairs with the Release of each unpin, as in `evict`. There is nothing to
            // publish: the identity is published by `install`, or by an earlier `evict`.
            if state.pins() == 0 && self.empty_if(state, Acquire) {
                // As in `evict`: the descriptor was taken out of the slot while unpinned.
                state.table().close(state.descriptor());
                return true;
            }
            sync::yield_now();
        }
    }
}

impl Drop for DirSlot {
    #[inline]
    fn drop(&mut self) {
        self.close();
    }
}

/// A pin, which is counted in the slot.
#[derive(Debug)]
struct Pin<'a>(&'a DirSlot);

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `evict` and `close`, so the calls on the descriptor happen
        // before it is closed.
        self.0.state.fetch_sub(1, Release);
    }
}

/// A directory's descriptor that is kept open.
#[derive(Debug)]
pub(crate) struct Pinned<'a> {
    /// The descriptor must not be copied out of this struct, which keeps it open.
    fd: BorrowedFd<'a>,
    /// The owner of the descriptor, if it is a copy of that in the slot.
    copy: Option<Fd>,
    pin: Pin<'a>,
}

impl<'a> Pinned<'a> {
    /// `fd` is the descriptor of the slot, in the table of this thread.
    fn new(pin: Pin<'a>, fd: RawFd) -> Self {
        // Here, the check against -1 happens once. In `as_fd`, it would happen for each entry.
        // SAFETY: the slot does not close a pinned descriptor, and `as_fd` lends it no longer
        // than the pin lives.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        let copy = None;
        Self { fd, copy, pin }
    }

    /// Drops a pin that the slot no longer counts.
    fn forget(self) {
        std::mem::forget(self.pin);
    }
}

impl AsFd for Pinned<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd
    }
}

#[cfg(all(test, fuc_loom))]
mod models;

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    fn open() -> Fd {
        OwnedFd::from(std::fs::File::open("/").unwrap()).into()
    }

    fn open_slot() -> DirSlot {
        let slot = DirSlot::empty();
        drop(slot.install(open()).unwrap());
        slot
    }

    #[test]
    fn a_pinned_descriptor_is_not_evicted() {
        let slot = open_slot();
        let pin = slot.try_pin().unwrap();
        assert!(!slot.evict());
        drop(pin);
        assert!(slot.evict());
        assert!(slot.try_pin().is_none());
    }

    #[test]
    fn an_eviction_records_the_identity() {
        let slot = open_slot();
        assert_eq!(slot.identity(), None);
        slot.evict();
        let root = std::fs::File::open("/").unwrap();
        assert_eq!(
            slot.identity(),
            Some(stat_directory(root.as_fd()).unwrap().identity)
        );
    }

    #[test]
    fn a_second_descriptor_is_handed_back() {
        let slot = open_slot();
        assert!(slot.install(open()).is_err());
    }
}
