//! Dests that exist: the only place that acts on them before a copy is made.
//!
//! - [`overwrite`]: applies the rules for existing dests.
//! - [`clear`]: makes room for a copy whose creation failed with `EEXIST`.
//! - [`open`]: creates or opens a dest file, and empties it.
//! - [`backup`]: renames dests to backups, and back.
//! - [`backup_names`]: the names of backups.

pub(super) mod backup;
pub(super) mod backup_names;
pub(super) mod clear;
pub(super) mod open;
pub(super) mod overwrite;
