//! The governor's constants, and what they are worth.
//!
//! "Model" is `tests/model.rs`, which runs the governor on simulated machines. Its figures are the
//! throughput of a governed run as a share of the best fixed number's; they are the same on each
//! computer. Other figures are ratios of times on two cores (Linux 6.18, tmpfs unless stated
//! otherwise, medians of 7 to 15 rounds in turn). To repeat them, change the constant and
//! compare both builds on the named cell of `benches`.

use std::time::Duration;

/// The governor lets other workers in after this time, if there is a backlog then. A small tree is
/// done by then.
///
/// Removing and copying 3,000 empty files: 1.6 ms takes 1.07 and 1.08 of the time, 6.4 ms 1.25
/// and 1.30, 0.1 ms 0.97 and 1.03. With 300 files, 0.1 and 1.6 ms are as fast. Cells:
/// remove-10k, copy-10k.
pub(in crate::sched) const FIRST: Duration = Duration::from_micros(400);

/// The shortest measurement, and the delay before one that is too poor is looked at again.
///
/// Model, 16 useful cores, 50 ms: 0.84; with 8 ms 0.48, with 0.5 ms 0.95. Copying 100,000 empty
/// files, 0.5 and 8 ms: 1.00. A delay of 0.05 to 5 ms changes no figure by more than 0.01.
/// Cell: copy-100k.
pub(super) const SHORTEST: Duration = Duration::from_millis(2);

/// A measurement is believed after this time, however long the waits in it.
///
/// Model, a log, two workers worse, 1 s: 0.95; with 10 ms 0.84, with 160 ms 0.97. A log, two
/// workers better, 1 s: 0.99; with 10 ms 1.00, with 160 ms 0.98. Cell: btrfs-remove-data.
pub(super) const LONGEST: Duration = Duration::from_millis(40);

/// A measurement is believed if its longest wait is at most the time divided by this number.
///
/// Model, large files, 250 ms: 1.00; with 2 parts 0.98. 16 useful cores, 50 ms: 0.84; with 100
/// parts 0.75. Cells: copy-10-1gb, btrfs-remove-data.
pub(super) const PARTS: u32 = 6;

/// The same while climbing, if entries are slow; and if more workers are [clearly slower](LOST).
///
/// Model, a server, 70 ms, 1 s: 0.43; with 6 parts 0.15.
pub(super) const FEW_PARTS: u32 = 2;

/// A measurement is believed if at least this share of the workers' time is accounted for.
///
/// Model, a log, two workers worse, 1 s: 0.95; with 0.1 0.86, with 0.9 0.96. Cell: btrfs-remove-data.
pub(super) const ACCOUNTED: f64 = 0.6;

/// More workers are kept if the throughput rises by this factor.
///
/// Model, a log, two workers worse, 1 s: 0.95; with 1.02 0.92, with 1.3 0.96. Copying 100,000
/// empty files beside another process, 1.02 and 1.3: 0.99 and 1.00. Cell: copy-100k.
pub(super) const MORE: f64 = 1.1;

/// Fewer workers are kept if the throughput rises by this factor.
///
/// Model, two workers worse than believed, 1 s: 0.95; with 1.2 0.91, with 1.0 0.95. Copying
/// 100,000 empty files beside another process, 1.0 and 1.2: 0.99 and 1.04. Cell: copy-100k.
pub(super) const FEWER: f64 = 1.05;

/// Workers that are more than the cores and do not wait are halved if the throughput stays at or above
/// this share.
pub(super) const AS_FAST: f64 = 0.98;

/// A measurement of more workers ends after [`FEW_PARTS`] if their throughput is below this share of that before.
///
/// Model, XFS, two worse, 50 ms: 0.98; with 0.8 0.97, without this rule 0.93. A log, two workers worse, 4 s: 0.98, 0.96 and
/// 0.95. No other figure changes. Cells: steady-xfs-remove, steady-xfs-remove-data.
pub(super) const LOST: f64 = 0.9;

/// How long the initial number runs before the governor decides whether the workers wait, unless
/// the first entries were slow.
///
/// Copying 50,000 empty files from a virtual disk with a cold cache, 0.26 s: 2 ms takes 1.00 of
/// the time, 50 ms 1.02. Cell: copy-go-cold.
pub(super) const PROBE_DELAY: Duration = Duration::from_millis(10);

/// Workers may wait if they use less than this share of the processors that they could use.
///
/// Copying 50,000 empty files from a virtual disk with a cold cache: 0.4 takes 1.30 of the time,
/// 0.9 0.99. Two workers that compute on two cores, beside another process, use 0.75. Cells:
/// copy-go-cold, copy-linux-cold.
pub(super) const LOAD: f64 = 0.7;

/// Workers may wait if there is at least one voluntary switch to another thread for so many units of work.
/// A unit is an entry, or 16 KiB.
///
/// Copying 50,000 empty files from one XFS to itself with two workers, the worst of four runs: one for 1,500
/// units. Copying to a server: at least one for each unit.
pub(super) const SWITCHES: f64 = 32.0;

/// Workers read from a disk if they read at least one block of 512 bytes for so many units of work.
pub(super) const BLOCKS: f64 = 8.0;

/// How long the initial number, which is known to be good, is kept before the first trial.
///
/// Model, two cores, 50 ms: 1.00; with 24 ms 0.98. A log, two workers worse, 50 ms: 1.00; with
/// 24 ms 0.90. Two workers worse than believed, 1 s: 0.95; with 24 ms 0.98, with 768 ms 0.82.
/// Cells: copy-100k, btrfs-remove-data.
///
/// On two cores, a single worker is kept for [`HOLD_RANGE`]`[1]` if a second one seldom pays.
pub(super) const INITIAL_HOLD: Duration = Duration::from_millis(192);

/// How long another number is kept at first, and any number at most unless trials take long.
///
/// Model, large files, 250 ms: 1.00; with at most 192 ms 0.95, with 3 s 1.00. A minimum of
/// 6 or 96 ms changes no figure by more than 0.02. Cell: copy-10-1gb.
pub(super) const HOLD_RANGE: [Duration; 2] =
    [Duration::from_millis(24), Duration::from_millis(768)];

/// Trials take about one part in this many of the time.
///
/// Model, two cores and large files, 250 ms: 0.98 and 1.00; with 6 parts 0.94 and 0.93, with 96
/// 0.99 and 1.00. Two workers worse than believed, 250 ms: 0.82; with 96 0.79. Cells: copy-100k,
/// copy-10-1gb.
pub(super) const TRIES: u32 = 24;

/// The number of workers above which a climb pauses if the last doubling gained little. With fewer, a measurement sees too few
/// entries to tell.
pub(super) const MANY: usize = 16;

/// A climb of [many](MANY) workers goes on at once if the throughput rose by this factor.
///
/// Copying 1,500 files to a server that answers after 0.1 ms, in 256 and in 8 directories: without this rule 1.11 and 1.12 of
/// the time (11 rounds). There, 32 workers are best in short runs, 128 in long ones. Cells: slow-0.1ms-copy-256,
/// slow-0.1ms-copy-8.
pub(super) const STEEP: f64 = 1.4;

/// A climb that gained little pauses for this many times as long as its last measurement took.
///
/// Copying 50,000 files to the same server: 24 takes 1.10 of the time (3 rounds). Cell: slow-0.1ms-copy-50k-256.
pub(super) const PAUSE_FACTOR: u32 = 8;
