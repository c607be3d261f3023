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

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;

use super::identity::Identity;
use super::stat::stat_directory;
use crate::sync::{self, AtomicU64};

const EMPTY: u64 = (u32::MAX as u64) << 32;
/// No inode has this number on a filesystem in use.
const UNKNOWN: u64 = 0;

fn descriptor(state: u64) -> RawFd {
    (state >> 32) as u32 as RawFd
}

fn pins(state: u64) -> u32 {
    state as u32
}

/// Holds the descriptor of one directory if it is open, and the directory's identity once recorded.
#[derive(Debug)]
pub(crate) struct DirSlot {
    /// The descriptor in the upper half, the number of pins in the lower.
    state: AtomicU64,
    inode: AtomicU64,
    device_and_birth: AtomicU64,
}

impl DirSlot {
    pub(crate) fn empty() -> Self {
        Self {
            state: AtomicU64::new(EMPTY),
            inode: AtomicU64::new(UNKNOWN),
            device_and_birth: AtomicU64::new(0),
        }
    }

    /// Records the directory's identity. Without this, an eviction asks the kernel for it.
    pub(crate) fn record(&self, identity: Identity) {
        // Relaxed: the Release of `install` or `evict` publishes it.
        self.inode.store(identity.inode, Ordering::Relaxed);
        self.device_and_birth
            .store(identity.device_and_birth, Ordering::Relaxed);
    }

    pub(crate) fn identity(&self) -> Option<Identity> {
        let inode = self.inode.load(Ordering::Relaxed);
        let device_and_birth = self.device_and_birth.load(Ordering::Relaxed);
        (inode != UNKNOWN).then_some(Identity {
            inode,
            device_and_birth,
        })
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state.load(Ordering::Relaxed) != EMPTY
    }

    /// Stores the descriptor and pins it. Returns it as an error if the slot already has one.
    pub(crate) fn install(&self, fd: OwnedFd) -> Result<Pinned<'_>, OwnedFd> {
        let state = (fd.as_raw_fd() as u32 as u64) << 32 | 1;
        // Release: publishes the descriptor and the identity to the Acquire of `try_pin`.
        match self
            .state
            .compare_exchange(EMPTY, state, Ordering::Release, Ordering::Relaxed)
        {
            Ok(_) => Ok(Pinned::new(self, fd.into_raw_fd())),
            Err(_) => Err(fd),
        }
    }

    /// Prevents that the descriptor is closed while the result lives. Returns `None` if it is not open.
    pub(crate) fn try_pin(&self) -> Option<Pinned<'_>> {
        // Acquire: pairs with the Release of `install`, which published the descriptor,
        // and with that of `evict`, which published the identity.
        self.state
            .fetch_update(Ordering::Acquire, Ordering::Acquire, |state| {
                (state != EMPTY).then(|| state + 1)
            })
            .ok()
            .map(|state| Pinned::new(self, descriptor(state)))
    }

    /// Closes the descriptor unless it is pinned. Returns `true` if it did.
    pub(crate) fn evict(&self) -> bool {
        if pins(self.state.load(Ordering::Relaxed)) > 0 {
            return false;
        }
        let Some(pin) = self.try_pin() else {
            return false;
        };
        if self.identity().is_none() {
            match stat_directory(pin.as_fd()) {
                Ok(stat) => self.record(stat.identity),
                Err(_) => return false,
            }
        }
        let alone = (pin.fd.as_raw_fd() as u32 as u64) << 32 | 1;
        // Acquire: pairs with the Release of each unpin, so the calls on the descriptor happen before
        // it is closed. Release: pairs with the Acquire of `try_pin`, so a thread that finds the slot
        // empty also finds the identity.
        if self
            .state
            .compare_exchange(alone, EMPTY, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            return false;
        }
        let fd = pin.fd.as_raw_fd();
        std::mem::forget(pin);
        // SAFETY: the exchange above took the descriptor out of the slot that owned it, while
        // the only pin was that of this function. So this is its only owner.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
        true
    }

    /// Closes the descriptor of a finished directory. Returns `true` if it was open.
    ///
    /// Another thread may still hold a pin for the duration of a few calls: to evict the descriptor, or
    /// to make a link to a file in the directory. This function waits for it.
    pub(crate) fn close(&self) -> bool {
        loop {
            let state = self.state.load(Ordering::Relaxed);
            if state == EMPTY {
                return false;
            }
            // Acquire: pairs with the Release of each unpin, as in `evict`. There is nothing to
            // publish: the identity is published by `install`, or by an earlier `evict`.
            if pins(state) == 0
                && self
                    .state
                    .compare_exchange(state, EMPTY, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                // SAFETY: as in `evict`. The descriptor was taken out of the slot while unpinned.
                drop(unsafe { OwnedFd::from_raw_fd(descriptor(state)) });
                return true;
            }
            sync::yield_now();
        }
    }
}

impl Drop for DirSlot {
    fn drop(&mut self) {
        self.close();
    }
}

/// A directory's descriptor that is kept open.
#[derive(Debug)]
pub(crate) struct Pinned<'a> {
    slot: &'a DirSlot,
    /// The descriptor must not be copied out of this struct, which keeps it open.
    fd: BorrowedFd<'a>,
}

impl<'a> Pinned<'a> {
    /// Takes over a pin that `slot` has counted. `fd` is the descriptor of the slot.
    fn new(slot: &'a DirSlot, fd: RawFd) -> Self {
        // Here, the check against -1 happens once. In `as_fd`, it would happen for each entry.
        // SAFETY: the slot does not close a pinned descriptor, and `as_fd` lends it no longer
        // than the pin lives.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        Self { slot, fd }
    }
}

impl AsFd for Pinned<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `evict` and `close`, so the calls on the descriptor happen
        // before it is closed.
        self.slot.state.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(all(test, fuc_loom))]
mod models;

#[cfg(test)]
mod tests {
    use super::*;

    fn open_slot() -> DirSlot {
        let slot = DirSlot::empty();
        drop(
            slot.install(std::fs::File::open("/").unwrap().into())
                .unwrap(),
        );
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
        assert!(
            slot.install(std::fs::File::open("/").unwrap().into())
                .is_err()
        );
    }
}
