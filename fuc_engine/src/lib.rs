//! The engine under `rmz` and `cpz`: removes and copies trees as fast as the kernel allows, and never
//! touches a file outside the trees that the caller names.
//!
//! # In one line
//!
//! These functions process every entry that they can, and return the first failure:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let (source, dest) = (dir.path().join("source"), dir.path().join("dest"));
//! # std::fs::create_dir_all(source.join("sub"))?;
//! fuc_engine::copy_tree(&source, &dest)?;
//! fuc_engine::remove_contents(&dest)?;
//! fuc_engine::remove_tree(&source)?;
//! # assert!(dest.is_dir() && !dest.join("sub").exists() && !source.exists());
//! # Ok(())
//! # }
//! ```
//!
//! # Options
//!
//! [`RemoveOp`] and [`CopyOp`] have a field for each option. One value can run any number of times, from
//! any thread.
//!
//! ```
//! use std::num::NonZeroUsize;
//! use fuc_engine::{CopyOp, Preserve, RemoveOp, Replace};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let (source, dest) = (dir.path().join("source"), dir.path().join("dest"));
//! # std::fs::create_dir_all(source.join("sub"))?;
//! let update = CopyOp::new().with(|copy| {
//!     copy.preserve = Preserve::all();
//!     copy.rules.replace = Replace::Older;
//! });
//! let summary = update.copy(&source, &dest)?;
//! println!("{} files, {} bytes", summary.files, summary.bytes);
//!
//! let mut removal = RemoveOp::new();
//! removal.ignore_missing = true;
//! removal.threads = NonZeroUsize::new(2);
//! removal.remove(&source)?;
//! # assert!(dest.join("sub").is_dir() && !source.exists());
//! # Ok(())
//! # }
//! ```
//!
//! # Failures
//!
//! An *operand* is a path that the caller names. An *entry* is an operand, or a name at any depth below one.
//!
//! [`RemoveOp::run`] and [`CopyOp::run`] take an iterator of operands and an [`Observer`]. A failed entry does
//! not end a run: the observer receives the failure, the run goes on with the other entries, and the
//! [`Summary`] counts it. [`Failures`] is an observer that collects them, as is a mutex around a vector.
//! [Warnings](Observer::warned) are not failures.
//!
//! ```
//! use std::io::ErrorKind;
//! use fuc_engine::{Failures, RemoveOp};
//!
//! let failures = Failures::new();
//! let summary = RemoveOp::new().run(["/missing/a".into(), "/missing/b".into()], &failures);
//! assert_eq!((summary.entries, summary.failures), (0, 2));
//! for failure in failures.into_errors() {
//!     assert_eq!(failure.kind(), ErrorKind::NotFound);
//!     eprintln!("{failure}");
//! }
//! ```
//!
//! # Progress
//!
//! An observer can lend [`Counts`] to the run, which another thread reads while the run goes on. That costs
//! next to nothing. [Events](Observer::on_event), one for each entry, cost more: only an observer that
//! [wants](Observer::wants_events) them gets any.
//!
//! ```
//! use std::thread;
//! use std::time::Duration;
//! use fuc_engine::{Failures, RemoveOp};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let tree = dir.path().join("tree");
//! # std::fs::create_dir_all(tree.join("sub")).unwrap();
//! let progress = Failures::new();
//! let summary = thread::scope(|scope| {
//!     let removal = scope.spawn(|| RemoveOp::new().run([tree], &progress));
//!     while !removal.is_finished() {
//!         println!("{} entries", progress.counts().entries());
//!         thread::sleep(Duration::from_millis(100));
//!     }
//!     removal.join().unwrap()
//! });
//! assert_eq!(progress.counts().entries(), summary.entries);
//! ```
//!
//! The program `examples/progress.rs` moves a tree and shows its progress.
//!
//! # Counting ahead
//!
//! [`RemoveOp::count`] and [`CopyOp::count`] count what there is to do, before the run or beside it. So the
//! progress of a run can be shown as a portion of its [work](Counts::work).
//!
//! ```
//! use std::sync::Arc;
//! use fuc_engine::{CopyOp, Counts};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let tree = dir.path().join("tree");
//! # std::fs::create_dir(&tree).unwrap();
//! # std::fs::write(tree.join("file"), "content").unwrap();
//! let ahead = Arc::<Counts>::default();
//! CopyOp::new().count([tree], &ahead);
//! println!("{} entries with {} bytes", ahead.entries(), ahead.bytes());
//! # assert_eq!((ahead.entries(), ahead.bytes()), (2, 7));
//! ```
//!
//! # Cancelling
//!
//! A [`Cancel`] stops the runs that have a clone of it, from any thread or from a signal handler. A cancelled
//! copy removes the incomplete files that it has created. A run that was cancelled has not failed, so look at
//! [`Summary::is_complete`] before you rely on its work.
//!
//! ```
//! use std::sync::Mutex;
//! use fuc_engine::{Cancel, CopyOp, Dest};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let (source, dest) = (dir.path().join("source"), dir.path().join("dest"));
//! let cancel = Cancel::new();
//! let copy = CopyOp::new().cancelled_by(cancel.clone());
//! cancel.cancel(); // Usually another thread does this.
//! let summary = copy.run([source], &Dest::Exactly(dest), &Mutex::new(Vec::new()));
//! assert!(summary.cancelled && !summary.is_complete());
//! ```
//!
//! # Filters
//!
//! A [`Filter`] decides about each entry below the operands before the run looks at it. A closure is one, too.
//! This removal deletes object files, and leaves directories and everything else:
//!
//! ```
//! use std::path::Path;
//! use fuc_engine::{Candidate, RemoveOp, Verdict};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let tree = dir.path().join("tree");
//! # for path in ["a.o", "a.c", "sub/b.o", ".git/c.o"] {
//! #     std::fs::create_dir_all(tree.join(path).parent().unwrap())?;
//! #     std::fs::write(tree.join(path), "")?;
//! # }
//! let filter = |entry: &Candidate<'_>| {
//!     let extension = Path::new(entry.name()).extension();
//!     if entry.name() == ".git" {
//!         Verdict::Prune // It stays, and is not entered.
//!     } else if entry.is_directory() {
//!         Verdict::Skip // It stays, and its entries are decided about.
//!     } else if extension.is_some_and(|extension| extension == "o") {
//!         Verdict::Take // It is removed.
//!     } else {
//!         Verdict::Skip
//!     }
//! };
//! let removal = RemoveOp::new().filtered_by(filter);
//! let summary = removal.remove(&tree)?;
//! assert_eq!((summary.files, summary.directories), (2, 0));
//! # assert!(tree.join("a.c").exists() && tree.join(".git/c.o").exists());
//! # Ok(())
//! # }
//! ```
//!
//! # Dry runs
//!
//! A dry run makes the decisions of a real run, reports its failures and events, and counts what it would do. It
//! changes nothing. [`Execution`] says what it cannot know.
//!
//! ```
//! use fuc_engine::{Execution, RemoveOp};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let tree = dir.path().join("tree");
//! # std::fs::create_dir_all(tree.join("sub"))?;
//! # std::fs::write(tree.join("sub/file"), "content")?;
//! let removal = RemoveOp::new().with(|removal| removal.execution = Execution::DryRun);
//! let summary = removal.remove(&tree)?;
//! println!("{} files of {} bytes would be removed", summary.files, summary.bytes);
//! assert!(tree.exists());
//! # assert_eq!((summary.files, summary.bytes), (1, 7));
//! # Ok(())
//! # }
//! ```
//!
//! # Open directories
//!
//! [`RemoveOp::in_dir`], [`CopyOp::in_dir`] and [`CopyOp::dest_in_dir`] set open directories, in which relative paths
//! are looked up instead of the working directory. So a program does not depend on its working directory, and no other
//! process can lead it elsewhere by renaming a directory above the operands.
//!
//! # Async
//!
//! A run blocks its thread. In an async program, start it by the runtime's function for blocking work. An
//! operation owns its data, so a closure can take it. The run goes on if the future is dropped, unless it is
//! cancelled then:
//!
//! ```
//! # mod tokio {
//! #     pub mod task {
//! #         type Work<T> = Result<T, std::io::Error>;
//! #         pub async fn spawn_blocking<T: Send>(work: impl FnOnce() -> T + Send + 'static) -> Work<T> {
//! #             Ok(work())
//! #         }
//! #     }
//! # }
//! use fuc_engine::{Cancel, RemoveOp};
//!
//! struct CancelOnDrop(Cancel);
//!
//! impl Drop for CancelOnDrop {
//!     fn drop(&mut self) {
//!         self.0.cancel();
//!     }
//! }
//!
//! async fn clean() -> Result<(), Box<dyn std::error::Error>> {
//!     let guard = CancelOnDrop(Cancel::new());
//!     let removal = RemoveOp::new().cancelled_by(guard.0.clone());
//!     tokio::task::spawn_blocking(move || removal.remove("/var/tmp/job")).await??;
//!     Ok(())
//! }
//! ```
//!
//! # Limits
//!
//! - The engine works on Linux only, and needs the Rust version that its manifest names.
//! - It prints nothing, never exits, and does not panic on any input. If an observer panics, the panic continues
//!   in the thread that called the run.
//! - It changes no process-wide state: no working directory, umask, signal or limit.
//! - Threads start only for large trees, and end with the run. They have stacks of 256 KiB.
//! - Relative paths begin at the working directory, unless the caller passes an open directory.
//! - A copy is not a snapshot: a tree that other processes change is copied as each entry is at its turn.
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
//! level of depth takes at most 128 bytes of memory, and a name longer than 21 bytes takes its own length
//! in addition. The number of files takes none, and the number of subdirectories of one directory takes
//! none beyond the first few hundred.

