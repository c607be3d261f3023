//! Every system call on files that the engine makes, and every `unsafe` block.
//!
//! A `dir` and a `name` mean one component in an open directory. Only for an operand itself, or for
//! the directory that it is copied into, is `dir` the working directory and `name` a whole path.
//! Symbolic links in a last component are followed only if the caller says [`Symlinks::Follow`]. One
//! function always follows them, as `cp` does: [`create_through_link`].
//!
//! The calls are repeated when a signal interrupts them, but not for ever.
//!
//! | file | content |
//! |---|---|
//! | `at` | a name in a directory, and whether a link there is followed |
//! | `open` | opens files and directories, closes them with a check |
//! | `fd` | descriptors, and the threads that may use them |
//! | `table` | the descriptor tables of threads |
//! | `stat` | reads facts about files, and compares their times |
//! | `identity` | which file a descriptor or a name stands for |
//! | `names` | creates, renames and removes names |
//! | `data` | moves the content of open files |
//! | `dir_name` | the name of a directory in flight |
//! | `listing` | reads directory entries, a buffer at a time |
//! | `slot` | a directory's descriptor that may be closed and opened again |
//! | `inode` | times, owner, mode and extended attributes of one inode |
//! | `path_fd`, `path_only` | the same if a descriptor only names the inode |
//! | `xattr` | the calls on extended attributes, in all their forms |
//! | `acl` | ACLs as bytes |
//! | `interrupted` | repeats calls that a signal has interrupted |
//! | `raw` | system calls by number |
//! | `filesystem` | facts about the filesystem of a file |
//! | `groups` | the allocation groups of XFS |
//! | `process` | facts about this process |
//! | `processor` | moves a thread to another processor |
#![allow(unsafe_code)]

mod acl;
mod at;
mod data;
mod dir_name;
mod fd;
mod filesystem;
mod groups;
mod identity;
mod inode;
mod interrupted;
mod listing;
mod names;
mod open;
mod path_fd;
mod path_only;
mod proc;
mod process;
mod processor;
mod raw;
mod slot;
mod stat;
mod table;
mod xattr;

pub(crate) use rustix::fs::{CWD, Dev as Device, Stat};

pub(crate) use acl::*;
pub(crate) use at::{At, Symlinks};
pub(crate) use data::*;
pub(crate) use dir_name::DirName;
pub(crate) use fd::{Borrowed, Fd, SharedFd};
pub(crate) use filesystem::*;
pub(crate) use groups::AllocationGroups;
pub(crate) use identity::{FileId, Identity, device_of};
pub(crate) use inode::Inode;
pub(crate) use listing::{Entries, Listed, Listing, is_empty_directory};
pub(crate) use names::*;
pub(crate) use open::*;
pub(crate) use path_fd::InodeError;
pub(crate) use path_only::PathOnly;
pub(crate) use process::*;
pub(crate) use processor::StarterProcessor;
pub(crate) use slot::{DirSlot, Pinned};
pub(crate) use stat::*;
#[cfg(feature = "private-tables")]
pub use table::PrivateTables;
#[cfg(not(feature = "private-tables"))]
pub(crate) use table::PrivateTables;
pub(crate) use table::{InheritedTable, TableUse, close_orphans, end_run};
pub(crate) use xattr::{matches_pattern, read_xattr_conf};
