//! The calls on extended attributes, in all forms that they have.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::fs::{self, XattrFlags};
use rustix::io::Errno;

use super::interrupted::retry_on_intr;
use super::path_fd::InodeOp;

/// A call on extended attributes.
///
/// It returns the number of bytes that it wrote to the buffer, if it has one.
pub(super) enum Xattr<'c> {
    List(&'c mut [u8]),
    Get(&'c CStr, &'c mut [u8]),
    Set(&'c CStr, &'c [u8]),
    Remove(&'c CStr),
}

/// Reads the rules of the system about extended attributes.
pub(crate) fn read_xattr_conf() -> std::io::Result<Vec<u8>> {
    std::fs::read("/etc/xattr.conf")
}

/// Returns `true` if `name` matches a pattern of these rules.
pub(crate) fn matches_pattern(pattern: &CStr, name: &CStr) -> bool {
    // SAFETY: both strings end in a NUL, and are read only.
    unsafe { libc::fnmatch(pattern.as_ptr(), name.as_ptr(), 0) == 0 }
}

impl InodeOp for Xattr<'_> {
    type Output = usize;

    fn on_open(&mut self, fd: BorrowedFd<'_>) -> Result<usize, Errno> {
        retry_on_intr(|| match self {
            Self::List(buffer) => fs::flistxattr(fd, &mut **buffer),
            Self::Get(name, buffer) => fs::fgetxattr(fd, *name, &mut **buffer),
            Self::Set(name, value) => {
                fs::fsetxattr(fd, *name, value, XattrFlags::empty()).map(|()| 0)
            }
            Self::Remove(name) => fs::fremovexattr(fd, *name).map(|()| 0),
        })
    }

    fn by_path(&mut self, path: &CStr) -> Result<usize, Errno> {
        retry_on_intr(|| match self {
            Self::List(buffer) => fs::listxattr(path, &mut **buffer),
            Self::Get(name, buffer) => fs::getxattr(path, *name, &mut **buffer),
            Self::Set(name, value) => {
                fs::setxattr(path, *name, value, XattrFlags::empty()).map(|()| 0)
            }
            Self::Remove(name) => fs::removexattr(path, *name).map(|()| 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_by_fnmatch() {
        for (pattern, name, matching) in [
            (c"a.*", c"a.", true),
            (c"a.*.z", c"a.b.c.z", true),
            (c"a.*.z", c"a.z", false),
            (c"?", c"", false),
            (c"a?c", c"abc", true),
            (c"[a-c]x", c"bx", true),
            (c"[!a-c]x", c"bx", false),
            (c"[]]", c"]", true),
            (c"[a-]", c"-", true),
            (c"[x", c"[x", true),
            (c"\\*", c"*", true),
            (c"\\*", c"a", false),
            (c"abc", c"ab", false),
        ] {
            let found = matches_pattern(pattern, name);
            assert_eq!(found, matching, "{pattern:?} {name:?}");
        }
    }
}
