//! A dry run: checks names instead of removing them.
//!
//! [`Context::unlink`](super::context::Context::unlink) and its neighbours plan a removal instead of doing it. The
//! steps that look at names ask whether an earlier operand would have removed them. All else is as in a real run,
//! so the decisions are, too.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::hashing::HashSet;
use crate::operand;
use crate::sys::{self, FileId, Symlinks};

/// Says whether a plan is for operands beside those that are known when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    None,
    MayFollow,
}

/// The removals that a dry run has found possible.
#[derive(Default)]
pub(super) struct Plan {
    /// The sizes of all regular files.
    bytes: AtomicU64,
    /// The names that would be gone by now. They are kept only if an operand may lie in another one, and
    /// so may be met a second time.
    gone: Option<Mutex<HashSet<Gone>>>,
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
        let directory = sys::stat(dir, &operand::directory_of(path), Symlinks::Follow).ok()?;
        let (_, name) = operand::split(path.to_bytes());
        Some(Self {
            directory: FileId::of(&directory),
            name: name.into(),
        })
    }
}

impl Plan {
    /// Makes an empty plan for these operands, and perhaps for others.
    pub(super) fn new<P: AsRef<Path>>(operands: &[P], others: Others) -> Self {
        let paths = operands.iter().map(|path| operand::to_c(path.as_ref()));
        let operands: Vec<_> = paths.filter_map(Result::ok).collect();
        let runs = operand::independent_runs(operands.iter().map(|path| &**path));
        // A slash makes the kernel follow a link, which may be below the directory that it leads to.
        let may_meet_again = others == Others::MayFollow
            || runs.len() > 1
            || operands.iter().any(|path| path.to_bytes().ends_with(b"/"));
        Self {
            bytes: AtomicU64::new(0),
            gone: may_meet_again.then(Mutex::default),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        // Relaxed: the threads have ended.
        self.bytes.load(Ordering::Relaxed)
    }

    /// Checks that a name other than a directory could be unlinked, and counts its size.
    pub(super) fn unlink(&self, dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        let trimmed = trimmed(name);
        let stat = sys::stat(dir, &trimmed, Symlinks::NoFollow)?;
        match sys::file_type(&stat) {
            FileType::Directory => return Err(Errno::ISDIR),
            _ if trimmed.to_bytes() != name.to_bytes() => return Err(Errno::NOTDIR),
            _ => {}
        }
        sys::check_removing(dir, &operand::directory_of(name), name)?;
        if sys::file_type(&stat) == FileType::RegularFile {
            self.bytes.fetch_add(stat.st_size as u64, Ordering::Relaxed);
        }
        self.note(dir, name);
        Ok(())
    }

    /// Checks that a directory could be removed, which would be empty by now.
    pub(super) fn remove_emptied(&self, dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        check_directory_name(dir, name)?;
        sys::check_removing(dir, &operand::directory_of(name), name)?;
        self.note(dir, name);
        Ok(())
    }

    /// Checks that a directory could be removed, which must be empty. One that cannot be read is taken
    /// for one that has entries.
    pub(super) fn remove_directory(&self, dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        check_directory_name(dir, name)?;
        let opened = sys::open_directory(dir, name, Symlinks::NoFollow);
        if opened.and_then(|opened| self.is_empty(opened.as_fd())) != Ok(true) {
            // The kernel checks permissions first.
            sys::check_removing(dir, &operand::directory_of(name), name)?;
            return Err(Errno::NOTEMPTY);
        }
        self.remove_emptied(dir, name)
    }

    /// Returns `true` if an open directory would have no entries by now.
    pub(super) fn is_empty(&self, dir: BorrowedFd<'_>) -> Result<bool, Errno> {
        sys::is_empty_directory(dir, |name| self.is_gone(dir, name))
    }

    /// Returns `true` if a name would be gone by now.
    pub(super) fn is_gone(&self, dir: BorrowedFd<'_>, name: &CStr) -> bool {
        match self.gone() {
            Some(gone) => Gone::of(dir, name).is_some_and(|name| gone.contains(&name)),
            None => false,
        }
    }

    /// Returns `true` if an operand would be gone by now, or a directory that its path leads through.
    pub(super) fn is_operand_gone(&self, base: BorrowedFd<'_>, path: &CStr) -> bool {
        let path = path.to_bytes();
        let ends = (1..=path.len())
            .filter(|&end| path[end - 1] != b'/' && path.get(end).is_none_or(|&byte| byte == b'/'));
        self.gone.is_some()
            && ends
                .map(|end| to_c(&path[..end]))
                .any(|prefix| self.is_gone(base, &prefix))
    }

    fn note(&self, dir: BorrowedFd<'_>, name: &CStr) {
        if self.gone.is_some()
            && let Some(name) = Gone::of(dir, name)
            && let Some(mut gone) = self.gone()
        {
            gone.insert(name);
        }
    }

    fn gone(&self) -> Option<MutexGuard<'_, HashSet<Gone>>> {
        let gone = self.gone.as_ref()?;
        Some(gone.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Fails as `rmdir` does if `name` does not name a directory by which it could be removed.
fn check_directory_name(dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
    match operand::split(name.to_bytes()).1 {
        b"" => return Err(Errno::BUSY),
        b"." => return Err(Errno::INVAL),
        b".." => return Err(Errno::NOTEMPTY),
        _ => {}
    }
    let stat = sys::stat(dir, &trimmed(name), Symlinks::NoFollow)?;
    match sys::file_type(&stat) {
        FileType::Directory => Ok(()),
        _ => Err(Errno::NOTDIR),
    }
}

/// Returns a path without the slashes at its end, which would make the kernel follow a link.
fn trimmed(path: &CStr) -> CString {
    match operand::trim_slashes(path.to_bytes()) {
        b"" => path.into(),
        trimmed => to_c(trimmed),
    }
}

fn to_c(part: &[u8]) -> CString {
    CString::new(part).expect("BUG: a NUL within a C string")
}
