//! Makes the changes at the dests. A dry run checks instead whether they are permitted.
//!
//! No decision about an entry depends on whether the run is dry. Only what other processes would see is left out, by
//! [`Changes::are_visible`]. The policy and the
//! constructor of a dry run let it write no content, set no attributes and sync nothing. So changes that come after the
//! content, such as the name of a large file, are made where they are needed.
//!
//! A dry run decides by what is there. It remembers only the names that a mirror would have deleted, so an operand does not
//! see what an earlier one would have changed. A file or directory that would be new is represented by an empty file without a name. A call relative to it
//! fails with `ENOTDIR`, so none can change anything, or look at something else.

use std::ffi::{CStr, CString};
use std::hash::BuildHasher;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Mutex;
use std::time::Instant;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::decide::mode::Origin;
use super::facts::{FileId, Symlinks};
use crate::hashing::{HashSet, Seeded};
use crate::paths;
use crate::setup::Execution;
use crate::sync::lock;
use crate::sys::{self, At, Blocking, Fd, Identity, SharedFd, Stat};

/// A name at the dest.
#[derive(Clone, Copy)]
pub(super) struct Spot<'a> {
    pub(super) dir: BorrowedFd<'a>,
    pub(super) name: &'a CStr,
    /// The file that was there is gone, or would be in a dry run.
    pub(super) is_vacated: bool,
}

impl<'a> Spot<'a> {
    pub(super) fn new(dir: BorrowedFd<'a>, name: &'a CStr) -> Self {
        Self {
            dir,
            name,
            is_vacated: false,
        }
    }

    /// Returns the same name, from which the file was removed or renamed.
    pub(super) fn vacated(self) -> Self {
        let is_vacated = true;
        Self { is_vacated, ..self }
    }

    /// Returns the place of the name, or of the file that a symbolic link there leads to.
    pub(super) fn at(self, symlinks: Symlinks) -> At<'a> {
        At {
            dir: self.dir,
            name: self.name,
            symlinks,
        }
    }

    fn has_slash(&self) -> bool {
        self.name.to_bytes().ends_with(b"/")
    }
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
    // The seed of this process makes the name unpredictable. It has as many digits as in earlier versions, so that a
    // pattern which finds the files of killed runs finds all of them.
    let half = |half| Seeded::default().hash_one((Instant::now(), dest, half));
    let name = format!(".cpz-{:016x}{:016x}", half(0), half(1));
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
    pub(super) fn new(execution: Execution) -> Result<Self, Errno> {
        Ok(match execution {
            Execution::Real => Self::Real,
            Execution::DryRun => Self::Planned(Plan::new()?),
        })
    }

    /// Returns `true` if other processes can see the changes.
    pub(super) fn are_visible(&self) -> bool {
        matches!(self, Self::Real)
    }

    /// Looks at a dest.
    pub(super) fn stat(&self, spot: Spot<'_>, symlinks: Symlinks) -> Result<Stat, Errno> {
        match self {
            Self::Real => sys::stat(spot.dir, spot.name, symlinks),
            Self::Planned(plan) => plan.stat(spot, symlinks),
        }
    }

    /// Notes for a dry run that a mirror would have deleted a name of the open directory `dir`, which is copied later.
    pub(super) fn note_gone(&self, dir: BorrowedFd<'_>, name: CString) {
        if let Self::Planned(plan) = self
            && let Ok(dir) = sys::stat_open(dir)
        {
            lock(&plan.gone).insert((FileId::of(&dir), name));
        }
    }

    /// Returns `true` if an open directory does not exist yet, although this run makes it.
    pub(super) fn is_absent(&self, dir: BorrowedFd<'_>) -> bool {
        match self {
            Self::Real => false,
            Self::Planned(plan) => plan.is_new(dir),
        }
    }
}

