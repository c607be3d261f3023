//! The directories in which the relative paths of a run are looked up.

use std::os::fd::{AsRawFd, BorrowedFd};

use super::facts::{FileId, Symlinks};
use crate::sys;

/// The directories in which relative sources and a relative dest are looked up.
#[derive(Clone, Copy)]
pub(super) struct Bases<'a> {
    pub(super) source: BorrowedFd<'a>,
    pub(super) dest: BorrowedFd<'a>,
}

impl Bases<'_> {
    /// Returns `true` if a relative path leads to the same file as a source and as a dest.
    pub(super) fn are_one_directory(self) -> bool {
        let id = |base| {
            let stat = sys::stat(base, c".", Symlinks::Follow);
            stat.ok().map(|stat| FileId::of(&stat))
        };
        let is_one_descriptor = self.source.as_raw_fd() == self.dest.as_raw_fd();
        is_one_descriptor || id(self.source).is_some_and(|source| id(self.dest) == Some(source))
    }
}
