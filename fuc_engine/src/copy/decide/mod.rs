//! Decisions about a copy: facts in, a decision out. Nothing here makes a system call, reports
//! or changes anything. A fact that costs a stat comes as a closure, which is called if the
//! decision needs it.
//!
//! - [`mode`]: the modes that dests are created with and end up with.
//! - [`overwrite`]: whether a dest that exists is replaced, and how it is prepared for that.
//! - [`clear`]: what happens to a dest that is in the way of a copy about to be made.
//! - [`same_file`]: whether a copy would destroy its source.
//! - [`treatment`]: the four ways to treat a dest that is replaced.
//! - [`newer`]: whether a dest is older than its source.
//! - [`stored_times`]: what a filesystem makes of the times that files are given.

pub(super) mod clear;
pub(super) mod mode;
mod newer;
pub(super) mod overwrite;
pub(super) mod same_file;
pub(super) mod stored_times;
pub(super) mod treatment;
