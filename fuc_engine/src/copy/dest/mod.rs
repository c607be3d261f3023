//! Dests that exist: the only place that decides to rename, unlink or truncate a dest that was there
//! before its copy.
//!
//! - [`overwrite`]: applies the rules for existing dests, and asks their filesystem which times it stores.
//! - [`clear`]: makes room for a copy whose creation failed with `EEXIST`.
//! - [`alias`]: finds out whether a dest is the source, or equal to it.
//! - [`open`]: creates or opens a dest file, and truncates it.
//! - [`directory`]: makes or opens a dest directory.
//! - [`backup`]: renames dests to backups, and back.

mod alias;
pub(super) mod backup;
pub(super) mod clear;
pub(super) mod directory;
pub(super) mod open;
pub(super) mod overwrite;