// The modules. Imports point down only. Each folder's `mod.rs` has a map of its files.
//
//  copy/ ─▶ remove/            what happens to operands, entries and finished directories
//      \      /
//       walk/                  lists directories and hands their entries to a removal or a copy
//      /  |   \
//  sched/ node descriptors     workers; unfinished directories; open directories
//      \  |   /
//        sys/                  every system call and every `unsafe`
//         |
//        sync                  atomics and locks that a model checker can replace
//
// | module | content |
// |---|---|
// | `remove/` | `RemoveOp`: removes trees |
// | `copy/` | `CopyOp`: copies trees |
// | `walk/` | one task for each directory, and how a large directory is shared between workers |
// | `sched/` | workers, the gate that holds the tasks of none of them, and the governor that decides how many run |
// | `node` | a directory in flight, and the climb that finishes it and then its ancestors |
// | `descriptors` | the budget of open directories: which are closed, and how they are opened again |
// | `sys/` | the system calls, one function each |
// | `sync` | the atomics and locks that a model checker can replace |
// | `paths` | the paths that a caller names, and which of them may be worked on together |
// | `hashing` | hash tables that need no system call for their seed |
// | `report` | the totals of a run, and its connection to the observer; failures in the order of the operands |
// | `observer` | the public trait `Observer`, with events, questions, counters and the summary |
// | `filter` | the public trait `Filter`, which chooses the entries that a run processes |
// | `setup` | what removals and copies have in common, besides their options: `Execution`, `Cancel`, `Throttle` |
// | `distribute` | how several engines share a removal or a copy; only with its feature |
// | `error` | the public type `Error`: operation, paths, and the kernel's reason |

