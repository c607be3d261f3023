//! Finishes copies of what is not opened on either side: links, FIFOs, sockets, devices, and
//! directories whose content did not pass through here.
//!
//! Each side is found once more by its name, and from then on held: all calls go to the one
//! inode that was found. It is of the source's type or is left alone.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes::{Age, Times, Transfer};
use super::item::Item;
use super::node::CopyDir;
use super::tree::Copying;
use crate::error::{Error, Operation};
use crate::node::{Place, Side};
use crate::sys::{self, At, CWD, Inode, InodeError, PathFd, Stat, Symlinks};

/// Something that is held without being opened.
pub(super) struct Unopened<'a> {
    fd: OwnedFd,
    /// As it was found.
    stat: Stat,
    /// `None`: a directory that was made here.
    at: Option<At<'a>>,
}

impl<'a> Unopened<'a> {
    pub(super) fn find(at: At<'a>) -> Result<Self, Errno> {
        let fd = sys::open_path_only(&at)?;
        let stat = sys::stat_open(&fd)?;
        let at = Some(at);
        Ok(Self { fd, stat, at })
    }

    /// Where a symbolic link leads to.
    pub(super) fn read_link(&self) -> Result<CString, Errno> {
        match sys::file_type(&self.stat) {
            FileType::Symlink => sys::read_link(self.fd.as_fd(), c""),
            // As the kernel says of others, when they are named.
            _ => Err(Errno::INVAL),
        }
    }

    fn inode(&self) -> Inode<'_> {
        let (fd, at) = (self.fd.as_fd(), self.at);
        Inode::PathOnly(PathFd { fd, at })
    }
}

impl Copying<'_> {
    /// Finishes the copy of a FIFO, a socket or a device.
    pub(super) fn finish_special(&self, item: &Item<'_>) -> Result<(), Error> {
        if !self.options().needs_a_finish() {
            return Ok(());
        }
        let source = Unopened::find(item.source_at())
            .map_err(|errno| self.source_error(item, Operation::Stat, errno))?;
        self.finish_found(item, &source)
    }

    /// Finishes the copy of what was found before it was copied.
    pub(super) fn finish_found(&self, item: &Item<'_>, source: &Unopened<'_>) -> Result<(), Error> {
        let dest = Unopened::find(item.dest_at())
            .map_err(|errno| self.dest_error(item, Operation::Stat, errno))?;
        self.finish_unopened(source, (&dest, Age::New), || {
            self.item_path(item, Side::Dest)
        })
    }

    /// Finishes a symbolic link that was made instead of a copy: of all attributes it gets the times.
    pub(super) fn finish_link(&self, item: &Item<'_>) -> Result<(), Error> {
        if !self.options().preserve.timestamps {
            return Ok(());
        }
        let stat = item
            .stat_source()
            .map_err(|errno| self.source_error(item, Operation::Stat, errno))?;
        let at = item.dest_at();
        sys::open_path_only(&at)
            .map_err(InodeError::from)
            .and_then(|link| {
                let (fd, at) = (link.as_fd(), Some(at));
                Inode::PathOnly(PathFd { fd, at }).set_times(&stat)
            })
            .map_err(|error| self.dest_error(item, Operation::KeepTimes, error.errno()))
    }

    /// Finishes the copy of a directory that may not be read.
    pub(super) fn finish_unfilled(&self, place: &Place<CopyDir>, age: Age) -> Result<(), Error> {
        if !self.options().needs_a_finish() {
            return Ok(());
        }
        let failed = |side| move |errno| self.place_error(place, side, Operation::Stat, errno);
        let finish = |source: At<'_>, dest: At<'_>| {
            let source = Unopened::find(source).map_err(failed(Side::Source))?;
            let dest = Unopened::find(dest).map_err(failed(Side::Dest))?;
            self.finish_unopened(&source, (&dest, age), || {
                place.path(self.operand_path(place.operand, Side::Dest))
            })
        };
        let finished = self.at(place, Side::Source, |dir, name| {
            let symlinks = self.symlinks_at(place);
            let source = At {
                dir,
                name,
                symlinks,
            };
            Ok(self.at(place, Side::Dest, |dir, name| {
                let symlinks = Symlinks::NoFollow;
                let dest = At {
                    dir,
                    name,
                    symlinks,
                };
                Ok(finish(source, dest))
            }))
        });
        finished
            .map_err(failed(Side::Source))?
            .map_err(failed(Side::Dest))?
    }

    /// Finishes `dest`, a directory that was made on the way to a dest.
    pub(super) fn finish_made_parent(
        &self,
        source: &CStr,
        dest: OwnedFd,
        path: &Path,
    ) -> Result<(), Error> {
        let failed = |errno| Error::failed(Operation::Stat, path.into(), errno);
        let source = Unopened::find(At {
            dir: CWD,
            name: source,
            symlinks: Symlinks::Follow,
        });
        let source = source.map_err(failed)?;
        let dest = Unopened {
            stat: sys::stat_open(&dest).map_err(failed)?,
            fd: dest,
            at: None,
        };
        self.finish_unopened(&source, (&dest, Age::New), || path.into())
    }

    fn finish_unopened(
        &self,
        source: &Unopened<'_>,
        (dest, age): (&Unopened<'_>, Age),
        dest_path: impl Fn() -> PathBuf,
    ) -> Result<(), Error> {
        let (stat, made) = (&source.stat, &dest.stat);
        if sys::file_type(made) != sys::file_type(stat) {
            // Somebody has put something else there.
            return Err(Error::failed(Operation::Stat, dest_path(), Errno::STALE));
        }
        let transfer = Transfer {
            source: source.inode(),
            stat,
            dest: dest.inode(),
            age,
            times: Times::Both,
            mode: match sys::file_type(stat) {
                // It has none.
                FileType::Symlink => None,
                FileType::Directory => self.last_directory_mode(stat.st_mode, made.st_mode, age),
                _ => self.last_mode(stat.st_mode, age),
            },
        };
        self.transfer(&transfer, dest_path)
    }
}
