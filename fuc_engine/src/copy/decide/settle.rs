//! Settles what happens to the dest of an entry: the one decision about dests that exist.
//!
//! For an entry that is not a directory, the first row that applies decides. "Written" are dests that get content.
//!
//! | | if | the dest |
//! |---|---|---|
//! | 1 | it may be the copy of another name, and is not a directory | stays |
//! | 2 | it is a link to nothing, and would be written | stays, or its target is created; a link to the first copy replaces it |
//! | 3 | the rules replace no dest | is kept, or refused |
//! | 4 | a copy would destroy its source | is refused as the same file |
//! | 5 | it is as new as the source, or a copy of it, if that matters | is kept as the copy: further names of the source are linked to it |
//! | 6 | the user does not agree, if asked | is kept |
//! | 7 | it is another name of the link to copy | is what the copy would be already |
//! | 8 | it is a directory | is refused; if dests are backed up, it stays, and making the copy fails |
//! | 9 | an earlier operand has made it | is refused as one that was just created |
//! | 10 | dests are backed up | becomes a backup |
//! | 11 | another name of the source was copied | is replaced by a link to that copy |
//! | 12 | dests are removed | is unlinked; or stays until a complete copy replaces it, if the rules say so or it may be the source |
//! | 13 | it is a file to write | is written, perhaps through a link; if it cannot be opened, `--force` unlinks it. See [`for_content`] for what is unlinked before |
//! | 14 | a symbolic link or a special file is copied | is unlinked. See [`Rules::unlinks_for`] for those that stay |
//! | 15 | a link is made instead of a copy | is replaced by `--force`, or if it has other names and hard links are preserved; by a hard link also if the user was asked; or stays |
//!
//! If nothing is there, the copy is created; see [`settle_vacant`]. A dest that stays is a failure, reported as "File exists". This is the order in
//! which cp decides.
//!
//! The dests of directories are settled in `make/directory`.

use rustix::fs::FileType;
use rustix::io::Errno;

use super::mode::Origin;
use super::times::{has_time_alone, is_complete, is_older};
use crate::copy::facts::{Facts, Symlinks};
use crate::copy::options::{CopyOp, LinkKind, Replace};
use crate::error::Refusal;
use crate::observer::Change;

/// The thing that is about to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Making {
    /// A file with the content of its source.
    File,
    Symlink,
    /// A FIFO, a socket or a device.
    Special,
    /// A link instead of a copy.
    Link(LinkKind),
    /// A hard link to the first copy of the same source.
    LinkToCopy,
}

/// The treatment that the options select for a dest, before its copy is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DestTreatment {
    /// The dest stays in place: it is written to, or replaced when the copy is made.
    WrittenTo,
    /// A new link, or the file of a mirror, may replace a dest of another type. The mirror could not delete that.
    LinkedOver,
    Unlinked,
    /// The dest becomes a backup.
    Renamed,
}

/// The way in which a copy gets the name of its dest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is created, and nothing else may be there.
    Create,
    /// The file that a link at the dest leads to is created.
    CreateThrough,
    /// The file that is there is opened, perhaps through a link, and gets the content.
    Write(Symlinks),
    /// It is made under another name, and renamed when it is complete.
    Replace(RemovalEvent),
    /// It gets none: the dest stays, and making the copy fails with this error.
    Stay(Errno),
    /// It gets none: the dest is a link to nothing, and nothing is created through it.
    StayLink,
}

/// Says whether the removal of a dest is reported as an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemovalEvent {
    Reported,
    Silent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Make(Way),
    /// Unlink the dest, and create the copy.
    Unlink,
    /// Rename the dest to its backup, and create the copy.
    BackUp,
    /// Leave the dest as it is.
    Keep,
    /// Leave the dest as it is. Further names of the source are linked to it.
    KeepAsCopy,
    /// The dest already is what the copy would be. Nothing is left to do.
    AlreadyThere,
    Refuse(Refusal),
}

/// The options and the circumstances that decide about a dest.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub(crate) options: &'a CopyOp<'a>,
    pub(crate) treatment: DestTreatment,
    /// Says whether a source that is a symbolic link is followed.
    pub(crate) symlinks: Symlinks,
    /// Says whether this run created the directory that the dest is in.
    pub(crate) directory: Origin,
    /// An earlier operand has made the dest.
    pub(crate) is_made: bool,
    /// The target of a link that leads to nothing may be created.
    pub(crate) creates_through_links: bool,
}

