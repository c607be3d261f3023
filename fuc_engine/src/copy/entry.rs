//! One entry on its way through a run: its names at both sides, what is there, and the rules, paths and events that
//! depend on it.
//!
//! It looks only when it is asked to, and changes nothing.

use std::ffi::{CStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes::{self, Attributes};
use super::changes::Spot;
use super::context::{Context, Failure};
use super::decide::mode::{DestAcl, Origin};
use super::decide::settle::DestTreatment;
use super::facts::{CopyDir, CopyNode, Facts, FileId, Symlinks};
use super::options::{Backup, LinkKind};
use crate::error::{Error, Operation, Refusal};
use crate::node::{Dir, Place, Side};
use crate::observer::{Change, CopyMethod, Event, Mechanism};
use crate::paths;
use crate::sys::{self, At, Blocking, Identity, Inode, Stat};

/// A source to copy, and the name of its dest: an entry of a node, or an operand.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) ctx: &'a Context<'a>,
    /// The source. Its name is one component, or the whole path of an operand.
    pub(super) source: At<'a>,
    pub(super) dest: Spot<'a>,
    /// The type that the entry was visited with.
    pub(super) kind: FileType,
    /// The backup that was made of the file that was at the dest, relative to the directory of the dest.
    pub(super) backup: Option<&'a CStr>,
    /// The difference of the dest that was there.
    pub(super) change: Change,
    /// `None` for an operand.
    pub(super) node: Option<&'a CopyNode>,
    /// Index of the operand that the entry is or lies below.
    pub(super) operand: u32,
}

impl<'a> Entry<'a> {
    /// Describes an operand as an entry. `dest_dir` is the directory that its dest is in.
    pub(super) fn of_operand(
        ctx: &'a Context<'a>,
        index: u32,
        kind: FileType,
        dest_dir: BorrowedFd<'a>,
    ) -> Self {
        Self {
            ctx,
            source: At {
                dir: ctx.bases.source,
                name: ctx.operands.source(index),
                symlinks: ctx.policy.symlinks_of_operands(),
            },
            dest: Spot::new(dest_dir, ctx.operands.name_in_parent(index)),
            kind,
            backup: None,
            change: Change::New,
            node: None,
            operand: index,
        }
    }

    /// Describes an entry of `node`, whose directories are open.
    #[inline]
    pub(super) fn listed(
        ctx: &'a Context<'a>,
        node: &'a CopyNode,
        [source_dir, dest_dir]: [BorrowedFd<'a>; 2],
        listed: sys::Listed<'a>,
    ) -> Self {
        Self {
            ctx,
            source: At {
                dir: source_dir,
                name: listed.name,
                symlinks: ctx.policy.symlinks_of_entries,
            },
            dest: Spot::new(dest_dir, listed.name),
            kind: listed.kind(),
            backup: None,
            change: Change::New,
            node: Some(node),
            operand: node.place.operand,
        }
    }

    pub(super) fn is_operand(&self) -> bool {
        self.node.is_none()
    }

    /// Returns the identity of the directory that the source is listed in, if it is known.
    pub(super) fn source_directory(&self) -> Option<Identity> {
        self.node?.dir.slot(Side::Source).identity()
    }

    /// Returns the place of the source, which counts as a user of its directory.
    pub(super) fn place(&self) -> Place<CopyDir> {
        match self.node {
            Some(node) => node.child(self.source.name),
            None => Place {
                parent: None,
                name: self.source.name.into(),
                operand: self.operand,
            },
        }
    }

    /// Returns whether opening may wait for another process: for the other end of a FIFO that is
    /// an operand, but not below operands. Opening always waits for the holder of a lease.
    pub(super) fn blocking(&self) -> Blocking {
        match self.node {
            Some(_) => Blocking::OnlyForLease,
            None => Blocking::MayBlock,
        }
    }

    /// Returns the place of the dest after content was written to it. A link that was written through has led to it.
    pub(super) fn written_at(&self) -> At<'a> {
        self.dest.at(match self.dest_directory_origin() {
            Origin::Created => Symlinks::NoFollow,
            Origin::Existing => Symlinks::Follow,
        })
    }
}

