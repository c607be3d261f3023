//! The choice between a run and a dry run.

#[cfg(feature = "distribute")]
use serde::{Deserialize, Serialize};

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
#[cfg_attr(feature = "distribute", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub enum Execution {
    /// The run does its work.
    #[default]
    Real,
    /// The run only reports what a real one would do.
    DryRun,
}
