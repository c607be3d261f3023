//! Sources and dests as they are seen: the stats that decisions ask for, each made only when needed, and sources that are
//! open.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::content::OpenSource;
use super::context::{Context, Failure};
use super::decide::overwrite::{DestTreatment, NamedFile, NamedFiles, Sameness};
use super::facts::{CopyDir, Entry, Facts, FileId, Symlinks};
use crate::descriptors::Descriptors;
use crate::node::{Dir, Side};
use crate::paths;
use crate::sys::{self, Borrowed, SharedFd, Stat, Storage};

pub(super) fn at_source(entry: &Entry<'_>) -> Result<Stat, Errno> {
    sys::stat(entry.source_dir, entry.source_name, entry.symlinks)
}

/// Returns `true` if the source is a directory on another filesystem than its parent. The look mounts nothing.
pub(super) fn is_mount_point(entry: &Entry<'_>, symlinks: Symlinks) -> bool {
    let node = entry.node;
    let Some(above) = node.and_then(|above| above.dir.slot(Side::Source).identity()) else {
        return false;
    };
    let seen = sys::stat(entry.source_dir, entry.source_name, symlinks);
    let is_elsewhere = |seen: &Stat| FileId::of(seen).device != above.device();
    seen.is_ok_and(|seen| sys::is_directory(&seen) && is_elsewhere(&seen))
}

/// Returns what a name in a directory leads to, if that can be looked at. Does not follow it if it is a link.
pub(super) fn id_in(dir: BorrowedFd<'_>, name: &CStr) -> Option<FileId> {
    let stat = sys::stat(dir, name, Symlinks::NoFollow);
    stat.ok().map(|stat| FileId::of(&stat))
}

pub(super) fn at_dest(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    symlinks: Symlinks,
) -> Result<Stat, Errno> {
    ctx.changes.look(ctx.spot(entry), symlinks)
}

/// Does the same as [`at_dest`]. Returns `None` if nothing is there, or a link to itself that will be unlinked.
pub(super) fn present(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    symlinks: Symlinks,
) -> Result<Option<Stat>, Failure> {
    match at_dest(ctx, entry, symlinks) {
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP) if ctx.policy.options.force => Ok(None),
        seen => seen
            .map(Some)
            .map_err(|errno| ctx.dest_stat_failure(entry, errno)),
    }
}

/// Returns the facts about the dest, or `None` if it does not exist or cannot be looked at.
pub(super) fn dest_facts(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    symlinks: Symlinks,
) -> Option<Facts> {
    at_dest(ctx, entry, symlinks)
        .ok()
        .map(|stat| Facts::of(&stat))
}

/// Returns `true` if source and dest are the same name in the same directory.
pub(super) fn names_same_entry(entry: &Entry<'_>) -> bool {
    let (_, source) = paths::split(entry.source_name.to_bytes());
    let (_, dest) = paths::split(entry.dest_name.to_bytes());
    let is_in_source_directory = || {
        let source = paths::directory_id_of(entry.source_dir, entry.source_name);
        source.is_some() && paths::directory_id_of(entry.dest_dir, entry.dest_name) == source
    };
    source == dest && is_in_source_directory()
}

/// Returns `true` if source and dest are symbolic links to the same path.
pub(super) fn targets_are_equal(entry: &Entry<'_>) -> bool {
    let source = sys::read_link(entry.source_dir, entry.source_name);
    let dest = sys::read_link(entry.dest_dir, entry.dest_name);
    matches!((source, dest), (Ok(source), Ok(dest)) if source == dest)
}

/// Returns `true` if the source is on the filesystem of the directory that it is listed in.
pub(super) fn is_on_filesystem_of_directory(entry: &Entry<'_>, source: &Stat) -> bool {
    let directory = entry
        .node
        .and_then(|node| node.dir.slot(Side::Source).identity());
    directory.is_some_and(|directory| directory.device() == FileId::of(source).device)
}

/// Returns `true` if a link leads from the source to the dest or back, so that replacing the
/// dest would lose the only copy of the content.
pub(super) fn one_leads_to_other(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    source: &Facts,
    dest: &Facts,
) -> bool {
    let target = sys::stat(entry.source_dir, entry.source_name, Symlinks::Follow);
    let is_target = |target: Stat| Facts::of(&target).is_same_file(dest);
    target.is_ok_and(is_target)
        || dest_facts(ctx, entry, Symlinks::Follow)
            .is_some_and(|through| source.is_same_file(&through))
}

/// Finds out whether a copy would destroy its source. `dest` holds the facts about the dest,
/// looked at with [`symlinks_of_dest`](super::policy::Policy::symlinks_of_dest).
pub(super) fn sameness(
    ctx: &Context<'_>,
    entry: &Entry<'_>,
    treatment: DestTreatment,
    source: &Facts,
    dest: &Facts,
) -> Sameness {
    let is_same_file = source.is_same_file(dest);
    if ctx.policy.makes_hard_links() {
        // A link that leads from one to the other does not matter, because no content is written.
        return match is_same_file {
            true => Sameness::AlreadyThere,
            false => Sameness::Distinct,
        };
    }
    let is_link = |facts: &Facts| facts.kind == FileType::Symlink;
    let may_lead_there = entry.symlinks == Symlinks::NoFollow && (is_link(source) || is_link(dest));
    if !is_same_file && !may_lead_there {
        return Sameness::Distinct;
    }
    let look = |symlinks| {
        let stat = sys::stat(entry.source_dir, entry.source_name, symlinks);
        stat.ok().map(|stat| Facts::of(&stat))
    };
    let name = |itself: Option<Facts>, target, known: &Facts| NamedFile {
        itself: itself.unwrap_or(*known),
        target,
    };
    let names = NamedFiles {
        source: name(look(Symlinks::NoFollow), look(Symlinks::Follow), source),
        dest: name(
            dest_facts(ctx, entry, Symlinks::NoFollow),
            dest_facts(ctx, entry, Symlinks::Follow),
            dest,
        ),
        symlinks: entry.symlinks,
        treatment,
    };
    names.sameness(|| names_same_entry(entry))
}

/// A source that was opened, perhaps by another worker.
pub(super) struct SharedSource {
    fd: SharedFd,
    pub(super) stat: Stat,
    storage: Storage,
}

impl From<OpenSource> for SharedSource {
    fn from(OpenSource { fd, stat, storage }: OpenSource) -> Self {
        let fd = fd.into();
        Self { fd, stat, storage }
    }
}

impl SharedSource {
    pub(super) fn fd(&self) -> Result<Borrowed<'_>, Errno> {
        self.fd.borrow()
    }

    /// Returns the source for this worker.
    pub(super) fn take(self, descriptors: &Descriptors<CopyDir>) -> Result<OpenSource, Errno> {
        let Self { fd, stat, storage } = self;
        let fd = descriptors.take(fd)?;
        Ok(OpenSource { fd, stat, storage })
    }
}