#[cfg(not(target_os = "linux"))]
compile_error!("fuc_engine needs Linux: it makes system calls that other systems do not have");

/// Leaves out everything on other systems, so that the error above is the only one. rustfmt finds modules in a macro
/// only if it has this name.
macro_rules! cfg_if {
    (if #[$condition:meta] { $($item:item)* }) => { $(#[$condition] $item)* };
}

cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod copy;
        mod descriptors;
        #[cfg(feature = "distribute")]
        pub mod distribute;
        mod error;
        mod filter;
        mod hashing;
        mod node;
        mod observer;
        mod paths;
        mod remove;
        mod report;
        mod sched;
        mod setup;
        mod sync;
        mod sys;
        mod walk;

        pub use copy::{
            Backup, CopyOp, Deletion, Dereference, Dest, DestRules, LinkKind, ModePolicy, Preserve, Reflink,
            Replace, Sparse, Xattrs, copy_tree,
        };
        pub use error::{Cause, Error, Operation, Refusal};
        pub use filter::{Candidate, EnteredDirectory, Filter, Verdict};
        pub use observer::{Change, Counts, Event, Failures, KeepReason, Observer, Question, RemovalTarget, Summary};
        pub use remove::{Ask, RemoveOp, remove_contents, remove_tree};
        pub use setup::{Cancel, Execution, Throttle};
        #[cfg(feature = "private-tables")]
        pub use sys::PrivateTables;

        pub mod gnu {
            //! Contains what only the sentences of GNU cp and rm need.
            //!
            //! Events and questions carry what `cp --debug`, `cp -v`, `cp -i` and `rm -i` show. A program with other
            //! words can ignore it:
            //!
            //! - [`Kind`], and `is_write_protected` and `is_removed_first` of [questions](crate::Question), word a
            //!   question.
            //! - [`CopyMethod`] is what `cp --debug` shows of a [copy](crate::Event::Copied).
            //! - [`Event::Attempted`](crate::Event::Attempted) is a line of `cp -v` about a copy that has failed.
            //! - [`Refusal::FileNamedTwice`](crate::Refusal::FileNamedTwice) and
            //!   [`DirectoryNamedTwice`](crate::Refusal::DirectoryNamedTwice) are one warning in two wordings.

            pub use crate::observer::{CopyMethod, HoleSearch, Kind, Mechanism};
        }
    }
}
