//! Backups: what is at a dest gets another name, and gets its own back if the copy fails.
//!
//! A backup has the dest's name with something appended, so it stays in its directory.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr};
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
use crate::error::{Error, Operation as Doing, Refusal};
use crate::node::{Place, Side};
use crate::observer::Done;
use crate::operand;
use crate::sys::{self, CWD, Listing, Stat, Symlinks};
use crate::walk::Walker;

/// The highest number of each name's backups in the directory asked about last.
///
/// A directory is listed once, not once for each file. Others may add backups
/// meanwhile: a name that is taken is never renamed to.
#[derive(Default)]
pub(super) struct BackupNumbers {
    directory: Option<(u64, u64)>,
    highest: HashMap<Box<[u8]>, u64>,
}

impl BackupNumbers {
    /// That of `name`, which may be a path; 0 if there is none, or nobody can tell.
    fn highest(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> u64 {
        let (_, base) = operand::split(name.to_bytes());
        let parent = operand::directory_of(name);
        let identity = sys::stat(dir, &parent, Symlinks::Follow)
            .ok()
            .map(|stat| (stat.st_dev, stat.st_ino));
        if identity.is_none() || identity != self.directory {
            self.directory = identity;
            self.highest.clear();
            // Where it cannot be listed, numbers are tried from 1 on.
            let _ = self.list(dir, &parent);
        }
        self.highest.get(base).copied().unwrap_or(0)
    }

    fn list(&mut self, dir: BorrowedFd<'_>, parent: &CStr) -> Result<(), Errno> {
        // The time of access may have been copied already.
        let (dir, _) = sys::open_directory_untouched(dir, parent, Symlinks::Follow)?;
        let mut listing = Listing::with_capacity(32 << 10);
        while listing.fill(dir.as_fd())? {
            for entry in listing.entries() {
                if let Some((base, number)) = parse_numbered(entry.name.to_bytes()) {
                    self.note(base, number);
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, base: &[u8], number: u64) {
        match self.highest.get_mut(base) {
            Some(highest) => *highest = number.max(*highest),
            None => drop(self.highest.insert(base.into(), number)),
        }
    }
}

/// The name and the number in `name.~number~`.
fn parse_numbered(backup: &[u8]) -> Option<(&[u8], u64)> {
    let numbered = backup.strip_suffix(b"~")?;
    let tilde = numbered.iter().rposition(|&byte| byte == b'~')?;
    let (base, number) = (&numbered[..tilde], &numbered[tilde + 1..]);
    let base = base.strip_suffix(b".").filter(|base| !base.is_empty())?;
    let is_number = number.first()? != &b'0' && number.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(number).ok()?.parse().ok()?;
    is_number.then_some((base, number))
}

/// The names to try, one after the other.
struct Names<'a> {
    dest: &'a [u8],
    suffix: &'a OsStr,
    /// `None`: a simple backup.
    number: Option<u64>,
}

impl<'a> Names<'a> {
    fn new(
        backup: &'a Backup,
        dir: BorrowedFd<'_>,
        dest: &'a CStr,
        numbers: &mut BackupNumbers,
    ) -> Self {
        let number = match backup.naming {
            BackupNaming::Simple => None,
            BackupNaming::Numbered => Some(numbers.highest(dir, dest)),
            BackupNaming::NumberedIfAny => Some(numbers.highest(dir, dest)).filter(|&n| n > 0),
        };
        Self {
            dest: dest.to_bytes(),
            suffix: &backup.suffix,
            number,
        }
    }

    fn next(&mut self) -> Box<CStr> {
        let tail = match &mut self.number {
            None => self.suffix.as_bytes().to_vec(),
            Some(number) => {
                *number = number.saturating_add(1);
                format!(".~{number}~").into_bytes()
            }
        };
        // A name and a suffix that were arguments hold no NUL.
        let name = CString::new([self.dest, &tail].concat()).unwrap_or_default();
        name.into_boxed_c_str()
    }
}

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
            Err(errno) => Err(self.dest_error(item, Doing::Backup, errno)),
        }
    }

