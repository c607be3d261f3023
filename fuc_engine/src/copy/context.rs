//! The data that all stages of a run share: options, operands, descriptors and the report.
//!
//! It builds paths and events, and answers which rules apply to an entry. It copies nothing.

use std::ffi::{CStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes;
use super::changes::{Changes, DestPath, Spot};
use super::decide::mode::{DestAcl, Origin};
use super::decide::overwrite::DestTreatment;
use super::decide::times::StoredTimes;
use super::durability::Durability;
use super::facts::{CopyDir, CopyNode, DestState, Entry, FileId, Symlinks};
use super::operand::{Bases, OpenParent, Operands, open_parent};
use super::options::{Backup, Dest, LinkKind};
use super::policy::Policy;
use super::writers::Writers;
use crate::descriptors::{Descriptors, Roots};
use crate::error::{Error, Operation};
use crate::failures::{Diagnostic, Failures};
use crate::hashing::HashMap;
use crate::node::{Place, Side};
use crate::observer::{CopyMethod, Event};
use crate::paths;
use crate::report::Report;
use crate::sys::{self, Fd, Inode};
use crate::walk::Settings;

/// The reason why an entry was not copied, and the stage that its copy had reached.
pub(super) struct Failure {
    pub(super) error: Error,
    pub(super) stage: Stage,
}

/// The stage of a copy in which it failed. `-v` names the entries whose copies had begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Looking, deciding, or making room: nothing was copied yet.
    Preparing,
    /// Making the copy. If events are wanted, such a failure also emits
    /// [`Event::Attempted`].
    Making,
    /// As `Making`, and the dest is a symbolic link that leads nowhere yet. It was not changed.
    AtDanglingDest,
}

impl Failure {
    pub(super) fn preparing(error: Error) -> Self {
        Self {
            error,
            stage: Stage::Preparing,
        }
    }

    pub(super) fn making(error: Error) -> Self {
        Self {
            error,
            stage: Stage::Making,
        }
    }
}

pub(super) struct Context<'a> {
    pub(super) policy: Policy<'a>,
    /// The ACL that the dests of operands inherit. Looked up when it is first needed.
    pub(super) acl_of_target: OnceLock<DestAcl>,
    pub(super) dest: &'a Dest,
    pub(super) bases: Bases<'a>,
    /// The directory that receives the copies; `None`: the dest is an exact path.
    pub(super) target: Option<OwnedFd>,
    pub(super) operands: Operands<'a>,
    /// Several source directories may go to one dest, although no two names are taken for one.
    pub(super) merges_directories: bool,
    pub(super) report: Report<'a>,
    pub(super) failures: Failures,
    pub(super) descriptors: Descriptors<CopyDir>,
    /// A filesystem of the dests has no files without a name, as far as is known.
    pub(super) lacks_unnamed_files: AtomicBool,
    pub(super) writers: Writers,
    /// The rules by which the filesystems of dests store times, as far as probes have shown them, by device numbers.
    pub(super) stored_times: Mutex<HashMap<u32, StoredTimes>>,
    pub(super) changes: Changes,
    pub(super) settings: Settings,
    pub(super) deletions: Deletions,
    /// `None`: the kernel decides when copies are written to the disk.
    pub(super) durability: Option<Durability>,
}

/// The state of the deletions of a run.
// The counters are Relaxed: they publish nothing, and the totals are read after the threads have ended.
#[derive(Default)]
pub(super) struct Deletions {
    /// The number of entries that the limit has permitted to delete.
    pub(super) permitted: AtomicU64,
    /// The number of entries that stay because of the limit.
    pub(super) not_deleted: AtomicU64,
    pub(super) deleted: AtomicU64,
    /// The files and directories that must not be deleted.
    pub(super) in_use: Arc<Mutex<HashMap<FileId, Use>>>,
    /// The directories that wait until everything is copied. `None`: none has to wait.
    pub(super) put_off: Mutex<Option<Vec<CopyNode>>>,
}

/// The use of a file or directory that must not be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It is a source, a directory above one, or a dest that an operand has entered.
    Operand,
    /// It was copied, and was reached through a link below an operand.
    BehindLink,
}

