//! What backups are called.
//!
//! | naming | name | where that is too long |
//! |---|---|---|
//! | simple | the dest's and the suffix | nothing can be renamed to it |
//! | numbered | the dest's and `.~N~` | as much of the dest's as has room, and `~` |
//! | numbered if any are, and none is | the dest's and the suffix | the same |
//!
//! "Too long" is, as for GNU, already what is as long as the filesystem allows. A number with as many
//! digits as the highest one that is there is not too long, since that one was not.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;

use crate::copy::rules::{Backup, BackupNaming};
use crate::operand;
use crate::sys::{self, Listing, Symlinks};

/// The highest number of each name's backups in the directory asked about last.
///
/// A directory is listed once, not once for each file. Others may add backups
/// meanwhile: a name that is taken is never renamed to.
#[derive(Default)]
pub(in crate::copy) struct BackupNumbers {
    directory: Option<(u64, u64)>,
    highest: HashMap<Box<[u8]>, u128>,
}

impl BackupNumbers {
    /// That of `name`, which may be a path; 0 if there is none, or nobody can tell.
    fn highest(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> u128 {
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

/// The name and the number in `name.~number~`.
fn parse_numbered(backup: &[u8]) -> Option<(&[u8], u128)> {
    let numbered = backup.strip_suffix(b"~")?;
    let tilde = numbered.iter().rposition(|&byte| byte == b'~')?;
    let (base, number) = (&numbered[..tilde], &numbered[tilde + 1..]);
    let base = base.strip_suffix(b".").filter(|base| !base.is_empty())?;
    let is_number = number.first()? != &b'0' && number.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(number).ok()?.parse().ok()?;
    is_number.then_some((base, number))
}

/// The longest name without a question to the filesystem; none in use allows less.
const SHORT_BYTES: usize = 128;

/// Renaming to a name of `NAME_MAX` bytes would work, but GNU shortens it.
fn longest_name(dir: BorrowedFd<'_>, dest: &CStr) -> usize {
    const USUAL: usize = 255;
    let parent = operand::directory_of(dest);
    let opened = sys::open_path_directory(dir, &parent, Symlinks::Follow);
    let longest = opened.and_then(|dir| sys::longest_name(dir.as_fd()));
    longest.unwrap_or(USUAL).saturating_sub(1)
}

/// The names to try, one after the other.
pub(super) struct Names<'a> {
    dest: &'a [u8],
    suffix: &'a OsStr,
    /// `None`: a simple backup.
    number: Option<u128>,
    /// The highest number that is there; 0: none.
    highest: u128,
    /// What is longer than this is shortened.
    longest: usize,
}

/// A name to try.
pub(super) struct Name {
    pub(super) name: Box<CStr>,
    /// It has this number, and was not shortened: there is a next one.
    pub(super) number: Option<u128>,
    /// What has it already may lose it.
    pub(super) replaces: bool,
}

impl<'a> Names<'a> {
    pub(super) fn new(
        backup: &'a Backup,
        dir: BorrowedFd<'_>,
        dest: &'a CStr,
        numbers: &mut BackupNumbers,
    ) -> Self {
        let highest = match backup.naming {
            BackupNaming::Simple => 0,
            BackupNaming::Numbered | BackupNaming::NumberedIfAny => numbers.highest(dir, dest),
        };
        let is_numbered = backup.naming == BackupNaming::Numbered || highest > 0;
        Self {
            number: is_numbered.then_some(highest),
            highest,
            ..Self::simple(backup, dir, dest)
        }
    }

    /// The name without a number.
    pub(super) fn simple(backup: &'a Backup, dir: BorrowedFd<'_>, dest: &'a CStr) -> Self {
        let (_, base) = operand::split(dest.to_bytes());
        let may_be_long = base.len() + backup.suffix.len() > SHORT_BYTES;
        let longest = match backup.naming {
            BackupNaming::Numbered | BackupNaming::NumberedIfAny if may_be_long => {
                longest_name(dir, dest)
            }
            _ => usize::MAX,
        };
        Self {
            dest: dest.to_bytes(),
            suffix: &backup.suffix,
            number: None,
            highest: 0,
            longest,
        }
    }

    /// # Errors
    /// `EINVAL` if there is a NUL in the suffix, `EOVERFLOW` if there is no further number.
    pub(super) fn next(&mut self) -> Result<Name, Errno> {
        let tail = match &mut self.number {
            None => self.suffix.as_bytes().to_vec(),
            Some(number) => {
                *number = number.checked_add(1).ok_or(Errno::OVERFLOW)?;
                format!(".~{number}~").into_bytes()
            }
        };
        let digits = |number: u128| number.checked_ilog10();
        let is_familiar = self.number.map(digits) == Some(digits(self.highest));
        let (directory, base) = operand::split(self.dest);
        let fits = is_familiar || base.len() + tail.len() <= self.longest;
        let name = if fits {
            [self.dest, &tail].concat()
        } else {
            let kept = base.len().min(self.longest.saturating_sub(1));
            [directory, &base[..kept], b"~"].concat()
        };
        Ok(Name {
            name: CString::new(name)
                .map_err(|_| Errno::INVAL)?
                .into_boxed_c_str(),
            number: self.number.filter(|_| fits),
            replaces: self.number.is_none(),
        })
    }
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
