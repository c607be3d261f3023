//! Large files: when their dests get their names, which of them are written at the same time, and how several
//! engines copy the rest of one.
//!
//! ```text
//! listed ─▶ queued ─▶ may be written now ─▶ copied ─▶ named ─▶ ended
//!             ▲        │ not yet             └▶ halved ─▶ all parts copied ─▶ named ─▶ ended
//!             │        ▼                                                                 │
//!             └────── waits ◀── the next one ────────────────────────────────────────────┘
//! ```
//!
//! - [`naming`]: dests that get their names when they are complete.
//! - [`room`]: the files that are being written, and those that wait for them.
//! - [`halving`]: whether the rest of a file is halved.
//! - [`divided`]: a file of which several engines copy parts.
//!
//! `run/large` leads a file along this way. The sizes from which a file is treated differently are here:
//!
//! | from | a file |
//! |---|---|
//! | 1 MiB | gets its name last, and begins with a trial if a server stores it |
//! | 4 MiB | is a task of its own, waits for room, and is cloned if possible |
//! | 8 MiB | is halved if other engines want a part of it |

pub(super) mod divided;
pub(super) mod halving;
pub(super) mod naming;
pub(super) mod room;

/// Size from which a dest gets its name last, which takes up to four more calls.
///
/// With it, copying 400 files of 1 MiB took 1.00 times as long as without it, and 40 files of 8 MiB 1.02 times (tmpfs, 2
/// cores, 30 runs of each; to repeat it, build with `u64::MAX`).
pub(super) const NAMED_LAST_FROM: u64 = 1 << 20;

/// Size of the smallest file that begins with a trial, which shows whether a server copies. The trial copies a third of
/// it.
pub(super) const TRIAL_FROM: u64 = 1 << 20;

/// Size from which a file is a task of its own.
pub(super) const TASK_FROM: u64 = 4 << 20;

/// Size of the smallest file for which cloning is tried even if the options do not ask for it. For smaller files the
/// extra call does not pay, because `copy_file_range` clones too if the filesystem can.
pub(super) const CLONE_FROM: u64 = 4 << 20;

/// The least content that another engine gets of a file.
///
/// To open its files takes another engine some requests, and to copy this much takes it eight or more.
const HALF_BYTES: u64 = 4 << 20;

/// Memory for each worker that writes a large file.
///
/// In a memory cgroup of 12 to 16 MiB, the kernel killed 4 of 42 copies of 25 files of 8 MB by two
/// workers, and none with 24 MiB (Linux 6.18, a cgroup of version 1).
pub(super) const MEMORY_PER_WRITER: u64 = 12 << 20;
