//! Decides about a dest that is in the way of a copy.
//!
//! | what is made | if the dest is a directory | the source itself | anything else |
//! |---|---|---|---|
//! | content of a file | refused | refused | written to; a symbolic link is refused in a directory that this run created; unlinked if it has other names and hard links are preserved |
//! | symbolic link, special file | refused; as the source itself if the source is a link to it | refused; fine if both are names of one link | unlinked; see below for those that stay |
//! | hard link instead of a copy | refused | fine | see below |
//! | symbolic link instead of a copy | refused | refused; fine if both are names of one link | see below |
//! | hard link to the first copy | refused | refused; fine if both are names of one link | fine if it is that copy; otherwise unlinked |
//!
//! A dest that may be the copy of another source is refused as one that was just created, unless it is a directory.
//!
//! "Fine" means that nothing is left to do. A dest that stays is a failure, reported as "File
//! exists". If dests are backed up, a directory is not refused: it stays, and creating the copy or
//! opening the dest fails. A link to the first copy, and a forced symbolic link, report "Is a directory".
//!
//! A symbolic link or a special file does not replace the dest if links are followed, unless the dest
//! has other names and hard links are preserved. It does not if only attributes are copied, unless
//! the source is a link and `--force` is given.
//!
//! A link that is made instead of a copy replaces the dest under `--force`, or if the dest has
//! other names and hard links are preserved. A hard link also does if the user is asked. Otherwise
//! the dest stays. If the source is itself a link that is not followed, or a special file, the second
//! row applies first. A hard link to a link is fine if that leads to the dest.
//!
//! Creation with `O_EXCL` (or its like) comes first, so this decision is only made after
//! `EEXIST`. In a directory that existed before, content is written through a link. If that link
//! dangles, it has no facts to decide on, and `dest::open` handles it.

use rustix::fs::FileType;

use super::mode::Origin;
use super::overwrite::DestTreatment;
use crate::copy::facts::{Facts, FileId, Symlinks};
use crate::copy::options::LinkKind;
use crate::error::Refusal;

/// The thing that is about to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::copy) enum Making {
    /// A file that is written to. A dest that is a symbolic link is followed, or refused.
    File,
    Symlink,
    /// A FIFO, a socket or a device.
    Special,
    /// A link instead of a copy.
    Link(LinkKind),
    /// A hard link to the first copy of the same source, which is this file.
    LinkToCopy(FileId),
}

/// The parts of the options that decide about a dest in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::copy) struct ClearRules {
    pub(in crate::copy) treatment: DestTreatment,
    /// Says whether a source that is a symbolic link is followed.
    pub(in crate::copy) symlinks: Symlinks,
    /// Says whether a dest that is a symbolic link may be written through.
    pub(in crate::copy) links_at_dest: Symlinks,
    /// Dests keep their content.
    pub(in crate::copy) keeps_content: bool,
    /// Unlink a dest with several names instead of writing to it. Its other names must keep
    /// their content.
    pub(in crate::copy) separates_links: bool,
    /// Replace a dest that would otherwise stay.
    pub(in crate::copy) force: bool,
    /// The user has agreed to replace the dest.
    pub(in crate::copy) asks: bool,
    /// The dest may be the copy of another source.
    pub(in crate::copy) may_be_other_copy: bool,
}

impl ClearRules {
    /// Returns `true` if a link instead of a copy replaces a dest that would otherwise stay.
    fn replaces_by(self, kind: LinkKind) -> bool {
        self.force || self.asks && kind == LinkKind::Hard
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::copy) enum Clear {
    /// Open the dest, perhaps through a symbolic link, and write to it.
    Write(Symlinks),
    /// Unlink the dest, and create the copy.
    Unlink,
    /// Create the link under another name, and rename it to the dest.
    Replace(RemovalEvent),
    /// The dest already is what the copy would be. Nothing is left to do.
    AlreadyThere,
    /// The dest stays, so the copy cannot be made.
    Keep,
    /// The dest is a directory and stays, although the link would replace anything else.
    KeepDirectory,
    Refuse(Refusal),
}

/// Says whether the removal of a dest is reported as an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::copy) enum RemovalEvent {
    Reported,
    Silent,
}

/// Facts that cost a stat each, so they are looked up only if the decision needs them.
pub(in crate::copy) struct Lookups<'a> {
    /// Source and dest are the same entry of the same directory.
    pub(in crate::copy) are_one_entry: &'a dyn Fn() -> bool,
    /// A link leads from the source to the dest, or back.
    pub(in crate::copy) one_leads_to_other: &'a dyn Fn() -> bool,
    /// The dest is a link that would be written through, and leads to a directory.
    pub(in crate::copy) dest_leads_to_directory: &'a dyn Fn() -> bool,
}

/// Decides whether a dest may be written to through a symbolic link. `directory` says whether
/// this run created the directory that the dest is in: then another process planted the link,
/// or this run has just made it.
pub(in crate::copy) fn links_at_dest(directory: Origin) -> Symlinks {
    match directory {
        Origin::Created => Symlinks::NoFollow,
        Origin::Existing => Symlinks::Follow,
    }
}

/// Returns the reason why `dest` can never be replaced by `source`, if there is one.
pub(in crate::copy) fn obstacle(
    treatment: DestTreatment,
    source: Option<&Facts>,
    dest: &Facts,
) -> Option<Refusal> {
    if dest.kind == FileType::Directory {
        let refusal = Refusal::DirectoryByNonDirectory;
        return treatment.refuses_directories().then_some(refusal);
    }
    let is_source = source.is_some_and(|source| source.is_same_file(dest));
    is_source.then_some(Refusal::SameFile)
}

