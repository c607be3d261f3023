//! The careful path: the dest of a regular file exists already.
//!
//! Nothing is truncated before it is known that what was opened is not the
//! source: that alone saves `cp f f`, through whatever alias.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes::Age;
use super::file::OpenDest;
use super::item::Item;
use super::settle::Ground;
use super::tree::Copying;
use crate::error::{Error, Operation, Refusal};
use crate::sys::{self, Blocking, FileId, Stat, Symlinks};

impl Copying<'_> {
    /// Opens and empties a file that is there already, unless that would lose something.
    pub(super) fn open_existing(&self, item: &Item<'_>, source: &Stat) -> Result<OpenDest, Error> {
        let there = match item.stat_dest(Symlinks::Follow) {
            Ok(there) => there,
            Err(Errno::NOENT) => return self.open_dangling(item, source),
            Err(Errno::LOOP) if self.options().force => {
                self.check_ground(item, Operation::CreateFile)?;
                return self.replace_file(item, source.st_mode);
            }
            Err(errno) => return Err(self.dest_error(item, Operation::Stat, errno)),
        };
        self.check_ground(item, Operation::CreateFile)?;
        if sys::file_type(&there) == FileType::Directory {
            return Err(self.refusal(item, Refusal::DirectoryByNonDirectory));
        }
        if is_same(source, &there) {
            return Err(self.same_file(item));
        }
        let keeps_content = self.options().attributes_only;
        if self.options().preserve.links && there.st_nlink > 1 && !keeps_content {
            // The other names are no copies of this source.
            return self.replace_file(item, source.st_mode);
        }
        let opened = self
            .descriptors
            .making_room(|| sys::open_existing(item.dest_dir, item.dest_name, item.blocking()));
        match opened {
            Ok(dest) => self.empty_existing(item, source, dest),
            Err(errno) if self.options().force && is_about_the_file(errno) => {
                self.replace_file(item, source.st_mode)
            }
            Err(errno) => Err(self.create_error(item, errno)),
        }
    }

    /// Nothing that came after the rules were asked is written to.
    pub(super) fn check_ground(&self, item: &Item<'_>, operation: Operation) -> Result<(), Error> {
        match item.ground {
            Ground::Free { .. } => Err(self.dest_error(item, operation, Errno::EXIST)),
            Ground::Unknown | Ground::Taken => Ok(()),
        }
    }

    /// The dest is a link to nothing, or has gone since it was found.
    fn open_dangling(&self, item: &Item<'_>, source: &Stat) -> Result<OpenDest, Error> {
        if let Err(errno) = item.stat_dest(Symlinks::NoFollow) {
            return Err(self.create_error(item, errno));
        }
        // Below operands nothing is made through a link, and nothing where something was moved away.
        let is_obeyed = item.node.is_none() && !self.rules.moves_dest();
        if !is_obeyed || !self.rules.create_through_links {
            return Err(self.refusal(item, Refusal::DanglingDest));
        }
        let mode = self.creation_mode(source.st_mode);
        let opened = self
            .descriptors
            .making_room(|| sys::create_through_link(item.dest_dir, item.dest_name, mode));
        let failed = |errno| self.creation_error(item, Operation::CreateFile, errno);
        // Somebody may have made it meanwhile, so it is emptied as any other.
        let dest = self.empty_existing(item, source, opened.map_err(failed)?)?;
        Ok(OpenDest {
            age: Age::New,
            ..dest
        })
    }

    /// Whether the dest's name is a link, so that what was created is not what it names.
    pub(super) fn is_through_link(&self, item: &Item<'_>) -> bool {
        self.rules.create_through_links
            && item
                .stat_dest(Symlinks::NoFollow)
                .is_ok_and(|stat| sys::file_type(&stat) == FileType::Symlink)
    }

    /// Truncates the file that was really opened, not one that had its name before.
    fn empty_existing(
        &self,
        item: &Item<'_>,
        source: &Stat,
        dest: OwnedFd,
    ) -> Result<OpenDest, Error> {
        let opened =
            sys::stat_open(&dest).map_err(|errno| self.dest_error(item, Operation::Stat, errno))?;
        if is_same(source, &opened) {
            return Err(self.same_file(item));
        }
        let is_file = sys::file_type(&opened) == FileType::RegularFile;
        if is_file && !self.options().attributes_only {
            // Even if it is empty: this is what makes it new.
            sys::set_size(dest.as_fd(), 0).map_err(|errno| self.create_error(item, errno))?;
        } else if item.blocking() == Blocking::Never {
            // Somebody reads it, or opening would have failed: what it has no room for is waited with.
            sys::clear_nonblock(dest.as_fd()).map_err(|errno| self.create_error(item, errno))?;
        }
        self.restrict(dest.as_fd(), &opened, source);
        Ok(OpenDest {
            fd: dest,
            is_file,
            age: Age::Found,
        })
    }

    fn replace_file(&self, item: &Item<'_>, mode: u32) -> Result<OpenDest, Error> {
        self.unlink_dest(item)?;
        let mode = self.creation_mode(mode);
        self.descriptors
            .making_room(|| sys::create_file(item.dest_dir, item.dest_name, mode))
            .map(OpenDest::new_file)
            .map_err(|errno| self.create_error(item, errno))
    }

    pub(super) fn create_error(&self, item: &Item<'_>, errno: Errno) -> Error {
        // The kernel says of any name with a trailing slash that it is a directory.
        if errno == Errno::ISDIR {
            return match item.stat_dest(Symlinks::Follow) {
                Ok(_) => self.refusal(item, Refusal::DirectoryByNonDirectory),
                Err(_) => self.creation_error(item, Operation::CreateFile, Errno::NOTDIR),
            };
        }
        self.creation_error(item, Operation::CreateFile, errno)
    }
}

/// Whether a new file in its place could be opened where this one could not.
fn is_about_the_file(errno: Errno) -> bool {
    !matches!(
        errno,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::IO
    )
}

pub(super) fn is_same(a: &Stat, b: &Stat) -> bool {
    FileId::of(a) == FileId::of(b)
}
