//! Removes names. A dry run checks instead that they could be removed.
//!
//! Only this module knows whether a run is dry. The steps that look at names ask whether an earlier operand would have
//! removed them. All else is as in a real run, so the decisions are, too.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::node::{DECLINED, State};
use super::options::RemoveOp;
use crate::execution::Execution;
use crate::hashing::HashSet;
use crate::paths;
use crate::sync::lock;
use crate::sys::{self, FileId, Stat, Symlinks};

/// The means to remove names.
pub(super) enum Remover {
    Real,
    /// Counts the sizes of the regular files.
    Counting(AtomicU64),
    Planned(PlannedRemovals),
}

impl Remover {
    /// Prepares to remove these operands. `None` if not all of them are known yet.
    pub(super) fn new(op: &RemoveOp<'_>, operands: Option<&[PathBuf]>) -> Self {
        match op.execution {
            Execution::Real if op.count_bytes => Self::Counting(AtomicU64::new(0)),
            Execution::Real => Self::Real,
            Execution::DryRun => Self::Planned(PlannedRemovals {
                bytes: AtomicU64::new(0),
                gone: operands.is_none_or(may_meet_again).then(Mutex::default),
            }),
        }
    }

    /// Returns `true` if names that count as gone can still be found.
    pub(super) fn leaves_names(&self) -> bool {
        matches!(self, Self::Planned(_))
    }

    /// Returns the sizes of the regular files that were removed, if they are counted.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Real => 0,
            // Relaxed: the threads have ended.
            Self::Counting(bytes) => bytes.load(Ordering::Relaxed),
            Self::Planned(plan) => plan.bytes.load(Ordering::Relaxed),
        }
    }

    /// Removes a name other than a directory.
    pub(super) fn unlink(&self, dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        let plan = match self {
            Self::Real => return sys::unlink(dir, name),
            Self::Counting(bytes) => {
                let stat = sys::stat(dir, name, Symlinks::NoFollow);
                sys::unlink(dir, name)?;
                add_size(bytes, stat.ok().as_ref());
                return Ok(());
            }
            Self::Planned(plan) => plan,
        };
        let trimmed = paths::without_slashes(name);
        let stat = sys::stat(dir, &trimmed, Symlinks::NoFollow)?;
        match sys::file_type(&stat) {
            FileType::Directory => return Err(Errno::ISDIR),
            _ if *trimmed != *name => return Err(Errno::NOTDIR),
            _ => {}
        }
        plan.remove(dir, name)?;
        add_size(&plan.bytes, Some(&stat));
        Ok(())
    }

    /// Removes a directory, which must be empty. A dry run takes one that cannot be read for one that has entries.
    pub(super) fn remove_directory(&self, dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        self.remove_if_empty(dir, name, || {
            let opened = sys::open_directory(dir, name, Symlinks::NoFollow);
            opened.and_then(|opened| self.is_empty(opened.as_fd())) == Ok(true)
        })
    }

    /// Removes a directory that has no entries but those that the user has declined to remove.
    pub(super) fn remove_emptied(
        &self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        state: &State,
    ) -> Result<(), Errno> {
        self.remove_if_empty(dir, name, || !state.has(DECLINED))
    }

    /// Removes a directory. A dry run asks `is_empty`, and a real one the kernel.
    fn remove_if_empty(
        &self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        is_empty: impl FnOnce() -> bool,
    ) -> Result<(), Errno> {
        let Self::Planned(plan) = self else {
            return sys::remove_directory(dir, name);
        };
        check_directory_name(dir, name)?;
        if is_empty() {
            return plan.remove(dir, name);
        }
        // The kernel checks permissions first.
        sys::check_removing(dir, &paths::directory_of(name), name)?;
        Err(Errno::NOTEMPTY)
    }

    /// Returns `true` if an open directory has no entries by now.
    pub(super) fn is_empty(&self, dir: BorrowedFd<'_>) -> Result<bool, Errno> {
        sys::is_empty_directory(dir, |name| self.is_gone(dir, name))
    }

    /// Returns `true` if a name is gone by now, although it can be found.
    pub(super) fn is_gone(&self, dir: BorrowedFd<'_>, name: &CStr) -> bool {
        self.gone()
            .is_some_and(|gone| Gone::of(dir, name).is_some_and(|name| lock(gone).contains(&name)))
    }

    /// Returns the same as [`is_gone`](Self::is_gone) for a path, or a directory that it leads through.
    pub(super) fn is_path_gone(&self, base: BorrowedFd<'_>, path: &CStr) -> bool {
        let path = path.to_bytes();
        let mut ends = (1..=path.len())
            .filter(|&end| path[end - 1] != b'/' && path.get(end).is_none_or(|&byte| byte == b'/'));
        self.gone().is_some() && ends.any(|end| self.is_gone(base, &paths::c_string(&path[..end])))
    }

    fn gone(&self) -> Option<&Mutex<HashSet<Gone>>> {
        match self {
            Self::Real | Self::Counting(_) => None,
            Self::Planned(plan) => plan.gone.as_ref(),
        }
    }
}

fn add_size(bytes: &AtomicU64, stat: Option<&Stat>) {
    if let Some(file) = stat.filter(|stat| sys::is_regular(stat)) {
        bytes.fetch_add(file.st_size as u64, Ordering::Relaxed);
    }
}

/// The removals that a dry run has found possible.
pub(super) struct PlannedRemovals {
    /// The sizes of all regular files.
    bytes: AtomicU64,
    /// The names that would be gone by now. They are kept only if an operand may lie in another one, and
    /// so may be met a second time.
    gone: Option<Mutex<HashSet<Gone>>>,
}

impl PlannedRemovals {
    /// Checks that a name could be removed, and notes it.
    fn remove(&self, dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        sys::check_removing(dir, &paths::directory_of(name), name)?;
        if let Some(gone) = &self.gone
            && let Some(name) = Gone::of(dir, name)
        {
            lock(gone).insert(name);
        }
        Ok(())
    }
}

/// Returns `true` if a name below one of the operands may be met once more below another one.
fn may_meet_again(operands: &[PathBuf]) -> bool {
    let paths = operands.iter().map(|path| paths::to_c(path));
    let operands: Vec<_> = paths.filter_map(Result::ok).collect();
    let runs = paths::independent_groups(operands.iter().map(|path| &**path), |_| true);
    // A slash makes the kernel follow a link, which may be below the directory that it leads to.
    runs.len() > 1 || operands.iter().any(|path| path.to_bytes().ends_with(b"/"))
}

/// A name, and the directory that it is in.
#[derive(PartialEq, Eq, Hash)]
struct Gone {
    directory: FileId,
    name: Box<[u8]>,
}

impl Gone {
    /// Describes the last component of `path`. Returns `None` if its directory cannot be looked at.
    fn of(dir: BorrowedFd<'_>, path: &CStr) -> Option<Self> {
        let (_, name) = paths::split(path.to_bytes());
        Some(Self {
            directory: paths::directory_id_of(dir, path)?,
            name: name.into(),
        })
    }
}

/// Fails as `rmdir` does if `name` does not name a directory by which it could be removed.
fn check_directory_name(dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    match paths::split(name.to_bytes()).1 {
        b"" => return Err(Errno::BUSY),
        b"." => return Err(Errno::INVAL),
        b".." => return Err(Errno::NOTEMPTY),
        _ => {}
    }
    let stat = sys::stat(dir, &paths::without_slashes(name), Symlinks::NoFollow)?;
    match sys::file_type(&stat) {
        FileType::Directory => Ok(()),
        _ => Err(Errno::NOTDIR),
    }
}
