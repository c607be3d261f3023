//! Chooses what pays: the constants that tune a walk, and the [`Tuning`] of an operation on a filesystem.
//!
//! The facts about filesystems are in the table of [`Filesystem`]. They are asked for when another worker may be wanted,
//! and when a copy has queued several directories.

use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::filtered::Filters;
use super::{NodeOf, Visitor};
use crate::descriptors;
use crate::filter::Filter;
use crate::node::{Dir, Node, Side};
use crate::sched::{Limits, Zones};
use crate::sys::{self, AllocationGroups, Filesystem, SecondWorker, Symlinks};

/// The settings of a walk.
pub(crate) struct Settings {
    /// The number of workers that the caller allows.
    pub(crate) threads: Option<NonZeroUsize>,
    /// Entries are visited in the order of the listing by one worker, and each subdirectory is finished before the entry
    /// after it.
    pub(crate) is_in_order: bool,
    /// Says whether symbolic links below operands are followed.
    pub(crate) symlinks: Symlinks,
    /// The caller's filters, if there are any.
    pub(crate) filters: Option<Filters>,
    /// Any entry may take long, because large files do not become tasks. So a worker looks at its first file, and starts
    /// another worker before if that has [`SLOW_BYTES`]. After a slow entry, it also offers half of the entries of the
    /// buffer, if no task is queued that could be offered.
    pub(crate) may_be_slow: bool,
    /// Found when it is first needed. See [`tuning`].
    pub(crate) tuning: OnceLock<Tuning>,
}

impl Settings {
    pub(crate) fn new(threads: Option<NonZeroUsize>, filter: Option<Arc<dyn Filter>>) -> Self {
        Self {
            threads,
            is_in_order: false,
            symlinks: Symlinks::NoFollow,
            filters: filter.map(Filters::new),
            may_be_slow: false,
            tuning: OnceLock::new(),
        }
    }

    /// Returns the filter for the entries of a directory that is not finished, if there is one.
    pub(crate) fn filter_of<D: Dir>(&self, node: &Arc<Node<D>>) -> Option<Arc<dyn Filter>> {
        self.filters.as_ref().map(|filters| filters.of(node))
    }

    /// Returns `true` if only one worker is allowed.
    pub(crate) fn is_alone(&self) -> bool {
        self.is_in_order || self.threads == Some(NonZeroUsize::MIN)
    }

    /// Returns how many workers a run may have.
    ///
    /// These are as many as the caller allows, or else one for each core that the process may use,
    /// and more if they wait. The limits on open descriptors and on address space bound both.
    pub(super) fn limits(&self) -> Limits {
        if self.is_alone() {
            return Limits::of(1);
        }
        let started = sys::address_space_limit() / ADDRESS_SPACE_PER_THREAD;
        let started = usize::try_from(started).unwrap_or(usize::MAX);
        let within = descriptors::max_workers().min(started.saturating_add(1));
        if let Some(asked) = self.threads {
            return Limits::of(asked.get().min(within));
        }
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let waiting = MOST_WAITING.max(cores);
        Limits {
            computing: cores.min(within),
            waiting: waiting.min(within),
        }
    }
}

/// The tuning of one operation on one filesystem.
pub(crate) struct Tuning {
    pub(crate) second_worker: SecondWorker,
    /// Time per entry without content from which another worker gets half of the rest of a listing. The rest of a wide
    /// directory is offered in any case. [`Duration::MAX`] if two workers are never faster than one in the same directory.
    pub(crate) share_from: Duration,
    /// The groups in which workers keep apart.
    pub(crate) groups: Option<AllocationGroups>,
    /// `true` if directories are entered when they are listed, with [`enter_at_once`](super::enter_at_once).
    pub(crate) enters_early: bool,
}

impl Tuning {
    /// The tuning of a single worker.
    pub(super) const ALONE: Self = Self {
        second_worker: SecondWorker::SeldomPays,
        share_from: Duration::MAX,
        groups: None,
        enters_early: false,
    };

    /// Returns the tuning of a removal from the filesystem of `dir`, if that is known.
    ///
    /// Any entry may be a large file, because a listing has no sizes. Without an offer of the rest, the other workers
    /// wait until that file is gone. Removing a file of 500 MB among 10,000 of 4 KB then takes 1.53 of the time on tmpfs,
    /// 1.24 on ext4 and 0.99 on btrfs; removing 100,000 empty files in one directory takes 1.04, 1.05 and 1.04 (two
    /// cores of an Intel Xeon, 7 and 9 rounds). On an AMD EPYC, before started threads moved, it was 0.94 for the empty
    /// files on tmpfs. On XFS the large file takes 0.76 of the time without offers. Cells: large-remove-among,
    /// remove-flat.
    ///
    /// The files after a large one may be large, too. Removing ten files of 31 to 164 MB on tmpfs, two cores, takes 1.05
    /// of the time without offers of halves (8 trees, 5 rounds each). Cell: remove-10-1gb.
    pub(crate) fn of_removal(dir: Option<BorrowedFd<'_>>) -> Self {
        let filesystem = dir.map_or(Filesystem::OTHER, Filesystem::of);
        Self {
            second_worker: filesystem.removal,
            share_from: match filesystem.shares_removal {
                true => SHARE_REMOVAL_FROM,
                false => Duration::MAX,
            },
            ..Self::ALONE
        }
    }

