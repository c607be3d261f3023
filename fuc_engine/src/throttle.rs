//! The public trait [`Throttle`], which limits the speed of runs.

use std::fmt;

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
