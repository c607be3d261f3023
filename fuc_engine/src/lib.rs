//! The engine under `rmz` and `cpz`: removes and copies trees as fast as the
//! kernel allows, and touches nothing that was not named.
//!
//! # Use
//!
//! One line each, where the first failure is all one wants to know:
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
//! [`RemoveOp`] and [`CopyOp`] take any number of operands, options, and an
//! [`Observer`] that hears of every failure and, if it wants to, of everything
//! that is done. A failed entry never ends a run: it is reported, the rest is
//! done, and the [`Summary`] counts it.
//!
//! The engine prints nothing, never exits, does not panic on input, and changes
//! no process-wide state: not the working directory, not the umask, no signal,
//! no limit.
//!
//! # How it works
//!
//! Creating or removing a name locks its directory, so two threads in one
//! directory mostly wait for each other, and two threads in two directories
//! don't. Hence one task per directory. A copy task lists its directory, copies
//! what is in it, and queues a task for each sub-directory. A removal has to
//! wait until a directory is empty; instead of parents that wait for children,
//! *children finish their parents*: a directory counts its users, and whoever
//! is the last one removes it and does the same one level up.
//!
//! ```text
//!  RemoveOp  CopyOp        options, operands, what is done with an entry
//!      \      /
//!       walk               tasks: enter, resume, batch, rest
//!      /  |   \
//!  sched node descriptors  who runs what; who finishes whom; what stays open
//!      \  |   /
//!        sys               every system call and every `unsafe`
//! ```
//!
//! Threads are started when there is a backlog worth it and only as many are
//! kept active as raise the throughput: on some filesystems that is one.
//!
//! # Safety of the tree
//!
//! Every call below an operand is relative to an open directory and takes a
//! single name; directories are opened without following links. So nothing
//! outside an operand is reached, even if somebody swaps directories for links
//! meanwhile, and no limit on the length of a path applies. A level of depth
//! takes less than 150 bytes; the number of files takes none, and that of
//! sub-directories in one directory none beyond the first few hundred.

mod copy;
mod descriptors;
mod error;
mod node;
mod observer;
mod operand;
mod remove;
mod report;
mod sched;
mod sys;
mod walk;

pub use copy::{
    Backup, BackupNaming, CopyOp, CopyOptions, Dereference, Dest, DestRules, LinkKind, ModePolicy,
    Preserve, Reflink, Replace, Sparse, Xattrs, copy_tree,
};
pub use error::{Cause, Error, Operation, Refusal};
pub use observer::{
    Answer, CopyMethod, Counts, Event, HoleDetection, Kind, Mechanism, Observer, OverwriteTarget,
    Protection, Question, RemovalTarget, Summary,
};
pub use remove::{Ask, RemoveOp, RemoveOptions, remove_tree};
/// The kernel's error numbers, as [`Error::errno`] gives them.
pub use rustix::io::Errno;
