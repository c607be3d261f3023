//! The directories that lead to a source, made anew below the target.
//!
//! They get what the source's have when everything below them is done: until
//! then their owner may do anything in them.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::tree::Copying;
use crate::error::{Error, Operation as Doing, Refusal};
use crate::observer::Done;
use crate::sys::{self, CWD, Symlinks};

/// A directory that was made for what lies below it.
pub(super) struct MadeParent {
    /// Relative to the target.
    dest: Box<CStr>,
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
    // A part of a C string holds no NUL.
    CString::new(&bytes[start..=last])
        .unwrap_or_default()
        .into_boxed_c_str()
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
        for end in ends(name) {
            let dest = &name[..end];
            let path = [target, dest].concat();
            let path = Path::new(OsStr::from_bytes(&path));
            let source = Path::new(OsStr::from_bytes(&source[..lead + end]));
            let dest = CString::new(dest).unwrap_or_default();
            match sys::stat(self.target(), &dest, Symlinks::Follow) {
                Ok(there) if sys::file_type(&there) == FileType::Directory => {}
                Ok(_) => return Err(Error::refused(Refusal::ParentNotDirectory, path.into())),
                Err(_) => self.make_parent(source, dest.into_boxed_c_str(), path)?,
            }
        }
        Ok(())
    }

    fn make_parent(&self, source: &Path, dest: Box<CStr>, path: &Path) -> Result<(), Error> {
        let no_source = |errno| Error::failed(Doing::StatSourceParent, source.into(), errno);
        let failed = |doing| move |errno| Error::failed(doing, path.into(), errno);
        let c_source = CString::new(source.as_os_str().as_bytes()).unwrap_or_default();
        let stat = sys::stat(CWD, &c_source, Symlinks::Follow).map_err(no_source)?;
        if sys::file_type(&stat) != FileType::Directory {
            return Err(no_source(Errno::NOTDIR));
        }
        let mode = self.directory_mode(stat.st_mode);
        sys::create_directory(self.target(), &dest, mode | 0o700)
            .map_err(failed(Doing::MakeParent))?;
        if self.report.wants_finished() {
            let dest = path;
            self.report.finished(Done::MadeParent { source, dest });
        }
        let fd = sys::open_path_directory(self.target(), &dest).map_err(failed(Doing::Stat))?;
        let granted = sys::stat_directory(fd.as_fd()).map_err(failed(Doing::Stat))?;
        let mode_pending =
            Self::open_up(&fd, granted.mode & 0o7777, mode).map_err(failed(Doing::SetMode))?;
        let mut made = self.parents.lock().unwrap_or_else(PoisonError::into_inner);
        made.push(MadeParent {
            dest,
            path: path.into(),
            mode_pending,
            source: c_source.into_boxed_c_str(),
        });
        Ok(())
    }

    /// When all is done: what these directories are to have in the end, the innermost first.
    pub(super) fn finish_parents(&self) {
        let mut made = self.parents.lock().unwrap_or_else(PoisonError::into_inner);
        for parent in made.drain(..).rev() {
            let finished = self
                .finish_parent(&parent)
                .map_err(|errno| Error::failed(Doing::SetMode, parent.path.clone(), errno));
            let finished = finished.and_then(|()| {
                let sides = (&*parent.source, &*parent.dest);
                self.finish_made_parent(sides, &parent.path)
            });
            if let Err(error) = finished {
                self.report.failed(error);
            }
        }
    }

    fn finish_parent(&self, parent: &MadeParent) -> Result<(), Errno> {
        let Some(mode) = parent.mode_pending else {
            return Ok(());
        };
        let dir = sys::open_path_directory(self.target(), &parent.dest)?;
        sys::set_directory_mode(dir.as_fd(), mode)
    }
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
