//! The names of backups.
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
use std::path::Path;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::copy::bases::Bases;
use crate::copy::options::{Backup, CopyOp, Dest, DestRules};
use crate::hashing::HashMap;
use crate::operand;
use crate::sys::{self, FileId, Listing, Symlinks};

/// The highest backup number of each name, for the directory listed last.
///
/// A directory is listed once, not once for each file. Other processes may add backups after
/// that, so a backup is never renamed to a name in use.
#[derive(Default)]
pub(in crate::copy) struct BackupNumbers {
    directory: Option<FileId>,
    highest: HashMap<Box<[u8]>, u128>,
}

impl BackupNumbers {
    /// Returns the highest number of `name`, which may be a path. 0 if it has no numbered
    /// backup, or if its directory cannot be listed.
    fn highest(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> u128 {
        let (_, base) = operand::split(name.to_bytes());
        let parent = operand::directory_of(name);
        let identity = sys::stat(dir, &parent, Symlinks::Follow)
            .ok()
            .map(|stat| FileId::of(&stat));
        if identity.is_none() || identity != self.directory {
            self.directory = identity;
            self.highest.clear();
            // If the directory cannot be listed, numbers are tried from 1 on.
            let _ = self.list(dir, &parent);
        }
        self.highest.get(base).copied().unwrap_or(0)
    }

    fn list(&mut self, dir: BorrowedFd<'_>, parent: &CStr) -> Result<(), Errno> {
        // The directory may have its copied time of access already.
        let (dir, _) = sys::open_directory_noatime(dir, parent, Symlinks::Follow)?;
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

    pub(super) fn note(&mut self, base: &[u8], number: u128) {
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
    let (parent, (_, base)) = (operand::directory_of(dest), operand::split(dest.to_bytes()));
    let opened = sys::open_path_directory(dir, &parent, Symlinks::Follow);
    let longest = opened.and_then(|dir| sys::longest_name(dir.as_fd())).ok();
    let longest = longest.filter(|&longest| longest >= base.len());
    longest.unwrap_or(USUAL).saturating_sub(1)
}

/// The names for one backup, in the order in which they are tried.
pub(super) struct BackupNames<'a> {
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
pub(super) struct BackupName {
    pub(super) name: Box<CStr>,
    /// The number in the name. `None` if the name has none or was shortened: then there is no
    /// next name.
    pub(super) number: Option<u128>,
    /// A file that has the name already is replaced.
    pub(super) replaces: bool,
}

impl<'a> BackupNames<'a> {
    pub(super) fn new(
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
    pub(super) fn simple(rules: &'a DestRules, dir: BorrowedFd<'_>, dest: &'a CStr) -> Self {
        let (_, base) = operand::split(dest.to_bytes());
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
    /// `EINVAL` if the suffix contains a NUL, `EOVERFLOW` if there is no higher number.
    pub(super) fn next(&mut self) -> Result<BackupName, Errno> {
        let tail = match &mut self.number {
            None => self.suffix.as_bytes().to_vec(),
            Some(number) => {
                *number = number.checked_add(1).ok_or(Errno::OVERFLOW)?;
                format!(".~{number}~").into_bytes()
            }
        };
        let digits = |number: u128| number.checked_ilog10();
        let has_usual_length = self.number.map(digits) == Some(digits(self.highest));
        let (directory, base) = operand::split(self.dest);
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
            // Other names may be shortened to this one.
            replaces: self.number.is_none() && fits,
        })
    }
}

/// If a file is copied over itself with `--force` and `--backup`, returns its backup as the
/// dest. Otherwise returns `None`.
pub(in crate::copy) fn own_backup(
    options: &CopyOp<'_>,
    bases: Bases<'_>,
    dest: &Dest,
    source: &Path,
) -> Option<Dest> {
    let Dest::Exactly(dest) = dest else {
        return None;
    };
    if !options.force || options.rules.backup.is_none() || dest.as_os_str() != source.as_os_str() {
        return None;
    }
    if dest.is_relative() && !bases.are_one_directory() {
        return None;
    }
    let path = operand::to_c(source).ok()?;
    let stat = sys::stat(bases.source, &path, Symlinks::Follow).ok()?;
    if sys::file_type(&stat) != FileType::RegularFile {
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
    let backup_path = OsStr::from_bytes(backup.name.to_bytes());
    (backup.replaces || is_vacant()).then(|| Dest::Exactly(backup_path.into()))
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
