//! The data that all stages of a run share: options, operands, descriptors and the report.
//!
//! It builds paths and reports failures. It copies nothing, and knows no entry.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

use rustix::io::Errno;

use super::attributes::{AttributeError, Attributes};
use super::changes::Changes;
use super::decide::mode::DestAcl;
use super::decide::times::StoredTimes;
use super::durability::Durability;
use super::facts::{CopyDir, CopyNode, FileId, Symlinks};
use super::operand::{Bases, OpenParent, Operands, open_parent};
use super::options::Dest;
use super::policy::Policy;
use super::writers::Writers;
use crate::descriptors::{Descriptors, Roots};
use crate::error::{Error, Operation};
use crate::hashing::{HashMap, HashSet};
use crate::node::{Dir, Place, Side};
use crate::observer::CopyMethod;
use crate::paths;
use crate::report::Report;
use crate::sys::{self, Fd, Storage};
use crate::walk::Settings;

/// The reason why an entry was not copied.
pub(super) struct Failure {
    pub(super) error: Error,
    /// The copy had begun, so `-v` names the entry: an [`Event::Attempted`](crate::observer::Event::Attempted) is emitted.
    pub(super) was_attempted: bool,
    /// Says how content was copied before, if the source was open.
    pub(super) method: Option<CopyMethod>,
}

impl Failure {
    /// Makes a failure to look, to decide, or to make room: nothing was copied yet.
    pub(super) fn preparing(error: Error) -> Self {
        Self {
            error,
            was_attempted: false,
            method: None,
        }
    }

    /// Makes a failure to make the copy.
    pub(super) fn making(error: Error) -> Self {
        Self {
            was_attempted: true,
            ..Self::preparing(error)
        }
    }

    /// Adds that the source was open, and how its content was copied until the failure.
    pub(super) fn with_method(self, method: CopyMethod) -> Self {
        let method = Some(method);
        Self { method, ..self }
    }
}

pub(super) struct Context<'a> {
    pub(super) policy: Policy<'a>,
    /// The ACL that the dests of operands inherit. Looked up when it is first needed.
    pub(super) acl_of_target: OnceLock<DestAcl>,
    /// The dests of operands are on a native filesystem. Looked up when it is first needed.
    pub(super) is_target_native: OnceLock<bool>,
    pub(super) dest: &'a Dest,
    pub(super) bases: Bases<'a>,
    /// The directory that receives the copies; `None`: the dest is an exact path.
    pub(super) target: Option<OwnedFd>,
    /// The older copy whose unchanged files are linked.
    pub(super) older: Option<OwnedFd>,
    pub(super) operands: Operands<'a>,
    /// Several source directories may go to one dest, although no two names are taken for one.
    pub(super) merges_directories: bool,
    pub(super) report: Report<'a>,
    pub(super) descriptors: Descriptors<CopyDir>,
    /// A complete dest without a name could not be given one, so the next ones are written under their names.
    pub(super) lacks_unnamed_files: AtomicBool,
    pub(super) writers: Writers,
    /// The filesystem that was queried last: its device number, a 1, and a 1 if it is a native one.
    pub(super) native: AtomicU64,
    /// The rules by which the filesystems of dests store times, as far as probes have shown them, by device numbers.
    pub(super) stored_times: Mutex<HashMap<u32, StoredTimes>>,
    pub(super) changes: Changes,
    pub(super) settings: Settings,
    pub(super) deletions: Deletions,
    /// `None`: the kernel decides when copies are written to the disk.
    pub(super) durability: Option<Durability>,
}

/// The state of the deletions of a run.
#[derive(Default)]
pub(super) struct Deletions {
    /// The number of entries that the limit has permitted to delete. Relaxed: it publishes nothing.
    pub(super) permitted: AtomicU64,
    /// The directories that must not be deleted.
    pub(super) in_use: Arc<Mutex<HashMap<FileId, Use>>>,
    /// The hashes of dest directories that are listed by the names of their sources, and were not entered yet.
    pub(super) listed: Mutex<HashSet<u64>>,
}

/// The use of a directory that must not be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It is a source, or leads to one.
    Source,
    Dest {
        operand: u32,
    },
}

/// Knows filesystems.
impl Context<'_> {
    /// Returns `true` if a native filesystem has this device number. `file` is on it.
    pub(super) fn is_native(&self, device: u32, file: BorrowedFd<'_>) -> bool {
        let known = u64::from(device) << 2 | 2;
        // Relaxed: the number is complete by itself.
        let last = self.native.load(Relaxed);
        if last & !1 == known {
            return last & 1 != 0;
        }
        let is_native = Storage::of(file) == Storage::Native;
        self.native.store(known | u64::from(is_native), Relaxed);
        is_native
    }

    /// Returns `true` if the open dest of a node is on a native filesystem.
    pub(super) fn is_node_native(&self, node: &CopyNode, dest: BorrowedFd<'_>) -> bool {
        let identity = node.dir.slot(Side::Dest).identity();
        identity.is_some_and(|dir| self.is_native(dir.device(), dest))
    }
}