/// A dest at which no file was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vacant {
    Nothing,
    /// Nothing, although creation has failed because something is there. A server may say so, or the name is that of a
    /// link to nothing with a slash at the end.
    Hidden {
        has_slash: bool,
    },
    /// A symbolic link that would be followed, and leads to nothing.
    Dangling,
    /// A symbolic link that would be followed, and leads to itself. It can be replaced by `--force` only.
    Loop,
}

/// A source and the file at its dest.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub(crate) source: Facts,
    pub(crate) dest: Facts,
    /// A symbolic link was followed to the dest.
    pub(crate) is_behind_link: bool,
    pub(crate) lookups: &'a dyn Lookups,
}

/// Facts that cost system calls or the user's time, so they are looked up only if the decision needs them.
pub(crate) trait Lookups {
    /// Returns `true` if the dest may be the copy of another name.
    fn may_be_other_copy(&self) -> bool;
    /// Finds out whether the copy would destroy its source.
    fn sameness(&self) -> Sameness;
    /// Returns `true` if the filesystem of the dest stores the source's time of modification as that of the dest.
    fn time_stands_for_source(&self) -> bool;
    /// Returns `true` if a dest that seems to be complete must be copied all the same.
    fn is_in_doubt(&self) -> bool;
    /// Returns `true` if the two links lead to the same path.
    fn targets_are_equal(&self) -> bool;
    fn ask(&self) -> bool;
    /// Returns `true` if the dest may be the source under another inode number.
    fn may_be_source(&self) -> bool;
    fn may_write(&self) -> bool;
}

/// Settles how a copy is made at a dest where no file was seen.
///
/// As cp, replaces what cannot be seen by a link to the first copy, and by a forced link if a slash ends the name.
pub(crate) fn settle_vacant(
    rules: Rules<'_>,
    making: Making,
    dest: Vacant,
) -> Result<Way, Refusal> {
    let is_forced = rules.options.force;
    match (dest, making) {
        (Vacant::Dangling | Vacant::Loop, _) if rules.is_made => {
            Err(Refusal::ThroughJustCreatedLink)
        }
        _ if rules.is_made => Err(Refusal::JustCreated),
        (Vacant::Dangling | Vacant::Loop, Making::LinkToCopy) => {
            Ok(Way::Replace(RemovalEvent::Reported))
        }
        // Opening it fails, and then it is unlinked.
        (Vacant::Loop, _) => Ok(Way::Write(Symlinks::Follow)),
        (Vacant::Dangling, _) if rules.creates_through_links => Ok(Way::CreateThrough),
        (Vacant::Dangling, _) => Ok(Way::StayLink),
        (Vacant::Hidden { .. }, Making::LinkToCopy) => Ok(Way::Replace(RemovalEvent::Silent)),
        (Vacant::Hidden { has_slash: true }, Making::Symlink | Making::Link(_)) if is_forced => {
            Ok(Way::Replace(RemovalEvent::Silent))
        }
        (Vacant::Nothing | Vacant::Hidden { .. }, _) => Ok(Way::Create),
    }
}

/// Returns how a dest that is copied to differs from its source.
pub(crate) fn change(source: &Facts, dest: &Facts) -> Change {
    if source.kind != dest.kind {
        Change::OtherType
    } else if source.bytes != dest.bytes {
        Change::OtherSize
    } else if source.modified != dest.modified {
        Change::OtherTime
    } else {
        Change::Again
    }
}

/// Settles what happens to a dest that exists.
pub(crate) fn settle(rules: Rules<'_>, making: Making, pair: &Pair<'_>) -> Settled {
    let Pair { source, dest, .. } = pair;
    let is_directory = dest.kind == FileType::Directory;
    let is_new = rules.directory == Origin::Created && !is_directory;
    if is_new && pair.lookups.may_be_other_copy() {
        return Settled::Make(Way::Stay(Errno::EXIST));
    }
    if let Some(settled) = for_rules(rules, pair) {
        return settled;
    }
    if is_directory {
        return for_directory(rules, making, source);
    }
    if rules.is_made {
        return just_created(rules, making, pair);
    }
    match rules.treatment {
        DestTreatment::Renamed => Settled::BackUp,
        DestTreatment::Unlinked => for_removed(rules.options, making, pair),
        _ if making == Making::LinkToCopy => Settled::Make(Way::Replace(RemovalEvent::Reported)),
        DestTreatment::WrittenTo | DestTreatment::LinkedOver => match making {
            Making::File => for_content(rules, source, dest),
            _ if rules.unlinks_for(source) => Settled::Unlink,
            Making::Link(kind) => for_link(rules, kind, dest),
            _ if rules.separates(dest) => Settled::Unlink,
            _ => Settled::Make(Way::Stay(Errno::EXIST)),
        },
    }
}

