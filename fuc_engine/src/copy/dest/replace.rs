//! Replaces a dest by a link, in one step.

use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;

use crate::copy::context::Context;
use crate::copy::facts::Entry;
use crate::copy::names;
use crate::operand;
use crate::sys;

/// Creates the link under a temporary name and renames it to the dest, so that the dest never
/// lacks a file.
pub(in crate::copy) fn replace(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    mut create: impl FnMut(&CStr) -> Result<(), Errno>,
) -> Result<(), Errno> {
    /// Makes temporary names unique within the process.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    /// Give up after this many collisions; only an attacker could cause them.
    const TRIES: u32 = 1000;
    let (directory, _) = match entry.node {
        Some(_) => (&b""[..], entry.dest_name.to_bytes()),
        None => operand::split(entry.dest_name.to_bytes()),
    };
    if ctx.plan.is_some() {
        // The name would be replaced, which takes the same permissions.
        names::unlink(ctx, entry)?;
        return create(entry.dest_name);
    }
    for _ in 0..TRIES {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".cpz-{}-{number}", std::process::id());
        let name = CString::new([directory, name.as_bytes()].concat())
            .expect("BUG: a NUL within a C string or a number");
        match create(&name) {
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
            Ok(()) => {
                let renamed = sys::rename(entry.dest_dir, &name, entry.dest_name);
                // The name is still there if the rename failed, or if both were one file.
                let _ = sys::unlink(entry.dest_dir, &name);
                return renamed;
            }
        }
    }
    Err(Errno::EXIST)
}
