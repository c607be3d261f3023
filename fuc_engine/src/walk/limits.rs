//! Limits on workers, and the constants that tune a walk.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::descriptors;
use crate::sched::Limits;
use crate::sys;

// Figures are ratios of times on two cores (Linux 6.18, tmpfs unless stated otherwise, medians of
// 6 to 13 rounds in turn). To repeat them, change the constant and compare both builds on the
// named cell of `benches`.

/// Bytes of a listing buffer, which a directory of about 1,000 short names fills.
///
/// Removing 100,000 files in one directory: 4 KiB takes 785 calls for the listing instead of 101,
/// and 1.09 of the time; 256 KiB 16 calls and 1.02. Cell: remove-flat.
pub(super) const BUFFER_BYTES: usize = 32 << 10;
/// Entries between two checkpoints, at which a worker is measured and hands out work,
/// as long as entries are fast.
///
/// Removing 100,000 files in one directory: 512 takes 1.06 of the time, 128 0.99, 4 1.00. With
/// the tree in many directories, 128 took 1.18 times the kernel's own time, 32 1.10: idle workers
/// wait less. Cells: remove-flat, remove-100k.
pub(super) const CHECKPOINT_ENTRIES: usize = 32;
/// Time per entry from which checkpoints come after each entry: about a hundred times the cost of one.
pub(super) const SLOW_ENTRY: Duration = Duration::from_micros(100);
/// The most directories that an idle worker gets at once.
///
/// It bounds how many queued directories may find their parents evicted, if descriptors run
/// short later. Two workers are as fast with 1 (1.00 to 1.02) and with 512 (0.97 to 1.03).
/// Cells: remove-100k, remove-5-per-dir, copy-100k.
pub(super) const MAX_BATCH: usize = 64;
/// The most workers while they wait for a disk or a server.
///
/// Copying 1,500 files in 256 directories to a server that answers after 10 ms: 32 take 1.02 of the
/// time. Cell: slow-10ms-copy-256.
const MOST_WAITING: usize = 128;
/// Address space for each thread that is started: the allocator of glibc reserves 64 MiB for it,
/// or twice as much for a moment. If it cannot, each small allocation of the thread takes a page.
///
/// Linking 10,000 directories and as many files (`ulimit -v 7000`, `cp -al`) runs out of memory
/// with 8 workers, and takes 2,500 KiB with one. To repeat it: tests/cp/link-heap.sh of coreutils.
const ADDRESS_SPACE_PER_THREAD: u64 = 128 << 20;
/// Subdirectories queued after which a listing pauses, if a descriptor can be lent to
/// it until it continues.
///
/// Removing 200,000 empty directories in one: 8,192 takes 1.05 of the time and 2.5 MB instead of
/// 1.8, 64 1.01. To repeat it: `seq 200000 | xargs mkdir`, `/usr/bin/time -f '%e s %M KB' rmz`.
pub(super) const MANY_CHILDREN: usize = 512;

/// Returns the most workers a run may have.
///
/// These are as many as `asked`, or else one for each core that the process may use,
/// and more if they wait. The limits on open descriptors and on address space bound both.
pub(crate) fn worker_limits(asked: Option<NonZeroUsize>) -> Limits {
    let within = descriptors::max_workers().min(max_workers_with(sys::address_space_limit()));
    if let Some(asked) = asked {
        return Limits::of(asked.get().min(within));
    }
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let waiting = MOST_WAITING.max(cores);
    Limits {
        computing: cores.min(within),
        waiting: waiting.min(within),
    }
}

fn max_workers_with(address_space_bytes: u64) -> usize {
    let started = address_space_bytes / ADDRESS_SPACE_PER_THREAD;
    usize::try_from(started)
        .unwrap_or(usize::MAX)
        .saturating_add(1)
}