    /// Returns the tuning of a copy to the filesystem of `dest`, if that is known.
    ///
    /// Offers of halves are worse, because a server makes one change in a directory at a time. Copying 1,500 files
    /// in 8 directories to a server: 1.19 of the time if it answers after 1 ms, 1.24 after 0.1 ms (7 rounds). Similar
    /// cells: slow-1ms-copy-256 and slow-0.1ms-copy-256.
    pub(crate) fn of_copy(dest: Option<BorrowedFd<'_>>) -> Self {
        let filesystem = dest.map_or(Filesystem::OTHER, Filesystem::of);
        let groups = dest.filter(|_| filesystem.has_groups);
        let groups = groups.and_then(AllocationGroups::of);
        Self {
            second_worker: match groups {
                Some(_) => SecondWorker::Pays,
                None => filesystem.copy,
            },
            share_from: SHARE_EMPTY_FROM,
            groups,
            enters_early: filesystem.directories_first,
        }
    }
}

/// Returns the tuning of a walk. The first call looks at the filesystem.
pub(crate) fn tuning<V: Visitor>(visitor: &V) -> &Tuning {
    let settings = visitor.settings();
    settings.tuning.get_or_init(|| {
        let found = visitor.tune();
        match settings.is_alone() {
            true => Tuning {
                enters_early: found.enters_early,
                ..Tuning::ALONE
            },
            false => found,
        }
    })
}

/// Returns the zones that a worker is in while it processes the entries of `node`. There are none until the tuning is
/// known.
///
/// While XFS makes a file, it locks the inodes of the directory's group. While it shares the blocks of a file, it locks
/// the blocks of the source's group. These are two locks of a group, so each group is two zones.
///
/// Without zones, two workers in nested directories of XFS wait for each other most of the time. Copying 50,000 files
/// within an XFS of four groups then takes 1.52 of the time with 4 KB and 1.35 without content, and 1.64 from a tmpfs. In
/// 500 directories side by side it takes 1.01 (two cores of an Intel Xeon, 5 to 7 rounds). Cell: xfs-copy-data.
#[inline]
pub(super) fn zones<V: Visitor>(visitor: &V, node: &NodeOf<V>) -> Zones {
    // Only a copy has groups. Without this condition, a removal takes more instructions for each directory. The guard's
    // case `rmz-directories` counts them.
    if !V::Dir::SIDES.contains(&Side::Dest) {
        return Zones::NONE;
    }
    let tuning = visitor.settings().tuning.get();
    let Some(groups) = tuning.and_then(|tuning| tuning.groups) else {
        return Zones::NONE;
    };
    let zone = |&side: &Side| {
        let group = groups.group(node.dir.slot(side).identity()?)?;
        Some(group << 1 | u64::from(side == Side::Dest))
    };
    let zones = V::Dir::SIDES.iter().filter_map(zone);
    zones.fold(Zones::NONE, Zones::plus)
}

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
/// Cells: remove-100k, remove-5-per-dir, copy-100k. In a directory of 10,000 others with 10 files each, 64 workers are idle
/// for 14 % of the time, and for 24 % with 64 (simulated by `sched/gate/tests/simulation.rs`).
pub(super) const MAX_BATCH: usize = 256;
/// The most workers while they wait for a disk or a server.
///
/// Copying 1,500 files in 256 directories to a server that answers after 10 ms: 32 take 1.02 of the
/// time. A similar cell: slow-1ms-copy-256.
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
const MANY_CHILDREN: usize = 512;
/// The same for each active worker, if that is more.
///
/// In a directory of 100,000 others, 16 and 64 workers are idle for 3 and 6 % of the time, and for 11 and 39 % if every
/// listing pauses after [`MANY_CHILDREN`] (simulated by `sched/gate/tests/simulation.rs`).
const CHILDREN_PER_WORKER: usize = 128;

/// Returns `true` if a listing that has queued so many subdirectories pauses.
pub(super) fn are_many_children(children: usize, active_workers: impl FnOnce() -> usize) -> bool {
    children >= MANY_CHILDREN && children >= active_workers() * CHILDREN_PER_WORKER
}

/// Time per entry of a removal from which an idle worker gets a part of the listing: the kernel frees about 10 MB in
/// this time.
const SHARE_REMOVAL_FROM: Duration = Duration::from_millis(1);
/// Bytes on the disk of a file whose removal takes long enough to start another worker before.
///
/// Removing ten files in one directory on tmpfs, two cores, without the look at the first file: 1.12 of the
/// time with files of 1 MB, 1.04 with files of 250 KB (40 rounds). A similar cell: remove-10-1gb.
pub(super) const SLOW_BYTES: u64 = 1 << 20;
/// Time per entry without content from which an idle worker gets a part of the listing of a copy.
///
/// Copying 1,500 files in one directory to a server that answers after 0.1 ms: with 1 ms 2.1 of the
/// time. Cell: slow-0.1ms-copy-flat. Copying 2,000 empty files in one directory on ext4: with 12 µs 1.1 of
/// the time (41 rounds).
const SHARE_EMPTY_FROM: Duration = Duration::from_micros(100);
/// The same for entries with content, which is copied without a lock of the directory.
///
/// Copying 1,000 files of 16 KiB in one directory with 100 µs: 1.13 of the time on ext4, 1.06 on tmpfs
/// (41 rounds, two cores).
pub(super) const SHARE_CONTENT_FROM: Duration = Duration::from_micros(12);