fn just_created(rules: Rules<'_>, making: Making, pair: &Pair<'_>) -> Settled {
    let is_link = pair.is_behind_link || pair.dest.kind == FileType::Symlink;
    let is_written = making == Making::File && !rules.treatment.vacates();
    Settled::Refuse(match is_written && is_link {
        true => Refusal::ThroughJustCreatedLink,
        false => Refusal::JustCreated,
    })
}

/// Decides by the rows that hold for whatever is made: 3 to 7.
fn for_rules(rules: Rules<'_>, pair: &Pair<'_>) -> Option<Settled> {
    let options = rules.options;
    let Pair {
        source,
        dest,
        lookups,
        ..
    } = pair;
    match options.rules.replace {
        Replace::None => return Some(Settled::Keep),
        Replace::NoneAndFail => return Some(Settled::Refuse(Refusal::NotReplacing)),
        Replace::All | Replace::Older | Replace::Changed => {}
    }
    let sameness = lookups.sameness();
    if sameness == Sameness::SameFile {
        return Some(Settled::Refuse(Refusal::SameFile));
    }
    let time_stands_for_source = || lookups.time_stands_for_source();
    let is_up_to_date = match options.rules.replace {
        Replace::Older => {
            let copies_times = options.preserve.timestamps;
            let is_emptied = copies_times && has_time_alone(dest, source);
            let stands_for_source = || copies_times && time_stands_for_source();
            !is_emptied && !is_older(dest, source, stands_for_source)
        }
        Replace::Changed => {
            let targets_are_equal = || lookups.targets_are_equal();
            !rules.is_made
                && is_complete(dest, source, time_stands_for_source, targets_are_equal)
                && !lookups.is_in_doubt()
        }
        Replace::All | Replace::None | Replace::NoneAndFail => false,
    };
    if is_up_to_date {
        return Some(Settled::KeepAsCopy);
    }
    if options.rules.ask && !lookups.ask() {
        return Some(Settled::Keep);
    }
    (sameness == Sameness::AlreadyThere).then_some(Settled::AlreadyThere)
}

/// Refuses a directory. If dests are backed up, it stays as in cp, and making the copy fails. But a source that is a FIFO is
/// not opened for that.
fn for_directory(rules: Rules<'_>, making: Making, source: &Facts) -> Settled {
    let is_fifo = source.kind == FileType::Fifo && making == Making::File;
    if rules.treatment != DestTreatment::Renamed || is_fifo {
        return Settled::Refuse(Refusal::DirectoryByNonDirectory);
    }
    Settled::Make(match making {
        Making::File => Way::Write(rules.links_at_dest()),
        Making::Link(kind) if rules.replaces_by(kind) => Way::Replace(RemovalEvent::Silent),
        Making::LinkToCopy => Way::Stay(Errno::ISDIR),
        Making::Symlink if rules.options.force => Way::Stay(Errno::ISDIR),
        Making::Link(_) | Making::Symlink | Making::Special => Way::Stay(Errno::EXIST),
    })
}

fn for_removed(options: &CopyOp<'_>, making: Making, pair: &Pair<'_>) -> Settled {
    let Pair {
        source,
        dest,
        lookups,
        ..
    } = pair;
    let are_files = [source.kind, dest.kind] == [FileType::RegularFile; 2];
    Settled::Make(match options.rules.atomic {
        // cp would open it.
        true if dest.kind == FileType::RegularFile
            && making == Making::File
            && !options.force
            && !lookups.may_write() =>
        {
            Way::Stay(Errno::ACCESS)
        }
        true => Way::Replace(RemovalEvent::Silent),
        false if are_files && lookups.may_be_source() => Way::Replace(RemovalEvent::Silent),
        false if making == Making::LinkToCopy => Way::Replace(RemovalEvent::Reported),
        false => return Settled::Unlink,
    })
}

