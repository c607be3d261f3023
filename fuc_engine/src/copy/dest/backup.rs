//! Backups: a dest gets another name in its directory, and its own name back if the copy fails.
//!
//! | naming | name | if that is too long |
//! |---|---|---|
//! | simple | the dest's name and the suffix | the rename fails |
//! | numbered | the dest's name and `.~N~` | the dest's name, shortened, and `~` |
//! | numbered if any exist, and none does | the dest's name and the suffix | the dest's name, shortened, and `~` |
//!
//! A shortened name replaces nothing: it may be that of another file's backup.
//!
//! As in GNU cp, a name of exactly the maximal length counts as too long. A number with no more
//! digits than the highest in use is never checked, because a name of that length exists.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::copy::changes::{Replaces, Spot};
use crate::copy::context::{Context, Failure};
use crate::copy::entry::Entry;
use crate::copy::facts::{FileId, Symlinks};
use crate::copy::operand::Bases;
use crate::copy::options::{Backup, CopyOp, Dest, DestRules};
use crate::error::{Operation, Refusal};
use crate::hashing::HashMap;
use crate::observer::Event;
use crate::paths;
use crate::sys::{self, Listing, Stat};

/// Renames the dest of `entry` to its backup, for which the rules must ask. Returns the backup's name, or `None` if the dest
/// has vanished.
pub(crate) fn back_up(
    entry: &Entry<'_>,
    dest: &Stat,
    numbers: &mut BackupNumbers,
) -> Result<Option<Box<CStr>>, Failure> {
    let rules = &entry.ctx.policy.options.rules;
    if rules.backup != Some(Backup::Numbered) && would_replace_source(entry, rules) {
        return Err(entry.refused(Refusal::BackupOverSource));
    }
    let renamed = rename_to_backup(entry.ctx, entry.dest, dest, numbers);
    renamed.map_err(|errno| Failure::preparing(entry.dest_error(Operation::Backup, errno)))
}

/// Returns `true` if the source is the file that a simple backup of the dest would replace.
fn would_replace_source(entry: &Entry<'_>, rules: &DestRules) -> bool {
    let Ok(backup) = BackupNames::simple(rules, entry.dest.dir, entry.dest.name).next() else {
        return false;
    };
    let (_, source_base) = paths::split(entry.source.name.to_bytes());
    let (_, backup_base) = paths::split(backup.name.to_bytes());
    let replaced = || sys::stat(entry.dest.dir, &backup.name, Symlinks::Follow);
    source_base == backup_base
        && matches!((entry.stat_source(), replaced()), (Ok(source), Ok(replaced))
            if FileId::of(&source) == FileId::of(&replaced))
}

/// Gives the dest its name back after its copy failed. Reports an error if the rename fails.
pub(crate) fn restore(entry: &Entry<'_>) {
    let Some(name) = entry.backup else {
        return;
    };
    let changes = &entry.ctx.changes;
    match changes.rename(entry.dest.dir, name, entry.dest.name, Replaces::Files) {
        Ok(()) => entry.emit(|_, dest, backup| Event::RestoredBackup {
            backup: backup.unwrap_or(dest),
            dest,
        }),
        Err(errno) => entry.fail(entry.dest_error(Operation::RestoreBackup, errno)),
    }
}

/// Renames the dest of a directory, which was seen as `dest`, to its backup, and makes a directory in its place.
pub(crate) fn replace_by_directory(
    entry: &Entry<'_>,
    dest: &Stat,
    mode: u32,
    numbers: &mut BackupNumbers,
) -> Result<(), Errno> {
    let (changes, spot) = (&entry.ctx.changes, entry.dest);
    let moved = rename_to_backup(entry.ctx, spot, dest, numbers)?;
    let created = changes.create_directory(spot.vacated(), mode);
    created.inspect_err(|_| {
        if let Some(moved) = moved {
            // Ignore a failure: the error to report is that of creating the directory.
            let _ = changes.rename(spot.dir, &moved, spot.name, Replaces::Nothing);
        }
    })
}

