//! Makes the changes at the dests. A dry run plans them instead.
//!
//! No stage of a copy knows whether the run is dry, so all decisions are those of a real run. The policy and the
//! constructor of a dry run let it write no content, set no attributes and sync nothing. So changes that come after the
//! content, such as the name of a large file, are made where they are needed.
//!
//! A file or directory that would be new is represented by an empty file without a name. A call relative to it fails
//! with `ENOTDIR`, so none can change anything, or look at something else.

use std::ffi::{CStr, CString, OsStr};
use std::hash::BuildHasher;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Instant;

use rustix::io::Errno;

use super::content::{ContentError, Moved};
use super::decide::mode::Origin;
use super::facts::{FileId, Symlinks};
use super::operand::Operands;
use super::policy::Policy;
use crate::execution::Execution;
use crate::hashing::Seeded;
use crate::observer::CopyMethod;
use crate::paths;
use crate::sys::{self, At, Blocking, Fd, Stat};

mod plan;

use plan::Plan;

/// Builds the path of a dest, for a dry run.
pub(super) trait DestPath: Fn() -> PathBuf + Copy {}

impl<F: Fn() -> PathBuf + Copy> DestPath for F {}

/// A name at the dest.
#[derive(Clone, Copy)]
pub(super) struct Spot<'a, P> {
    pub(super) dir: BorrowedFd<'a>,
    pub(super) name: &'a CStr,
    pub(super) path: P,
}

impl<'a, P: DestPath> Spot<'a, P> {
    fn with_path(self) -> Spot<'a, PathBuf> {
        let Self { dir, name, path } = self;
        let path = path();
        Spot { dir, name, path }
    }

    /// Returns another name in the same directory.
    fn beside(&self, name: &'a CStr) -> Spot<'a, PathBuf> {
        let path = (self.path)();
        let (directory, _) = paths::split(path.as_os_str().as_bytes());
        let (_, base) = paths::split(name.to_bytes());
        Spot {
            dir: self.dir,
            name,
            path: OsStr::from_bytes(&[directory, base].concat()).into(),
        }
    }
}

