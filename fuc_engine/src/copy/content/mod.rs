//! Moves a file's content from one open file to another.
//!
//! - [`ladder`]: the ways to move content, best first.
//! - [`holes`]: copies the data between the holes of a sparse source.
//! - [`read_ahead`]: lets the kernel read the source of a server ahead.
//! - [`range`]: copies a range of a file of which other workers copy other ranges.
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
pub(super) use range::{RangeCopy, RangeEnd};
pub(super) use sparse::{extend, takes_any_order};

/// A piece of content that was moved.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) bytes: u64,
    /// The position of the rest, if other workers could copy a part of it.
    pub(super) rest: Option<u64>,
}

/// Says how a copy goes on after a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Piece,
    /// The copy ends, because other workers want a part of the rest.
    Share,
    /// The run was cancelled.
    Cancel,
}

/// Called between the pieces of a large file. It returns [`Next::Share`] only after a piece with a rest.
type Progress<'p> = &'p mut dyn FnMut(Piece) -> Next;

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
