//! Directories of a copy: made when they are entered, given their last mode
//! when they are finished.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes::Age;
use super::node::{CopyDir, CopyNode, Mark};
use super::tree::Copying;
use crate::error::{Error, Operation, Refusal};
use crate::node::{Dir, Node, Place, Side};
use crate::observer::Event;
use crate::sys::{self, AtimeEffect, CWD, DirStat, Identity, Inode, Stat, Symlinks};
use crate::walk::Walker;

/// A dest directory as it was made or found.
struct Made {
    stat: DirStat,
    is_new: bool,
    mode_pending: Option<u32>,
}

struct OpenedDirs {
    source: OwnedFd,
    dest: OwnedFd,
    identities: (Identity, Identity),
    /// Whether a link was followed to the source.
    way: Symlinks,
    mode_pending: Option<u32>,
    /// Whether the dest has the source's time of access already.
    has_access_time: bool,
}

impl Copying<'_> {
    pub(super) fn place_error(
        &self,
        place: &Place<CopyDir>,
        side: Side,
        operation: Operation,
        errno: Errno,
    ) -> Error {
        Error::failed(operation, self.place_path(place, side), errno)
    }

    fn place_path(&self, place: &Place<CopyDir>, side: Side) -> PathBuf {
        place.path(self.operand_path(place.operand, side))
    }

    /// Runs `call` on the directory that holds one side of `place`, and the name there.
    pub(super) fn at<T>(
        &self,
        place: &Place<CopyDir>,
        side: Side,
        call: impl FnOnce(BorrowedFd<'_>, &CStr) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match (&place.parent, side) {
            (Some(parent), side) => call(
                self.descriptors.pin(parent, side, self)?.as_fd(),
                &place.name,
            ),
            (None, Side::Source) => call(CWD, &place.name),
            (None, Side::Dest) => call(
                self.target(),
                &self.operands[place.operand as usize].dest_name,
            ),
        }
    }

    fn open_dirs(
        &self,
        place: &Place<CopyDir>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<OpenedDirs, Error> {
        let failed = |operation, errno| self.place_error(place, Side::Source, operation, errno);
        let (source, trace, way) = self
            .open_source_directory(place)
            .map_err(|errno| self.no_source(place, errno, worker))?;
        let (stat, accessed) = sys::stat_directory_and_access(source.as_fd())
            .map_err(|errno| failed(Operation::Stat, errno))?;
        let is_behind_link = |parent: &CopyNode| parent.state.is_behind_link();
        if way == Symlinks::Follow || place.parent.as_ref().is_some_and(is_behind_link) {
            self.check_cycle(place, stat.identity)?;
        }
        self.check_into_itself(place, &stat)?;
        let (dest, made) = self.make_dest(place, &stat, worker)?;
        self.check_same(place, &stat, &made)?;
        if place.parent.is_none() {
            self.remember_directory(place.operand, stat.identity);
        }
        if made.is_new {
            self.tell_made(place);
        }
        // Listing will change it. Kept by the dest, it takes no memory until then; if the dest
        // will not have it, that is told when the other attributes are set.
        let has_access_time = trace == AtimeEffect::Changes
            && Inode::directory(dest.as_fd())
                .set_accessed(accessed)
                .is_ok();
        Ok(OpenedDirs {
            source,
            dest,
            identities: (stat.identity, made.stat.identity),
            way,
            mode_pending: made.mode_pending,
            has_access_time,
        })
    }

    pub(super) fn symlinks_at(&self, place: &Place<CopyDir>) -> Symlinks {
        match place.parent {
            Some(_) => self.symlinks_of_entries(),
            None => self.symlinks_of_operands(),
        }
    }

    /// Says as well what listing it will leave behind, and whether a link had to be followed.
    fn open_source_directory(
        &self,
        place: &Place<CopyDir>,
    ) -> Result<(OwnedFd, AtimeEffect, Symlinks), Errno> {
        let open = |symlinks| {
            let opened = self.at(place, Side::Source, |dir, name| {
                self.descriptors
                    .making_room(|| self.open_to_list(dir, name, symlinks))
            });
            opened.map(|(fd, trace)| (fd, trace, symlinks))
        };
        match open(Symlinks::NoFollow) {
            Err(Errno::LOOP | Errno::NOTDIR) if self.symlinks_at(place) == Symlinks::Follow => {
                open(Symlinks::Follow)
            }
            opened => opened,
        }
    }

    /// A link that leads to a directory around it has no end. Only behind a
    /// link can a directory be one of those around it.
    fn check_cycle(&self, place: &Place<CopyDir>, source: Identity) -> Result<(), Error> {
        let mut above = place.parent.as_ref();
        while let Some(node) = above {
            let identity = node.dir.slot(Side::Source).identity();
            if identity.is_some_and(|identity| identity.same_file(source)) {
                // What is in the way is said first.
                let there = self.at(place, Side::Dest, stat_entry);
                if there.is_ok_and(|there| sys::file_type(&there) != FileType::Directory) {
                    return Err(self.no_dest(place, source, Errno::NOTDIR));
                }
                let path = self.place_path(place, Side::Source);
                return Err(Error::refused(Refusal::CyclicSymlink, path));
            }
            above = node.place.parent.as_ref();
        }
        Ok(())
    }

    fn open_to_list(
        &self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        symlinks: Symlinks,
    ) -> Result<(OwnedFd, AtimeEffect), Errno> {
        if self.options().preserve.timestamps {
            sys::open_directory_noatime(dir, name, symlinks)
        } else {
            // One that nobody asks about.
            Ok((sys::open_directory(dir, name, symlinks)?, AtimeEffect::None))
        }
    }

    /// Opens the source directory at `place` and makes its dest.
    pub(super) fn open_node(
        &self,
        place: Place<CopyDir>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<CopyNode, (Place<CopyDir>, Error)> {
        let opened = match self.open_dirs(&place, worker) {
            Ok(opened) => opened,
            Err(error) => return Err((place, error)),
        };
        let mut mark = Mark::below(place.parent.as_ref()).by_way_of(opened.way);
        if self.options().needs_a_finish() {
            mark = mark.of_one_to_be_finished();
        }
        if opened.has_access_time {
            mark = mark.of_one_with_access_time();
        }
        let mark = mark.with_mode(opened.mode_pending);
        let (source, dest) = opened.identities;
        let node = Node::new(place, mark, CopyDir::new(source, dest));
        self.descriptors.adopt(&node, Side::Source, opened.source);
        self.descriptors.adopt(&node, Side::Dest, opened.dest);
        Ok(node)
    }

    /// Why a source directory cannot be opened: the first of these that holds.
    fn no_source(
        &self,
        place: &Place<CopyDir>,
        errno: Errno,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Error {
        let failed = |operation, errno| self.place_error(place, Side::Source, operation, errno);
        let symlinks = self.symlinks_at(place);
        let looked_at = self.at(place, Side::Source, |dir, name| {
            sys::stat(dir, name, symlinks)
        });
        let stat = match looked_at {
            Ok(stat) => stat,
            Err(unseen) => return failed(Operation::Stat, unseen),
        };
        let there = self.at(place, Side::Dest, stat_entry);
        let age = if there.is_ok() { Age::Found } else { Age::New };
        let forbids = match there {
            Ok(there) => sys::file_type(&there) != FileType::Directory,
            Err(unseen) => unseen != Errno::NOENT,
        };
        if forbids {
            return self.no_dest(place, sys::identity(&stat), Errno::NOTDIR);
        }
        if errno == Errno::ACCESS {
            if let Err(errno) = self.make_unfilled(place, &stat, worker) {
                return self.no_dest(place, sys::identity(&stat), errno);
            }
            if let Err(error) = self.finish_unfilled(place, age) {
                self.report.failed(error);
            }
            if place.parent.is_none() {
                self.remember_directory(place.operand, sys::identity(&stat));
            }
        }
        failed(Operation::ReadDirectory, errno)
    }

    /// As `cp` does for a source directory that may not be read: an empty one at the dest.
    fn make_unfilled(
        &self,
        place: &Place<CopyDir>,
        source: &Stat,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Errno> {
        let made = self.at(place, Side::Dest, |dir, name| {
            sys::create_directory(dir, name, self.directory_mode(source.st_mode))
        });
        match made {
            Ok(()) => {
                worker.scratch.tally.entries += 1;
                self.tell_made(place);
                Ok(())
            }
            Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    fn tell_made(&self, place: &Place<CopyDir>) {
        if self.report.wants_events() {
            let source = &self.place_path(place, Side::Source);
            let dest = &self.place_path(place, Side::Dest);
            self.report.event(Event::Copied {
                source,
                dest,
                backup: None,
            });
        }
    }

    /// A source directory that is the copy under way must not be copied into itself.
    fn check_into_itself(&self, place: &Place<CopyDir>, source: &DirStat) -> Result<(), Error> {
        match self.operands[place.operand as usize].root.get() {
            Some(root) if root.same_file(source.identity) => {
                let path = self.operand_path(place.operand, Side::Source).to_path_buf();
                let dest = self.operand_path(place.operand, Side::Dest).to_path_buf();
                Err(Error::refused(Refusal::IntoItself, path).with_other(dest))
            }
            _ => Ok(()),
        }
    }

    fn check_same(
        &self,
        place: &Place<CopyDir>,
        source: &DirStat,
        dest: &Made,
    ) -> Result<(), Error> {
        if place.parent.is_none() {
            // One run begins an operand once.
            let _ = self.operands[place.operand as usize]
                .root
                .set(dest.stat.identity);
        }
        if source.identity.same_file(dest.stat.identity) {
            return Err(self.same_directory(place));
        }
        Ok(())
    }

    /// Makes the dest directory, or finds it; its owner may do anything in it while it fills.
    ///
    /// The umask is never asked for: what `mkdirat` grants tells, with default
    /// ACLs taken into account.
    fn make_dest(
        &self,
        place: &Place<CopyDir>,
        source: &DirStat,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(OwnedFd, Made), Error> {
        let failed = |operation, errno| self.place_error(place, Side::Dest, operation, errno);
        let mode = self.directory_mode(source.mode);
        let made = self.at(place, Side::Dest, |dir, name| {
            sys::create_directory(dir, name, mode | 0o700)
        });
        let is_new = match made {
            Ok(()) => true,
            Err(Errno::EXIST) => self.replace_by_directory(place, mode | 0o700, worker)?,
            Err(errno) => return Err(self.no_dest(place, source.identity, errno)),
        };
        let fd = self
            .at(place, Side::Dest, |dir, name| {
                self.descriptors
                    .making_room(|| self.open_dest_directory(dir, name))
            })
            .map_err(|errno| match errno {
                // A link that leads nowhere, with a slash behind its name.
                Errno::NOENT if !is_new => Errno::EXIST,
                errno => errno,
            })
            .map_err(|errno| self.no_dest(place, source.identity, errno))?;
        let stat =
            sys::stat_directory(fd.as_fd()).map_err(|errno| failed(Operation::Stat, errno))?;
        let mut mode_pending = None;
        if is_new {
            mode_pending = Self::open_up(&fd, stat.mode & 0o7777, mode)
                .map_err(|errno| failed(Operation::SetMode, errno))?;
        }
        if self.options().needs_a_finish() {
            let age = if is_new { Age::New } else { Age::Found };
            let last = self.last_directory_mode(source.mode, stat.mode, age);
            mode_pending = last.or(mode_pending);
        }
        Ok((
            fd,
            Made {
                stat,
                is_new,
                mode_pending,
            },
        ))
    }

    pub(super) fn open_dest_directory(
        &self,
        dir: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<OwnedFd, Errno> {
        match sys::open_path_directory(dir, name, Symlinks::NoFollow) {
            Err(Errno::NOTDIR | Errno::LOOP) if self.rules.follow_links_to_directories => {
                sys::open_path_directory(dir, name, Symlinks::Follow)
            }
            opened => opened,
        }
    }

    /// What a directory is made with: until it is finished, its owner's rights alone if it is to get another.
    pub(super) fn directory_mode(&self, source: u32) -> u32 {
        let special = match self.options().preserve.ownership {
            true => 0o1000,
            false => 0o7000,
        };
        source & special | self.creation_mode(source)
    }

    /// Why there is no dest directory: the first of these that holds.
    fn no_dest(&self, place: &Place<CopyDir>, source: Identity, errno: Errno) -> Error {
        let failed = |operation, errno| self.place_error(place, Side::Dest, operation, errno);
        match self.at(place, Side::Dest, stat_entry) {
            Err(unseen) if unseen != Errno::NOENT => return failed(Operation::Stat, unseen),
            _ => {}
        }
        if !matches!(errno, Errno::NOTDIR | Errno::LOOP) {
            return failed(Operation::CreateDirectory, errno);
        }
        let through = self.at(place, Side::Dest, |dir, name| {
            sys::stat(dir, name, Symlinks::Follow)
        });
        if through.is_ok_and(|through| sys::identity(&through).same_file(source)) {
            return self.same_directory(place);
        }
        Error::refused(
            Refusal::NonDirectoryByDirectory,
            self.place_path(place, Side::Dest),
        )
        .with_other(self.place_path(place, Side::Source))
    }

    fn same_directory(&self, place: &Place<CopyDir>) -> Error {
        Error::refused(Refusal::SameFile, self.place_path(place, Side::Source))
            .with_other(self.place_path(place, Side::Dest))
    }

    /// Gives the owner of a new directory what the umask withheld; returns the
    /// mode that it should have in the end, if that is another than it has now.
    pub(super) fn open_up(dest: &OwnedFd, granted: u32, source: u32) -> Result<Option<u32>, Errno> {
        let last = granted & (source | 0o7077);
        let filling = granted | 0o700;
        if filling != granted {
            Inode::directory(dest.as_fd()).set_mode(filling)?;
        }
        Ok((last != filling).then_some(last))
    }

    pub(super) fn set_last_mode(&self, node: &CopyNode, mode: u32) {
        let set = self
            .descriptors
            .pin(node, Side::Dest, self)
            .and_then(|dest| Inode::directory(dest.as_fd()).set_mode(mode));
        if let Err(errno) = set {
            self.report.failed(self.place_error(
                &node.place,
                Side::Dest,
                Operation::SetMode,
                errno,
            ));
        }
    }
}

fn stat_entry(dir: BorrowedFd<'_>, name: &CStr) -> Result<Stat, Errno> {
    sys::stat(dir, name, Symlinks::NoFollow)
}