    /// Undoes [`set_aside`](Self::set_aside), after a failure that has been told.
    pub(super) fn restore_backup(&self, item: &Item<'_>) {
        let Some(name) = item.ground.backup() else {
            return;
        };
        if let Err(errno) = sys::rename(item.dest_dir, name, item.dest_name) {
            self.report
                .failed(self.dest_error(item, Doing::RestoreBackup, errno));
        } else if self.report.wants_finished()
            && let Some(backup) = &self.backup_path(item)
        {
            let dest = &self.item_path(item, Side::Dest);
            self.report.finished(Done::RestoredBackup { backup, dest });
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
                    .failed(self.dest_error(item, Doing::RestoreBackup, errno));
            }
        }
    }

    /// Where the dest's backup is.
    pub(super) fn backup_path(&self, item: &Item<'_>) -> Option<PathBuf> {
        let name = item.ground.backup()?;
        let tail = &name.to_bytes()[item.dest_name.to_bytes().len()..];
        let mut path = self.item_path(item, Side::Dest).into_os_string().into_vec();
        path.extend_from_slice(tail);
        Some(PathBuf::from(std::ffi::OsString::from_vec(path)))
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
        let failed = |doing| move |errno| self.place_error(place, Side::Dest, doing, errno);
        let stat = |symlinks| {
            self.at(place, Side::Dest, |dir, name| {
                sys::stat(dir, name, symlinks)
            })
        };
        let is_directory = |stat: &Stat| sys::file_type(stat) == FileType::Directory;
        let there = stat(Symlinks::NoFollow).map_err(failed(Doing::Stat))?;
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
        made.map_err(failed(Doing::Backup))?;
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
        let name = Names::new(backup, CWD, &path, &mut BackupNumbers::default()).next();
        Some(Dest::Exactly(PathBuf::from(OsStr::from_bytes(
            name.to_bytes(),
        ))))
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
        let name = names.next();
        let renamed = match names.number {
            Some(_) => sys::rename_to_new(dir, dest, &name),
            None => sys::rename(dir, dest, &name),
        };
        match (renamed, names.number) {
            (Ok(()), Some(number)) => {
                let (_, base) = operand::split(dest.to_bytes());
                numbers.note(base, number);
                return Ok(Some(name));
            }
            (Ok(()), None) => {
                // Between two names of one file, rename does nothing and says it is done.
                let still = sys::stat(dir, dest, Symlinks::NoFollow);
                if there.st_nlink > 1 && still.is_ok_and(|still| is_same(&still, there)) {
                    sys::unlink(dir, dest)?;
                }
                return Ok(Some(name));
            }
            (Err(Errno::EXIST), Some(_)) => {}
            (Err(Errno::NOENT), _) => return Ok(None),
            (Err(errno), _) => return Err(errno),
        }
    }
}

/// Whether the source is what would be lost by a simple backup of the dest.
fn is_backup(item: &Item<'_>, source: &Stat, backup: &Backup) -> bool {
    let (_, source_base) = operand::split(item.source_name.to_bytes());
    let (_, dest_base) = operand::split(item.dest_name.to_bytes());
    if source_base != [dest_base, backup.suffix.as_bytes()].concat() {
        return false;
    }
    let name = CString::new([item.dest_name.to_bytes(), backup.suffix.as_bytes()].concat());
    let backup = sys::stat(item.dest_dir, &name.unwrap_or_default(), Symlinks::Follow);
    backup.is_ok_and(|backup| is_same(source, &backup))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_between_tildes() {
        assert_eq!(parse_numbered(b"a.~12~"), Some((&b"a"[..], 12)));
        assert_eq!(parse_numbered(b"a.~1~.~2~"), Some((&b"a.~1~"[..], 2)));
    }

    #[test]
    fn other_names_are_no_numbered_backups() {
        for name in [
            "a~", "a.~~", "a.~01~", "a.~x~", "a.~+1~", "a~1~", ".~1~", "a.~1",
        ] {
            assert_eq!(parse_numbered(name.as_bytes()), None, "{name}");
        }
    }
}
