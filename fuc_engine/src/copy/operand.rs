//! The operands of a copy: their sources, where their copies go, and their states; and where paths of operands are looked up.
//!
//! With [`CopyOp::parents`](crate::CopyOp::parents), the way from the target to the dest of an operand has several
//! directories. Each call takes one component, relative to the directory before it. A symbolic link in place of a
//! directory is followed only if the policy trusts its owner.

use std::ffi::{CStr, OsString};
use std::hash::BuildHasher;
use std::iter;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::decide::mode::Origin;
use super::facts::{FileId, Symlinks};
use super::options::{CopyOp, Dest};
use super::policy::Policy;
use crate::error::{Error, Operation};
use crate::hashing::{HashMap, HashSet, Seeded};
use crate::sys::{self, At, Fd, Identity, PathOnly};
use crate::{node, paths};

/// The operands of a run, each of which has an index. A list of a million names takes about 60 bytes for each.
pub(super) struct Operands<'a> {
    dest: &'a Dest,
    /// The source of each operand, and the name of its dest if that is not the end of the source. A NUL follows each.
    text: Vec<u8>,
    operands: Vec<Operand>,
    /// The hashes of names that several dests have.
    shared: HashSet<u64>,
    /// The dests that were used so far, with the first operand that used each.
    pub(super) used: Mutex<HashMap<UsedDest, u32>>,
}

/// A dest that an operand has used: its name, relative to the target.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct UsedDest {
    pub(super) dest: Box<CStr>,
    /// The source that was copied there. It is identified by its inode, not its path. `None` if the dest was made from any
    /// source.
    pub(super) source: Option<FileId>,
}

struct Operand {
    source: usize,
    /// The start of the dest's name in the text, from that of the source. It is relative to the target directory if
    /// there is one.
    name: u32,
    is_own_backup: bool,
    state: OnceLock<Box<OperandState>>,
}

/// The state of an operand that is a directory, or whose dest is not in the target itself.
#[derive(Default)]
pub(super) struct OperandState {
    /// The directory that the dest is in, if it is not the target itself, once it was made.
    pub(super) parent: OnceLock<DestParent>,
    /// The directory that this operand's copy begins with, once it was made.
    pub(super) root: OnceLock<Identity>,
    /// The directory that will have this root, if the root does not exist yet.
    pub(super) above_root: OnceLock<FileId>,
}

impl<'a> Operands<'a> {
    pub(super) fn new(dest: &'a Dest) -> Self {
        Self {
            dest,
            text: Vec::new(),
            operands: Vec::new(),
            shared: HashSet::default(),
            used: Mutex::default(),
        }
    }

    /// Adds a source. `own_backup` is its dest if it is copied to its own backup.
    ///
    /// # Errors
    /// A path contains a NUL byte.
    pub(super) fn push(
        &mut self,
        source: &Path,
        own_backup: Option<PathBuf>,
        options: &CopyOp<'_>,
    ) -> Result<(), Error> {
        let checked = |path: &Path| {
            let unusable = |errno| Error::failed(Operation::Stat, path.into(), errno);
            paths::to_c(path).map_err(unusable)
        };
        let c_source = checked(source)?;
        let source = c_source.to_bytes();
        let c_dest;
        let name = match (self.dest, &own_backup) {
            (Dest::Exactly(path), None) | (_, Some(path)) => {
                c_dest = checked(path).map_err(Error::at_dest)?;
                c_dest.to_bytes()
            }
            (Dest::Into(_), None) if options.parents => name_with_parents(source),
            (Dest::Into(_), None) => name_in_target(source),
        };
        let start = self.text.len();
        self.text.extend_from_slice(c_source.to_bytes_with_nul());
        let offset = match source.ends_with(name) {
            true => source.len() - name.len(),
            false => {
                self.text.extend_from_slice(name);
                self.text.push(0);
                source.len() + 1
            }
        };
        self.operands.push(Operand {
            source: start,
            name: offset as u32,
            is_own_backup: own_backup.is_some(),
            state: OnceLock::new(),
        });
        Ok(())
    }

    /// Finds out which dests have one name, when all operands are there.
    pub(super) fn complete(&mut self) {
        let names = (0..self.len() as u32).map(|index| self.dest_name(index));
        // Each name in the target may be in the dest of `.`, too.
        let names = names.flat_map(|name| iter::repeat_n(name, 1 + usize::from(name == c".")));
        let mut hashes: Vec<u64> = names.map(hash).collect();
        hashes.sort_unstable();
        let pairs = hashes.windows(2).filter(|pair| pair[0] == pair[1]);
        self.shared = pairs.map(|pair| pair[0]).collect();
    }

    pub(super) fn len(&self) -> usize {
        self.operands.len()
    }

    fn text_at(&self, start: usize) -> &CStr {
        CStr::from_bytes_until_nul(&self.text[start..]).expect("BUG: a path without its NUL")
    }

