//! One operand of a copy: its source, where its copy goes, and its own state; and where paths of operands are looked up.
//!
//! With [`CopyOp::parents`](crate::CopyOp::parents), the way from the target to the dest of an operand has several
//! directories. Each call takes one component, relative to the directory before it. A symbolic link in place of a
//! directory is followed only if the policy trusts its owner.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes::PathOnly;
use super::decide::mode::Origin;
use super::facts::{FileId, Symlinks};
use super::options::{CopyOp, Dest};
use super::policy::Policy;
use crate::error::{Error, Operation};
use crate::sys::{self, At, Fd, Identity};
use crate::{node, operand as paths};

pub(super) struct Operand {
    pub(super) source: Box<CStr>,
    /// The dest, relative to the target directory if there is one.
    pub(super) dest_name: Box<CStr>,
    /// Start of the last component of `dest_name` below a target directory. Otherwise 0: the
    /// kernel resolves the whole path.
    leaf: usize,
    /// The directory that the dest is in, if it is not the target itself, once it was made.
    pub(super) parent: OnceLock<DestParent>,
    /// The dest as it is shown to users.
    pub(super) dest_path: PathBuf,
    /// `true` if the operand is copied to its own backup. That backup is not backed up again.
    pub(super) is_own_backup: bool,
    /// The directory that this operand's copy begins with, once it was made.
    pub(super) root: OnceLock<Identity>,
    /// The directory that will have this root, if the root does not exist yet.
    pub(super) above_root: OnceLock<FileId>,
}

impl Operand {
    /// # Errors
    /// A path contains a NUL byte.
    pub(super) fn new(source: &Path, dest: &Dest, options: &CopyOp<'_>) -> Result<Self, Error> {
        let unusable = |path: &Path| {
            let path = path.to_path_buf();
            move |errno| Error::failed(Operation::Stat, path, errno)
        };
        let unusable_dest = |path| move |errno| unusable(path)(errno).at_dest();
        let c_source = paths::to_c(source).map_err(unusable(source))?;
        let mut leaf = 0;
        let (dest_name, dest_path) = match dest {
            Dest::Exactly(path) => {
                let name = paths::to_c(path).map_err(unusable_dest(path))?;
                // As in cp, a directory can be copied to the working directory like this.
                let is_empty = name.is_empty();
                (if is_empty { c".".into() } else { name }, path.clone())
            }
            Dest::Into(target) => {
                let name = if options.parents {
                    name_with_parents(&c_source)
                } else {
                    name_in_target(&c_source)
                };
                let slash = name.to_bytes().iter().rposition(|&byte| byte == b'/');
                leaf = slash.map_or(0, |slash| slash + 1);
                // As in cp, the copy of `/` is shown as the target with a slash.
                let is_root = paths::trim_slashes(c_source.to_bytes()).is_empty();
                let shown = if is_root { c"" } else { &*name };
                let path = node::join(target, shown);
                (name, path)
            }
        };
        Ok(Self {
            source: c_source,
            leaf,
            parent: OnceLock::new(),
            dest_name,
            dest_path,
            is_own_backup: false,
            root: OnceLock::new(),
            above_root: OnceLock::new(),
        })
    }

    /// Returns the name of the dest in the directory that it is in.
    pub(super) fn name_in_parent(&self) -> &CStr {
        let name = &self.dest_name.to_bytes_with_nul()[self.leaf..];
        CStr::from_bytes_with_nul(name).expect("BUG: no NUL at the end of a C string")
    }
}

/// Returns the last component of `source`, or `.` for `.`, `..` and `/`, which are merged into
/// the target itself.
fn name_in_target(source: &CStr) -> Box<CStr> {
    let (_, name) = paths::split(source.to_bytes());
    if name.is_empty() || paths::is_dot_or_dot_dot(name) {
        return c".".into();
    }
    CString::new(name)
        .expect("BUG: a NUL within a C string")
        .into_boxed_c_str()
}

/// Returns all of `source` except the slashes at both ends: its name below the target if
/// directories on the way are made too.
fn name_with_parents(source: &CStr) -> Box<CStr> {
    let bytes = source.to_bytes();
    let is_inner = |byte: &u8| *byte != b'/';
    let (Some(start), Some(last)) = (
        bytes.iter().position(is_inner),
        bytes.iter().rposition(is_inner),
    ) else {
        return c".".into();
    };
    CString::new(&bytes[start..=last])
        .expect("BUG: a NUL within a C string")
        .into_boxed_c_str()
}

/// The directories in which relative sources and a relative dest are looked up.
#[derive(Clone, Copy)]
pub(super) struct Bases<'a> {
    pub(super) source: BorrowedFd<'a>,
    pub(super) dest: BorrowedFd<'a>,
}

impl Bases<'_> {
    /// Returns `true` if a relative path leads to the same file as a source and as a dest.
    pub(super) fn are_one_directory(self) -> bool {
        let id = |base| {
            let stat = sys::stat(base, c".", Symlinks::Follow);
            stat.ok().map(|stat| FileId::of(&stat))
        };
        let is_one_descriptor = self.source.as_raw_fd() == self.dest.as_raw_fd();
        is_one_descriptor || id(self.source).is_some_and(|source| id(self.dest) == Some(source))
    }
}

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

/// Returns the identities of a directory and of those above it, as far as they can be reached.
pub(super) fn ancestry(dir: BorrowedFd<'_>) -> Vec<Identity> {
    let mut found = Vec::new();
    let mut above = sys::open_path_directory(dir, c".", Symlinks::NoFollow);
    while let Ok(dir) = above {
        match sys::stat_directory(dir.as_fd()) {
            // The root is its own parent.
            Ok(stat) if found.last() != Some(&stat.identity) => found.push(stat.identity),
            _ => break,
        }
        above = sys::open_path_directory(dir.as_fd(), c"..", Symlinks::NoFollow);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parents_keeps_all_but_its_outer_slashes() {
        assert_eq!(&*name_with_parents(c"//a/./b//c//"), c"a/./b//c");
        assert_eq!(&*name_with_parents(c"//"), c".");
    }

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
