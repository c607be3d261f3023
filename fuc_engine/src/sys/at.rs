//! Names in directories, as the arguments of calls.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, OFlags};

/// Says what happens if the last component is a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symlinks {
    Follow,
    NoFollow,
}

impl Symlinks {
    pub(super) fn open_flag(self) -> OFlags {
        match self {
            Self::Follow => OFlags::empty(),
            Self::NoFollow => OFlags::NOFOLLOW,
        }
    }

    pub(super) fn at_flag(self) -> AtFlags {
        match self {
            Self::Follow => AtFlags::empty(),
            Self::NoFollow => AtFlags::SYMLINK_NOFOLLOW,
        }
    }
}

/// A name in a directory, and whether a symbolic link there is followed.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) name: &'a CStr,
    pub(crate) symlinks: Symlinks,
}
