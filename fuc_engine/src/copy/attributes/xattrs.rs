//! Copies extended attributes from one inode to another.

use std::ffi::CStr;

use rustix::io::Errno;

use crate::sys::Inode;
use crate::sys::InodeError::{self, Failed};

/// Copies the attributes with these names, as many as possible. The first failure is returned.
pub(super) fn copy<'n>(
    source: &Inode<'_>,
    dest: &Inode<'_>,
    names: impl Iterator<Item = &'n CStr>,
) -> Result<(), InodeError> {
    let mut outcome = Ok(());
    let mut writable = None;
    for name in names {
        let copied = source.xattr(name).and_then(|value| {
            match dest.set_xattr(name, &value) {
                // The owner of a file may set its attributes only if the file is writable, so make
                // it writable.
                Err(Failed(Errno::ACCESS | Errno::PERM)) if writable.is_none() => {
                    writable = Some(Writable::make(dest)?);
                    dest.set_xattr(name, &value)
                }
                set => set,
            }
        });
        match copied {
            // The attribute was removed after it was listed.
            Ok(()) | Err(Failed(Errno::NODATA)) => {}
            Err(error) => outcome = outcome.and(Err(error)),
        }
    }
    match writable {
        Some(writable) => outcome.and(writable.restore(dest).map_err(Failed)),
        None => outcome,
    }
}

/// A dest that is made writable for its owner until [`restore`](Self::restore).
struct Writable {
    mode_before: u32,
}

impl Writable {
    fn make(dest: &Inode<'_>) -> Result<Self, Errno> {
        let mode_before = dest.stat()?.st_mode & 0o7777;
        if mode_before & 0o200 == 0 {
            dest.set_mode(mode_before | 0o200)?;
        }
        Ok(Self { mode_before })
    }

    fn restore(&self, dest: &Inode<'_>) -> Result<(), Errno> {
        if self.mode_before & 0o200 == 0 {
            dest.set_mode(self.mode_before)?;
        }
        Ok(())
    }
}

/// Splits a list of names, each of which ends with a NUL.
pub(super) fn names_in(list: &[u8]) -> impl Iterator<Item = &CStr> {
    list.split_inclusive(|&byte| byte == 0)
        .filter_map(|name| CStr::from_bytes_with_nul(name).ok())
}