    fn operand(&self, index: u32) -> &Operand {
        &self.operands[index as usize]
    }

    pub(super) fn source(&self, index: u32) -> &CStr {
        self.text_at(self.operand(index).source)
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = &CStr> {
        (0..self.len() as u32).map(|index| self.source(index))
    }

    /// Returns the dest, relative to the target directory if there is one.
    pub(super) fn dest_name(&self, index: u32) -> &CStr {
        let Operand { source, name, .. } = self.operand(index);
        self.text_at(source + *name as usize)
    }

    /// Returns the name of the dest in the directory that it is in. The kernel resolves the whole path if that is not below
    /// a target directory.
    pub(super) fn name_in_parent(&self, index: u32) -> &CStr {
        let name = self.dest_name(index).to_bytes_with_nul();
        let slash = match self.dest {
            Dest::Into(_) => name.iter().rposition(|&byte| byte == b'/'),
            Dest::Exactly(_) => None,
        };
        let name = &name[slash.map_or(0, |slash| slash + 1)..];
        CStr::from_bytes_with_nul(name).expect("BUG: no NUL at the end of a C string")
    }

    /// Returns the dest as it is shown to users.
    pub(super) fn dest_path(&self, index: u32) -> PathBuf {
        let name = self.dest_name(index);
        match self.dest {
            Dest::Exactly(_) => paths::path_of(name).into(),
            // As in cp, the copy of `/` is shown as the target with a slash.
            Dest::Into(target) => match paths::trim_slashes(self.source(index).to_bytes()) {
                b"" => node::join(target, c""),
                _ => node::join(target, name),
            },
        }
    }

    /// Returns the path of the directory whose name is that of the dest up to `end`.
    pub(super) fn dest_path_to(&self, index: u32, end: usize) -> PathBuf {
        let mut path = self.dest_path(index).into_os_string().into_vec();
        path.truncate(path.len() - (self.dest_name(index).count_bytes() - end));
        PathBuf::from(OsString::from_vec(path))
    }

    /// Returns `true` if an operand is copied to its own backup. That backup is not backed up again.
    pub(super) fn is_own_backup(&self, index: u32) -> bool {
        self.operand(index).is_own_backup
    }

    pub(super) fn parent(&self, index: u32) -> Option<&DestParent> {
        self.operand(index).state.get()?.parent.get()
    }

    pub(super) fn state(&self, index: u32) -> &OperandState {
        self.operand(index).state.get_or_init(Box::default)
    }

    /// Returns `true` if another operand may have the same dest.
    pub(super) fn may_share_dest(&self, index: u32) -> bool {
        self.have_shared_dests() && self.shared.contains(&hash(self.dest_name(index)))
    }

    pub(super) fn have_shared_dests(&self) -> bool {
        !self.shared.is_empty()
    }
}

fn hash(name: &CStr) -> u64 {
    Seeded::default().hash_one(name)
}

/// Returns the last component of `source`, or `.` for `.`, `..` and `/`, which are merged into
/// the target itself.
fn name_in_target(source: &[u8]) -> &[u8] {
    match paths::split(source).1 {
        b"" | b"." | b".." => b".",
        name => name,
    }
}

/// Returns all of `source` except the slashes at both ends: its name below the target if
/// directories on the way are made too.
fn name_with_parents(source: &[u8]) -> &[u8] {
    let start = source.iter().take_while(|&&byte| byte == b'/').count();
    match paths::trim_slashes(&source[start..]) {
        b"" => b".",
        name => name,
    }
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
        let id = |base| paths::id_of(base, c".");
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

/// Opens the directory that the last component of `name` is in. Calls `each` on the directories on the way below the target.
pub(super) fn open_parent<'a>(
    policy: &Policy<'_>,
    target: BorrowedFd<'a>,
    name: &CStr,
    mut each: impl FnMut(BorrowedFd<'_>) -> Result<(), Errno>,
) -> Result<OpenParent<'a>, Errno> {
    let mut dir = OpenParent::Target(target);
    for end in ends(name.to_bytes()) {
        let component = paths::name_of(&name.to_bytes()[..end]);
        dir = OpenParent::Below(open_component(policy, dir.as_fd(), &component)?);
        each(dir.as_fd())?;
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
    // As in cp, a link to a directory stands for it there, unless another user could have put it there to lead this run
    // elsewhere.
    let is_followed =
        policy.options.rules.follow_links_to_directories || policy.trusts(link.stat().st_uid);
    if !is_link || !is_followed {
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
        assert_eq!(name_with_parents(b"//a/./b//c//"), b"a/./b//c");
        assert_eq!(name_with_parents(b"//"), b".");
    }

    #[test]
    fn each_directory_on_the_way_ends_once() {
        assert_eq!(ends(b"a/./b//c").collect::<Vec<_>>(), [1, 3, 5]);
        assert_eq!(ends(b"a").count(), 0);
    }
}
