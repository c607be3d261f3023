//! The engine under `rmz` and `cpz`: removes and copies trees as fast as the kernel allows, and never
//! touches a file outside the trees that the caller names.
//!
//! # Use
//!
//! These two functions process every entry that they can, and return the first failure:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let (source, dest) = (dir.path().join("source"), dir.path().join("dest"));
//! # std::fs::create_dir_all(source.join("sub"))?;
//! fuc_engine::copy_tree(&source, &dest)?;
//! fuc_engine::remove_tree(&source)?;
//! # assert!(dest.join("sub").is_dir() && !source.exists());
//! # Ok(())
//! # }
//! ```
//!
//! [`RemoveOp`] and [`CopyOp`] take any number of operands, options, and an [`Observer`]. The observer
//! receives every failure and, if it wants, every event. A failed entry does not end a run: it is
//! reported, the run goes on with the other entries, and the [`Summary`] counts the failure.
//!
//! The engine prints nothing, never exits, and does not panic on any input. It changes no process-wide
//! state: no working directory, umask, signal or limit.
//!
//! # How it works
//!
//! To create or remove a name, the kernel locks the directory. So two threads in one directory mostly
//! wait for each other, and two threads in two directories do not. Hence there is one task for each
//! directory. A copy task lists its directory, copies the files, and queues a task for each
//! subdirectory. A removal must wait until a directory is empty, but no parent waits for its children:
//! *children finish their parents*. A directory counts its users. The worker that drops the last use
//! removes the directory, and then does the same one level up.
//!
//! A run begins on the caller's thread. Other threads start only if it still has tasks to give away
//! after 0.4 ms. The engine measures the throughput and keeps only as many threads active as
//! increase it: on some filesystems that is one.
//!
//! # Safety of the tree
//!
//! Below an operand, every system call takes an open directory and a single name, and directories are
//! opened without following symbolic links. So no file outside an operand is reached, even if another
//! process replaces directories by links during the run. No limit on the length of a path applies. A
//! level of depth takes less than 150 bytes of memory. The number of files takes none, and the number
//! of subdirectories of one directory takes none beyond the first few hundred.
//!
//! # The modules
//!
//! Imports point down only. Each folder's `mod.rs` has a map of its files.
//!
//! ```text
//!  remove/  copy/              what happens to operands, entries and finished directories
//!      \      /
//!       walk/                  lists directories and hands their entries to a removal or a copy
//!      /  |   \
//!  sched/ node descriptors     workers; unfinished directories; open directories
//!      \  |   /
//!        sys/                  every system call and every `unsafe`
//!         |
//!        sync                  atomics and locks that a model checker can replace
//! ```
//!
//! | module | content |
//! |---|---|
//! | `remove/` | [`RemoveOp`]: removes trees |
//! | `copy/` | [`CopyOp`]: copies trees |
//! | `walk/` | one task for each directory, and how a large directory is shared between workers |
//! | `sched/` | workers, the channel between them, and the governor that decides how many run |
//! | `node` | a directory in flight, and the climb that finishes it and then its ancestors |
//! | `descriptors` | the budget of open directories: which are closed, and how they are opened again |
//! | `sys/` | the system calls, one function each |
//! | `sync` | the atomics and locks that a model checker can replace |
//! | `operand` | the paths that a caller names, and which of them may be worked on together |
//! | `hashing` | hash tables that need no system call for their seed |
//! | `report` | the totals of a run, and its connection to the observer |
//! | `failures` | reports failures and warnings in the order of the operands |
//! | `observer` | the public trait [`Observer`], with events, questions, counters and the summary |
//! | `cancel` | the public type [`Cancel`], which stops runs before their end |
//! | `setters` | writes the builder methods of operations and options |
//! | `execution` | the public type [`Execution`], which chooses a dry run |
//! | `error` | the public type [`Error`]: operation, paths, and the kernel's reason |

#[cfg(not(target_os = "linux"))]
compile_error!("fuc_engine needs Linux: it makes system calls that other systems do not have");

mod cancel;
mod copy;
mod descriptors;
mod error;
mod execution;
mod failures;
mod hashing;
mod node;
mod observer;
mod operand;
mod remove;
mod report;
mod sched;
mod setters;
mod sync;
mod sys;
mod walk;

pub use cancel::Cancel;
pub use copy::{
    Backup, BackupNaming, CopyOp, CopyOptions, Dereference, Dest, DestRules, LinkKind, ModePolicy,
    Preserve, Reflink, Replace, Sparse, Xattrs, copy_tree,
};
pub use error::{Cause, Errno, Error, Operation, Refusal};
pub use execution::Execution;
pub use observer::{
    Answer, CopyMethod, Counts, Event, HoleDetection, Kind, Mechanism, Observer, OverwriteTarget,
    Protection, Question, RemovalTarget, Summary,
};
pub use remove::{Ask, RemoveOp, RemoveOptions, remove_contents, remove_tree};