/// Decides what happens to `dest`, if that does not depend on the source. If the rules have
/// vacated the dest, another process or another name of the source has put something there since.
pub(in crate::copy) fn clear_whatever_the_source(
    making: Making,
    rules: ClearRules,
    was_vacated: bool,
    dest: &Facts,
) -> Option<Clear> {
    let is_link_to_write = making == Making::File && dest.kind == FileType::Symlink;
    if rules.may_be_other_copy && dest.kind != FileType::Directory && !is_link_to_write {
        Some(Clear::Refuse(Refusal::JustCreated))
    } else if making == Making::LinkToCopy(dest.id) {
        Some(Clear::AlreadyThere)
    } else if was_vacated {
        Some(Clear::Keep)
    } else if dest.kind != FileType::Directory {
        None
    } else if !rules.treatment.refuses_directories() {
        Some(fail_at_directory(making, rules))
    } else if making == Making::File || rules.symlinks == Symlinks::Follow {
        Some(Clear::Refuse(Refusal::DirectoryByNonDirectory))
    } else {
        // The source may be a link to this directory.
        None
    }
}

/// Decides how the copy fails at a directory that is not refused.
fn fail_at_directory(making: Making, rules: ClearRules) -> Clear {
    match making {
        Making::File => Clear::Write(rules.links_at_dest),
        Making::Link(kind) if rules.replaces_by(kind) => Clear::Replace(RemovalEvent::Silent),
        Making::Symlink if rules.force => Clear::KeepDirectory,
        Making::LinkToCopy(_) => Clear::KeepDirectory,
        Making::Link(_) | Making::Symlink | Making::Special => Clear::Keep,
    }
}

/// Decides what happens to `dest`, after [`clear_whatever_the_source`].
pub(in crate::copy) fn clear(
    making: Making,
    rules: ClearRules,
    source: &Facts,
    dest: &Facts,
    lookups: &Lookups<'_>,
) -> Clear {
    match making {
        Making::File => clear_for_file(rules, source, dest),
        Making::Symlink | Making::Special => clear_without_content(rules, source, dest, lookups),
        Making::Link(kind) => clear_for_link(kind, rules, source, dest, lookups),
        Making::LinkToCopy(_) if (lookups.dest_leads_to_directory)() => {
            Clear::Refuse(Refusal::DirectoryByNonDirectory)
        }
        Making::LinkToCopy(_) => match clear_without_content(rules, source, dest, lookups) {
            Clear::Keep => Clear::Unlink,
            decision => decision,
        },
    }
}

fn clear_for_file(rules: ClearRules, source: &Facts, dest: &Facts) -> Clear {
    match obstacle(rules.treatment, Some(source), dest) {
        Some(refusal) => Clear::Refuse(refusal),
        None if dest.kind == FileType::Symlink => Clear::Refuse(Refusal::ThroughJustCreatedLink),
        None if rules.separates_links && dest.links > 1 => Clear::Unlink,
        None => Clear::Write(rules.links_at_dest),
    }
}

fn clear_without_content(
    rules: ClearRules,
    source: &Facts,
    dest: &Facts,
    lookups: &Lookups<'_>,
) -> Clear {
    match obstacle(rules.treatment, Some(source), dest) {
        Some(Refusal::SameFile)
            if source.kind == FileType::Symlink && !(lookups.are_one_entry)() =>
        {
            return Clear::AlreadyThere;
        }
        Some(Refusal::DirectoryByNonDirectory)
            if source.kind == FileType::Symlink && (lookups.one_leads_to_other)() =>
        {
            return Clear::Refuse(Refusal::SameFile);
        }
        Some(refusal) => return Clear::Refuse(refusal),
        None => {}
    }
    let is_separated = rules.separates_links && dest.links > 1;
    if rules.symlinks == Symlinks::Follow && !is_separated {
        Clear::Keep
    } else if (lookups.one_leads_to_other)() {
        Clear::Refuse(Refusal::SameFile)
    } else if rules.keeps_content && !(rules.force && source.kind == FileType::Symlink) {
        Clear::Keep
    } else {
        Clear::Unlink
    }
}

fn clear_for_link(
    kind: LinkKind,
    rules: ClearRules,
    source: &Facts,
    dest: &Facts,
    lookups: &Lookups<'_>,
) -> Clear {
    if kind == LinkKind::Hard && source.is_same_file(dest) {
        return Clear::AlreadyThere;
    }
    let copies_link_or_special =
        rules.symlinks == Symlinks::NoFollow && source.kind != FileType::RegularFile;
    if copies_link_or_special {
        let is_link_to_special = dest.kind == FileType::Symlink && source.kind != FileType::Symlink;
        match clear_without_content(rules, source, dest, lookups) {
            Clear::Keep => {}
            // One of the two names leads to the other.
            Clear::Refuse(Refusal::SameFile)
                if kind == LinkKind::Hard && source.kind == FileType::Symlink =>
            {
                return Clear::AlreadyThere;
            }
            // The dest is a link to the special file, so nothing is lost.
            Clear::Refuse(Refusal::SameFile) if is_link_to_special && !rules.keeps_content => {
                return Clear::Unlink;
            }
            Clear::Refuse(Refusal::SameFile) if is_link_to_special => {}
            decision => return decision,
        }
    } else if let Some(refusal) = obstacle(rules.treatment, Some(source), dest) {
        return Clear::Refuse(refusal);
    }
    if rules.separates_links && dest.links > 1 {
        Clear::Replace(RemovalEvent::Reported)
    } else if rules.replaces_by(kind) {
        Clear::Replace(RemovalEvent::Silent)
    } else {
        Clear::Keep
    }
}

#[cfg(test)]
mod tests;
