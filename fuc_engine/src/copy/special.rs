//! Symbolic links, FIFOs, sockets and devices: made anew, never read or written through.

use std::ffi::CStr;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::existing::is_same;
use super::item::Item;
use super::node::CopyNode;
use super::tree::Copying;
use super::unopened::Unopened;
use super::{ModePolicy, Preserve};
use crate::error::{Error, Operation, Refusal};
use crate::node::Side;
use crate::observer::Event;
use crate::sys::{self, Stat, Symlinks};
use crate::walk::{self, Visit, Walker};

fn queue(node: &CopyNode, name: &CStr, worker: &mut Walker<'_, '_, Copying<'_>>) {
    worker.scratch.own.queued = walk::queue(node, name, worker) == Visit::Queued;
}

impl Copying<'_> {
    /// Copies something that `source` has shown to be no directory.
    pub(super) fn copy_seen(
        &self,
        item: &Item<'_>,
        source: &Stat,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Error> {
        let is_entry = item.node.is_some() && self.options().as_links.is_none();
        if is_entry && sys::file_type(source) == FileType::RegularFile {
            self.copy_file(item, worker)
        } else {
            self.copy_looked_at(item, source, worker)
        }
    }

    /// Copies an entry where there are rules about what exists at the dest.
    pub(super) fn copy_entry_by_rules(
        &self,
        item: &Item<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Error> {
        let source = item
            .stat_source()
            .map_err(|errno| self.source_error(item, Operation::Stat, errno))?;
        match (sys::file_type(&source), item.node) {
            (FileType::Directory, Some(node)) => queue(node, item.source_name, worker),
            _ => drop(self.copy_by_rules(item, &source, worker)?),
        }
        Ok(())
    }

    /// Copies an entry of unknown type, or one whose type has changed since it was listed.
    pub(super) fn copy_whatever(
        &self,
        item: &Item<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Error> {
        let stat = item
            .stat_source()
            .map_err(|errno| self.source_error(item, Operation::Stat, errno))?;
        match (sys::file_type(&stat), item.node) {
            (FileType::Directory, Some(node)) => {
                queue(node, item.source_name, worker);
                Ok(())
            }
            // Operands are looked at before: it has changed since.
            (FileType::Directory, None) => {
                Err(self.source_error(item, Operation::OpenSource, Errno::ISDIR))
            }
            _ => self.copy_looked_at(item, &stat, worker),
        }
    }

    /// Copies something of known type that is no directory.
    pub(super) fn copy_looked_at(
        &self,
        item: &Item<'_>,
        stat: &Stat,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Error> {
        if let Some(kind) = self.options().as_links {
            return self.link(item, kind, worker);
        }
        match sys::file_type(stat) {
            FileType::Symlink => self.copy_symlink(item, worker),
            FileType::RegularFile => self.copy_content(item, worker),
            _ if self.reads_special_content() => self.copy_special_content(item, worker),
            _ => self.copy_node(item, stat, worker),
        }
    }

    pub(super) fn copy_symlink(
        &self,
        item: &Item<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Error> {
        if !self.options().preserve.links {
            return self.make_symlink(item, worker);
        }
        let stat = item
            .stat_source()
            .map_err(|errno| self.source_error(item, Operation::Stat, errno))?;
        self.copy_or_link(item, &stat, worker, |worker| {
            self.make_symlink(item, worker).map(|()| None)
        })
    }

    fn make_symlink(
        &self,
        item: &Item<'_>,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Error> {
        let failed = |errno| self.reading_error(item, Operation::ReadLink, errno);
        if !self.options().needs_a_finish() {
            let target = sys::read_link(item.source_dir, item.source_name).map_err(failed)?;
            self.create_symlink(item, &target)?;
        } else {
            // Looked at before it is read, which changes its time of access.
            let source = Unopened::find(item.source_at()).map_err(failed)?;
            let target = source.read_link().map_err(failed)?;
            if self.create_symlink(item, &target)? == Created::Yes {
                self.finish_found(item, &source)?;
            }
        }
        self.copied(item, 0, worker);
        Ok(())
    }

    fn create_symlink(&self, item: &Item<'_>, target: &CStr) -> Result<Created, Error> {
        self.create_or_replace(item, Operation::CreateSymlink, || {
            sys::create_symlink(target, item.dest_dir, item.dest_name)
        })
    }

    pub(super) fn copy_node(
        &self,
        item: &Item<'_>,
        stat: &Stat,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Error> {
        self.copy_or_link(item, stat, worker, |worker| {
            self.make_node(item, stat, worker).map(|()| None)
        })
    }

    fn make_node(
        &self,
        item: &Item<'_>,
        stat: &Stat,
        worker: &mut Walker<'_, '_, Self>,
    ) -> Result<(), Error> {
        let special_bits = match self.options().preserve {
            // They mean nothing on these, and cp leaves them there.
            Preserve {
                ownership: false,
                mode: ModePolicy::Default | ModePolicy::Discard,
                ..
            } => stat.st_mode & 0o7000,
            _ => 0,
        };
        let bits = self.creation_mode(stat.st_mode) | special_bits;
        let mode = sys::file_type(stat).as_raw_mode() | bits;
        let create = || sys::create_node(item.dest_dir, item.dest_name, mode, stat.st_rdev);
        let operation = match sys::file_type(stat) {
            FileType::Fifo => Operation::CreateFifo,
            _ => Operation::CreateSpecial,
        };
        if self.create_or_replace(item, operation, create)? == Created::Yes {
            self.finish_special(item)?;
        }
        self.copied(item, 0, worker);
        Ok(())
    }

    /// Creates what cannot be written into: something else of that name has to go first.
    fn create_or_replace(
        &self,
        item: &Item<'_>,
        operation: Operation,
        create: impl Fn() -> Result<(), Errno>,
    ) -> Result<Created, Error> {
        let created = match create() {
            Err(Errno::EXIST) => match self.make_way(item, operation)? {
                Way::Free => create(),
                Way::AlreadyThere => return Ok(Created::NeedNotBe),
                Way::Blocked => Err(Errno::EXIST),
            },
            outcome => outcome,
        };
        created
            .map(|()| Created::Yes)
            .map_err(|errno| self.creation_error(item, operation, errno))
    }

    /// Unlinks what is at the dest, unless it is a directory or the source itself,
    /// or links are followed, or its content is to stay: then, as with `cp`, it stays.
    pub(super) fn make_way(&self, item: &Item<'_>, operation: Operation) -> Result<Way, Error> {
        let there = match item.stat_dest(Symlinks::NoFollow) {
            Ok(there) => there,
            // It has gone, or its name has a slash behind it and leads nowhere.
            Err(Errno::NOENT) => return Ok(Way::Free),
            Err(errno) => return Err(self.dest_error(item, Operation::Stat, errno)),
        };
        self.check_ground(item, operation)?;
        if sys::file_type(&there) == FileType::Directory {
            return Err(self.refusal(item, Refusal::DirectoryByNonDirectory));
        }
        let source = item
            .stat_source()
            .map_err(|errno| self.source_error(item, Operation::Stat, errno))?;
        if is_same(&source, &there) {
            // Two names of one symbolic link are as good as a copy.
            return if sys::file_type(&source) == FileType::Symlink && !item.is_one_entry() {
                Ok(Way::AlreadyThere)
            } else {
                Err(self.same_file(item))
            };
        }
        if item.symlinks == Symlinks::Follow || self.options().attributes_only {
            return Ok(Way::Blocked);
        }
        // A link onto its own target, or the reverse, would lose the only copy.
        let target = sys::stat(item.source_dir, item.source_name, Symlinks::Follow);
        let through = item.stat_dest(Symlinks::Follow);
        if target.is_ok_and(|target| is_same(&target, &there))
            || through.is_ok_and(|through| is_same(&source, &through))
        {
            return Err(self.same_file(item));
        }
        self.unlink_dest(item)?;
        Ok(Way::Free)
    }

    pub(super) fn unlink_dest(&self, item: &Item<'_>) -> Result<(), Error> {
        sys::unlink(item.dest_dir, item.dest_name)
            .map_err(|errno| self.dest_error(item, Operation::Remove, errno))?;
        self.tell_removed_dest(item);
        Ok(())
    }

    pub(super) fn tell_removed_dest(&self, item: &Item<'_>) {
        if self.report.wants_events() {
            self.report
                .event(Event::RemovedDest(&self.item_path(item, Side::Dest)));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Created {
    Yes,
    /// What is there is the source, under another name: it has all that it is to have.
    NeedNotBe,
}

/// What is left to do about something that was in the way.
pub(super) enum Way {
    Free,
    AlreadyThere,
    /// It stays where it is.
    Blocked,
}