/// Opens the directories of entries.
impl Entry<'_> {
    /// Calls `call` with the entry at `place`, whose directories it opens.
    #[inline]
    pub(super) fn reach<T>(
        ctx: &Context<'_>,
        place: &Place<CopyDir>,
        kind: FileType,
        call: impl FnOnce(&Entry<'_>) -> T,
    ) -> Result<T, Error> {
        let failed = |side| {
            move |errno| {
                let path = ctx.place_path(place, side);
                Error::failed(Operation::Stat, path, errno).at(side)
            }
        };
        let operand = place.operand;
        let Some(node) = &place.parent else {
            let parent = ctx.open_dest_parent(operand).map_err(failed(Side::Dest))?;
            return Ok(call(&Entry::of_operand(ctx, operand, kind, parent.as_fd())));
        };
        let source = ctx.descriptors.pin(node, Side::Source, ctx);
        let source = source.map_err(failed(Side::Source))?;
        let dest = ctx.descriptors.pin(node, Side::Dest, ctx);
        let dest = dest.map_err(failed(Side::Dest))?;
        let dirs = [source.as_fd(), dest.as_fd()];
        let listed = sys::Listed::new(&place.name, kind);
        Ok(call(&Entry::listed(ctx, node, dirs, listed)))
    }
}

/// Looks at both sides.
impl Entry<'_> {
    pub(super) fn stat_source(&self) -> Result<Stat, Errno> {
        sys::stat(self.source.dir, self.source.name, self.source.symlinks)
    }

    /// Looks at the dest, which is gone in a dry run if the rules have removed it.
    pub(super) fn stat_dest(&self, symlinks: Symlinks) -> Result<Stat, Errno> {
        self.ctx.changes.stat(self.dest, symlinks)
    }

    /// Returns `true` if the user may write to a dest that exists, perhaps through a link.
    pub(super) fn may_write_dest(&self) -> bool {
        sys::check_writing(self.dest.at(Symlinks::Follow)).is_ok()
    }

    /// Returns `true` if the source is a directory on another filesystem than its parent. The look mounts nothing.
    pub(super) fn is_mount_point(&self, symlinks: Symlinks) -> bool {
        let Some(above) = self.source_directory() else {
            return false;
        };
        let seen = sys::stat(self.source.dir, self.source.name, symlinks);
        let is_elsewhere = |seen: &Stat| FileId::of(seen).device != above.device();
        seen.is_ok_and(|seen| sys::is_directory(&seen) && is_elsewhere(&seen))
    }

    /// Returns the facts about the dest, or `None` if it does not exist or cannot be looked at.
    pub(super) fn dest_facts(&self, symlinks: Symlinks) -> Option<Facts> {
        let seen = self.stat_dest(symlinks).ok();
        seen.map(|stat| Facts::of(&stat))
    }
}

