//! Builds the errors about entries, and chooses the one that is reported first.
//!
//! cp looks at source and dest before it makes anything, so its first error is about what it
//! saw. This engine creates the dest first and looks only after a failure. The functions here
//! make that look, and choose the error that cp would have reported. They change nothing.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use super::attributes::{AttributeError, Attributes};
use super::context::{Context, Failure};
use super::decide::clear::obstacle;
use super::decide::mode::Origin;
use super::entry::Entry;
use super::facts::{CopyNode, DestState, Facts, FileId, Fingerprint, Symlinks};
use super::options::LinkKind;
use crate::error::{Error, Operation, Refusal};
use crate::node::{Dir, Side};
use crate::paths;
use crate::sys::{self, Identity, Stat};

/// The most levels above a directory on which its copy is looked for. In a chain of directories, the time would grow with the
/// square of the depth.
const MOST_LEVELS: usize = 64;

/// Returns a refusal with the paths of the source and of the dest.
fn refused(refusal: Refusal, [source, dest]: [PathBuf; 2]) -> Error {
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

/// Builds errors about directories, and about attributes.
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
            self.warn(operand, error(warning));
        }
        attributes.outcome.map_err(error)
    }
}

/// Chooses the error if a source cannot be opened or read: first the error of looking at the
/// source, then a reason that forbids the dest.
pub(super) fn reading(entry: &Entry<'_>, operation: Operation, errno: Errno) -> Failure {
    let source = entry.stat_source().map(|stat| Facts::of(&stat));
    // If the dest was moved away, the source was seen before that, and has vanished since.
    let was_seen = matches!(entry.dest_state, DestState::Vacant { .. });
    if let Err(unseen) = source
        && !was_seen
    {
        return entry.source_stat_failure(unseen);
    }
    let source = source.ok();
    let treatment = entry.treatment();
    let symlinks = source.map_or(Symlinks::NoFollow, |source| {
        entry.ctx.policy.symlinks_of_dest(&source, treatment)
    });
    if let Err(unseen) = entry.present_dest(symlinks) {
        return unseen;
    }
    let dest = entry.dest_facts(Symlinks::Follow);
    let refusal = dest.and_then(|dest| obstacle(treatment, source.as_ref(), &dest));
    match refusal {
        Some(refusal) => entry.refused(refusal),
        None => Failure::making(entry.source_error(operation, errno)),
    }
}

/// Chooses the error if a dest cannot be created: first the error of looking at the dest.
pub(super) fn creation(entry: &Entry<'_>, operation: Operation, errno: Errno) -> Failure {
    match entry.stat_dest(Symlinks::NoFollow) {
        Err(unseen) if unseen != Errno::NOENT => entry.dest_stat_failure(unseen),
        _ => entry.making_failure(operation, errno),
    }
}

/// Chooses the error if a dest file cannot be created or opened.
pub(super) fn file_creation(entry: &Entry<'_>, errno: Errno) -> Failure {
    // The kernel reports EISDIR for each name with a trailing slash.
    let reason = match errno {
        Errno::ISDIR => match entry.stat_dest(Symlinks::Follow) {
            Ok(_) if entry.treatment().refuses_directories() => {
                return entry.refused(Refusal::DirectoryByNonDirectory);
            }
            Ok(_) => errno,
            Err(_) => Errno::NOTDIR,
        },
        _ => errno,
    };
    creation(entry, Operation::CreateFile, reason)
}

/// Chooses the error if a link cannot be made instead of a copy.
pub(super) fn linking(entry: &Entry<'_>, operation: Operation, errno: Errno) -> Failure {
    if let Err(unseen) = entry.stat_source() {
        return entry.source_stat_failure(unseen);
    }
    let failure = creation(entry, operation, errno);
    let source = entry.path(Side::Source);
    Failure {
        error: failure.error.with_other(Side::Source, source),
        ..failure
    }
}

/// Chooses the error if a dest directory cannot be made or opened.
pub(super) fn directory_creation(entry: &Entry<'_>, source: FileId, errno: Errno) -> Error {
    let failed = |operation, errno| entry.dest_error(operation, errno);
    let look = |symlinks| entry.stat_dest(symlinks);
    match look(Symlinks::NoFollow) {
        Err(unseen) if unseen != Errno::NOENT => return failed(Operation::Stat, unseen),
        _ => {}
    }
    if !matches!(errno, Errno::NOTDIR | Errno::LOOP) {
        return failed(Operation::CreateDirectory, errno);
    }
    let leads_to_source = || look(Symlinks::Follow).is_ok_and(|dest| FileId::of(&dest) == source);
    let refusal = match compares_targets(entry) && leads_to_source() {
        true => Refusal::SameFile,
        false => Refusal::NonDirectoryByDirectory,
    };
    entry.refused(refusal).error
}

/// Returns `true` if a source directory is compared with the directory that a link at its dest leads to.
/// As in cp, it is not if source links are followed, or if no file would be written through the link.
fn compares_targets(entry: &Entry<'_>) -> bool {
    let options = entry.ctx.policy.options;
    entry.symlinks == Symlinks::NoFollow
        && !options.rules.removes_dests()
        && options.as_links != Some(LinkKind::Symbolic)
        && !entry.ctx.policy.keeps_existing()
}

