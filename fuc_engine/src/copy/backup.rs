//! Backups: what is at a dest gets another name, and gets its own back if the copy fails.
//!
//! A backup has the dest's name with something appended (see [`names`]), so it stays in its directory.

use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::Dest;
use super::existing::is_same;
use super::item::Item;
use super::node::{CopyDir, CopyNode};
use super::rules::{Backup, BackupNaming};
use super::tree::Copying;
use crate::error::{Error, Operation, Refusal};
use crate::node::{Place, Side};
use crate::observer::Event;
use crate::operand;
use crate::sys::{self, CWD, Stat, Symlinks};
use crate::walk::Walker;

pub(super) use names::BackupNumbers;
use names::Names;

mod names;

impl Copying<'_> {
    /// Renames what is at the dest; `None` if it has gone by itself.
    pub(super) fn set_aside(
        &self,
        item: &Item<'_>,
        source: &Stat,
        there: &Stat,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<Option<Box<CStr>>, Error> {
        let Some(backup) = &self.rules.backup else {
            return Ok(None);
        };
        if backup.naming != BackupNaming::Numbered && is_backup(item, source, backup) {
            return Err(self.refusal(item, Refusal::BackupOverSource));
        }
        let numbers = &mut worker.scratch.own.backup_numbers;
        match move_aside(item.dest_dir, item.dest_name, (backup, there), numbers) {
            Ok(name) => Ok(name),
            Err(errno) => Err(self.dest_error(item, Operation::Backup, errno)),
        }
    }

    /// Undoes [`set_aside`](Self::set_aside), after a failure that has been told.
    pub(super) fn restore_backup(&self, item: &Item<'_>) {
        let Some(name) = item.ground.backup() else {
            return;
        };
        if let Err(errno) = sys::rename(item.dest_dir, name, item.dest_name) {
            self.report
                .failed(self.dest_error(item, Operation::RestoreBackup, errno));
        } else if self.report.wants_events()
            && let Some(backup) = &self.backup_path(item)
        {
            let dest = &self.item_path(item, Side::Dest);
            self.report.event(Event::RestoredBackup { backup, dest });
        }
    }

    /// The same for an entry of `node`, when its dest directory is not at hand.
    pub(super) fn restore_backup_in(&self, node: &CopyNode, item: &Item<'_>) {
        if item.ground.backup().is_none() {
            return;
        }
        match self.descriptors.pin(node, Side::Dest, self) {
            Ok(dir) => self.restore_backup(&Item {
                dest_dir: dir.as_fd(),
                ..*item
            }),
            Err(errno) => {
                self.report
                    .failed(self.dest_error(item, Operation::RestoreBackup, errno));
            }
        }
    }

    /// Where the dest's backup is.
    pub(super) fn backup_path(&self, item: &Item<'_>) -> Option<PathBuf> {
        let name = item.ground.backup()?;
        let (_, name) = operand::split(name.to_bytes());
        let dest = self.item_path(item, Side::Dest);
        let (directory, _) = operand::split(dest.as_os_str().as_bytes());
        Some(PathBuf::from(OsString::from_vec(
            [directory, name].concat(),
        )))
    }

    /// Makes a directory where something else was, if that is to become a backup;
    /// `false`: it is a directory already, or is to stay.
    pub(super) fn replace_by_directory(
        &self,
        place: &Place<CopyDir>,
        mode: u32,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<bool, Error> {
        let Some(backup) = &self.rules.backup else {
            return Ok(false);
        };
        let failed = |operation| move |errno| self.place_error(place, Side::Dest, operation, errno);
        let stat = |symlinks| {
            self.at(place, Side::Dest, |dir, name| {
                sys::stat(dir, name, symlinks)
            })
        };
        let is_directory = |stat: &Stat| sys::file_type(stat) == FileType::Directory;
        let there = stat(Symlinks::NoFollow).map_err(failed(Operation::Stat))?;
        let is_linked = self.rules.follow_links_to_directories
            && stat(Symlinks::Follow).is_ok_and(|target| is_directory(&target));
        if is_directory(&there) || is_linked {
            return Ok(false);
        }
        let numbers = &mut worker.scratch.own.backup_numbers;
        let made = self.at(place, Side::Dest, |dir, name| {
            let Some(moved) = move_aside(dir, name, (backup, &there), numbers)? else {
                return sys::create_directory(dir, name, mode);
            };
            sys::create_directory(dir, name, mode).inspect_err(|_| {
                // The failure itself is told.
                let _ = sys::rename_to_new(dir, &moved, name);
            })
        });
        made.map_err(failed(Operation::Backup))?;
        Ok(true)
    }

    /// Where a file goes that is to be copied over itself, by force: to its own backup.
    pub(super) fn backup_of_itself(&self, source: &Path) -> Option<Dest> {
        let backup = self.rules.backup.as_ref()?;
        let Dest::Exactly(dest) = self.dest else {
            return None;
        };
        if !self.options().force || dest.as_os_str() != source.as_os_str() {
            return None;
        }
        let path = operand::to_c(source).ok()?;
        let stat = sys::stat(CWD, &path, Symlinks::Follow).ok()?;
        if sys::file_type(&stat) != FileType::RegularFile {
            return None;
        }
        let mut names = Names::new(backup, CWD, &path, &mut BackupNumbers::default());
        let backup = names.next().ok()?;
        let is_free = || sys::stat(CWD, &backup.name, Symlinks::NoFollow).is_err();
        let backup_path = OsStr::from_bytes(backup.name.to_bytes());
        (backup.replaces || is_free()).then(|| Dest::Exactly(backup_path.into()))
    }
}

/// Gives `dest` in `dir`, which was seen `there`, the name of a backup of it.
fn move_aside(
    dir: BorrowedFd<'_>,
    dest: &CStr,
    (backup, there): (&Backup, &Stat),
    numbers: &mut BackupNumbers,
) -> Result<Option<Box<CStr>>, Errno> {
    let mut names = Names::new(backup, dir, dest, numbers);
    loop {
        let backup = names.next()?;
        if *backup.name == *dest {
            // A name that has been shortened before.
            return Err(Errno::EXIST);
        }
        let renamed = if backup.replaces {
            sys::rename(dir, dest, &backup.name)
        } else {
            sys::rename_to_new(dir, dest, &backup.name)
        };
        match (renamed, backup.number) {
            (Ok(()), Some(number)) => {
                let (_, base) = operand::split(dest.to_bytes());
                numbers.note(base, number);
                return Ok(Some(backup.name));
            }
            (Ok(()), None) => {
                // Between two names of one file, rename does nothing and says it is done.
                let still = sys::stat(dir, dest, Symlinks::NoFollow);
                if there.st_nlink > 1 && still.is_ok_and(|still| is_same(&still, there)) {
                    sys::unlink(dir, dest)?;
                }
                return Ok(Some(backup.name));
            }
            (Err(Errno::EXIST), Some(_)) => {}
            (Err(Errno::NOENT), _) => return Ok(None),
            (Err(errno), _) => return Err(errno),
        }
    }
}

/// Whether the source is what would be lost by a simple backup of the dest.
fn is_backup(item: &Item<'_>, source: &Stat, backup: &Backup) -> bool {
    let Ok(backup) = Names::simple(backup, item.dest_dir, item.dest_name).next() else {
        return false;
    };
    let (_, source_base) = operand::split(item.source_name.to_bytes());
    let (_, backup_base) = operand::split(backup.name.to_bytes());
    source_base == backup_base
        && sys::stat(item.dest_dir, &backup.name, Symlinks::Follow)
            .is_ok_and(|backup| is_same(source, &backup))
}
