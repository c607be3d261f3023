//! The way from the target to the dest of an operand, which has several directories with
//! [`CopyOp::parents`](crate::CopyOp::parents).
//!
//! Each call takes one component, relative to the directory before it. A symbolic link in
//! place of a directory is followed only if the policy trusts its owner.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes::path_only::PathOnly;
use super::decide::mode::Origin;
use super::policy::Policy;
use crate::sys::{self, At, Fd, Identity, Symlinks};

/// The directory that an operand is copied into.
#[derive(Clone, Copy)]
pub(super) struct DestParent {
    pub(super) identity: Identity,
    /// Says whether this run created it.
    pub(super) origin: Origin,
}

/// A dest directory that is open.
pub(super) enum OpenParent<'a> {
    Target(BorrowedFd<'a>),
    Below(Fd),
}

impl AsFd for OpenParent<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Target(target) => *target,
            Self::Below(dir) => dir.as_fd(),
        }
    }
}

impl From<Fd> for OpenParent<'_> {
    fn from(dir: Fd) -> Self {
        Self::Below(dir)
    }
}

/// Returns the positions in `name` at which a directory ends.
pub(super) fn ends(name: &[u8]) -> impl Iterator<Item = usize> {
    let is_end = |&at: &usize| at > 0 && name[at] == b'/' && name[at - 1] != b'/';
    (0..name.len()).filter(is_end)
}

/// Returns the component that ends a part of a name.
pub(super) fn last_component(part: &[u8]) -> CString {
    let start = part.iter().rposition(|&byte| byte == b'/');
    CString::new(&part[start.map_or(0, |slash| slash + 1)..]).expect("BUG: a NUL in a name")
}

/// Opens the directory that the last component of `name` is in.
pub(super) fn open_parent<'a>(
    policy: &Policy<'_>,
    target: BorrowedFd<'a>,
    name: &CStr,
) -> Result<OpenParent<'a>, Errno> {
    let mut dir = OpenParent::Target(target);
    for end in ends(name.to_bytes()) {
        let component = last_component(&name.to_bytes()[..end]);
        dir = OpenParent::Below(open_component(policy, dir.as_fd(), &component)?);
    }
    Ok(dir)
}

/// Opens one directory on the way.
///
/// # Errors
/// `ENOTDIR` if it is not a directory, or a symbolic link that is not followed.
pub(super) fn open_component(
    policy: &Policy<'_>,
    dir: BorrowedFd<'_>,
    name: &CStr,
) -> Result<Fd, Errno> {
    match sys::open_path_directory(dir, name, Symlinks::NoFollow) {
        Err(Errno::NOTDIR | Errno::LOOP) => open_through_link(policy, dir, name),
        opened => opened,
    }
}

/// The link is held while its owner and its target are read, so that another link that takes
/// its name is not followed.
fn open_through_link(policy: &Policy<'_>, dir: BorrowedFd<'_>, name: &CStr) -> Result<Fd, Errno> {
    let link = PathOnly::find(At {
        dir,
        name,
        symlinks: Symlinks::NoFollow,
    })?;
    let is_link = sys::file_type(link.stat()) == FileType::Symlink;
    if !is_link || !policy.follows_parent(link.stat()) {
        return Err(Errno::NOTDIR);
    }
    sys::open_path_directory(dir, &link.read_link()?, Symlinks::Follow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_directory_on_the_way_ends_once() {
        assert_eq!(ends(b"a/./b//c").collect::<Vec<_>>(), [1, 3, 5]);
        assert_eq!(ends(b"a").count(), 0);
    }

    #[test]
    fn a_component_begins_after_the_last_slash() {
        for (part, component) in [(&b"a"[..], c"a"), (b"a/./b", c"b"), (b"a//b", c"b")] {
            assert_eq!(&*last_component(part), component);
        }
    }
}
