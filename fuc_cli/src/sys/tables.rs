//! The descriptor tables of the engine's threads.

use fuc_engine::PrivateTables;

/// Permits private descriptor tables for the threads of a copy.
///
/// The observer and the handlers of signals write to stdout and stderr, and answers are read from stdin. The filter
/// closes each file before it returns.
#[must_use]
pub fn private_tables() -> PrivateTables {
    // SAFETY: as said above, no other descriptor is used on the engine's threads, and none of these calls starts a
    // thread. The main thread calls the run.
    unsafe { PrivateTables::new() }
}
