//! The limits that the process works under.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit on open descriptors to the hard one.
///
/// The engine then closes and reopens fewer directories of deep trees. It also works under a low
/// limit, so a failure is ignored.
pub fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