/// The thing that is created, for a dry run.
#[derive(Clone, Copy)]
pub(super) enum New<'a> {
    /// A copy of this directory.
    Directory(At<'a>),
    /// A copy of this source, which is a regular file or is read.
    File(At<'a>),
    /// A copy of this symbolic link or special file.
    Copy(At<'a>),
    /// Another name of this source.
    HardLink(At<'a>),
    /// A symbolic link to this source.
    Symlink(At<'a>),
    /// Another name of the first copy of this source, which is this file.
    LinkToCopy(At<'a>, FileId),
}

/// Says whether a file that has the new name may be replaced by a rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replaces {
    Files,
    Nothing,
}

/// The changes that a run makes.
pub(super) enum Changes {
    Real,
    Planned(Plan),
}

/// Returns an unpredictable name beside `dest`.
pub(super) fn hidden_name(dest: &CStr) -> CString {
    let (directory, _) = paths::split(dest.to_bytes());
    // Without new random bytes, the seed of this process makes the name unpredictable.
    let hash = || Seeded::default().hash_one((Instant::now(), dest));
    let name = format!(
        ".cpz-{:032x}",
        sys::random().unwrap_or_else(|| hash().into())
    );
    paths::c_string([directory, name.as_bytes()].concat())
}

/// Calls `plan` apart from the caller, so that a real run does not pay for the code of a dry one.
#[cold]
#[inline(never)]
fn apart<T>(plan: impl FnOnce() -> T) -> T {
    plan()
}

/// Looks at dests.
impl Changes {
    /// Returns the changes of a run. Says whether several operands may have one dest.
    pub(super) fn new(
        policy: &Policy<'_>,
        operands: &Operands<'_>,
        may_collide: bool,
    ) -> Result<Self, Errno> {
        Ok(match policy.options.execution {
            Execution::Real => Self::Real,
            Execution::DryRun => Self::Planned(Plan::new(policy, operands, may_collide)?),
        })
    }

    /// Returns `true` if other processes can see the changes.
    pub(super) fn are_visible(&self) -> bool {
        matches!(self, Self::Real)
    }

    /// Looks at a dest as it is by now.
    pub(super) fn look(
        &self,
        spot: Spot<'_, impl DestPath>,
        symlinks: Symlinks,
    ) -> Result<Stat, Errno> {
        match self {
            Self::Real => sys::stat(spot.dir, spot.name, symlinks),
            Self::Planned(plan) => plan.look(&spot.with_path(), symlinks),
        }
    }

    /// Returns `true` if the user may write to a dest that exists, perhaps through a link.
    pub(super) fn may_write(&self, spot: Spot<'_, impl DestPath>) -> bool {
        match self {
            Self::Real => sys::may_write(spot.dir, spot.name, Symlinks::Follow) == Ok(true),
            Self::Planned(plan) => plan.may_write(&spot.with_path()),
        }
    }

    /// Returns `true` if an open directory does not exist yet, although this run or an earlier operand makes it.
    pub(super) fn is_absent(&self, dir: BorrowedFd<'_>) -> bool {
        match self {
            Self::Real => false,
            Self::Planned(plan) => plan.is_new(dir),
        }
    }
}

/// Opens files and directories.
impl Changes {
    /// Creates the dest of `source`, and opens it.
    // If it is not inlined, a file with data takes 30 more instructions. The guard's case `cpz-files-with-data` counts them.
    #[inline(always)]
    pub(super) fn create_file(
        &self,
        spot: Spot<'_, impl DestPath>,
        source: At<'_>,
        mode: u32,
    ) -> Result<Fd, Errno> {
        match self {
            Self::Real => sys::create_file(spot.dir, spot.name, mode),
            Self::Planned(plan) => apart(|| {
                // Without a descriptor, the caller tries again.
                let file = plan.stand_in()?;
                plan.create(spot.with_path(), New::File(source))?;
                Ok(file)
            }),
        }
    }

    /// Opens a dest that exists to write to it.
    pub(super) fn open_existing(
        &self,
        spot: Spot<'_, impl DestPath>,
        symlinks: Symlinks,
        blocking: Blocking,
    ) -> Result<Fd, Errno> {
        let Spot { dir, name, .. } = spot;
        let at = At {
            dir,
            name,
            symlinks,
        };
        match self {
            Self::Real => sys::open_existing(at, blocking),
            Self::Planned(plan) => plan.open_existing(&spot.with_path(), at, blocking),
        }
    }

    /// Opens a dest directory by `act`, or another dest that `act` creates. `origin` says whether it is a new one.
    #[inline(always)]
    pub(super) fn open(
        &self,
        spot: Spot<'_, impl DestPath>,
        origin: Origin,
        act: impl FnOnce() -> Result<Fd, Errno>,
    ) -> Result<Fd, Errno> {
        let stand_in = match self {
            Self::Real => None,
            Self::Planned(plan) => apart(|| plan.open(&spot.with_path(), origin)),
        };
        stand_in.unwrap_or_else(act)
    }

    /// Returns a dest directory that was open before and was `opened` again.
    pub(super) fn reopened<T: From<Fd>>(&self, opened: Result<T, Errno>) -> Result<T, Errno> {
        match (self, opened) {
            (Self::Planned(plan), Err(_)) => plan.stand_in().map(T::from),
            (_, opened) => opened,
        }
    }

    /// Opens a special file by `act` to read it, which may wait for a writer. `of` makes an open source of what stands
    /// for it in a dry run.
    pub(super) fn open_special<T>(
        &self,
        source: At<'_>,
        act: impl FnOnce() -> Result<T, Errno>,
        of: impl FnOnce(Fd) -> T,
    ) -> Result<T, Errno> {
        match self {
            Self::Real => act(),
            Self::Planned(plan) => {
                sys::check_reading(source)?;
                plan.stand_in().map(of)
            }
        }
    }
}

/// Changes names, content and attributes.
impl Changes {
    /// Creates a dest by `act`.
    #[inline(always)]
    pub(super) fn create(
        &self,
        spot: Spot<'_, impl DestPath>,
        new: New<'_>,
        act: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        match self {
            Self::Real => act(),
            Self::Planned(plan) => apart(|| plan.create(spot.with_path(), new)),
        }
    }

    pub(super) fn unlink(&self, spot: Spot<'_, impl DestPath>) -> Result<(), Errno> {
        match self {
            Self::Real => sys::unlink(spot.dir, spot.name),
            Self::Planned(plan) => plan.unlink(spot.with_path()),
        }
    }

    /// Notes that a dest was removed, or would have been in a dry run.
    pub(super) fn vacated(&self, spot: Spot<'_, impl DestPath>) {
        if let Self::Planned(plan) = self {
            plan.note(spot.with_path(), None);
        }
    }

    /// Renames a dest within its directory, from `old` to `new`. If it `replaces` nothing, fails with `EEXIST` if the
    /// new name exists.
    pub(super) fn rename(
        &self,
        spot: Spot<'_, impl DestPath>,
        old: &CStr,
        new: &CStr,
        replaces: Replaces,
    ) -> Result<(), Errno> {
        match (self, replaces) {
            (Self::Real, Replaces::Files) => sys::rename(spot.dir, old, new),
            (Self::Real, Replaces::Nothing) => sys::rename_to_new(spot.dir, old, new),
            (Self::Planned(plan), _) => plan.rename(spot.beside(old), spot.beside(new), replaces),
        }
    }

    /// Replaces a dest by a link in one step. `create` makes the link under a temporary name, which is renamed to the
    /// dest, so that the dest never lacks a file.
    pub(super) fn replace(
        &self,
        spot: Spot<'_, impl DestPath>,
        create: impl FnOnce(&CStr) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let (dir, dest) = (spot.dir, spot.name);
        if let Self::Planned(plan) = self {
            // Only directories can be renamed to a name with a slash at the end.
            if dest.to_bytes().ends_with(b"/") {
                return Err(Errno::NOTDIR);
            }
            // The name would be replaced, which takes the same permissions.
            plan.unlink(spot.with_path())?;
            return create(dest);
        }
        let name = hidden_name(dest);
        create(&name)?;
        let renamed = sys::rename(dir, &name, dest);
        // The name is still there if the rename failed, or if both were one file.
        let _ = sys::unlink(dir, &name);
        renamed
    }

    /// Writes the content of `source` by `act`.
    #[inline(always)]
    pub(super) fn write(
        &self,
        source: &Stat,
        act: impl FnOnce() -> Result<Moved, ContentError>,
    ) -> Result<Moved, ContentError> {
        match self {
            Self::Real => act(),
            Self::Planned(_) => apart(|| {
                Ok(Moved {
                    bytes: source.st_size as u64,
                    method: CopyMethod::default(),
                })
            }),
        }
    }

    /// Does something by `act` that a dry run neither does nor foresees. It returns the default instead.
    #[inline]
    pub(super) fn really<T: Default, E>(&self, act: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        match self {
            Self::Real => act(),
            Self::Planned(_) => Ok(T::default()),
        }
    }
}
