//! Cleans up after a test, without the engine. It is slow, but copes with any depth and any mode.

use std::{
    ffi::{CStr, CString},
    io,
    os::fd::{AsFd as _, BorrowedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, FileType, Mode, Stat, chmodat, fchmod, unlinkat},
    io::Errno,
};

use crate::walk::{Start, Visitor, file_type, names, stat_at, walk};

/// Deletes the entry at `path`: a file, a symlink (not its target), or a directory of any depth and mode. A
/// missing `path` is not an error. Opens at most four descriptors at once.
///
/// # Errors
/// Fails at an entry that is a mount point or that belongs to another user. Entries deleted before it stay
/// deleted.
pub fn remove_for_sure(path: impl AsRef<Path>) -> io::Result<()> {
    let start = match Start::at(path.as_ref()) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        start => start?,
    };
    match start.stat() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
        Ok(stat) if file_type(&stat) == FileType::Directory => {
            unlock(start.parent.as_fd(), &start.name, &stat)?;
            walk(start, (), &mut Removal)
        }
        Ok(_) => Ok(unlinkat(start.parent, &start.name, AtFlags::empty())?),
    }
}

/// Lets the owner list and change a directory.
fn unlock(parent: BorrowedFd<'_>, name: &CStr, stat: &Stat) -> Result<(), Errno> {
    match stat.st_mode & 0o700 {
        0o700 => Ok(()),
        _ => chmodat(parent, name, Mode::RWXU, AtFlags::empty()),
    }
}

struct Removal;

impl Visitor for Removal {
    type Mark = ();

    fn arrive(&mut self, dir: BorrowedFd<'_>, (): ()) -> io::Result<Vec<(CString, ())>> {
        let mut below = Vec::new();
        for name in names(dir)? {
            match unlinkat(dir, &name, AtFlags::empty()) {
                Ok(()) => {}
                // Some filesystems return EPERM for a directory, and an ACL may forbid what the mode allows.
                Err(Errno::ISDIR | Errno::PERM | Errno::ACCESS) => {
                    let stat = stat_at(dir, &name)?;
                    if file_type(&stat) == FileType::Directory {
                        unlock(dir, &name, &stat)?;
                        below.push((name, ()));
                    } else {
                        fchmod(dir, Mode::RWXU)?;
                        unlinkat(dir, &name, AtFlags::empty())?;
                    }
                }
                Err(e) => return Err(e.into()),
            }
        }
        Ok(below)
    }

    fn leave(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Scratch, Tree, chain, comb};

    #[test]
    fn a_chain_of_100_000_levels_goes() {
        let scratch = Scratch::in_memory();
        let deep = scratch.path().join("deep");
        chain(&deep, 100_000);
        remove_for_sure(&deep).unwrap();
        assert!(!deep.exists());
    }

    #[test]
    fn a_comb_goes() {
        let scratch = Scratch::new();
        let comb_dir = scratch.path().join("comb");
        comb(&comb_dir, 100, 2);
        remove_for_sure(&comb_dir).unwrap();
        assert!(!comb_dir.exists());
    }

    #[test]
    fn modes_do_not_matter() {
        let scratch = Scratch::new();
        let locked = scratch.path().join("locked");
        Tree::at(&locked)
            .file("a/b/c", "")
            .mode(0)
            .select("a/b")
            .mode(0)
            .select("a")
            .mode(0o100)
            .select("")
            .mode(0);
        remove_for_sure(&locked).unwrap();
        assert!(!locked.exists());
    }

    #[test]
    fn symlinks_are_removed_and_not_followed() {
        let scratch = Scratch::new();
        Tree::at(scratch.path())
            .file("kept/f", "")
            .symlink("gone/l", "../kept")
            .symlink("l", "kept");
        remove_for_sure(scratch.path().join("gone")).unwrap();
        remove_for_sure(scratch.path().join("l")).unwrap();
        assert!(scratch.path().join("kept/f").exists());
        assert!(scratch.path().join("l").symlink_metadata().is_err());
    }

    #[test]
    fn a_missing_path_is_no_error() {
        let scratch = Scratch::new();
        remove_for_sure(scratch.path().join("no")).unwrap();
        remove_for_sure(scratch.path().join("no/such")).unwrap();
    }
}
