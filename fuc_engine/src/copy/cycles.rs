//! Finds directories whose copies would not end, because they contain their own dest or, through a link, themselves.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::decide::mode::Origin;
use super::entry::{Entry, refused};
use super::facts::{CopyNode, Mark, Symlinks};
use crate::error::{Error, Refusal};
use crate::node::{Dir, Side};
use crate::paths;
use crate::sys::{self, Identity, Stat};

/// The most levels above a directory on which its copy is looked for. In a chain of directories, the time would grow with the
/// square of the depth.
const MOST_LEVELS: usize = 64;
/// The longest time for which a client of a server shows attributes of a directory that it has cached: `acdirmax` of nfs(5), by
/// default.
const LONGEST_CACHED_SECONDS: u64 = 60;

/// Returns the error of an operand that is copied into itself.
pub(super) fn into_itself(entry: &Entry<'_>) -> Error {
    let path = |side| entry.ctx.operand_path(entry.operand, side);
    refused(Refusal::IntoItself, [Side::Source, Side::Dest].map(path))
}

/// Fails if a copy would not end. `source`, which was perhaps reached through a link, is then one of these:
///
/// - the dest of its operand, by its number or by its path,
/// - the copy of a directory above it, seen through another filesystem or another mount,
/// - a directory above a link to it, or the copy of such a directory.
///
/// Only a directory behind a link can contain itself, and only a dest behind a link can lie in its source although the
/// dest of the operand does not.
pub(super) fn check_end(
    entry: &Entry<'_>,
    source: Identity,
    symlinks: Symlinks,
) -> Result<(), Error> {
    let root = entry.ctx.operands.state(entry.operand).root.get();
    // Some filesystems give all directories one number.
    let differs = |above: Identity| above.file() != source.file();
    let has_own_number = source.birth() != 0 || entry.source_directory().is_some_and(differs);
    let is_root = has_own_number && root.is_some_and(|root| root.file() == source.file());
    if is_root || has_own_number && is_seen_copy(entry, source) || is_dest_by_path(entry, source) {
        return Err(into_itself(entry));
    }
    let is_behind_link = |parent: &CopyNode| parent.state.marks.has(Mark::BEHIND_LINK);
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
/// equal by chance. Another mount of a server shows them with their numbers, perhaps without times of birth. Then the number
/// of the directory above must be equal, too.
fn is_seen_copy(entry: &Entry<'_>, source: Identity) -> bool {
    let dest_of = |node: &CopyNode| node.dir.slot(Side::Dest).identity();
    let is_elsewhere = |dest: Identity| dest.device() != source.device();
    let shows = |node: &CopyNode, seen: Identity| {
        dest_of(node).is_some_and(|dest| dest.may_be_shown_as(seen))
    };
    let is_in_copy = |node: &CopyNode| match (&node.place.parent, entry.source_directory()) {
        (Some(parent), Some(directory)) => shows(parent, directory),
        (parent, _) => parent.is_none(),
    };
    let is_copy = |node: &CopyNode| {
        node.state.origin() == Origin::Created
            && *node.place.name == *entry.source.name
            && shows(node, source)
            && (source.birth() != 0 || is_in_copy(node) && changed_together(entry, node))
    };
    entry.node.and_then(dest_of).is_some_and(is_elsewhere)
        && above(entry).take(MOST_LEVELS).any(is_copy)
}

/// Returns `true` if the source was changed at about the time of the dest of `node`, on a filesystem of the same kind and size.
/// Other attributes differ while the dest is filled, because clients of a server show what they have cached.
#[cold]
fn changed_together(entry: &Entry<'_>, node: &CopyNode) -> bool {
    let Ok(dest) = entry.ctx.descriptors.pin(node, Side::Dest, entry.ctx) else {
        return false;
    };
    let seconds = |stat: &Stat| sys::changed(stat).seconds;
    sys::may_be_one_filesystem(entry.source.dir, dest.as_fd())
        && matches!((entry.stat_source(), sys::stat_open(dest.as_fd())), (Ok(source), Ok(dest))
            if seconds(&source).abs_diff(seconds(&dest)) <= LONGEST_CACHED_SECONDS)
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
    name == entry.source.name.to_bytes() && steps(&entry.path(Side::Source)) == steps(&dest)
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
    Err(entry.source_refused(Refusal::CyclicSymlink).error)
}