/// Answers which rules apply.
impl Entry<'_> {
    /// Returns `true` if the source may be met again under another name, whose copy must then
    /// be a link to this copy. If links are followed, each link is another name.
    pub(super) fn has_other_names(&self, source: &Stat) -> bool {
        let links = self.ctx.policy.options.preserve.links;
        links && (source.st_nlink > 1 || self.source.symlinks == Symlinks::Follow)
    }

    /// Returns how the dest is backed up, if it is.
    pub(super) fn backup_rule(&self) -> Option<Backup> {
        let is_own_backup = self.is_operand() && self.ctx.operands.is_own_backup(self.operand);
        let backup = self.ctx.policy.options.rules.backup;
        backup.filter(|_| !is_own_backup)
    }

    /// Returns how the options treat the dest, if something is there.
    pub(super) fn treatment(&self) -> DestTreatment {
        let options = self.ctx.policy.options;
        let is_mirrored = |node: &CopyNode| node.state.origin() == Origin::Existing;
        if self.backup_rule().is_some() {
            DestTreatment::Renamed
        } else if options.rules.removes_dests() {
            DestTreatment::Unlinked
        } else if options.as_links == Some(LinkKind::Symbolic)
            // A mirror does not write through a link that could not be deleted.
            || options.delete.is_some() && self.node.is_some_and(is_mirrored)
        {
            DestTreatment::LinkedOver
        } else {
            DestTreatment::WrittenTo
        }
    }

    /// Returns `true` if another worker may meet the dest that this worker creates.
    #[inline]
    pub(super) fn may_be_met(&self) -> bool {
        let is_existing = |node: &CopyNode| node.state.origin() == Origin::Existing;
        let has_several_names = self.ctx.merges_directories || self.node.is_some_and(is_existing);
        has_several_names && !self.ctx.settings.is_alone()
    }

    /// Returns `true` if the directory of the dest is on a native filesystem.
    pub(super) fn has_native_dest(&self) -> bool {
        let ctx = self.ctx;
        if let Some(node) = self.node {
            return ctx.is_node_native(node, self.dest.dir);
        }
        match ctx.operands.parent(self.operand) {
            Some(parent) => ctx.is_native(parent.identity.device(), self.dest.dir),
            None => *ctx
                .is_target_native
                .get_or_init(|| paths::is_on_native(self.dest.dir, self.dest.name)),
        }
    }

    /// Returns whether this run created the directory that the dest is in.
    pub(super) fn dest_directory_origin(&self) -> Origin {
        match self.node {
            Some(node) => node.state.origin(),
            None => {
                let parent = self.ctx.operands.parent(self.operand);
                parent.map_or(Origin::Existing, |parent| parent.origin)
            }
        }
    }

    /// Returns whether the dest may have an ACL, or inherits one if this run created it.
    pub(super) fn dest_acl(&self, origin: Origin) -> DestAcl {
        let ctx = self.ctx;
        let look = || -> Result<DestAcl, Errno> {
            let dir = paths::open_directory_of(self.dest.dir, self.dest.name)?;
            let owner = sys::stat_directory(dir.as_fd())?.owner;
            let dir = Inode::PathOnly(dir.as_fd());
            Ok(attributes::inherited_in(&ctx.policy, &dir, owner))
        };
        match self.node {
            _ if origin == Origin::Existing => DestAcl::Possible,
            _ if !ctx.policy.replaces_acls() => DestAcl::Absent,
            Some(node) => node.state.inherited_acl(),
            // An operand such as `a/.` gives the target another owner.
            None if ctx.policy.options.parents || ctx.merges_directories => DestAcl::Possible,
            None => *ctx
                .acl_of_target
                .get_or_init(|| look().unwrap_or(DestAcl::Possible)),
        }
    }
}

/// Builds paths, reports failures, and emits events.
impl Entry<'_> {
    pub(super) fn path(&self, side: Side) -> PathBuf {
        let name = match side {
            Side::Source => self.source.name,
            Side::Dest => self.dest.name,
        };
        self.ctx.path_in(self.node, self.operand, name, side)
    }

    /// Returns the path of another name in the directory of the dest.
    pub(super) fn path_beside(&self, name: &CStr) -> PathBuf {
        let (_, name) = paths::split(name.to_bytes());
        let dest = self.path(Side::Dest);
        let (directory, _) = paths::split(dest.as_os_str().as_bytes());
        PathBuf::from(OsString::from_vec([directory, name].concat()))
    }

    /// Reports an entry that was not copied.
    pub(super) fn report_failure(&self, failure: Failure) {
        if failure.was_attempted {
            let method = self.reported(failure.method);
            self.emit(|source, dest, backup| Event::Attempted {
                source,
                dest,
                backup,
                method,
            });
        }
        self.fail(failure.error);
    }

    /// Reports a failure that belongs to the operand.
    pub(super) fn fail(&self, error: Error) {
        self.ctx.fail(self.operand, error);
    }

    /// Emits the event of a copy, and of the method by which its content was copied.
    pub(super) fn emit_copied(&self, method: Option<CopyMethod>) {
        self.emit(|source, dest, backup| Event::Copied {
            source,
            dest,
            backup,
            method: self.reported(method),
            change: self.change,
        });
    }

    /// Returns the method that an event contains.
    fn reported(&self, method: Option<CopyMethod>) -> Option<CopyMethod> {
        let policy = &self.ctx.policy;
        let options = policy.options;
        let mut method = method.filter(|_| options.reports_methods && policy.writes_content)?;
        if !options.may_share_blocks() {
            method.reflink = Mechanism::Avoided;
        }
        Some(method)
    }

    /// Emits an event about the entry. `event` gets the paths of the source, the dest, and its backup if there is one.
    pub(super) fn emit(
        &self,
        event: impl for<'p> FnOnce(&'p Path, &'p Path, Option<&'p Path>) -> Event<'p>,
    ) {
        if self.ctx.report.wants_events() {
            self.emit_wanted(event);
        }
    }

    #[cold]
    fn emit_wanted(
        &self,
        event: impl for<'p> FnOnce(&'p Path, &'p Path, Option<&'p Path>) -> Event<'p>,
    ) {
        let [source, dest] = [Side::Source, Side::Dest].map(|side| self.path(side));
        let backup = self.backup.map(|name| self.path_beside(name));
        let event = event(&source, &dest, backup.as_deref());
        self.ctx.report.event(event);
    }
}

