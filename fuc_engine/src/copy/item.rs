//! One thing to be copied that is no directory: where it is, and where it goes.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use rustix::io::Errno;

use super::node::CopyNode;
use super::tree::Copying;
use crate::error::{Error, Operation as Doing, Refusal};
use crate::node::{self, Dir, Side};
use crate::sys::{self, Symlinks};
use crate::walk::Held;

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
    /// `None`: an operand.
    pub(super) node: Option<&'a CopyNode>,
    pub(super) operand: u32,
}

impl<'a> Item<'a> {
    pub(super) fn entry(node: &'a CopyNode, held: &'a Held<'_>, name: &'a CStr) -> Self {
        Self {
            source_dir: held.source.as_fd(),
            source_name: name,
            dest_dir: held.dest.as_ref().map_or(held.source.as_fd(), AsFd::as_fd),
            dest_name: name,
            symlinks: Symlinks::NoFollow,
            node: Some(node),
            operand: node.place.operand,
        }
    }

    pub(super) fn stat_source(&self) -> Result<sys::Stat, Errno> {
        sys::stat(self.source_dir, self.source_name, self.symlinks)
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
                node::join(&node.place.path(operand), name)
            }
            None => operand.to_path_buf(),
        }
    }

    pub(super) fn source_error(&self, item: &Item<'_>, doing: Doing, errno: Errno) -> Error {
        Error::failed(doing, self.item_path(item, Side::Source), errno)
    }

    pub(super) fn dest_error(&self, item: &Item<'_>, doing: Doing, errno: Errno) -> Error {
        Error::failed(doing, self.item_path(item, Side::Dest), errno)
    }

    /// A refusal about the dest, then the source.
    pub(super) fn refusal(&self, item: &Item<'_>, refusal: Refusal) -> Error {
        Error::refused(refusal, self.item_path(item, Side::Dest))
            .with_other(self.item_path(item, Side::Source))
    }

    pub(super) fn same_file(&self, item: &Item<'_>) -> Error {
        Error::refused(Refusal::SameFile, self.item_path(item, Side::Source))
            .with_other(self.item_path(item, Side::Dest))
    }
}