/// Renames a name, which was seen as `dest`, to a backup. Returns the backup's name, or `None` if the dest has
/// vanished.
fn rename_to_backup(
    ctx: &Context<'_>,
    spot: Spot<'_>,
    dest: &Stat,
    numbers: &mut BackupNumbers,
) -> Result<Option<Box<CStr>>, Errno> {
    let name = spot.name;
    let mut names = BackupNames::new(&ctx.policy.options.rules, spot.dir, name, numbers);
    loop {
        let backup = names.next()?;
        if *backup.name == *name {
            // The name was shortened to itself.
            return Err(Errno::EXIST);
        }
        let renamed = ctx
            .changes
            .rename(spot.dir, name, &backup.name, backup.replaces);
        match (renamed, backup.number) {
            (Ok(()), Some(number)) => {
                let (_, base) = paths::split(name.to_bytes());
                numbers.note(base, number);
                return Ok(Some(backup.name));
            }
            (Ok(()), None) => {
                // Between two names of one file, rename succeeds without an effect.
                let still = ctx.changes.stat(spot, Symlinks::NoFollow);
                let is_still_there =
                    still.is_ok_and(|still| FileId::of(&still) == FileId::of(dest));
                if dest.st_nlink > 1 && is_still_there {
                    ctx.changes.unlink(spot)?;
                }
                return Ok(Some(backup.name));
            }
            (Err(Errno::EXIST), Some(_)) => {}
            (Err(Errno::NOENT), _) => return Ok(None),
            (Err(errno), _) => return Err(errno),
        }
    }
}

/// The highest backup number of each name, for the directory listed last.
///
/// A directory is listed once, not once for each file. Other processes may add backups after
/// that, so a backup is never renamed to a name in use.
#[derive(Default)]
pub(crate) struct BackupNumbers {
    directory: Option<FileId>,
    highest: HashMap<Box<[u8]>, u128>,
}