/// Opens files and directories.
impl Changes {
    /// Creates a dest file, and opens it.
    // If it is not inlined, a file with data takes 30 more instructions. The guard's case `cpz-files-with-data` counts them.
    #[inline(always)]
    pub(super) fn create_file(&self, spot: Spot<'_>, mode: u32) -> Result<Fd, Errno> {
        match self {
            Self::Real => sys::create_file(spot.dir, spot.name, mode),
            Self::Planned(plan) => apart(|| {
                // Without a descriptor, the caller tries again.
                let file = plan.stand_in()?;
                if spot.has_slash() {
                    // A missing directory on the way is reported first.
                    let directory = &paths::directory_of(spot.name);
                    sys::stat(spot.dir, directory, Symlinks::Follow)?;
                    return Err(Errno::ISDIR);
                }
                plan.check_creation(spot)?;
                Ok(file)
            }),
        }
    }

    /// Opens a dest that exists to write to it.
    pub(super) fn open_existing(
        &self,
        spot: Spot<'_>,
        symlinks: Symlinks,
        blocking: Blocking,
    ) -> Result<Fd, Errno> {
        let at = spot.at(symlinks);
        match self {
            Self::Real => sys::open_existing(at, blocking),
            Self::Planned(plan) => match sys::file_type(&plan.stat(spot, symlinks)?) {
                FileType::Directory => Err(Errno::ISDIR),
                FileType::Socket => Err(Errno::NXIO),
                // It probably has no reader.
                FileType::Fifo if blocking == Blocking::OnlyForLease => Err(Errno::NXIO),
                _ => sys::check_writing(at).and_then(|()| plan.stand_in()),
            },
        }
    }