/// Decides about a file that would be written to. It is unlinked before if its other names must keep their content, or if
/// its source is a special file that is not followed. In a mirror, it is also unlinked if it is not a regular file.
fn for_content(rules: Rules<'_>, source: &Facts, dest: &Facts) -> Settled {
    let replaces_types = rules.treatment == DestTreatment::LinkedOver;
    let keeps_links = rules.options.link_dest.is_none();
    if replaces_types && dest.kind != FileType::RegularFile
        || !keeps_links && dest.kind == FileType::Symlink
    {
        Settled::Unlink
    } else if dest.kind == FileType::Symlink {
        // In a new directory, another process has planted the link, or this run has just made it.
        Settled::Refuse(Refusal::ThroughJustCreatedLink)
    } else if rules.separates(dest) || rules.unlinks_for(source) {
        Settled::Unlink
    } else {
        Settled::Make(Way::Write(rules.links_at_dest()))
    }
}

fn for_link(rules: Rules<'_>, kind: LinkKind, dest: &Facts) -> Settled {
    Settled::Make(if rules.separates(dest) {
        Way::Replace(RemovalEvent::Reported)
    } else if rules.replaces_by(kind) {
        Way::Replace(RemovalEvent::Silent)
    } else {
        Way::Stay(Errno::EXIST)
    })
}

impl Rules<'_> {
    /// Returns whether a dest is written through a symbolic link: not in a directory that this run has made.
    fn links_at_dest(self) -> Symlinks {
        match (self.directory, self.treatment) {
            (Origin::Created, _) | (_, DestTreatment::LinkedOver) => Symlinks::NoFollow,
            _ => Symlinks::Follow,
        }
    }

    /// Returns `true` if a dest with several names is replaced, because its other names must keep their content.
    fn separates(self, dest: &Facts) -> bool {
        let keeps_names = self.options.preserve.links || self.options.link_dest.is_some();
        keeps_names && !self.options.attributes_only && dest.links > 1
    }

    /// Returns `true` if a dest is unlinked because of the type of its source. As in cp, it stays if links are followed, unless
    /// it has other names and hard links are preserved. It also stays if only attributes are copied, unless the source is a
    /// link and `--force` is given.
    fn unlinks_for(self, source: &Facts) -> bool {
        let is_forced = self.options.force && source.kind == FileType::Symlink;
        self.symlinks == Symlinks::NoFollow
            && source.kind != FileType::RegularFile
            && (!self.options.attributes_only || is_forced)
    }

    /// Returns `true` if a link instead of a copy replaces a dest that would otherwise stay.
    fn replaces_by(self, kind: LinkKind) -> bool {
        self.options.force || self.options.rules.ask && kind == LinkKind::Hard
    }
}