/// Opens directories.
impl Context<'_> {
    /// Returns the directory in which the dests of operands are looked up.
    pub(super) fn target(&self) -> BorrowedFd<'_> {
        self.target.as_ref().map_or(self.bases.dest, AsFd::as_fd)
    }

    /// Returns the descriptors that are open for the whole run.
    pub(super) fn kept_descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let opened = [&self.target, &self.older].into_iter().flatten();
        let Bases { source, dest } = self.bases;
        [source, dest]
            .into_iter()
            .chain(opened.map(AsFd::as_fd))
            .collect()
    }

    /// Opens the directory that the dest of an operand is in, after it was made.
    ///
    /// # Errors
    /// `ESTALE` if another directory is there now.
    pub(super) fn open_dest_parent(&self, operand: u32) -> Result<OpenParent<'_>, Errno> {
        let Some(parent) = self.operands.parent(operand) else {
            return Ok(OpenParent::Target(self.target()));
        };
        let dir = self.descriptors.making_room(|| {
            let name = self.operands.dest_name(operand);
            open_parent(&self.policy, self.target(), name, |_| Ok(()))
        });
        let dir = self.changes.reopened(dir)?;
        if !sys::is_same_directory(dir.as_fd(), parent.identity)? {
            return Err(Errno::STALE);
        }
        Ok(dir)
    }

    /// Opens a dest directory without following a link, unless the options allow that.
    pub(super) fn open_dest_directory(
        &self,
        dir: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<Fd, Errno> {
        let follows_links = self.policy.options.rules.follow_links_to_directories;
        match sys::open_path_directory(dir, name, Symlinks::NoFollow) {
            Err(Errno::NOTDIR | Errno::LOOP) if follows_links => {
                sys::open_path_directory(dir, name, Symlinks::Follow)
            }
            opened => opened,
        }
    }
}

/// Opens evicted directories again.
impl Roots for Context<'_> {
    fn open_operand(&self, index: u32, side: Side) -> Result<Fd, Errno> {
        let operands = &self.operands;
        match side {
            Side::Source => {
                let symlinks = self.policy.symlinks_of_operands();
                sys::open_directory(self.bases.source, operands.source(index), symlinks)
            }
            Side::Dest => {
                let parent = self.open_dest_parent(index)?;
                let dir = self.open_dest_directory(parent.as_fd(), operands.name_in_parent(index));
                self.changes.reopened(dir)
            }
        }
    }

    fn open_below(&self, dir: BorrowedFd<'_>, name: &CStr, side: Side) -> Result<Fd, Errno> {
        match side {
            Side::Source => sys::open_directory(dir, name, self.policy.symlinks_of_entries),
            Side::Dest => self.changes.reopened(self.open_dest_directory(dir, name)),
        }
    }
}

/// Builds paths.
impl Context<'_> {
    pub(super) fn operand_path(&self, operand: u32, side: Side) -> PathBuf {
        match side {
            Side::Source => self.source_path(operand).into(),
            Side::Dest => self.operands.dest_path(operand),
        }
    }

    pub(super) fn source_path(&self, operand: u32) -> &Path {
        paths::path_of(self.operands.source(operand))
    }

    pub(super) fn place_path(&self, place: &Place<CopyDir>, side: Side) -> PathBuf {
        place.path(&self.operand_path(place.operand, side), None)
    }

    /// Returns the path of `name` in a node, or that of an operand.
    pub(super) fn path_in(
        &self,
        node: Option<&CopyNode>,
        operand: u32,
        name: &CStr,
        side: Side,
    ) -> PathBuf {
        let operand = self.operand_path(operand, side);
        match node {
            Some(node) => node.place.path(&operand, Some(name)),
            None => operand,
        }
    }
}

/// Builds and reports errors.
impl Context<'_> {
    /// Returns the error of an operation on a directory in flight.
    pub(super) fn node_error(
        &self,
        node: &CopyNode,
        side: Side,
        operation: Operation,
        errno: Errno,
    ) -> Error {
        Error::failed(operation, self.place_path(&node.place, side), errno).at(side)
    }

    /// Reports the warning about attributes, and returns their error, if there is one.
    pub(super) fn report_attributes(
        &self,
        operand: u32,
        attributes: Attributes,
        dest_path: impl Fn() -> PathBuf,
    ) -> Result<(), Error> {
        let error = |AttributeError { operation, errno }: AttributeError| {
            Error::failed(operation, dest_path(), errno).at_dest()
        };
        if let Some(warning) = attributes.warning {
            self.report.warn(operand, error(warning));
        }
        attributes.outcome.map_err(error)
    }

    /// Reports a failure that belongs to an operand.
    pub(super) fn fail(&self, operand: u32, error: Error) {
        self.report.fail(operand, error);
    }

    /// Notes that nothing of an operand is left to do.
    #[inline]
    pub(super) fn finish_operand(&self, operand: u32) {
        self.report.finish_operand(operand);
    }
}
