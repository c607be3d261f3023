//! Mutexes after a panic of another thread.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex, also after another thread has panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
