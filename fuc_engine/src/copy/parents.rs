//! The directories that lead to a source, made anew below the target.
//!
//! They get what the source's have when everything below them is done: until
//! then their owner may do anything in them.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::tree::Copying;
use crate::error::{Error, Operation, Refusal};
use crate::observer::Event;
use crate::sys::{self, CWD, Identity, Inode, Symlinks};

/// A directory that was made for what lies below it.
pub(super) struct MadeParent {
    /// Relative to the target.
    dest: Box<CStr>,
    /// Who must be found there in the end.
    identity: Identity,
    path: PathBuf,
    /// The mode that it is to have in the end, if it has another.
    mode_pending: Option<u32>,
    /// Whose copy it is.
    source: Box<CStr>,
}

/// The source's name below the target: all of it, but for slashes at both ends.
pub(super) fn name_with_parents(source: &CStr) -> Box<CStr> {
    let bytes = source.to_bytes();
    let is_inner = |byte: &u8| *byte != b'/';
    let (Some(start), Some(last)) = (
        bytes.iter().position(is_inner),
        bytes.iter().rposition(is_inner),
    ) else {
        return c".".into();
    };
    to_c(&bytes[start..=last]).into_boxed_c_str()
}

/// Where the directories end that `name` leads through.
fn ends(name: &[u8]) -> impl Iterator<Item = usize> {
    let is_end = |&at: &usize| at > 0 && name[at] == b'/' && name[at - 1] != b'/';
    (0..name.len()).filter(is_end)
}

impl Copying<'_> {
    /// Makes the directories that an operand's dest needs and that are not there.
    pub(super) fn make_parents(&self, operand: u32) -> Result<(), Error> {
        let operand = &self.operands[operand as usize];
        let (source, name) = (operand.source.to_bytes(), operand.dest_name.to_bytes());
        let lead = source.iter().take_while(|&&byte| byte == b'/').count();
        let target = operand.dest_path.as_os_str().as_bytes();
        let target = &target[..target.len() - name.len()];
        let mut above = None;
        let mut start = 0;
        for end in ends(name) {
            let path = [target, &name[..end]].concat();
            let way = Way {
                source: Path::new(OsStr::from_bytes(&source[..lead + end])),
                dest: &to_c(&name[..end]),
                name: &to_c(without_slashes(&name[start..end])),
                path: Path::new(OsStr::from_bytes(&path)),
            };
            above = Some(self.enter_parent(above.as_ref(), &way)?);
            start = end;
        }
        Ok(())
    }

    /// Opens the next directory on the way, which is made if it is not there.
    fn enter_parent(&self, above: Option<&OwnedFd>, way: &Way<'_>) -> Result<OwnedFd, Error> {
        let above = above.map_or(self.target(), AsFd::as_fd);
        match sys::open_path_directory(above, way.name, Symlinks::Follow) {
            Ok(there) => Ok(there),
            Err(Errno::NOTDIR) => {
                let path = way.path.into();
                Err(Error::refused(Refusal::ParentNotDirectory, path))
            }
            Err(_) => self.make_parent(above, way),
        }
    }

    fn make_parent(&self, above: BorrowedFd<'_>, way: &Way<'_>) -> Result<OwnedFd, Error> {
        let no_source =
            |errno| Error::failed(Operation::StatSourceParent, way.source.into(), errno);
        let failed = |operation| move |errno| Error::failed(operation, way.path.into(), errno);
        let source = to_c(way.source.as_os_str().as_bytes());
        let stat = sys::stat(CWD, &source, Symlinks::Follow).map_err(no_source)?;
        if sys::file_type(&stat) != FileType::Directory {
            return Err(no_source(Errno::NOTDIR));
        }
        let mode = self.directory_mode(stat.st_mode);
        sys::create_directory(above, way.name, mode | 0o700)
            .map_err(failed(Operation::MakeParent))?;
        if self.report.wants_events() {
            let (source, dest) = (way.source, way.path);
            self.report.event(Event::MadeParent { source, dest });
        }
        let fd = sys::open_path_directory(above, way.name, Symlinks::NoFollow)
            .map_err(failed(Operation::Stat))?;
        let granted = sys::stat_directory(fd.as_fd()).map_err(failed(Operation::Stat))?;
        let mode_pending =
            Self::open_up(&fd, granted.mode & 0o7777, mode).map_err(failed(Operation::SetMode))?;
        let mut made = self.parents.lock().unwrap_or_else(PoisonError::into_inner);
        made.push(MadeParent {
            dest: way.dest.into(),
            identity: granted.identity,
            path: way.path.into(),
            mode_pending,
            source: source.into_boxed_c_str(),
        });
        Ok(fd)
    }

    /// When all is done: what these directories are to have in the end, the innermost first.
    pub(super) fn finish_parents(&self) {
        let mut made = self.parents.lock().unwrap_or_else(PoisonError::into_inner);
        for parent in made.drain(..).rev() {
            if let Err(error) = self.finish_parent(&parent) {
                self.report.failed(error);
            }
        }
    }

    fn finish_parent(&self, parent: &MadeParent) -> Result<(), Error> {
        let failed = |operation| move |errno| Error::failed(operation, parent.path.clone(), errno);
        let needs_a_finish = self.options().needs_a_finish();
        if parent.mode_pending.is_none() && !needs_a_finish {
            return Ok(());
        }
        let dir = self
            .reopen_parent(parent)
            .map_err(failed(Operation::Stat))?;
        if let Some(mode) = parent.mode_pending {
            let set = Inode::directory(dir.as_fd()).set_mode(mode);
            set.map_err(failed(Operation::SetMode))?;
        }
        if needs_a_finish {
            self.finish_made_parent(&parent.source, dir, &parent.path)?;
        }
        Ok(())
    }

    /// Whatever the way leads to by now, only the directory that was made is touched.
    fn reopen_parent(&self, parent: &MadeParent) -> Result<OwnedFd, Errno> {
        let dir = sys::open_path_directory(self.target(), &parent.dest, Symlinks::NoFollow)?;
        if sys::stat_directory(dir.as_fd())?.identity != parent.identity {
            return Err(Errno::STALE);
        }
        Ok(dir)
    }
}

/// A directory on the way to a dest.
struct Way<'a> {
    source: &'a Path,
    /// Relative to the target.
    dest: &'a CStr,
    /// Relative to the directory before it.
    name: &'a CStr,
    path: &'a Path,
}

fn without_slashes(name: &[u8]) -> &[u8] {
    let start = name.iter().position(|&byte| byte != b'/');
    &name[start.unwrap_or(name.len())..]
}

/// A part of a C string, which holds no NUL.
fn to_c(part: &[u8]) -> CString {
    CString::new(part).expect("BUG: a NUL within a C string")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_all_but_its_outer_slashes() {
        assert_eq!(&*name_with_parents(c"//a/./b//c//"), c"a/./b//c");
        assert_eq!(&*name_with_parents(c"//"), c".");
    }

    #[test]
    fn each_directory_on_the_way_ends_once() {
        assert_eq!(ends(b"a/./b//c").collect::<Vec<_>>(), [1, 3, 5]);
        assert_eq!(ends(b"a").count(), 0);
    }
}
