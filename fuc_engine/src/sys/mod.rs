//! Every system call on files that the engine makes, and every `unsafe` block.
//!
//! A `dir` and a `name` mean one component in an open directory. Only for an
//! operand itself, or the directory that it is to be copied into, is `dir` the
//! working directory and `name` a whole path. Links in a last component are
//! followed only where the caller says [`Symlinks::Follow`], and by [`open_existing`]
//! and [`create_through_link`], which write through a link as `cp` does.
#![allow(unsafe_code)]

mod attributes;
mod calls;
mod identity;
mod listing;
mod path_fd;
mod rename;
mod slot;
mod times;

pub(crate) use attributes::*;
pub(crate) use calls::*;
pub(crate) use identity::{FileId, Identity, identity};
pub(crate) use listing::{Entries, Entry, Listing};
pub(crate) use path_fd::{At, InodeError, PathFd};
pub(crate) use rename::{rename, rename_to_new};
pub(crate) use slot::{DirSlot, Pinned, close_checked};
#[cfg(test)]
pub(crate) use times::stat_with_times;
pub(crate) use times::{FileTime, modified, times};
