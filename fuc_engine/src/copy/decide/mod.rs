//! Decisions about a copy: facts in, a decision out. Nothing here makes a system call, reports
//! or changes anything. A fact that costs a stat comes as a closure, which is called if the
//! decision needs it.
//!
//! - [`mode`]: the modes that dests are created with and end up with.
//! - [`overwrite`]: whether a dest that exists is replaced, how, and whether that would destroy the source.
//! - [`clear`]: what happens to a dest that is in the way of a copy about to be made.
//! - [`times`]: whether a dest is older than its source, and what a filesystem makes of times.

pub(super) mod clear;
pub(super) mod mode;
pub(super) mod overwrite;
pub(super) mod times;