impl BackupNumbers {
    /// Returns the highest number of `name`, which may be a path. 0 if it has no numbered
    /// backup, or if its directory cannot be listed.
    fn highest(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> u128 {
        let (_, base) = paths::split(name.to_bytes());
        let identity = paths::directory_id_of(dir, name);
        if identity.is_none() || identity != self.directory {
            self.directory = identity;
            self.highest.clear();
            // If the directory cannot be listed, numbers are tried from 1 on.
            let _ = self.list_numbers(dir, &paths::directory_of(name));
        }
        self.highest.get(base).copied().unwrap_or(0)
    }

    fn list_numbers(&mut self, dir: BorrowedFd<'_>, parent: &CStr) -> Result<(), Errno> {
        // The directory may have its copied time of access already.
        let (dir, _) = sys::open_directory_noatime(dir, parent, Symlinks::Follow)?;
        let mut listing = Listing::with_capacity(32 << 10);
        while listing.refill(dir.as_fd())? {
            for entry in listing.entries() {
                if let Some((base, number)) = parse_numbered(entry.name.to_bytes()) {
                    self.note(base, number);
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, base: &[u8], number: u128) {
        match self.highest.get_mut(base) {
            Some(highest) => *highest = number.max(*highest),
            None => drop(self.highest.insert(base.into(), number)),
        }
    }
}

/// Parses `name.~number~`.
fn parse_numbered(backup: &[u8]) -> Option<(&[u8], u128)> {
    let numbered = backup.strip_suffix(b"~")?;
    let tilde = numbered.iter().rposition(|&byte| byte == b'~')?;
    let (base, number) = (&numbered[..tilde], &numbered[tilde + 1..]);
    let base = base.strip_suffix(b".").filter(|base| !base.is_empty())?;
    let is_number = number.first()? != &b'0' && number.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(number).ok()?.parse().ok()?;
    is_number.then_some((base, number))
}

/// Names up to this length are allowed everywhere, so the filesystem is not queried.
const SHORT_BYTES: usize = 128;

/// Returns the longest length that is not shortened: one less than the filesystem allows,
/// as in GNU cp. A limit that the dest's name exceeds is not believed.
fn longest_name(dir: BorrowedFd<'_>, dest: &CStr) -> usize {
    const USUAL: usize = 255;
    let (_, base) = paths::split(dest.to_bytes());
    let opened = paths::open_directory_of(dir, dest);
    let longest = opened.and_then(|dir| sys::longest_name(dir.as_fd())).ok();
    let longest = longest.filter(|&longest| longest >= base.len());
    longest.unwrap_or(USUAL).saturating_sub(1)
}

/// The names for one backup, in the order in which they are tried.
struct BackupNames<'a> {
    dest: &'a [u8],
    suffix: &'a OsStr,
    /// `None` for a simple backup.
    number: Option<u128>,
    /// The highest number in use, or 0.
    highest: u128,
    /// Longer names are shortened.
    longest: usize,
}

/// One name for a backup.
struct BackupName {
    name: Box<CStr>,
    /// The number in the name. `None` if the name has none or was shortened. Then no other name is tried.
    number: Option<u128>,
    /// Says whether a file that has the name already is replaced.
    replaces: Replaces,
}

impl<'a> BackupNames<'a> {
    fn new(
        rules: &'a DestRules,
        dir: BorrowedFd<'_>,
        dest: &'a CStr,
        numbers: &mut BackupNumbers,
    ) -> Self {
        let highest = match rules.backup {
            Some(Backup::Numbered | Backup::NumberedIfAny) => numbers.highest(dir, dest),
            Some(Backup::Simple) | None => 0,
        };
        let is_numbered = rules.backup == Some(Backup::Numbered) || highest > 0;
        Self {
            number: is_numbered.then_some(highest),
            highest,
            ..Self::simple(rules, dir, dest)
        }
    }

    /// Returns the names for a backup without a number.
    fn simple(rules: &'a DestRules, dir: BorrowedFd<'_>, dest: &'a CStr) -> Self {
        let (_, base) = paths::split(dest.to_bytes());
        let may_be_long = base.len() + rules.backup_suffix.len() > SHORT_BYTES;
        let longest = match may_be_long && rules.backup != Some(Backup::Simple) {
            true => longest_name(dir, dest),
            false => usize::MAX,
        };
        Self {
            dest: dest.to_bytes(),
            suffix: &rules.backup_suffix,
            number: None,
            highest: 0,
            longest,
        }
    }

    /// Returns the next name to try.
    ///
    /// # Errors
    /// Fails with `EINVAL` if the suffix contains a NUL, and with `EOVERFLOW` after the highest number.
    fn next(&mut self) -> Result<BackupName, Errno> {
        let tail = match &mut self.number {
            None => self.suffix.as_bytes().to_vec(),
            Some(number) => {
                *number = number.checked_add(1).ok_or(Errno::OVERFLOW)?;
                format!(".~{number}~").into_bytes()
            }
        };
        let digits = |number: u128| number.checked_ilog10();
        let has_usual_length = self.number.map(digits) == Some(digits(self.highest));
        let (directory, base) = paths::split(self.dest);
        let fits = has_usual_length || base.len() + tail.len() <= self.longest;
        let name = if fits {
            [self.dest, &tail].concat()
        } else {
            let kept = base.len().min(self.longest.saturating_sub(1));
            [directory, &base[..kept], b"~"].concat()
        };
        Ok(BackupName {
            name: CString::new(name)
                .map_err(|_| Errno::INVAL)?
                .into_boxed_c_str(),
            number: self.number.filter(|_| fits),
            replaces: match self.number {
                None if fits => Replaces::Files,
                // Other names may be shortened to this one.
                _ => Replaces::Nothing,
            },
        })
    }
}

/// If a file is copied over itself with `--force` and `--backup`, returns its backup as the
/// dest. Otherwise returns `None`.
pub(crate) fn own_backup(
    options: &CopyOp<'_>,
    bases: Bases<'_>,
    dest: &Dest,
    source: &Path,
) -> Option<PathBuf> {
    let Dest::Exactly(dest) = dest else {
        return None;
    };
    if !options.force || options.rules.backup.is_none() || dest.as_os_str() != source.as_os_str() {
        return None;
    }
    if dest.is_relative() && !bases.are_one_directory() {
        return None;
    }
    let path = paths::to_c(source).ok()?;
    let stat = sys::stat(bases.source, &path, Symlinks::Follow).ok()?;
    if !sys::is_regular(&stat) {
        return None;
    }
    let mut names = BackupNames::new(
        &options.rules,
        bases.dest,
        &path,
        &mut BackupNumbers::default(),
    );
    let backup = names.next().ok()?;
    let is_vacant = || sys::stat(bases.dest, &backup.name, Symlinks::NoFollow).is_err();
    let is_usable = backup.replaces == Replaces::Files || is_vacant();
    is_usable.then(|| paths::path_of(&backup.name).into())
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