/// Returns a refusal with the paths of the source and of the dest.
pub(super) fn refused(refusal: Refusal, [source, dest]: [PathBuf; 2]) -> Error {
    match refusal {
        Refusal::SameFile | Refusal::IntoItself => {
            Error::refused(refusal, source).with_other(Side::Dest, dest)
        }
        _ => Error::refused(refusal, dest)
            .at_dest()
            .with_other(Side::Source, source),
    }
}

/// Builds errors.
impl Entry<'_> {
    pub(super) fn source_error(&self, operation: Operation, errno: Errno) -> Error {
        Error::failed(operation, self.path(Side::Source), errno)
    }

    pub(super) fn dest_error(&self, operation: Operation, errno: Errno) -> Error {
        Error::failed(operation, self.path(Side::Dest), errno).at_dest()
    }

    /// Returns the failure of a stat of the source, before anything was copied.
    pub(super) fn source_stat_failure(&self, errno: Errno) -> Failure {
        Failure::preparing(self.source_error(Operation::Stat, errno))
    }

    /// Returns the failure of a stat of the dest, before anything was copied.
    pub(super) fn dest_stat_failure(&self, errno: Errno) -> Failure {
        Failure::preparing(self.dest_error(Operation::Stat, errno))
    }

    /// Returns the failure of `operation` on the dest while the copy is made.
    pub(super) fn making_failure(&self, operation: Operation, errno: Errno) -> Failure {
        Failure::making(self.dest_error(operation, errno))
    }

    /// Returns a refusal with both paths, before anything was copied.
    pub(super) fn refused(&self, refusal: Refusal) -> Failure {
        let paths = [Side::Source, Side::Dest].map(|side| self.path(side));
        Failure::preparing(refused(refusal, paths))
    }

    /// Returns a refusal that is about the source alone, before anything was copied.
    pub(super) fn source_refused(&self, refusal: Refusal) -> Failure {
        Failure::preparing(Error::refused(refusal, self.path(Side::Source)))
    }

    /// Reports the warning about attributes of the dest, and returns their error, if there is one.
    pub(super) fn report_attributes(&self, attributes: Attributes) -> Result<(), Error> {
        let path = || self.path(Side::Dest);
        self.ctx.report_attributes(self.operand, attributes, path)
    }
}

/// An entry that is kept for later, without the directories that it was found in. Nothing was done about its dest yet. It
/// delays the finish of its node.
pub(super) struct StoredEntry {
    /// The name in a node, or the source of an operand.
    pub(super) place: Place<CopyDir>,
    pub(super) kind: FileType,
}

impl StoredEntry {
    pub(super) fn of(entry: &Entry<'_>) -> Self {
        Self {
            place: entry.place(),
            kind: entry.kind,
        }
    }
}