    /// Opens a dest directory by `act`, or another dest that `act` creates. `origin` says whether it is a new one.
    #[inline(always)]
    pub(super) fn open_dest(
        &self,
        spot: Spot<'_>,
        origin: Origin,
        act: impl FnOnce() -> Result<Fd, Errno>,
    ) -> Result<Fd, Errno> {
        match self {
            Self::Planned(plan) if apart(|| plan.opens_new(spot, origin)) => plan.stand_in(),
            _ => act(),
        }
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

/// Changes names and attributes.
impl Changes {
    #[inline(always)]
    pub(super) fn create_directory(&self, spot: Spot<'_>, mode: u32) -> Result<(), Errno> {
        match self {
            Self::Real => sys::create_directory(spot.dir, spot.name, mode),
            Self::Planned(plan) => apart(|| plan.check_creation(spot)),
        }
    }

    /// Creates a dest other than a directory by `act`.
    #[inline(always)]
    pub(super) fn create(
        &self,
        spot: Spot<'_>,
        act: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        match self {
            Self::Real => act(),
            Self::Planned(plan) => apart(|| match plan.check_creation(spot) {
                Ok(()) if spot.has_slash() => Err(Errno::NOENT),
                checked => checked,
            }),
        }
    }

    pub(super) fn unlink(&self, spot: Spot<'_>) -> Result<(), Errno> {
        match self {
            Self::Real => sys::unlink(spot.dir, spot.name),
            Self::Planned(plan) => plan.check_unlinking(spot),
        }
    }

    /// Renames a dest within its directory, from `old` to `new`. If it `replaces` nothing, fails with `EEXIST` if the
    /// new name exists.
    pub(super) fn rename(
        &self,
        dir: BorrowedFd<'_>,
        old: &CStr,
        new: &CStr,
        replaces: Replaces,
    ) -> Result<(), Errno> {
        match (self, replaces) {
            (Self::Real, Replaces::Files) => sys::rename(dir, old, new),
            (Self::Real, Replaces::Nothing) => sys::rename_to_new(dir, old, new),
            (Self::Planned(_), _) => match sys::stat(dir, new, Symlinks::NoFollow) {
                Ok(_) if replaces == Replaces::Nothing => Err(Errno::EXIST),
                Ok(seen) if sys::is_directory(&seen) => Err(Errno::ISDIR),
                _ => sys::check_adding(dir, &paths::directory_of(new)),
            },
        }
    }

    /// Replaces a dest by a link in one step. `create` makes the link under a temporary name, which is renamed to the
    /// dest, so that the dest never lacks a file.
    pub(super) fn replace(
        &self,
        spot: Spot<'_>,
        create: impl FnOnce(&CStr) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let (dir, dest) = (spot.dir, spot.name);
        match self {
            // Only directories can be renamed to a name with a slash at the end.
            Self::Planned(_) if spot.has_slash() => return Err(Errno::NOTDIR),
            Self::Planned(plan) => return plan.check_unlinking(spot),
            Self::Real => {}
        }
        let name = hidden_name(dest);
        create(&name)?;
        let renamed = sys::rename(dir, &name, dest);
        // The name is still there if the rename failed, or if both were one file.
        let _ = sys::unlink(dir, &name);
        renamed
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

/// A dry run: finds out which calls would be permitted.
pub(super) struct Plan {
    stand_in: SharedFd,
    /// Names that a mirror would have deleted before they are copied, with their directories.
    gone: Mutex<HashSet<(FileId, CString)>>,
    /// Identifies what stands for a new dest.
    new: Identity,
}

impl Plan {
    fn new() -> Result<Self, Errno> {
        let stand_in = sys::create_in_memory()?;
        Ok(Self {
            new: sys::stat_directory(stand_in.as_fd())?.identity,
            stand_in: stand_in.into(),
            gone: Mutex::default(),
        })
    }

    /// Returns a descriptor that stands for a file or directory that would be open.
    fn stand_in(&self) -> Result<Fd, Errno> {
        self.stand_in.duplicate()
    }

    /// Returns `true` if `dir` stands for a new directory.
    fn is_new(&self, dir: BorrowedFd<'_>) -> bool {
        sys::stat_directory(dir).is_ok_and(|stat| stat.identity == self.new)
    }

    /// Returns `true` if a name is opened that would be new. Of the names in a new directory, `.` and `..` are there.
    fn opens_new(&self, spot: Spot<'_>, origin: Origin) -> bool {
        origin == Origin::Created
            || paths::is_dot_or_dot_dot(spot.name.to_bytes()) && self.is_new(spot.dir)
    }

    /// Returns `true` if a mirror would have deleted the name.
    fn is_gone(&self, spot: Spot<'_>) -> bool {
        let gone = lock(&self.gone);
        let id = || sys::stat_open(spot.dir).map(|dir| FileId::of(&dir));
        !gone.is_empty() && id().is_ok_and(|id| gone.contains(&(id, spot.name.to_owned())))
    }

    fn stat(&self, spot: Spot<'_>, symlinks: Symlinks) -> Result<Stat, Errno> {
        match sys::stat(spot.dir, spot.name, symlinks) {
            _ if spot.is_vacated || self.is_gone(spot) => Err(Errno::NOENT),
            Err(Errno::NOTDIR) if self.is_new(spot.dir) => Err(Errno::NOENT),
            seen => seen,
        }
    }

    /// Fails as the kernel does if a name cannot be created.
    fn check_creation(&self, spot: Spot<'_>) -> Result<(), Errno> {
        let Spot { dir, name, .. } = spot;
        if self.is_new(dir) {
            return match paths::is_dot_or_dot_dot(name.to_bytes()) {
                true => Err(Errno::EXIST),
                false => Ok(()),
            };
        }
        // A slash at the end does not matter to a name that exists, even if it is a dangling link. No such name was vacated.
        let itself = Spot {
            name: &paths::without_slashes(name),
            is_vacated: spot.is_vacated && !spot.has_slash(),
            ..spot
        };
        match self.stat(itself, Symlinks::NoFollow) {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) if !name.is_empty() => {
                sys::check_adding(dir, &paths::directory_of(name))
            }
            Err(errno) => Err(errno),
        }
    }

    /// Fails as the kernel does if a file cannot be unlinked.
    fn check_unlinking(&self, spot: Spot<'_>) -> Result<(), Errno> {
        match self.stat(spot, Symlinks::NoFollow)? {
            seen if sys::is_directory(&seen) => Err(Errno::ISDIR),
            _ => sys::check_adding(spot.dir, &paths::directory_of(spot.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_names_are_beside_their_dest_and_have_32_digits() {
        let [one, other] = [(); 2].map(|()| hidden_name(c"d/f").into_string().unwrap());
        assert_ne!(one, other);
        let digits = one.strip_prefix("d/.cpz-").unwrap();
        assert!(digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    }
}
