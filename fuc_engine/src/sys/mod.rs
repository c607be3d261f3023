//! Every system call the engine makes, and every `unsafe` block.
//!
//! Invariant for the rest of the crate: a function here that takes a `dir` and
//! a `name` never resolves more than that one component, unless its
//! documentation says that it takes an operand's path.
#![allow(unsafe_code)]

mod calls;
mod listing;
mod signal;
mod slot;

pub(crate) use calls::*;
pub(crate) use listing::{Entry, Listing};
pub use signal::{restore_sigpipe, sigpipe_was_ignored, stdout_was_closed};
pub(crate) use slot::{DirSlot, Identity, Pinned, close_checked};