/// Chooses the error if a source directory cannot be opened: first the error of looking at the
/// source, then a dest in the way.
pub(super) fn directory_opening(entry: &Entry<'_>, errno: Errno) -> Error {
    let source = match entry.stat_source() {
        Ok(source) => FileId::of(&source),
        Err(unseen) => return entry.source_error(Operation::Stat, unseen),
    };
    let rules = &entry.ctx.policy.options.rules;
    match entry.stat_dest(Symlinks::NoFollow) {
        // A backup is made of any other dest.
        Ok(dest) if sys::is_directory(&dest) || rules.backup.is_some() => {}
        Err(Errno::NOENT) => {}
        Ok(_) | Err(_) => return directory_creation(entry, source, Errno::NOTDIR),
    }
    entry.source_error(Operation::ReadDirectory, errno)
}

/// Returns the error of an operand that is copied into itself.
pub(super) fn into_itself(entry: &Entry<'_>) -> Error {
    let path = |side| entry.ctx.operand_path(entry.operand, side);
    refused(Refusal::IntoItself, [Side::Source, Side::Dest].map(path))
}

/// Fails if a copy would not end. `source`, which was perhaps reached through a link, is then one of these:
///
/// - the dest of its operand, by its number or by its path,
/// - the copy of a directory above it, seen through another filesystem or another mount,
/// - a directory above a link to it, or the copy of such a directory. A dest in the way of the former is reported first.
///
/// Only a directory behind a link can contain itself, and only a dest behind a link can lie in its source although the
/// dest of the operand does not.
pub(super) fn cycle(entry: &Entry<'_>, source: Identity, symlinks: Symlinks) -> Result<(), Error> {
    let root = entry.ctx.operands.state(entry.operand).root.get();
    // Some filesystems give all directories one number.
    let differs = |above: Identity| above.file() != source.file();
    let has_own_number = source.birth() != 0 || entry.source_directory().is_some_and(differs);
    let is_root = has_own_number && root.is_some_and(|root| root.file() == source.file());
    if is_root || has_own_number && is_seen_copy(entry, source) || is_dest_by_path(entry, source) {
        return Err(into_itself(entry));
    }
    let is_behind_link = |parent: &CopyNode| parent.state.is_behind_link();
    if symlinks == Symlinks::Follow
        || entry.node.is_some_and(is_behind_link)
        || entry.ctx.policy.options.rules.follow_links_to_directories
    {
        return cycle_of_links(entry, source);
    }
    Ok(())
}

/// Returns `true` if `source` is the copy of a directory not far above it. If both layers of an overlay are on one
/// filesystem, it shows directories of the upper layer with their inode numbers and times of birth, but with its own device.
/// A snapshot shows directories in the same way, but none that this run has made. Coarse times and small numbers may be
/// equal by chance. Another mount of a server shows them with their numbers, perhaps without times of birth.
fn is_seen_copy(entry: &Entry<'_>, source: Identity) -> bool {
    let dest_of = |node: &CopyNode| node.dir.slot(Side::Dest).identity();
    let is_elsewhere = |dest: Identity| dest.device() != source.device();
    let is_copy = |node: &CopyNode| {
        node.state.origin() == Origin::Created
            && *node.place.name == *entry.source_name
            && dest_of(node).is_some_and(|dest| dest.may_be_shown_as(source))
            && (source.birth() != 0 || has_stat_of_dest(entry, node))
    };
    entry.node.and_then(dest_of).is_some_and(is_elsewhere)
        && above(entry).take(MOST_LEVELS).any(is_copy)
}

/// Returns `true` if the source looks like the dest of `node`, which was changed a moment ago.
#[cold]
fn has_stat_of_dest(entry: &Entry<'_>, node: &CopyNode) -> bool {
    let dest = entry.ctx.descriptors.pin(node, Side::Dest, entry.ctx);
    let dest = dest.and_then(|dest| sys::stat_open(dest.as_fd()));
    let is_same = |source: &Stat, dest: &Stat| {
        Fingerprint::of(source) == Fingerprint::of(dest)
            && sys::times(source)[2] == sys::times(dest)[2]
    };
    matches!((entry.stat_source(), dest), (Ok(source), Ok(dest)) if is_same(&source, &dest))
}

/// Returns `true` if the path of the source is that of its operand's dest. On a filesystem that shows a new number at each
/// look, nothing else is known.
fn is_dest_by_path(entry: &Entry<'_>, source: Identity) -> bool {
    let ctx = entry.ctx;
    let has_same_base = ctx.bases.source.as_raw_fd() == ctx.bases.dest.as_raw_fd();
    if source.birth() != 0 || entry.is_operand() || !has_same_base {
        return false;
    }
    let dest = ctx.operand_path(entry.operand, Side::Dest);
    let (_, name) = paths::split(dest.as_os_str().as_bytes());
    let steps = |path: &Path| {
        let components = path.components().filter(|step| *step != Component::CurDir);
        components.collect::<PathBuf>()
    };
    name == entry.source_name.to_bytes() && steps(&entry.path(Side::Source)) == steps(&dest)
}

fn above<'e>(entry: &Entry<'e>) -> impl Iterator<Item = &'e CopyNode> + Clone {
    std::iter::successors(entry.node, |node| node.place.parent.as_ref())
}

fn cycle_of_links(entry: &Entry<'_>, source: Identity) -> Result<(), Error> {
    let is_above = |side| {
        let mut identities = above(entry).filter_map(|node| node.dir.slot(side).identity());
        identities.any(|above| above.file() == source.file())
    };
    if !is_above(Side::Source) {
        if is_above(Side::Dest) {
            return Err(entry.refused(Refusal::IntoItself).error);
        }
        return Ok(());
    }
    let dest = entry.stat_dest(Symlinks::NoFollow);
    if dest.is_ok_and(|dest| !sys::is_directory(&dest)) {
        return Err(directory_creation(entry, source.file(), Errno::NOTDIR));
    }
    Err(entry.source_refused(Refusal::CyclicSymlink).error)
}
