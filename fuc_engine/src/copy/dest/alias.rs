//! Finds out whether an existing dest is its source.
//!
//! In most cases the inode numbers show it, and [`sameness`] compares them before anything is opened.
//!
//! On some filesystems a file has several inode numbers: one for each path, for each spelling of its name, or for a
//! directory and its mirror. No look at both files can tell whether they are one. So a dest that [`may_be_source`] gets
//! the content in an order in which that does not matter:
//!
//! | a dest that may be the source, and | is not | but |
//! |---|---|---|
//! | would be written to | truncated before | written to, and then cut to the length of the content |
//! | the same, if the copy gets holes or the dest opens only empty | written to | replaced by a rename when the copy is complete |
//! | would be unlinked | unlinked | the same |

use rustix::fs::FileType;

use crate::copy::decide::overwrite::{DestTreatment, NamedFile, NamedFiles, Sameness};
use crate::copy::entry::Entry;
use crate::copy::facts::{Facts, FileId, Symlinks};
use crate::paths;
use crate::sys::{self, Stat};

/// Largest difference of two times of one file, which one of its filesystems rounds. FAT stores even seconds.
const ROUNDED_SECONDS: u64 = 2;

/// Returns `true` if the dest may be the source under another inode number. `are_native` says whether the numbers of both
/// can be trusted.
#[inline]
pub(super) fn may_be_source(source: &Stat, dest: &Stat, are_native: impl FnOnce() -> bool) -> bool {
    let [modified, dest_modified] = [source, dest].map(sys::modified);
    sys::is_regular(source)
        && sys::is_regular(dest)
        && source.st_size == dest.st_size
        && modified.seconds.abs_diff(dest_modified.seconds) <= ROUNDED_SECONDS
        && FileId::of(source) != FileId::of(dest)
        && !are_native()
}

/// Finds out whether a copy would destroy its source. `dest` holds the facts about the dest,
/// looked at with [`symlinks_of_dest`](crate::copy::policy::Policy::symlinks_of_dest).
pub(crate) fn sameness(
    entry: &Entry<'_>,
    treatment: DestTreatment,
    source: &Facts,
    dest: &Facts,
) -> Sameness {
    let is_same_file = source.is_same_file(dest);
    if entry.ctx.policy.makes_hard_links() {
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
            entry.dest_facts(Symlinks::NoFollow),
            entry.dest_facts(Symlinks::Follow),
            dest,
        ),
        symlinks: entry.symlinks,
        treatment,
    };
    names.sameness(|| names_same_entry(entry))
}

/// Returns `true` if a link leads from the source to the dest or back, so that replacing the
/// dest would lose the only copy of the content.
pub(super) fn one_leads_to_other(entry: &Entry<'_>, source: &Facts, dest: &Facts) -> bool {
    let target = sys::stat(entry.source_dir, entry.source_name, Symlinks::Follow);
    let is_target = |target: Stat| Facts::of(&target).is_same_file(dest);
    target.is_ok_and(is_target)
        || entry
            .dest_facts(Symlinks::Follow)
            .is_some_and(|through| source.is_same_file(&through))
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
