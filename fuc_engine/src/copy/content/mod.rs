//! Moves a file's content from one open file to another.
//!
//! - [`ladder`]: the ways to move content, best first.
//! - [`holes`]: copies the data between the holes of a sparse source.
//! - [`read_ahead`]: lets the kernel read the source of a server ahead.
//! - [`range`]: copies a range of a file that several workers copy.
//! - [`sparse`]: writes content and leaves holes.
//!
//! Nothing here knows entries, paths or reports.

use rustix::io::Errno;

mod holes;
mod ladder;
mod range;
mod read_ahead;
mod sparse;

pub(super) use ladder::{ContentCopy, Moved, PIECE_BYTES, Sink, Source, Ways};
pub(super) use range::RangeCopy;
pub(super) use sparse::extend;

/// The reason why content could not be moved, by the side that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentError {
    Read(Errno),
    Write(Errno),
    /// Sharing blocks was required and failed.
    Clone(Errno),
    /// The run was cancelled.
    Cancelled,
}
