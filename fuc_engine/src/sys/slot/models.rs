//! Models of the pins.

use std::sync::atomic::AtomicU64 as Exact;

// The drop of a slot closes its descriptor. With std's `Arc`, loom would not see that it comes last.
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU64};
use loom::thread;
use rustix::io::fcntl_dupfd_cloexec;

use super::*;
use crate::sync::models::{Model, check};

/// The lowest number of a descriptor here: above those of other tests. So the numbers are the same in
/// each execution, as loom requires.
const LOWEST: RawFd = 100;

/// Opens a directory. The descriptor gets the number of the one that was closed before.
fn open() -> Fd {
    let directory = std::fs::File::open("/").unwrap();
    fcntl_dupfd_cloexec(&directory, LOWEST).unwrap().into()
}

fn open_slot() -> DirSlot {
    let slot = DirSlot::empty();
    drop(slot.install(open()).unwrap());
    slot
}

fn assert_is_open(pin: &Pinned<'_>) {
    assert!(
        stat_directory(pin.as_fd()).is_ok(),
        "a pinned descriptor is closed"
    );
}

/// Uses the descriptor if it is open. `is_used` is `true` during this. It is Relaxed: only the slot
/// publishes that the use has ended.
fn use_descriptor(slot: &DirSlot, is_used: &AtomicBool) {
    if let Some(pin) = slot.try_pin() {
        is_used.store(true, Ordering::Relaxed);
        assert_is_open(&pin);
        is_used.store(false, Ordering::Relaxed);
    }
}

/// Takes the descriptor out of the slot. Returns `true` if it did.
type Close = fn(&DirSlot) -> bool;

fn close_unused(close: Close, slot: &DirSlot, is_used: &AtomicBool) {
    if close(slot) {
        assert!(
            !is_used.load(Ordering::Relaxed),
            "a closed descriptor is in use"
        );
    }
}

/// A worker uses the descriptor, and then another one closes it. Loom finds other executions
/// here than in [`a_worker_closes_then_uses`].
fn a_worker_uses_then_closes(close: Close) {
    let shared = Arc::new((open_slot(), AtomicBool::new(false)));
    let closing = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || close_unused(close, &shared.0, &shared.1))
    };
    use_descriptor(&shared.0, &shared.1);
    closing.join().unwrap();
}

/// A worker closes the descriptor, and then another one tries to use it.
fn a_worker_closes_then_uses(close: Close) {
    let shared = Arc::new((open_slot(), AtomicBool::new(false)));
    let using = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || use_descriptor(&shared.0, &shared.1))
    };
    close_unused(close, &shared.0, &shared.1);
    using.join().unwrap();
}

/// Two workers need the directory while another one evicts it.
fn an_evicted_directory_is_opened_again() {
    let slot = Arc::new(open_slot());
    let workers = [(); 2].map(|()| {
        let slot = Arc::clone(&slot);
        thread::spawn(move || {
            // As in `Descriptors::pin_or_open`.
            loop {
                if let Some(pin) = slot.try_pin() {
                    return assert_is_open(&pin);
                }
                assert!(
                    slot.identity().is_some(),
                    "an evicted directory has no identity"
                );
                if let Ok(pin) = slot.install(open()) {
                    return assert_is_open(&pin);
                }
            }
        })
    });
    slot.evict();
    for worker in workers {
        worker.join().unwrap();
    }
}

/// A worker pins a descriptor while another one evicts it and opens it again, with the same number. A
/// pin publishes what preceded the latest opening, not only the one before.
fn a_pin_publishes_the_latest_opening() {
    let slot = Arc::new(DirSlot::empty());
    // Counts the openings twice. Loom may return an old value of the first one only.
    let openings = Arc::new((AtomicU64::new(0), Exact::new(0)));
    let worker = {
        let (slot, openings) = (Arc::clone(&slot), Arc::clone(&openings));
        thread::spawn(move || {
            if let Some(_pin) = slot.try_pin() {
                let (seen, exact) = &*openings;
                assert_eq!(
                    exact.load(Ordering::Relaxed),
                    seen.load(Ordering::Relaxed),
                    "a pin does not publish the latest opening"
                );
            }
        })
    };
    let open_counted = |opening| {
        openings.0.store(opening, Ordering::Relaxed);
        let pin = slot.install(open()).unwrap();
        openings.1.store(opening, Ordering::Relaxed);
        drop(pin);
    };
    open_counted(1);
    if slot.evict() {
        open_counted(2);
    }
    worker.join().unwrap();
}

#[test]
fn a_pinned_descriptor_stays_open_and_an_evicted_one_is_opened_again() {
    check(
        "src/sys/slot.rs",
        &[
            Model::new("a used descriptor is not evicted", 4, || {
                a_worker_uses_then_closes(DirSlot::evict);
            }),
            Model::new("a used descriptor is not closed", 4, || {
                a_worker_uses_then_closes(DirSlot::close);
            }),
            Model::new("an evicted descriptor is not used", 4, || {
                a_worker_closes_then_uses(DirSlot::evict);
            }),
            Model::new("a closed descriptor is not used", 4, || {
                a_worker_closes_then_uses(DirSlot::close);
            }),
            Model::new(
                "a pin publishes the latest opening",
                4,
                a_pin_publishes_the_latest_opening,
            ),
            Model::new(
                "an evicted directory is opened again",
                3,
                an_evicted_directory_is_opened_again,
            ),
        ],
    );
}
