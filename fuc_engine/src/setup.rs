//! Settings that removals and copies share: the directory in which relative paths begin, dry runs, cancellation, and the
//! limit of the rate. The public types are [`Execution`], [`Cancel`] and [`Throttle`].

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::filter::Filter;
use crate::sys::CWD;

/// Says whether a run changes anything.
///
/// A dry run makes the same decisions as a real run, asks the same questions, and reports the same
/// events and failures, but changes nothing. It can only know what can be found out without acting. This is the whole list;
/// the manual pages have it in the words of users.
///
/// - It decides by what is there. Each operand is seen as if nothing had been copied or removed before it, and what it would
///   make is missing in a source that contains it.
/// - A failure that the kernel reports only to the call that acts is missing: a full disk, a quota, an
///   I/O error, a rule of one filesystem or of a security module, a protected file in a directory that may be changed, a
///   device that only root can make, a hard link to another filesystem.
/// - [`Event::Copied`](crate::Event::Copied) has no method, because nothing shows how content would be copied.
/// - Attributes of copies are not set, so the failures and warnings about them are missing, and so are their effects.
/// - Two names that the filesystem of the dests takes for one are not found to be one, nor are a source and a dest with
///   different inode numbers.
/// - A dest that has the time of its source as its filesystem would round it counts as changed, because only a probe shows
///   how it rounds.
/// - A removal takes a directory that cannot be read for one that is not empty.
/// - The changes that other processes make until the real run are unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub enum Execution {
    /// The run does its work.
    #[default]
    Real,
    /// The run only reports what a real one would do.
    DryRun,
}

/// A token that stops the runs that have it.
///
/// Clones are cheap and share their state. A run checks the token before each task, between
/// batches of at most 32 entries, and between the pieces of a file of more than 16 MiB. It then skips
/// the rest of its work, and its [`Summary`](crate::Summary) says so.
///
/// ```
/// use fuc_engine::{Cancel, RemoveOp};
///
/// # fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// # let tree = dir.path().join("tree");
/// # std::fs::create_dir(&tree)?;
/// let cancel = Cancel::new();
/// cancel.cancel();
/// let removal = RemoveOp::new().cancelled_by(cancel);
/// let summary = removal.run([tree.clone()], &std::sync::Mutex::new(Vec::new()));
/// assert!(summary.cancelled && tree.exists());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Creates a token that stops nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the runs that have this token or a clone of it. It cannot be undone.
    ///
    /// This only stores to an atomic, so a signal handler may call it.
    pub fn cancel(&self) {
        // Relaxed: no other data is published with it.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if [`cancel`](Self::cancel) was called.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Limits the speed of a run, for disks and servers with other users.
pub trait Throttle: fmt::Debug + Sync {
    /// Waits until the run may go on, after it has processed so many entries and copied so many bytes of content.
    ///
    /// It is called after each entry that the run finds in a directory, directories included, and for each that
    /// another engine has given, but not for operands. So it is called twice for a directory that changes hands. Of a
    /// large file, it is called after each piece of at most 8 MiB. Blocks that are shared with the source count, too.
    ///
    /// A worker does nothing else until the call returns. So in a run that may be [cancelled](crate::Cancel), it
    /// must return soon after that.
    fn wait(&self, entries: u64, bytes: u64);
}

/// The way to the other engines that work on the operands. There are none without the feature.
#[cfg(feature = "distribute")]
pub(crate) type OtherEngines<'a> = &'a dyn crate::distribute::Exchange;
#[cfg(not(feature = "distribute"))]
pub(crate) type OtherEngines<'a> = &'a std::convert::Infallible;

/// An open directory in which an operation looks up relative paths.
#[derive(Clone, Debug)]
pub(crate) enum BaseDir<'a> {
    Borrowed(BorrowedFd<'a>),
    Owned(Arc<OwnedFd>),
}

impl AsFd for BaseDir<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Borrowed(dir) => *dir,
            Self::Owned(dir) => dir.as_fd(),
        }
    }
}

/// The surroundings of a run.
#[derive(Clone)]
pub(crate) struct Setup<'a> {
    /// The directory in which operands that are relative paths are looked up.
    pub(crate) dir: BaseDir<'a>,
    pub(crate) cancel: Option<Cancel>,
    pub(crate) filter: Option<Arc<dyn Filter>>,
    pub(crate) throttle: Option<&'a dyn Throttle>,
    pub(crate) exchange: Option<OtherEngines<'a>>,
    /// Another engine begins the operands.
    pub(crate) assists: bool,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            dir: BaseDir::Borrowed(CWD),
            cancel: None,
            filter: None,
            throttle: None,
            exchange: None,
            assists: false,
        }
    }
}

