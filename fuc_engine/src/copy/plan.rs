//! A dry run: what would be at the dests by now, and which calls would be permitted.
//!
//! Only [`names`](super::names), [`look`](super::look) and the files of `make/` that open a dest use this.
//! All other stages are those of a real run, so their decisions are, too.
//!
//! A directory that a real run would create is represented by a descriptor that is not a directory. A call
//! relative to it fails with `ENOTDIR`, so none can change anything, or look at something else.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::facts::{FileId, Symlinks};
use super::operand::Operand;
use super::options::CopyOptions;
use crate::hashing::{HashMap, HashSet};
use crate::operand;
use crate::sys::{self, Fd, Identity, SharedFd, Stat};

/// The changes that a dry run has planned.
pub(super) struct Plan {
    stand_in: SharedFd,
    /// Identifies a dest directory that would be new.
    pub(super) new_directory: Identity,
    /// The dests that would have been renamed or unlinked (`None`) by now, and those that would have been
    /// made (`Some`) if a dest may be met a second time.
    changes: Mutex<HashMap<PathBuf, Option<Stat>>>,
    /// `true` if a dest may be met a second time: operands collide, or backups are made.
    may_meet_again: bool,
    /// The last number that was given to a file that would be new.
    last_inode: AtomicU64,
}

/// A name at the dest.
pub(super) struct Spot<'a> {
    pub(super) dir: BorrowedFd<'a>,
    pub(super) name: &'a CStr,
    pub(super) path: PathBuf,
}

/// Returns the entry of the target in which all dests of an operand are. `None`: they may be anywhere in it.
fn entry_of_target(dest_name: &CStr) -> Option<&OsStr> {
    let path = Path::new(OsStr::from_bytes(dest_name.to_bytes()));
    let mut components = path.components();
    match components.find(|component| *component != Component::CurDir)? {
        Component::Normal(name) => Some(name),
        _ => None,
    }
}

impl Plan {
    pub(super) fn new(options: &CopyOptions, operands: &[Operand]) -> Result<Self, Errno> {
        let stand_in = sys::open_no_directory()?;
        let stat = sys::stat_directory(stand_in.as_fd())?;
        let mut entries = HashSet::default();
        let are_apart = operands.iter().all(|operand| {
            entry_of_target(&operand.dest_name).is_some_and(|entry| entries.insert(entry))
        });
        let collide = operands.len() > 1 && !are_apart;
        let may_meet_again = collide || options.rules.backup.is_some();
        Ok(Self {
            stand_in: stand_in.into(),
            new_directory: stat.identity,
            changes: Mutex::default(),
            may_meet_again,
            last_inode: AtomicU64::new(0),
        })
    }

    /// Returns a descriptor that stands for a new directory.
    pub(super) fn stand_in(&self) -> Result<Fd, Errno> {
        sys::duplicate(self.stand_in.borrow()?.as_fd())
    }

    /// Returns `true` if `dir` stands for a new directory.
    pub(super) fn is_new(&self, dir: BorrowedFd<'_>) -> bool {
        sys::stat_directory(dir).is_ok_and(|stat| stat.identity == self.new_directory)
    }

    /// Returns the type of a dest that would have been made by now. It is known if a dest may be met a second time.
    pub(super) fn planned_kind(&self, spot: &Spot<'_>) -> Option<FileType> {
        let planned = self.change(spot).flatten()?;
        Some(sys::file_type(&planned))
    }

    /// Returns an id that no file has.
    pub(super) fn new_id(&self) -> FileId {
        // Relaxed: only the numbers count, and they publish nothing.
        let inode = self.last_inode.fetch_add(1, Ordering::Relaxed) + 1;
        let FileId { device, .. } = self.new_directory.file();
        FileId {
            device,
            inode: u64::MAX - inode,
        }
    }

