//! Decides about a dest that is in the way of a copy.
//!
//! | what is made | if the dest is a directory | the source itself | anything else |
//! |---|---|---|---|
//! | content of a file | refused | refused | written to; a symbolic link is refused in a directory that this run created; unlinked if it has other names and hard links are preserved |
//! | symbolic link, special file | refused; as the source itself if the source is a link to it | refused; fine if both are names of one link | unlinked; see below for those that stay |
//! | hard link instead of a copy | refused | fine | see below |
//! | symbolic link instead of a copy | refused | refused; fine if both are names of one link | see below |
//! | hard link to the first copy | refused | refused; fine if both are names of one link | replaced |
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
pub(crate) enum Making {
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
pub(crate) struct ClearRules {
    pub(crate) treatment: DestTreatment,
    /// Says whether a source that is a symbolic link is followed.
    pub(crate) symlinks: Symlinks,
    /// Says whether a dest that is a symbolic link may be written through.
    pub(crate) links_at_dest: Symlinks,
    /// Dests keep their content.
    pub(crate) keeps_content: bool,
    /// Unlink a dest with several names instead of writing to it. Its other names must keep
    /// their content.
    pub(crate) separates_links: bool,
    /// Replace a dest that would otherwise stay.
    pub(crate) force: bool,
    /// The user has agreed to replace the dest.
    pub(crate) asks: bool,
    /// The rules have vacated the dest. Since then, another process or another name of the source has put something there,
    /// or it is a dangling link.
    pub(crate) was_vacated: bool,
    /// The dest may be the copy of another source.
    pub(crate) may_be_other_copy: bool,
}

impl ClearRules {
    /// Returns `true` if a link instead of a copy replaces a dest that would otherwise stay.
    fn replaces_by(self, kind: LinkKind) -> bool {
        self.force || self.asks && kind == LinkKind::Hard
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clear {
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
pub(crate) enum RemovalEvent {
    Reported,
    Silent,
}

/// Facts that cost a stat each, so they are looked up only if the decision needs them.
pub(crate) struct Lookups<'a> {
    /// Source and dest are the same entry of the same directory.
    pub(crate) are_one_entry: &'a dyn Fn() -> bool,
    /// A link leads from the source to the dest, or back.
    pub(crate) one_leads_to_other: &'a dyn Fn() -> bool,
    /// The dest is a link that would be written through, and leads to a directory.
    pub(crate) dest_leads_to_directory: &'a dyn Fn() -> bool,
}

/// Decides whether a dest may be written to through a symbolic link. `directory` says whether
/// this run created the directory that the dest is in: then another process planted the link,
/// or this run has just made it.
pub(crate) fn links_at_dest(directory: Origin) -> Symlinks {
    match directory {
        Origin::Created => Symlinks::NoFollow,
        Origin::Existing => Symlinks::Follow,
    }
}

/// Returns the reason why `dest` can never be replaced by `source`, if there is one.
pub(crate) fn obstacle(
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

/// Decides what happens to `dest`.
pub(crate) fn clear(
    making: Making,
    rules: ClearRules,
    source: &Facts,
    dest: &Facts,
    lookups: &Lookups<'_>,
) -> Clear {
    let is_link = dest.kind == FileType::Symlink;
    let is_directory = dest.kind == FileType::Directory;
    // As in cp, a hard link to a copy replaces a link.
    let is_replaced = matches!(making, Making::LinkToCopy(copy) if copy == dest.id || is_link);
    let is_link_to_write = making == Making::File && is_link;
    if rules.may_be_other_copy && !is_directory && !is_link_to_write {
        return Clear::Refuse(Refusal::JustCreated);
    }
    if rules.was_vacated && !is_replaced {
        return Clear::Keep;
    }
    if is_directory && !rules.treatment.refuses_directories() {
        return fail_at_directory(making, rules);
    }
    // A source that is not followed may be a link to this directory.
    if is_directory && rules.symlinks == Symlinks::Follow {
        return Clear::Refuse(Refusal::DirectoryByNonDirectory);
    }
    match making {
        Making::File => clear_for_file(rules, source, dest),
        Making::Symlink | Making::Special => clear_without_content(rules, source, dest, lookups),
        Making::Link(kind) => clear_for_link(kind, rules, source, dest, lookups),
        Making::LinkToCopy(_) if (lookups.dest_leads_to_directory)() => {
            Clear::Refuse(Refusal::DirectoryByNonDirectory)
        }
        Making::LinkToCopy(_) => match clear_without_content(rules, source, dest, lookups) {
            Clear::Keep | Clear::Unlink => Clear::Replace(RemovalEvent::Reported),
            decision => decision,
        },
    }
}

fn clear_for_file(rules: ClearRules, source: &Facts, dest: &Facts) -> Clear {
    let replaces_types = rules.treatment == DestTreatment::LinkedOver;
    match obstacle(rules.treatment, Some(source), dest) {
        Some(refusal) => Clear::Refuse(refusal),
        None if replaces_types && dest.kind != FileType::RegularFile => Clear::Unlink,
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
mod tests {
    use super::*;

    const PLAIN: ClearRules = ClearRules {
        treatment: DestTreatment::WrittenTo,
        symlinks: Symlinks::NoFollow,
        links_at_dest: Symlinks::Follow,
        keeps_content: false,
        separates_links: false,
        force: false,
        asks: false,
        was_vacated: false,
        may_be_other_copy: false,
    };
    const FOLLOWING: ClearRules = ClearRules {
        symlinks: Symlinks::Follow,
        ..PLAIN
    };
    const KEEPING: ClearRules = ClearRules {
        keeps_content: true,
        ..PLAIN
    };
    const SEPARATING: ClearRules = ClearRules {
        separates_links: true,
        ..PLAIN
    };
    const FORCING: ClearRules = ClearRules {
        force: true,
        ..PLAIN
    };
    const ASKING: ClearRules = ClearRules {
        asks: true,
        ..PLAIN
    };

    const IN_NEW_DIRECTORY: ClearRules = ClearRules {
        links_at_dest: Symlinks::NoFollow,
        ..PLAIN
    };

    const HARD: Making = Making::Link(LinkKind::Hard);
    const SYMBOLIC: Making = Making::Link(LinkKind::Symbolic);
    const DIRECTORY: Clear = Clear::Refuse(Refusal::DirectoryByNonDirectory);
    const SAME: Clear = Clear::Refuse(Refusal::SameFile);

    fn file(inode: u64) -> Facts {
        Facts::example(FileType::RegularFile, inode)
    }

    fn link(inode: u64) -> Facts {
        Facts::example(FileType::Symlink, inode)
    }

    fn decided(making: Making, rules: ClearRules, source: &Facts, dest: &Facts) -> Clear {
        let no = &|| false;
        let lookups = Lookups {
            are_one_entry: no,
            one_leads_to_other: no,
            dest_leads_to_directory: no,
        };
        clear(making, rules, source, dest, &lookups)
    }

    #[test]
    fn a_dest_that_was_vacated_stays_unless_it_is_a_link_or_the_copy_to_link_to() {
        let copy = Making::LinkToCopy(file(5).id);
        let vacated = ClearRules {
            was_vacated: true,
            ..PLAIN
        };
        let replaced = Clear::Replace(RemovalEvent::Reported);
        for (making, dest, decision) in [
            (copy, file(5), replaced),
            (copy, link(2), replaced),
            (Making::File, file(2), Clear::Keep),
            (Making::Symlink, file(2), Clear::Keep),
            (HARD, file(2), Clear::Keep),
            (copy, file(2), Clear::Keep),
        ] {
            let decided = decided(making, vacated, &file(1), &dest);
            assert_eq!(decided, decision, "{making:?}");
        }
    }

    #[test]
    fn a_directory_is_never_replaced() {
        let directory = Facts::example(FileType::Directory, 9);
        let copy = Making::LinkToCopy(file(5).id);
        for making in [Making::File, Making::Symlink, HARD, SYMBOLIC, copy] {
            for source in [file(1), link(1)] {
                let row = (making, source.kind);
                assert_eq!(
                    decided(making, PLAIN, &source, &directory),
                    DIRECTORY,
                    "{row:?}"
                );
            }
        }
    }

    #[test]
    fn a_directory_stays_if_dests_are_backed_up() {
        let renaming = ClearRules {
            treatment: DestTreatment::Renamed,
            ..PLAIN
        };
        let forcing = ClearRules {
            force: true,
            ..renaming
        };
        let directory = Facts::example(FileType::Directory, 9);
        let copy = Making::LinkToCopy(file(5).id);
        for (making, rules, decision) in [
            (Making::File, renaming, Clear::Write(Symlinks::Follow)),
            (Making::Special, forcing, Clear::Keep),
            (Making::Symlink, renaming, Clear::Keep),
            (Making::Symlink, forcing, Clear::KeepDirectory),
            (HARD, renaming, Clear::Keep),
            (SYMBOLIC, forcing, Clear::Replace(RemovalEvent::Silent)),
            (copy, renaming, Clear::KeepDirectory),
            (copy, forcing, Clear::KeepDirectory),
        ] {
            let row = (making, rules.force);
            let decided = decided(making, rules, &file(1), &directory);
            assert_eq!(decided, decision, "{row:?}");
        }
    }

    #[test]
    fn the_source_itself_is_never_destroyed() {
        let copy = Making::LinkToCopy(file(5).id);
        for (making, source, decision) in [
            (Making::File, file(1), SAME),
            (Making::Symlink, Facts::example(FileType::Fifo, 1), SAME),
            (Making::Symlink, link(1), Clear::AlreadyThere),
            (HARD, file(1), Clear::AlreadyThere),
            (HARD, link(1), Clear::AlreadyThere),
            (SYMBOLIC, file(1), SAME),
            (SYMBOLIC, link(1), Clear::AlreadyThere),
            (copy, file(1), SAME),
        ] {
            let row = (making, source.kind);
            assert_eq!(
                decided(making, PLAIN, &source, &source),
                decision,
                "{row:?}"
            );
        }
    }

    #[test]
    fn the_same_entry_is_not_a_second_name_of_a_link() {
        let lookups = Lookups {
            are_one_entry: &|| true,
            one_leads_to_other: &|| false,
            dest_leads_to_directory: &|| false,
        };
        let decision = clear(Making::Symlink, PLAIN, &link(1), &link(1), &lookups);
        assert_eq!(decision, SAME);
    }

    #[test]
    fn a_file_at_the_other_end_of_a_link_is_not_unlinked() {
        let lookups = Lookups {
            are_one_entry: &|| false,
            one_leads_to_other: &|| true,
            dest_leads_to_directory: &|| false,
        };
        let fifo = Facts::example(FileType::Fifo, 1);
        for (making, source, dest, decision) in [
            (Making::Symlink, link(1), file(2), SAME),
            (HARD, link(1), file(2), Clear::AlreadyThere),
            (HARD, fifo, link(2), Clear::Unlink),
            (SYMBOLIC, link(1), file(2), SAME),
        ] {
            let row = (making, source.kind);
            let decided = clear(making, PLAIN, &source, &dest, &lookups);
            assert_eq!(decided, decision, "{row:?}");
        }
    }

    #[test]
    fn a_link_to_a_directory_is_not_replaced_by_a_hard_link_to_a_copy() {
        let lookups = Lookups {
            are_one_entry: &|| false,
            one_leads_to_other: &|| false,
            dest_leads_to_directory: &|| true,
        };
        let copy = Making::LinkToCopy(file(5).id);
        let decision = clear(copy, PLAIN, &file(1), &link(2), &lookups);
        assert_eq!(decision, DIRECTORY);
    }

    #[test]
    fn a_directory_at_the_end_of_the_link_to_copy_is_the_same_file() {
        let lookups = Lookups {
            are_one_entry: &|| false,
            one_leads_to_other: &|| true,
            dest_leads_to_directory: &|| false,
        };
        let directory = Facts::example(FileType::Directory, 2);
        for making in [Making::Symlink, SYMBOLIC] {
            let decision = clear(making, PLAIN, &link(1), &directory, &lookups);
            assert_eq!(decision, SAME);
        }
    }

    #[test]
    fn a_link_in_a_new_directory_is_refused_and_a_file_written_to() {
        let decide = |dest| decided(Making::File, IN_NEW_DIRECTORY, &file(1), &dest);
        assert_eq!(
            decide(link(2)),
            Clear::Refuse(Refusal::ThroughJustCreatedLink)
        );
        assert_eq!(decide(file(2)), Clear::Write(Symlinks::NoFollow));
    }

    #[test]
    fn another_file_is_treated_as_the_rules_say() {
        let several = Facts {
            links: 2,
            ..file(2)
        };
        for (making, rules, source, dest, decision) in [
            (
                Making::File,
                PLAIN,
                file(1),
                several,
                Clear::Write(Symlinks::Follow),
            ),
            (Making::File, SEPARATING, file(1), several, Clear::Unlink),
            (
                Making::File,
                SEPARATING,
                file(1),
                file(2),
                Clear::Write(Symlinks::Follow),
            ),
            (Making::Symlink, PLAIN, link(1), file(2), Clear::Unlink),
            (Making::Symlink, FOLLOWING, link(1), file(2), Clear::Keep),
            (Making::Symlink, KEEPING, link(1), file(2), Clear::Keep),
            (
                Making::Symlink,
                ClearRules {
                    force: true,
                    ..KEEPING
                },
                link(1),
                file(2),
                Clear::Unlink,
            ),
            (
                Making::Symlink,
                ClearRules {
                    separates_links: true,
                    ..FOLLOWING
                },
                file(1),
                several,
                Clear::Unlink,
            ),
            (HARD, PLAIN, file(1), file(2), Clear::Keep),
            (
                HARD,
                ASKING,
                file(1),
                file(2),
                Clear::Replace(RemovalEvent::Silent),
            ),
            (SYMBOLIC, ASKING, file(1), file(2), Clear::Keep),
            (
                HARD,
                FORCING,
                file(1),
                file(2),
                Clear::Replace(RemovalEvent::Silent),
            ),
            (
                HARD,
                SEPARATING,
                file(1),
                several,
                Clear::Replace(RemovalEvent::Reported),
            ),
            (HARD, PLAIN, link(1), file(2), Clear::Unlink),
            (SYMBOLIC, PLAIN, file(1), file(2), Clear::Keep),
            (SYMBOLIC, FOLLOWING, link(1), file(2), Clear::Keep),
            (
                Making::LinkToCopy(file(5).id),
                FOLLOWING,
                file(1),
                file(2),
                Clear::Replace(RemovalEvent::Reported),
            ),
        ] {
            let row = (making, rules, source.kind);
            assert_eq!(decided(making, rules, &source, &dest), decision, "{row:?}");
        }
    }
}
