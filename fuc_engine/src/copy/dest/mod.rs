//! Dests that exist: the only place that decides to rename, unlink or truncate a dest that was there
//! before its copy.
//!
//! - [`overwrite`]: applies the rules for existing dests.
//! - [`clear`]: makes room for a copy whose creation failed with `EEXIST`.
//! - [`alias`]: finds out whether a dest is the source, or equal to it.
//! - [`open`]: creates or opens a dest file, and truncates it.
//! - [`time_probe`]: asks the filesystem of a dest which times it stores.
//! - [`backup`]: renames dests to backups, and back.
//! - [`backup_names`]: the names of backups.

mod alias;
pub(super) mod backup;
pub(super) mod backup_names;
pub(super) mod clear;
pub(super) mod open;
pub(super) mod overwrite;
pub(super) mod time_probe;
