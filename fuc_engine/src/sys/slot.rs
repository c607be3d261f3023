//! A directory's descriptor that may be closed while nobody uses it.
//!
//! ```text
//!            install            pin (+1)
//!   empty ------------> open 0 <========> open n
//!     ^                    |   unpin (-1)
//!     +---- evict, close --+
//! ```
//!
//! Invariant: a descriptor is closed only from `open 0`, so the number that a
//! [`Pinned`] shows stays this directory's for as long as the `Pinned` lives.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use super::identity::Identity;
use super::stat::stat_directory;

const EMPTY: u64 = (u32::MAX as u64) << 32;
/// No inode has this number on a filesystem in use.
const UNKNOWN: u64 = 0;

fn descriptor(state: u64) -> RawFd {
    (state >> 32) as u32 as RawFd
}

fn pins(state: u64) -> u32 {
    state as u32
}

/// The place of one directory's descriptor, and its identity once recorded.
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

    /// Records who the directory is. Without this, an eviction asks the kernel.
    pub(crate) fn record(&self, identity: Identity) {
        // Published by the Release with which the descriptor is installed or evicted.
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

    /// Puts the descriptor in and pins it; hands it back if there is one already.
    pub(crate) fn install(&self, fd: OwnedFd) -> Result<Pinned<'_>, OwnedFd> {
        let state = (fd.as_raw_fd() as u32 as u64) << 32 | 1;
        match self
            .state
            .compare_exchange(EMPTY, state, Ordering::AcqRel, Ordering::Relaxed)
        {
            Ok(_) => Ok(Pinned::new(self, fd.into_raw_fd())),
            Err(_) => Err(fd),
        }
    }

    /// Keeps the descriptor from being closed while the result lives; `None` if it is not open.
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

    /// Closes the descriptor unless it is pinned; whether it did.
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
        // Release: who finds the slot empty finds the identity recorded.
        if self
            .state
            .compare_exchange(alone, EMPTY, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            return false;
        }
        let fd = pin.fd.as_raw_fd();
        std::mem::forget(pin);
        // SAFETY: the exchange above took the descriptor out of the slot, whose
        // own it was, while the only pin was this function's; so this is its only owner.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
        true
    }

    /// Closes the descriptor of a directory that is finished; whether it was open.
    ///
    /// Who comes by may hold a pin, for the time of a few calls: an eviction, a link
    /// that is made to a file in it. That is waited for.
    pub(crate) fn close(&self) -> bool {
        loop {
            let state = self.state.load(Ordering::Acquire);
            if state == EMPTY {
                return false;
            }
            if pins(state) == 0
                && self
                    .state
                    .compare_exchange(state, EMPTY, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            {
                // SAFETY: as in `evict`: taken out of the slot while unpinned.
                drop(unsafe { OwnedFd::from_raw_fd(descriptor(state)) });
                return true;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for DirSlot {
    fn drop(&mut self) {
        self.close();
    }
}

/// A directory's descriptor, kept open.
#[derive(Debug)]
pub(crate) struct Pinned<'a> {
    slot: &'a DirSlot,
    /// Not to be copied out of the pin, which keeps it open.
    fd: BorrowedFd<'a>,
}

impl<'a> Pinned<'a> {
    /// Takes over a pin that was counted in `slot`, whose descriptor is `fd`.
    fn new(slot: &'a DirSlot, fd: RawFd) -> Self {
        // Checked once here, for -1, and not for each entry of the directory.
        // SAFETY: the pin keeps the slot from closing the descriptor, and `as_fd`
        // lends it no longer than the pin lives.
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
        // Release: pairs with the Acquire of whoever closes the descriptor.
        self.slot.state.fetch_sub(1, Ordering::Release);
    }
}

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
    fn an_eviction_records_who_the_directory_was() {
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