/// Answers questions that depend on the operand, and opens directories.
impl Context<'_> {
    /// Returns how the dest of `entry` is backed up, if it is.
    pub(super) fn backup_rule(&self, entry: &Entry<'_>) -> Option<Backup> {
        let is_own_backup = entry.is_operand() && self.operands.is_own_backup(entry.operand);
        let backup = self.policy.options.rules.backup;
        backup.filter(|_| !is_own_backup)
    }

    /// Returns `true` if a dest in `node` of another type than its source is removed. Only a directory that existed has
    /// such dests.
    pub(super) fn replaces_types(&self, node: Option<&CopyNode>) -> bool {
        let is_older = |node: &CopyNode| node.state.origin() == Origin::Existing;
        self.policy.options.delete.is_some() && node.is_some_and(is_older)
    }

    /// Returns how the options treat the dest of `entry`, if something is there.
    pub(super) fn treatment(&self, entry: &Entry<'_>) -> DestTreatment {
        if self.backup_rule(entry).is_some() {
            DestTreatment::Renamed
        } else if self.policy.options.rules.remove_first {
            DestTreatment::Unlinked
        } else if self.policy.options.as_links == Some(LinkKind::Symbolic)
            || self.replaces_types(entry.node)
        {
            DestTreatment::LinkedOver
        } else {
            DestTreatment::WrittenTo
        }
    }

    /// Returns `true` if something must be known about the dest of `entry` before it is written
    /// to.
    pub(super) fn has_rules(&self, entry: &Entry<'_>) -> bool {
        let rules = &self.policy.options.rules;
        !rules.are_plain_with(self.backup_rule(entry))
    }

    /// Returns whether this run created the directory that the dest of `entry` is in.
    pub(super) fn dest_directory_origin(&self, entry: &Entry<'_>) -> Origin {
        match entry.node {
            Some(node) => node.state.origin(),
            None => {
                let parent = self.operands.parent(entry.operand);
                parent.map_or(Origin::Existing, |parent| parent.origin)
            }
        }
    }

    /// Returns whether the dest of `entry` may have an ACL, or inherits one if this run created it.
    pub(super) fn dest_acl(&self, entry: &Entry<'_>, origin: Origin) -> DestAcl {
        let look = || {
            let at = paths::open_directory_of(entry.dest_dir, entry.dest_name);
            at.map_or(DestAcl::Possible, |dir| {
                attributes::inherited_in(&Inode::directory(dir.as_fd()))
            })
        };
        match entry.node {
            _ if origin == Origin::Existing => DestAcl::Possible,
            _ if !self.policy.replaces_acls() => DestAcl::Absent,
            Some(node) => node.state.inherited_acl(),
            None if self.policy.options.parents => DestAcl::Possible,
            None => *self.acl_of_target.get_or_init(look),
        }
    }

    /// Returns the directory in which the dests of operands are looked up.
    pub(super) fn target(&self) -> BorrowedFd<'_> {
        self.target.as_ref().map_or(self.bases.dest, AsFd::as_fd)
    }

    /// Returns the descriptors that are open for the whole run.
    pub(super) fn kept_descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let target = self.target.as_ref().map(AsFd::as_fd);
        let Bases { source, dest } = self.bases;
        [source, dest].into_iter().chain(target).collect()
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

    /// Describes an operand as an entry. `dest_dir` is the directory that its dest is in.
    pub(super) fn operand_entry<'e>(
        &'e self,
        index: u32,
        kind: FileType,
        dest_dir: BorrowedFd<'e>,
    ) -> Entry<'e> {
        Entry {
            source_dir: self.bases.source,
            source_name: self.operands.source(index),
            dest_dir,
            dest_name: match self.operands.has_empty_dest(index) && kind != FileType::Directory {
                true => c"",
                false => self.operands.name_in_parent(index),
            },
            kind,
            symlinks: self.policy.symlinks_of_operands(),
            dest_state: DestState::Unchecked,
            node: None,
            operand: index,
        }
    }

    /// Describes an entry of `node`, whose directories are open.
    #[inline]
    pub(super) fn listed_entry<'e>(
        &self,
        node: &'e CopyNode,
        [source_dir, dest_dir]: [BorrowedFd<'e>; 2],
        listed: sys::Listed<'e>,
    ) -> Entry<'e> {
        Entry {
            source_dir,
            source_name: listed.name,
            dest_dir,
            dest_name: listed.name,
            kind: listed.kind(),
            symlinks: self.policy.symlinks_of_entries,
            dest_state: DestState::Unchecked,
            node: Some(node),
            operand: node.place.operand,
        }
    }

    /// Calls `call` with the entry at `place`, whose directories it opens.
    #[inline]
    pub(super) fn with_entry<T>(
        &self,
        place: &Place<CopyDir>,
        kind: FileType,
        call: impl FnOnce(&Entry<'_>) -> T,
    ) -> Result<T, Error> {
        let failed = |side| {
            move |errno| {
                let path = self.place_path(place, side);
                Error::failed(Operation::Stat, path, errno).at(side)
            }
        };
        let operand = place.operand;
        let Some(node) = &place.parent else {
            let parent = self.open_dest_parent(operand).map_err(failed(Side::Dest))?;
            return Ok(call(&self.operand_entry(operand, kind, parent.as_fd())));
        };
        let pin = |side| self.descriptors.pin(node, side, self).map_err(failed(side));
        let (source, dest) = (pin(Side::Source)?, pin(Side::Dest)?);
        let dirs = [source.as_fd(), dest.as_fd()];
        let listed = sys::Listed::new(&place.name, kind);
        Ok(call(&self.listed_entry(node, dirs, listed)))
    }

    /// Returns the dest of an entry.
    #[inline]
    pub(super) fn spot<'e>(&'e self, entry: &'e Entry<'_>) -> Spot<'e, impl DestPath> {
        Spot {
            dir: entry.dest_dir,
            name: entry.dest_name,
            path: || self.path(entry, Side::Dest),
        }
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

    pub(super) fn path(&self, entry: &Entry<'_>, side: Side) -> PathBuf {
        let name = match side {
            Side::Source => entry.source_name,
            Side::Dest => entry.dest_name,
        };
        self.path_in(entry.node, entry.operand, name, side)
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

    /// Returns the path of the backup that was made of the dest, if there is one.
    pub(super) fn backup_path(&self, entry: &Entry<'_>) -> Option<PathBuf> {
        let name = entry.dest_state.backup()?;
        let (_, name) = paths::split(name.to_bytes());
        let dest = self.path(entry, Side::Dest);
        let (directory, _) = paths::split(dest.as_os_str().as_bytes());
        Some(PathBuf::from(OsString::from_vec(
            [directory, name].concat(),
        )))
    }
}

