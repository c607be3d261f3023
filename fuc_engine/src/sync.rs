//! The atomics and locks of the protocols that a model checker explores.
//!
//! They are std's types. Only the unit tests of a build with `--cfg fuc_loom` replace them by those of
//! loom. A model is a test in a module named `models`. Loom runs it many times: with other orders of
//! its threads, and with each value that the memory orderings allow a load to return.
//!
//! ```text
//!   RUSTC_WORKSPACE_WRAPPER=$PWD/.ci/with-models cargo test -p fuc_engine --lib -- models::
//! ```

use std::sync::PoisonError;

#[cfg(all(test, fuc_loom))]
pub(crate) mod models;

#[cfg(not(all(test, fuc_loom)))]
pub(crate) use std::{
    sync::atomic::{AtomicU32, AtomicU64},
    sync::{Condvar, Mutex, MutexGuard},
    thread::yield_now,
};

#[cfg(all(test, fuc_loom))]
pub(crate) use {
    loom::sync::{Mutex, MutexGuard},
    loom::thread::yield_now,
    models::{AtomicU32, AtomicU64, Condvar},
};

/// Locks state that a panic never leaves half changed. The panic itself ends the run.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A value that lies in cache lines of its own: writes to what lies beside it do not slow its readers down.
// Processors of today fetch lines of 64 bytes in pairs.
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);