impl Setup<'_> {
    /// Returns `true` if several engines may copy parts of a file of so many bytes.
    #[cfg(feature = "distribute")]
    pub(crate) fn divides(&self, bytes: u64) -> bool {
        self.exchange
            .is_some_and(|exchange| exchange.divides(bytes))
    }

    #[cfg(not(feature = "distribute"))]
    pub(crate) fn divides(&self, _: u64) -> bool {
        false
    }
}

impl fmt::Debug for Setup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").finish_non_exhaustive()
    }
}

/// Writes the methods of an operation that make it and change its `setup`.
macro_rules! setup_methods {
    ($op:ident) => {
        impl<'a> $op<'a> {
            /// Creates an operation with the default options.
            #[must_use]
            pub fn new() -> Self {
                Self::default()
            }

            /// Changes options: `change` sets them.
            #[must_use]
            pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
                change(&mut self);
                self
            }

            /// Looks up operands that are relative paths in the open directory `dir`, not in the working directory.
            /// The path `.` is `dir` itself.
            ///
            /// The directory may be renamed or replaced by another at any time: only the open one matters. Errors and
            /// events have the paths as given; see [`Error::below`](crate::Error::below).
            #[must_use]
            pub fn in_dir(mut self, dir: &'a impl ::std::os::fd::AsFd) -> Self {
                self.setup.dir = $crate::setup::BaseDir::Borrowed(dir.as_fd());
                self
            }

            /// Does the same as [`in_dir`](Self::in_dir) with a directory that the operation owns, alone or together with
            /// others. Such an operation can move into another thread.
            ///
            /// ```
            /// use std::fs::File;
            /// use std::os::fd::OwnedFd;
            /// use std::thread;
            /// use fuc_engine::{Failures, RemoveOp};
            ///
            /// # let scratch = tempfile::tempdir().unwrap();
            /// # std::fs::create_dir_all(scratch.path().join("doomed/sub")).unwrap();
            /// let dir = OwnedFd::from(File::open(scratch.path()).unwrap());
            /// let removal = RemoveOp::new().in_owned_dir(dir);
            /// let run = move || removal.run(["doomed".into()], &Failures::new());
            /// assert_eq!(thread::spawn(run).join().unwrap().entries, 2);
            /// ```
            #[must_use]
            pub fn in_owned_dir(
                mut self,
                dir: impl Into<::std::sync::Arc<::std::os::fd::OwnedFd>>,
            ) -> Self {
                self.setup.dir = $crate::setup::BaseDir::Owned(dir.into());
                self
            }

            /// Lets `cancel` stop the runs of this operation. It replaces an earlier token.
            #[must_use]
            pub fn cancelled_by(mut self, cancel: $crate::Cancel) -> Self {
                self.setup.cancel = Some(cancel);
                self
            }

            /// Lets `filter` choose the entries that are processed; [`Verdict`](crate::Verdict) says how. Clones of
            /// this operation share the filter.
            #[must_use]
            pub fn filtered_by(mut self, filter: impl $crate::Filter + 'static) -> Self {
                self.setup.filter = Some(::std::sync::Arc::new(filter));
                self
            }

            /// Limits the speed of the runs.
            #[must_use]
            pub fn throttled_by(mut self, throttle: &'a dyn $crate::Throttle) -> Self {
                self.setup.throttle = Some(throttle);
                self
            }

            /// Lets a run share the work on the operands with other engines by `exchange`, as
            /// [`distribute`](crate::distribute) describes. All have the same operands and options, and one leads.
            ///
            /// A relative path must name the same file for each engine. If it does not, an engine that assists gives the
            /// work back undone.
            ///
            /// # Panics
            /// A run panics if the system refuses the thread that talks to the other engines.
            #[cfg(feature = "distribute")]
            #[must_use]
            pub fn shared_by(
                mut self,
                exchange: &'a dyn $crate::distribute::Exchange,
                role: $crate::distribute::Role,
            ) -> Self {
                self.setup.exchange = Some(exchange);
                self.setup.assists = role == $crate::distribute::Role::Assistant;
                self
            }
        }
    };
}

pub(crate) use setup_methods;