/// Reports failures and emits events.
impl Context<'_> {
    /// Reports an entry that was not copied.
    pub(super) fn report_failure(&self, entry: &Entry<'_>, failure: Failure) {
        if failure.stage != Stage::Preparing {
            self.emit(entry, |source, dest, backup| Event::Attempted {
                source,
                dest,
                backup,
            });
        }
        if let Some(node) = entry.node {
            node.state.note_incomplete();
        }
        self.fail(entry.operand, failure.error);
    }

    /// Reports a failure that belongs to an operand.
    pub(super) fn fail(&self, operand: u32, error: Error) {
        let failure = Diagnostic::Failure(error);
        self.failures.report(operand, failure, &self.report);
    }

    /// Reports a warning about an operand.
    pub(super) fn warn(&self, operand: u32, warning: Error) {
        let warning = Diagnostic::Warning(warning);
        self.failures.report(operand, warning, &self.report);
    }

    /// Notes that nothing of an operand is left to do.
    #[inline]
    pub(super) fn finish_operand(&self, operand: u32) {
        self.failures.finish(operand, &self.report);
    }

    /// Emits the event of a copy, and of the method by which its content was copied.
    #[inline]
    pub(super) fn emit_copied(&self, entry: &Entry<'_>, method: Option<CopyMethod>) {
        self.emit(entry, |source, dest, backup| Event::Copied {
            source,
            dest,
            backup,
            method: method.filter(|_| self.policy.writes_content),
        });
    }

    /// Emits an event about an entry. `event` gets the paths of the source, the dest, and its backup if there is one.
    #[inline]
    pub(super) fn emit(
        &self,
        entry: &Entry<'_>,
        event: impl for<'p> FnOnce(&'p Path, &'p Path, Option<&'p Path>) -> Event<'p>,
    ) {
        if !self.report.wants_events() {
            return;
        }
        let [source, dest] = [Side::Source, Side::Dest].map(|side| self.path(entry, side));
        let backup = self.backup_path(entry);
        self.report.event(event(&source, &dest, backup.as_deref()));
    }
}
