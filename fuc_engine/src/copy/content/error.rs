//! The reason why content could not be moved.

use rustix::io::Errno;

/// The reason why content could not be moved, by the side that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::copy) enum ContentError {
    Read(Errno),
    Write(Errno),
    /// Sharing blocks was required and failed.
    Clone(Errno),
    /// The run was cancelled.
    Cancelled,
}
