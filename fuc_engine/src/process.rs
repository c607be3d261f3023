//! Process-wide settings that a command may ask for.
//!
//! The operations of this crate change none of them: what a process ignores or
//! is limited to belongs to its `main`.

use rustix::process::{Resource, getrlimit, setrlimit};

pub use crate::sys::{
    is_affirmative, restore_sigpipe, sigpipe_was_ignored, stderr_was_closed, stdin_was_closed,
    stdout_was_closed,
};

/// Raises the soft limit on open descriptors to the hard one.
///
/// Deep trees are then walked with fewer reopened directories; nothing fails
/// without it. A refusal is ignored.
pub fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum || (limit.current.is_some() && limit.maximum.is_none()) {
        limit.current = limit.maximum;
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
