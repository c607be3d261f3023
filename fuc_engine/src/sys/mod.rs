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
//! | `names` | creates, renames and removes names; the name of a directory in flight |
//! | `open` | opens files and directories, closes them with a check |
//! | `fd` | descriptors, the tables of threads, and which threads may use them |
//! | `slot` | a directory's descriptor that may be closed and opened again |
//! | `stat` | which file it is, and facts about it; compares times |
//! | `inode` | times, owner, mode and extended attributes of one inode, even if a descriptor only names it |
//! | `acl` | ACLs as bytes |
//! | `data` | moves the content of open files |
//! | `listing` | reads directory entries, a buffer at a time |
//! | `filesystem` | facts about the filesystem of a file |
//! | `groups` | the allocation groups of XFS |
//! | `process` | facts about this process |
//! | `thread` | begins a thread: with a descriptor table, and on another processor |
//! | `calls` | a name as the argument of calls; repeats calls that a signal has interrupted; calls by number; paths through `/proc` |
#![allow(unsafe_code)]

mod acl;
mod calls;
mod data;
mod fd;
mod filesystem;
mod groups;
mod inode;
mod listing;
mod names;
mod open;
mod process;
mod slot;
mod stat;
mod thread;

pub(crate) use rustix::fs::{CWD, Dev as Device, Stat};

pub(crate) use acl::{ACCESS_ACL, DEFAULT_ACL, is_nfs4_acl_of_mode, mode_without_acl, plain_acl};
pub(crate) use calls::{At, Symlinks};
pub(crate) use data::{
    WriteBack, check_content, clear_nonblock, clone_file, drop_cache, punch_hole, read, read_ahead,
    read_at, seek, set_size, sync_directory, sync_file, sync_filesystem, try_copy_range, write_all,
    write_all_at, write_back,
};
#[cfg(feature = "private-tables")]
pub use fd::PrivateTables;
#[cfg(not(feature = "private-tables"))]
pub(crate) use fd::PrivateTables;
pub(crate) use fd::{Fd, SharedFd, ThreadUse, close_orphans, duplicate, end_run};
pub(crate) use filesystem::{
    Filesystem, SecondWorker, Storage, free_bytes, keeps_identities, longest_name,
    may_be_one_filesystem,
};
pub(crate) use groups::AllocationGroups;
pub(crate) use inode::{Inode, PathOnly, matches_pattern, read_xattr_conf};
pub(crate) use listing::{Entries, Listed, Listing, is_empty_directory};
pub(crate) use names::{
    DirName, create_directory, create_hard_link, create_hard_link_to, create_node, create_symlink,
    remove_directory, rename, rename_to_new, unlink,
};
pub(crate) use open::{
    AtimeEffect, Blocking, Uncached, close_checked, create_file, create_in_memory,
    create_through_link, create_unnamed, is_of_another, open_directory, open_directory_noatime,
    open_emptied, open_existing, open_path, open_path_directory, open_source, open_uncached,
};
pub(crate) use process::{
    Usage, address_space_limit, descriptor_limit, effective_user, is_since_boot,
    may_change_files_of_others, memory_limit, prepare_for_threads, random_at_start, umask, usage,
};
pub(crate) use slot::{DirSlot, Pinned};
pub(crate) use stat::{
    DirStat, FileId, FileTime, Identity, Mount, changed, check_adding, check_reading,
    check_writing, file_type, is_append_only, is_directory, is_regular, is_same_directory, links,
    modified, read_link, stat, stat_directory, stat_open, times,
};
pub(crate) use thread::Starter;
