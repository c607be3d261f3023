//! One thing to be copied that is no directory: where it is, and where it goes.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::existing::is_same;
use super::node::CopyNode;
use super::settle::Ground;
use super::tree::Copying;
use crate::error::{Cause, Error, Operation, Refusal};
use crate::node::{Dir, Side};
use crate::observer::Event;
use crate::operand;
use crate::sys::{self, At, Blocking, Symlinks};
use crate::walk::{OpenDirs, SourceAndDest};

/// What is there may be an entry of a node or an operand.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) source_dir: BorrowedFd<'a>,
    /// One component; an operand's whole path.
    pub(super) source_name: &'a CStr,
    pub(super) dest_dir: BorrowedFd<'a>,
    pub(super) dest_name: &'a CStr,
    /// Whether the source stands for what it links to.
    pub(super) symlinks: Symlinks,
    pub(super) ground: Ground<'a>,
    /// `None`: an operand.
    pub(super) node: Option<&'a CopyNode>,
    pub(super) operand: u32,
}

impl<'a> Item<'a> {
    /// An entry that is not followed if it is a symbolic link.
    pub(super) fn entry(node: &'a CopyNode, dirs: &'a SourceAndDest<'_>, name: &'a CStr) -> Self {
        Self {
            source_dir: dirs.source(),
            source_name: name,
            dest_dir: dirs.dest(),
            dest_name: name,
            symlinks: Symlinks::NoFollow,
            ground: Ground::Unknown,
            node: Some(node),
            operand: node.place.operand,
        }
    }

    pub(super) fn following(self, symlinks: Symlinks) -> Self {
        Self { symlinks, ..self }
    }

    /// Who names an operand waits for it, if it is a FIFO; below one nobody does.
    pub(super) fn blocking(&self) -> Blocking {
        match self.node {
            Some(_) => Blocking::Never,
            None => Blocking::MayBlock,
        }
    }

    pub(super) fn source_at(&self) -> At<'a> {
        At {
            dir: self.source_dir,
            name: self.source_name,
            symlinks: self.symlinks,
        }
    }

    /// The dest itself, even if that is a symbolic link.
    pub(super) fn dest_at(&self) -> At<'a> {
        At {
            dir: self.dest_dir,
            name: self.dest_name,
            symlinks: Symlinks::NoFollow,
        }
    }

    pub(super) fn stat_source(&self) -> Result<sys::Stat, Errno> {
        sys::stat(self.source_dir, self.source_name, self.symlinks)
    }

    /// Whether source and dest, both operands, are the same name in the same directory.
    pub(super) fn is_one_entry(&self) -> bool {
        let (_, source) = operand::split(self.source_name.to_bytes());
        let (_, dest) = operand::split(self.dest_name.to_bytes());
        let directory = |dir, path| {
            let directory = operand::directory_of(path);
            sys::stat(dir, &directory, Symlinks::Follow).ok()
        };
        source == dest
            && match (
                directory(self.source_dir, self.source_name),
                directory(self.dest_dir, self.dest_name),
            ) {
                (Some(source), Some(dest)) => is_same(&source, &dest),
                _ => false,
            }
    }

    /// Whether what holds for the filesystem of the directory holds for the source.
    pub(super) fn is_on_the_device_of_its_directory(&self, source: &sys::Stat) -> bool {
        let directory = self
            .node
            .and_then(|node| node.dir.slot(Side::Source).identity());
        directory.is_some_and(|directory| directory.device() == sys::identity(source).device())
    }

    pub(super) fn stat_dest(&self, symlinks: Symlinks) -> Result<sys::Stat, Errno> {
        sys::stat(self.dest_dir, self.dest_name, symlinks)
    }
}

/// The paths of items, and the errors that name them.
impl Copying<'_> {
    pub(super) fn item_path(&self, item: &Item<'_>, side: Side) -> PathBuf {
        let operand = self.operand_path(item.operand, side);
        match item.node {
            Some(node) => {
                let name = match side {
                    Side::Source => item.source_name,
                    Side::Dest => item.dest_name,
                };
                node.place.path_of(operand, name)
            }
            None => operand.to_path_buf(),
        }
    }

    pub(super) fn source_error(
        &self,
        item: &Item<'_>,
        operation: Operation,
        errno: Errno,
    ) -> Error {
        Error::failed(operation, self.item_path(item, Side::Source), errno)
    }

    /// Why a source cannot be opened or read: if it cannot even be looked at,
    /// that is said; what forbids the dest comes first as well.
    pub(super) fn reading_error(
        &self,
        item: &Item<'_>,
        operation: Operation,
        errno: Errno,
    ) -> Error {
        let unseen_dest = item.stat_dest(Symlinks::NoFollow).err();
        match (item.stat_source(), item.stat_dest(Symlinks::Follow)) {
            // If it was there until its dest made way, there is more to say.
            (Err(unseen), _) if !matches!(item.ground, Ground::Free { .. }) => {
                self.source_error(item, Operation::Stat, unseen)
            }
            _ if unseen_dest.is_some_and(|unseen| unseen != Errno::NOENT) => {
                self.creation_error(item, operation, errno)
            }
            (Ok(source), Ok(dest)) if is_same(&source, &dest) => self.same_file(item),
            (_, Ok(dest)) if sys::file_type(&dest) == FileType::Directory => {
                self.refusal(item, Refusal::DirectoryByNonDirectory)
            }
            _ => self.source_error(item, operation, errno),
        }
    }

    /// Why a dest cannot be created: where it cannot even be looked for, that is said.
    pub(super) fn creation_error(
        &self,
        item: &Item<'_>,
        operation: Operation,
        errno: Errno,
    ) -> Error {
        match item.stat_dest(Symlinks::NoFollow) {
            Err(unseen) if unseen != Errno::NOENT => self.dest_error(item, Operation::Stat, unseen),
            _ => self.dest_error(item, operation, errno),
        }
    }

    pub(super) fn dest_error(&self, item: &Item<'_>, operation: Operation, errno: Errno) -> Error {
        Error::failed(operation, self.item_path(item, Side::Dest), errno)
    }

    /// A refusal about the dest, then the source.
    pub(super) fn refusal(&self, item: &Item<'_>, refusal: Refusal) -> Error {
        Error::refused(refusal, self.item_path(item, Side::Dest))
            .with_other(self.item_path(item, Side::Source))
    }

    /// Reports that an item could not be copied.
    pub(super) fn report_item(&self, item: &Item<'_>, error: Error) {
        let was_begun = match error.cause() {
            Cause::Failed(operation, _) => !matches!(
                operation,
                Operation::Stat | Operation::Remove | Operation::Backup
            ),
            Cause::Refused(refusal) => {
                matches!(refusal, Refusal::DanglingDest | Refusal::RelativeSymlink)
            }
        };
        if was_begun && self.report.wants_events() {
            let source = &self.item_path(item, Side::Source);
            let dest = &self.item_path(item, Side::Dest);
            let backup = self.backup_path(item);
            let backup = backup.as_deref();
            self.report.event(Event::Attempted {
                source,
                dest,
                backup,
            });
        }
        match error.cause() {
            // Nothing is lost by doing once what was asked for twice.
            Cause::Refused(Refusal::FileNamedTwice | Refusal::DirectoryNamedTwice) => {
                self.report.warn(error);
            }
            _ => self.report.failed(error),
        }
    }

    pub(super) fn same_file(&self, item: &Item<'_>) -> Error {
        Error::refused(Refusal::SameFile, self.item_path(item, Side::Source))
            .with_other(self.item_path(item, Side::Dest))
    }
}