    /// Looks at a dest as it would be by now.
    pub(super) fn look(&self, spot: &Spot<'_>, symlinks: Symlinks) -> Result<Stat, Errno> {
        match self.change(spot) {
            Some(Some(stat)) if sys::file_type(&stat) != FileType::Symlink => Ok(stat),
            Some(Some(stat)) if symlinks == Symlinks::NoFollow => Ok(stat),
            // The target of a planned link is taken for missing.
            Some(_) => Err(Errno::NOENT),
            None => match sys::stat(spot.dir, spot.name, symlinks) {
                Err(Errno::NOTDIR) if self.is_new(spot.dir) => Err(Errno::NOENT),
                found => found,
            },
        }
    }

    /// Plans to create a name. `made` returns what would be there; it is called only if that matters.
    pub(super) fn create(
        &self,
        spot: Spot<'_>,
        made: impl FnOnce() -> Option<Stat>,
    ) -> Result<(), Errno> {
        self.check_creating(&spot)?;
        match self.may_meet_again {
            true => self.note(spot.path, made()),
            false => drop(self.changes().remove(&spot.path)),
        }
        Ok(())
    }

    /// Checks that a name could be created.
    pub(super) fn check_creating(&self, spot: &Spot<'_>) -> Result<(), Errno> {
        match self.look(spot, Symlinks::NoFollow) {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) if self.is_new(spot.dir) => Ok(()),
            Err(Errno::NOENT) => sys::check_adding(spot.dir, &operand::directory_of(spot.name)),
            Err(errno) => Err(errno),
        }
    }

    /// Plans to unlink a name.
    pub(super) fn unlink(&self, spot: Spot<'_>) -> Result<(), Errno> {
        self.check_removing(&spot)?;
        self.note(spot.path, None);
        Ok(())
    }

    /// Plans to rename a name. Fails with `EEXIST` if the new name exists, unless it `replaces`.
    pub(super) fn rename(
        &self,
        old: Spot<'_>,
        new: Spot<'_>,
        replaces: Replaces,
    ) -> Result<(), Errno> {
        let seen = self.look(&old, Symlinks::NoFollow)?;
        match self.look(&new, Symlinks::NoFollow) {
            Ok(_) if replaces == Replaces::Nothing => return Err(Errno::EXIST),
            Ok(stat) if sys::file_type(&stat) == FileType::Directory => return Err(Errno::ISDIR),
            Ok(_) => self.check_removing(&new)?,
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
        self.check_removing(&old)?;
        self.note(old.path, None);
        self.note(new.path, Some(seen));
        Ok(())
    }

    fn check_removing(&self, spot: &Spot<'_>) -> Result<(), Errno> {
        let stat = self.look(spot, Symlinks::NoFollow)?;
        if sys::file_type(&stat) == FileType::Directory {
            return Err(Errno::ISDIR);
        }
        if self.is_new(spot.dir) || self.change(spot).is_some() {
            return Ok(());
        }
        sys::check_removing(spot.dir, &operand::directory_of(spot.name), spot.name)
    }

    /// Checks that a dest, which exists, could be opened to write to it.
    pub(super) fn check_writing(&self, spot: &Spot<'_>, symlinks: Symlinks) -> Result<(), Errno> {
        const OWNER_WRITES: u32 = 0o200;
        match self.change(spot) {
            Some(Some(stat)) if stat.st_mode & OWNER_WRITES == 0 && sys::effective_user() != 0 => {
                return Err(Errno::ACCESS);
            }
            Some(_) => return Ok(()),
            None => {}
        }
        match sys::file_type(&self.look(spot, symlinks)?) {
            FileType::Directory => Err(Errno::ISDIR),
            FileType::Socket => Err(Errno::NXIO),
            _ => sys::check_writing(sys::At {
                dir: spot.dir,
                name: spot.name,
                symlinks,
            }),
        }
    }

    fn change(&self, spot: &Spot<'_>) -> Option<Option<Stat>> {
        self.changes().get(&spot.path).copied()
    }

    fn note(&self, path: PathBuf, now: Option<Stat>) {
        self.changes().insert(path, now);
    }

    fn changes(&self) -> MutexGuard<'_, HashMap<PathBuf, Option<Stat>>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says whether a file that has the new name may be replaced by a rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replaces {
    Files,
    Nothing,
}