impl DestTreatment {
    /// Returns `true` if the dest's name is vacant when the copy is made.
    pub(crate) fn vacates(self) -> bool {
        matches!(self, Self::Unlinked | Self::Renamed)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sameness {
    /// The copy does not harm the source.
    Distinct,
    /// The dest is another name of the link that is copied, so nothing needs to be done.
    AlreadyThere,
    /// The copy would destroy the source.
    SameFile,
}

/// The facts about a name: about the file itself, and about its target if it is a symbolic link.
#[derive(Clone, Copy)]
pub(crate) struct NamedFile {
    pub(crate) itself: Facts,
    /// The file itself, unless it is a link. `None` if that dangles.
    pub(crate) target: Option<Facts>,
}

impl NamedFile {
    fn is_link(&self) -> bool {
        self.itself.kind == FileType::Symlink
    }
}

/// Two names that may lead to one file: at least one is a symbolic link, or both are the same file.
pub(crate) struct NamedFiles {
    pub(crate) source: NamedFile,
    pub(crate) dest: NamedFile,
    /// Says whether a source that is a symbolic link is followed.
    pub(crate) symlinks: Symlinks,
    pub(crate) treatment: DestTreatment,
}

impl NamedFiles {
    /// Decides in the order of cp. `is_one_entry` returns `true` if both names are the same
    /// entry of the same directory.
    pub(crate) fn sameness(&self, is_one_entry: impl FnOnce() -> bool) -> Sameness {
        let Self { source, dest, .. } = self;
        let are_one_file = source.itself.id == dest.itself.id;
        let distinct_if = |distinct| match distinct {
            true => Sameness::Distinct,
            false => Sameness::SameFile,
        };
        let copies_link = self.symlinks == Symlinks::NoFollow;
        if copies_link && source.is_link() && dest.is_link() {
            return match (are_one_file, self.treatment) {
                (false, _) => Sameness::Distinct,
                (true, _) if is_one_entry() => Sameness::SameFile,
                (true, DestTreatment::Renamed) => Sameness::Distinct,
                (true, _) => Sameness::AlreadyThere,
            };
        }
        match self.treatment {
            DestTreatment::Renamed if are_one_file => distinct_if(!is_one_entry()),
            // The source is a link that is followed. Renaming its target would leave it dangling.
            DestTreatment::Renamed => {
                distinct_if(copies_link || !source.is_link() || dest.is_link())
            }
            DestTreatment::Unlinked | DestTreatment::LinkedOver if dest.is_link() => {
                Sameness::Distinct
            }
            DestTreatment::Unlinked if are_one_file => {
                distinct_if(dest.itself.links > 1 && !is_one_entry())
            }
            _ if !copies_link => Sameness::SameFile,
            DestTreatment::Unlinked | DestTreatment::LinkedOver | DestTreatment::WrittenTo => {
                match (source.target, dest.target) {
                    (Some(source), Some(dest)) => distinct_if(source.id != dest.id),
                    _ => Sameness::Distinct,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dest that may be the copy of another name, and is not the source.
    struct Distinct {
        may_be_other_copy: bool,
    }

    impl Lookups for Distinct {
        fn may_be_other_copy(&self) -> bool {
            self.may_be_other_copy
        }
        fn sameness(&self) -> Sameness {
            Sameness::Distinct
        }
        fn time_stands_for_source(&self) -> bool {
            unreachable!()
        }
        fn is_in_doubt(&self) -> bool {
            unreachable!()
        }
        fn targets_are_equal(&self) -> bool {
            unreachable!()
        }
        fn ask(&self) -> bool {
            unreachable!()
        }
        fn may_be_source(&self) -> bool {
            unreachable!()
        }
        fn may_write(&self) -> bool {
            unreachable!()
        }
    }

    /// Only a race that no test can provoke shows these decisions. The commands show the others.
    #[test]
    fn a_dest_that_was_exchanged_is_not_followed_and_another_spelling_stays() {
        let all = CopyOp::new();
        let none = CopyOp::new().with(|options| options.rules.replace = Replace::None);
        let (write, stay) = (Way::Write(Symlinks::NoFollow), Way::Stay(Errno::EXIST));
        let (written, linked) = (DestTreatment::WrittenTo, DestTreatment::LinkedOver);
        let refuse = Settled::Refuse(Refusal::ThroughJustCreatedLink);
        let (file, directory) = (FileType::RegularFile, FileType::Directory);
        for (options, may_be_other_copy, treatment, kind, settled) in [
            (&none, true, written, file, Settled::Make(stay)),
            (&none, true, written, directory, Settled::Keep),
            (&all, false, written, file, Settled::Make(write)),
            (&all, false, written, FileType::Symlink, refuse),
            (&all, false, linked, file, Settled::Make(write)),
        ] {
            let rules = Rules {
                options,
                treatment,
                symlinks: Symlinks::NoFollow,
                directory: match treatment == linked {
                    true => Origin::Existing,
                    false => Origin::Created,
                },
                is_made: false,
                creates_through_links: false,
            };
            let pair = Pair {
                source: Facts::example(FileType::RegularFile, 1),
                dest: Facts::example(kind, 9),
                is_behind_link: false,
                lookups: &Distinct { may_be_other_copy },
            };
            assert_eq!(settle(rules, Making::File, &pair), settled, "{kind:?}");
        }
    }

    #[test]
    fn a_dest_that_cannot_be_seen_is_replaced_by_a_link_to_the_copy_unless_an_operand_made_it() {
        let options = CopyOp::new();
        let settle = |is_made, making, dest| {
            let rules = Rules {
                options: &options,
                treatment: DestTreatment::WrittenTo,
                symlinks: Symlinks::NoFollow,
                directory: Origin::Existing,
                is_made,
                creates_through_links: true,
            };
            settle_vacant(rules, making, dest)
        };
        let hidden = Vacant::Hidden { has_slash: false };
        let replace = Way::Replace(RemovalEvent::Silent);
        assert_eq!(settle(false, Making::LinkToCopy, hidden), Ok(replace));
        for dest in [Vacant::Dangling, Vacant::Loop] {
            let refusal = Refusal::ThroughJustCreatedLink;
            assert_eq!(settle(true, Making::File, dest), Err(refusal));
        }
    }
}
