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
//! | 13 | it is a file to write | is written, perhaps through a link. See [`for_content`] for what is unlinked before |
//! | 14 | a symbolic link or a special file is copied | is unlinked. See [`Rules::unlinks_for`] for those that stay |
//! | 15 | a link is made instead of a copy | is replaced by `--force`, or if it has other names and hard links are preserved; by a hard link also if the user was asked; or stays |
//!
//! If nothing is there, the copy is created. A dest that stays is a failure, reported as "File exists".
//!
//! The dest of a directory:
//!
//! | | if | the dest |
//! |---|---|---|
//! | 1 | nothing is there | is created; or stays, if that has failed because something is there |
//! | 2 | it may be the directory of another name | stays |
//! | 3 | it is a directory | gets the entries |
//! | 4 | it may be the copy of another name, or dests are not backed up | is refused as the same file if it is a link to the source, and cp would compare them; or else as no directory |
//! | 5 | dests are backed up | becomes a backup |
//!
//! This is the order in which cp decides.

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

/// The file at the dest of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupant {
    Nothing,
    /// Nothing, although creation has failed because something is there: another process has removed it, or the name is that
    /// of a link to nothing with a slash at the end.
    Hidden,
    Directory,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettledDirectory {
    Create,
    /// Copy the entries to the directory that is there.
    Fill,
    /// Rename what is there to its backup, and create the directory.
    BackUp,
    /// The dest stays, and making the directory fails with this error.
    Stay(Errno),
    Refuse(Refusal),
}

/// Settles what happens to the dest of a directory. The facts that cost system calls are looked up only if they are needed:
/// whether it may be the copy of another name, and whether it is a link to the source that cp would compare with it.
pub(crate) fn settle_directory(
    dest: Occupant,
    backs_up: bool,
    may_be_other_copy: impl Fn() -> bool,
    is_led_to_source: impl Fn() -> bool,
) -> SettledDirectory {
    match dest {
        Occupant::Nothing => SettledDirectory::Create,
        Occupant::Hidden => SettledDirectory::Stay(Errno::EXIST),
        Occupant::Directory if may_be_other_copy() => SettledDirectory::Stay(Errno::EXIST),
        Occupant::Directory => SettledDirectory::Fill,
        Occupant::Other if backs_up && !may_be_other_copy() => SettledDirectory::BackUp,
        Occupant::Other => SettledDirectory::Refuse(match is_led_to_source() {
            true => Refusal::SameFile,
            false => Refusal::NonDirectoryByDirectory,
        }),
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
        // It was not followed in a new directory: another process has planted it, or this run has just made it.
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
    /// `None` if the link dangles.
    pub(crate) target: Option<Facts>,
}

impl NamedFile {
    fn is_link(&self) -> bool {
        self.itself.kind == FileType::Symlink
    }

    fn target(&self) -> Option<&Facts> {
        if self.is_link() {
            self.target.as_ref()
        } else {
            Some(&self.itself)
        }
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
        let are_one_file = source.itself.is_same_file(&dest.itself);
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
                match (source.target(), dest.target()) {
                    (Some(source), Some(dest)) => distinct_if(!source.is_same_file(dest)),
                    _ => Sameness::Distinct,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Sameness::{AlreadyThere, Distinct, SameFile};
    use super::*;
    use crate::copy::facts::FileTime;

    /// The answers of the lookups. It is a bug to ask for one that is `None`.
    struct Answers {
        may_be_other_copy: Option<bool>,
        sameness: Sameness,
        time_stands_for_source: Option<bool>,
        is_in_doubt: Option<bool>,
        targets_are_equal: Option<bool>,
        agrees: Option<bool>,
        may_be_source: Option<bool>,
        may_write: Option<bool>,
    }

    const ANSWERS: Answers = Answers {
        may_be_other_copy: None,
        sameness: Distinct,
        time_stands_for_source: None,
        is_in_doubt: None,
        targets_are_equal: None,
        agrees: None,
        may_be_source: None,
        may_write: None,
    };

    impl Lookups for Answers {
        fn may_be_other_copy(&self) -> bool {
            self.may_be_other_copy.expect("BUG: asked about spellings")
        }
        fn sameness(&self) -> Sameness {
            self.sameness
        }
        fn time_stands_for_source(&self) -> bool {
            self.time_stands_for_source.expect("BUG: asked about times")
        }
        fn is_in_doubt(&self) -> bool {
            self.is_in_doubt.expect("BUG: asked about content")
        }
        fn targets_are_equal(&self) -> bool {
            self.targets_are_equal.expect("BUG: asked about targets")
        }
        fn ask(&self) -> bool {
            self.agrees.expect("BUG: asked without being told to")
        }
        fn may_be_source(&self) -> bool {
            self.may_be_source.expect("BUG: asked about the source")
        }
        fn may_write(&self) -> bool {
            self.may_write.expect("BUG: asked about permissions")
        }
    }

    const HARD: Making = Making::Link(LinkKind::Hard);
    const SYMBOLIC: Making = Making::Link(LinkKind::Symbolic);
    const MADE: [Making; 6] = [
        Making::File,
        Making::Symlink,
        Making::Special,
        HARD,
        SYMBOLIC,
        Making::LinkToCopy,
    ];
    const WRITE: Settled = Settled::Make(Way::Write(Symlinks::Follow));
    const REPLACE: Settled = Settled::Make(Way::Replace(RemovalEvent::Reported));
    const REPLACE_SILENTLY: Settled = Settled::Make(Way::Replace(RemovalEvent::Silent));
    const UNLINK: Settled = Settled::Unlink;
    const EXISTS: Settled = Settled::Make(Way::Stay(Errno::EXIST));
    const IS_DIRECTORY: Settled = Settled::Make(Way::Stay(Errno::ISDIR));
    const DIRECTORY: Settled = Settled::Refuse(Refusal::DirectoryByNonDirectory);

    fn options(change: impl FnOnce(&mut CopyOp<'static>)) -> CopyOp<'static> {
        CopyOp::new().with(change)
    }

    fn rules<'a>(options: &'a CopyOp<'a>) -> Rules<'a> {
        Rules {
            options,
            treatment: DestTreatment::WrittenTo,
            symlinks: Symlinks::NoFollow,
            directory: Origin::Existing,
            is_made: false,
            creates_through_links: false,
        }
    }

    fn example(kind: FileType) -> Facts {
        Facts::example(kind, 9)
    }

    fn source(kind: FileType) -> Facts {
        Facts::example(kind, 1)
    }

    fn with_names(links: u64) -> Facts {
        Facts {
            links,
            ..example(FileType::RegularFile)
        }
    }

    fn modified_at(seconds: i64) -> Facts {
        let modified = FileTime {
            seconds,
            nanoseconds: 0,
        };
        Facts {
            modified,
            ..example(FileType::RegularFile)
        }
    }

    fn pair(source: Facts, dest: Facts, answers: &Answers) -> Pair<'_> {
        Pair {
            source,
            dest,
            is_behind_link: false,
            lookups: answers,
        }
    }

    /// Settles without a question.
    fn settled(rules: Rules<'_>, making: Making, source: Facts, dest: Facts) -> Settled {
        settle(rules, making, &pair(source, dest, &ANSWERS))
    }

    use FileType::{Directory, Fifo, RegularFile, Symlink};

    #[test]
    fn a_dest_is_created_if_nothing_is_there() {
        let options = options(|_| ());
        for making in MADE {
            let settle = |is_made| {
                let rules = Rules {
                    is_made,
                    ..rules(&options)
                };
                settle_vacant(rules, making, Vacant::Nothing)
            };
            assert_eq!(settle(false), Ok(Way::Create));
            assert_eq!(settle(true), Err(Refusal::JustCreated));
        }
    }

    #[test]
    fn what_cannot_be_seen_is_replaced_by_links_to_copies_and_forced_links() {
        let [plain, force] = [false, true].map(|force| options(|options| options.force = force));
        let replace = Way::Replace(RemovalEvent::Silent);
        for (making, options, has_slash, way) in [
            (Making::LinkToCopy, &plain, false, replace),
            (Making::Symlink, &force, true, replace),
            (HARD, &force, true, replace),
            (HARD, &force, false, Way::Create),
            (HARD, &plain, true, Way::Create),
            (Making::File, &force, true, Way::Create),
            (Making::Special, &force, true, Way::Create),
        ] {
            let settled = settle_vacant(rules(options), making, Vacant::Hidden { has_slash });
            assert_eq!(settled, Ok(way), "{making:?} {has_slash}");
        }
    }

    #[test]
    fn row_1_what_may_be_the_copy_of_another_name_stays() {
        let stays = Settled::Make(Way::Stay(Errno::EXIST));
        let options = options(|options| options.rules.replace = Replace::None);
        let rules = Rules {
            directory: Origin::Created,
            ..rules(&options)
        };
        let answers = Answers {
            may_be_other_copy: Some(true),
            ..ANSWERS
        };
        for (making, dest, decision) in [
            (Making::File, RegularFile, stays),
            (Making::File, Symlink, stays),
            (Making::Symlink, Symlink, stays),
            (Making::LinkToCopy, RegularFile, stays),
            (Making::File, Directory, Settled::Keep),
        ] {
            let seen = &pair(source(RegularFile), example(dest), &answers);
            assert_eq!(settle(rules, making, seen), decision, "{making:?} {dest:?}");
        }
    }

    #[test]
    fn row_2_nothing_is_written_through_a_link_to_nothing_unless_the_options_say_so() {
        let options = options(|options| options.rules.replace = Replace::None);
        let through = Rules {
            creates_through_links: true,
            ..rules(&options)
        };
        let made = Rules {
            is_made: true,
            ..through
        };
        let replace = Way::Replace(RemovalEvent::Reported);
        let (write, just_made) = (
            Way::Write(Symlinks::Follow),
            Refusal::ThroughJustCreatedLink,
        );
        for (dest, rules, making, decision) in [
            (
                Vacant::Dangling,
                rules(&options),
                Making::File,
                Ok(Way::StayLink),
            ),
            (
                Vacant::Dangling,
                through,
                Making::File,
                Ok(Way::CreateThrough),
            ),
            (Vacant::Dangling, made, Making::File, Err(just_made)),
            (Vacant::Dangling, through, Making::LinkToCopy, Ok(replace)),
            (Vacant::Loop, through, Making::File, Ok(write)),
            (Vacant::Loop, made, Making::File, Err(just_made)),
            (Vacant::Loop, through, Making::LinkToCopy, Ok(replace)),
        ] {
            let settled = settle_vacant(rules, making, dest);
            assert_eq!(settled, decision, "{dest:?} {making:?}");
        }
    }

    #[test]
    fn row_3_a_rule_that_replaces_nothing_comes_before_the_other_reasons() {
        for (replace, decision) in [
            (Replace::None, Settled::Keep),
            (Replace::NoneAndFail, Settled::Refuse(Refusal::NotReplacing)),
        ] {
            let options = options(|options| {
                options.rules.replace = replace;
                options.rules.ask = true;
            });
            let answers = Answers {
                sameness: SameFile,
                ..ANSWERS
            };
            let seen = &pair(source(RegularFile), example(Directory), &answers);
            assert_eq!(settle(rules(&options), Making::File, seen), decision);
        }
    }

    #[test]
    fn row_4_a_source_is_not_destroyed() {
        let answers = Answers {
            sameness: SameFile,
            ..ANSWERS
        };
        for replace in [Replace::All, Replace::Older, Replace::Changed] {
            let options = options(|options| options.rules.replace = replace);
            for making in MADE {
                let seen = &pair(source(RegularFile), example(RegularFile), &answers);
                let decision = Settled::Refuse(Refusal::SameFile);
                assert_eq!(settle(rules(&options), making, seen), decision);
            }
        }
    }

    #[test]
    fn row_5_a_dest_that_is_as_new_is_kept_as_the_copy() {
        let source = Facts {
            bytes: 9,
            ..modified_at(2)
        };
        let at = |seconds| Facts {
            bytes: 9,
            ..modified_at(seconds)
        };
        let (emptied, link) = (
            modified_at(2),
            Facts {
                kind: Symlink,
                ..modified_at(2)
            },
        );
        let (older, changed) = (Replace::Older, Replace::Changed);
        for (replace, copies_times, dest, stands_for_source, in_doubt, decision) in [
            (older, false, at(1), None, None, WRITE),
            (older, false, at(2), None, None, Settled::KeepAsCopy),
            (older, true, at(1), Some(true), None, Settled::KeepAsCopy),
            (older, true, at(1), Some(false), None, WRITE),
            (older, true, emptied, None, None, WRITE),
            (older, false, emptied, None, None, Settled::KeepAsCopy),
            (older, true, modified_at(3), None, None, Settled::KeepAsCopy),
            (older, true, link, None, None, Settled::KeepAsCopy),
            (changed, true, at(2), None, Some(false), Settled::KeepAsCopy),
            (changed, true, at(2), None, Some(true), WRITE),
            (changed, true, at(1), Some(false), None, WRITE),
        ] {
            let options = options(|options| {
                options.rules.replace = replace;
                options.preserve.timestamps = copies_times;
            });
            let answers = Answers {
                time_stands_for_source: stands_for_source,
                is_in_doubt: in_doubt,
                ..ANSWERS
            };
            let settled = settle(rules(&options), Making::File, &pair(source, dest, &answers));
            assert_eq!(settled, decision, "{replace:?} {copies_times} {dest:?}");
        }
    }

    #[test]
    fn row_6_the_user_is_asked_before_a_directory_is_refused() {
        let options = options(|options| options.rules.ask = true);
        for (agrees, decision) in [(false, Settled::Keep), (true, DIRECTORY)] {
            let answers = Answers {
                agrees: Some(agrees),
                ..ANSWERS
            };
            let seen = &pair(source(RegularFile), example(Directory), &answers);
            assert_eq!(settle(rules(&options), Making::File, seen), decision);
        }
    }

    #[test]
    fn row_7_another_name_of_a_link_needs_no_copy() {
        let options = options(|options| options.rules.remove_first = true);
        let rules = Rules {
            treatment: DestTreatment::Unlinked,
            ..rules(&options)
        };
        let answers = Answers {
            sameness: AlreadyThere,
            ..ANSWERS
        };
        let seen = &pair(source(Symlink), source(Symlink), &answers);
        assert_eq!(settle(rules, Making::Symlink, seen), Settled::AlreadyThere);
    }

    #[test]
    fn row_8_a_directory_is_never_replaced() {
        let options = options(|options| options.force = true);
        for treatment in [
            DestTreatment::WrittenTo,
            DestTreatment::LinkedOver,
            DestTreatment::Unlinked,
        ] {
            let rules = Rules {
                treatment,
                ..rules(&options)
            };
            for making in MADE {
                let settled = settled(rules, making, source(RegularFile), example(Directory));
                assert_eq!(settled, DIRECTORY, "{making:?}");
            }
        }
    }

    #[test]
    fn row_8_a_directory_stays_if_dests_are_backed_up() {
        let [plain, force] = [false, true].map(|force| options(|options| options.force = force));
        for (making, options, kind, decision) in [
            (Making::File, &plain, RegularFile, WRITE),
            (Making::File, &plain, Fifo, DIRECTORY),
            (Making::Special, &force, Fifo, EXISTS),
            (Making::Symlink, &plain, Symlink, EXISTS),
            (Making::Symlink, &force, Symlink, IS_DIRECTORY),
            (HARD, &plain, RegularFile, EXISTS),
            (SYMBOLIC, &force, RegularFile, REPLACE_SILENTLY),
            (Making::LinkToCopy, &plain, RegularFile, IS_DIRECTORY),
        ] {
            let rules = Rules {
                treatment: DestTreatment::Renamed,
                ..rules(options)
            };
            let settled = settled(rules, making, source(kind), example(Directory));
            assert_eq!(settled, decision, "{making:?} {kind:?}");
        }
    }

    #[test]
    fn row_9_a_dest_of_an_earlier_operand_is_refused() {
        let options = options(|_| ());
        for (treatment, is_behind_link, refusal) in [
            (DestTreatment::WrittenTo, false, Refusal::JustCreated),
            (
                DestTreatment::WrittenTo,
                true,
                Refusal::ThroughJustCreatedLink,
            ),
            (DestTreatment::Renamed, true, Refusal::JustCreated),
        ] {
            let rules = Rules {
                treatment,
                is_made: true,
                ..rules(&options)
            };
            let seen = &Pair {
                source: source(RegularFile),
                dest: example(RegularFile),
                is_behind_link,
                lookups: &ANSWERS,
            };
            let settled = settle(rules, Making::File, seen);
            assert_eq!(settled, Settled::Refuse(refusal), "{treatment:?}");
        }
    }

    #[test]
    fn row_10_a_dest_becomes_a_backup() {
        let options = options(|options| options.rules.remove_first = true);
        let rules = Rules {
            treatment: DestTreatment::Renamed,
            ..rules(&options)
        };
        for making in MADE {
            let settled = settled(rules, making, source(RegularFile), example(RegularFile));
            assert_eq!(settled, Settled::BackUp, "{making:?}");
        }
    }

    #[test]
    fn row_11_a_link_to_the_first_copy_replaces_a_dest() {
        let options = options(|options| options.attributes_only = true);
        for treatment in [DestTreatment::WrittenTo, DestTreatment::LinkedOver] {
            let rules = Rules {
                treatment,
                symlinks: Symlinks::Follow,
                ..rules(&options)
            };
            for dest in [RegularFile, Symlink, Fifo] {
                let settled = settled(
                    rules,
                    Making::LinkToCopy,
                    source(RegularFile),
                    example(dest),
                );
                assert_eq!(settled, REPLACE, "{treatment:?} {dest:?}");
            }
        }
    }

    #[test]
    fn row_12_a_dest_is_unlinked_or_replaced_when_the_copy_is_complete() {
        let remove = &options(|options| options.rules.remove_first = true);
        let atomic = &options(|options| options.rules.atomic = true);
        let force = &options(|options| {
            options.rules.atomic = true;
            options.force = true;
        });
        let (file, link, silent) = (Making::File, Making::LinkToCopy, REPLACE_SILENTLY);
        let forbidden = Settled::Make(Way::Stay(Errno::ACCESS));
        for (options, making, dest, may_be_source, may_write, decision) in [
            (remove, file, RegularFile, Some(false), None, UNLINK),
            (remove, file, RegularFile, Some(true), None, silent),
            (remove, file, Fifo, None, None, UNLINK),
            (remove, link, Fifo, None, None, REPLACE),
            (atomic, file, RegularFile, None, Some(true), silent),
            (atomic, file, RegularFile, None, Some(false), forbidden),
            (atomic, file, Fifo, None, None, silent),
            (atomic, Making::Symlink, RegularFile, None, None, silent),
            (atomic, link, RegularFile, None, None, silent),
            (force, file, RegularFile, None, None, silent),
        ] {
            let rules = Rules {
                treatment: DestTreatment::Unlinked,
                ..rules(options)
            };
            let answers = Answers {
                may_be_source,
                may_write,
                ..ANSWERS
            };
            let pair = &pair(source(RegularFile), example(dest), &answers);
            let settled = settle(rules, making, pair);
            assert_eq!(settled, decision, "{making:?} {dest:?} {may_be_source:?}");
        }
    }

    #[test]
    fn row_13_a_file_is_written() {
        let [plain, links] = [false, true].map(|links| options(|o| o.preserve.links = links));
        let attributes = options(|options| options.attributes_only = true);
        let [old, links, attributes] = [&plain, &links, &attributes].map(rules);
        let (mut mirror, mut new, mut following) = (old, old, old);
        mirror.treatment = DestTreatment::LinkedOver;
        new.directory = Origin::Created;
        following.symlinks = Symlinks::Follow;
        let not_through = Settled::Make(Way::Write(Symlinks::NoFollow));
        let planted = Settled::Refuse(Refusal::ThroughJustCreatedLink);
        let (one, two) = (with_names(1), with_names(2));
        for (row, rules, kind, dest, decision) in [
            ("file", old, RegularFile, one, WRITE),
            ("FIFO", old, RegularFile, example(Fifo), WRITE),
            ("several names", old, RegularFile, two, WRITE),
            ("links are kept", links, RegularFile, two, UNLINK),
            ("one name", links, RegularFile, one, WRITE),
            ("content of a FIFO", old, Fifo, one, UNLINK),
            ("through links", following, Fifo, one, WRITE),
            ("attributes of a FIFO", attributes, Fifo, one, WRITE),
            ("mirror", mirror, RegularFile, one, not_through),
            (
                "mirror, link",
                mirror,
                RegularFile,
                example(Symlink),
                UNLINK,
            ),
            ("new", new, RegularFile, one, not_through),
            ("planted", new, RegularFile, example(Symlink), planted),
        ] {
            let answers = Answers {
                may_be_other_copy: (rules.directory == Origin::Created).then_some(false),
                ..ANSWERS
            };
            let pair = &pair(source(kind), dest, &answers);
            assert_eq!(settle(rules, Making::File, pair), decision, "{row}");
        }
    }

    #[test]
    fn row_14_a_dest_is_unlinked_for_a_link_or_a_special_file() {
        let plain = options(|_| ());
        let links = options(|options| options.preserve.links = true);
        let attributes = options(|options| options.attributes_only = true);
        let force = options(|options| {
            options.attributes_only = true;
            options.force = true;
        });
        let following = |options| Rules {
            symlinks: Symlinks::Follow,
            ..rules(options)
        };
        let (link, fifo) = (Making::Symlink, Making::Special);
        for (row, rules, making, kind, names, decision) in [
            ("link", rules(&plain), link, Symlink, 1, UNLINK),
            ("FIFO", rules(&plain), fifo, Fifo, 1, UNLINK),
            ("followed", following(&plain), fifo, Fifo, 1, EXISTS),
            ("other names", following(&links), fifo, Fifo, 2, UNLINK),
            ("attributes", rules(&attributes), link, Symlink, 1, EXISTS),
            ("forced", rules(&force), link, Symlink, 1, UNLINK),
            ("forced FIFO", rules(&force), fifo, Fifo, 1, EXISTS),
        ] {
            let settled = settled(rules, making, source(kind), with_names(names));
            assert_eq!(settled, decision, "{row}");
        }
    }

    #[test]
    fn row_15_a_link_instead_of_a_copy_replaces_a_dest_only_if_it_is_told_to() {
        let plain = &options(|_| ());
        let ask = &options(|options| options.rules.ask = true);
        let force = &options(|options| options.force = true);
        let links = &options(|options| options.preserve.links = true);
        let agreed = Answers {
            agrees: Some(true),
            ..ANSWERS
        };
        for (row, options, making, kind, names, decision) in [
            ("hard", plain, HARD, RegularFile, 1, EXISTS),
            ("symbolic", plain, SYMBOLIC, RegularFile, 1, EXISTS),
            ("asked", ask, HARD, RegularFile, 1, REPLACE_SILENTLY),
            ("asked, symbolic", ask, SYMBOLIC, RegularFile, 1, EXISTS),
            ("forced", force, HARD, RegularFile, 1, REPLACE_SILENTLY),
            ("forced, symbolic", force, SYMBOLIC, Fifo, 1, UNLINK),
            ("other names", links, HARD, RegularFile, 2, REPLACE),
            ("link to a link", plain, HARD, Symlink, 1, UNLINK),
            ("link to a FIFO", plain, SYMBOLIC, Fifo, 1, UNLINK),
        ] {
            let pair = &pair(source(kind), with_names(names), &agreed);
            let settled = settle(rules(options), making, pair);
            assert_eq!(settled, decision, "{row}");
        }
    }

    const CASES: [(Symlinks, DestTreatment); 4] = [
        (Symlinks::Follow, DestTreatment::Renamed),
        (Symlinks::NoFollow, DestTreatment::Renamed),
        (Symlinks::NoFollow, DestTreatment::Unlinked),
        (Symlinks::NoFollow, DestTreatment::WrittenTo),
    ];

    fn file(inode: u64, links: u64) -> Facts {
        Facts {
            links,
            ..Facts::example(FileType::RegularFile, inode)
        }
    }

    fn plain(itself: Facts) -> NamedFile {
        NamedFile {
            itself,
            target: Some(itself),
        }
    }

    fn link(inode: u64, target: Facts) -> NamedFile {
        NamedFile {
            itself: Facts::example(FileType::Symlink, inode),
            target: Some(target),
        }
    }

    /// Decides about two different entries in each of the cases.
    fn decided(source: NamedFile, dest: NamedFile) -> [Sameness; 4] {
        decided_if_one_entry(false, source, dest)
    }

    fn decided_if_one_entry(
        is_one_entry: bool,
        source: NamedFile,
        dest: NamedFile,
    ) -> [Sameness; 4] {
        CASES.map(|(symlinks, treatment)| {
            let names = NamedFiles {
                source,
                dest,
                symlinks,
                treatment,
            };
            names.sameness(|| is_one_entry)
        })
    }

    #[test]
    fn a_hard_link_may_be_removed_but_not_written_to() {
        assert_eq!(
            decided(plain(file(1, 2)), plain(file(1, 2))),
            [Distinct, Distinct, Distinct, SameFile]
        );
    }

    #[test]
    fn an_entry_is_never_its_own_copy() {
        let name = plain(file(1, 2));
        assert_eq!(decided_if_one_entry(true, name, name), [SameFile; 4]);
    }

    #[test]
    fn a_link_to_the_source_may_be_removed_but_not_written_through() {
        assert_eq!(
            decided(plain(file(1, 1)), link(2, file(1, 1))),
            [Distinct, Distinct, Distinct, SameFile]
        );
    }

    #[test]
    fn the_target_of_a_source_link_stays_unless_the_link_is_copied_and_the_target_renamed() {
        assert_eq!(
            decided(link(2, file(1, 1)), plain(file(1, 1))),
            [SameFile, Distinct, SameFile, SameFile]
        );
    }

    #[test]
    fn two_links_are_distinct_wherever_they_lead() {
        let (source, dest) = (link(2, file(1, 1)), link(3, file(1, 1)));
        assert_eq!(decided(source, dest)[1..], [Distinct; 3]);
    }

    #[test]
    fn two_names_of_one_link_need_no_copy() {
        let (source, dest) = (link(2, file(1, 1)), link(2, file(1, 1)));
        assert_eq!(
            decided(source, dest)[1..],
            [Distinct, AlreadyThere, AlreadyThere]
        );
    }

    /// Settles the dest of a directory, and panics if a fact is looked up that is `None`.
    fn settled_directory(
        dest: Occupant,
        backs_up: bool,
        may_be_other_copy: Option<bool>,
        is_led_to_source: Option<bool>,
    ) -> SettledDirectory {
        let other = || may_be_other_copy.expect("BUG: asked about spellings");
        let led = || is_led_to_source.expect("BUG: asked about the target");
        settle_directory(dest, backs_up, other, led)
    }

    #[test]
    fn a_directory_is_created_where_nothing_is() {
        for backs_up in [false, true] {
            let vacant = |dest| settled_directory(dest, backs_up, None, None);
            assert_eq!(vacant(Occupant::Nothing), SettledDirectory::Create);
            let exists = SettledDirectory::Stay(Errno::EXIST);
            assert_eq!(vacant(Occupant::Hidden), exists);
        }
    }

    #[test]
    fn a_directory_fills_another_one_unless_that_may_be_the_copy_of_another_name() {
        for backs_up in [false, true] {
            let of = |other| settled_directory(Occupant::Directory, backs_up, Some(other), None);
            assert_eq!(of(false), SettledDirectory::Fill);
            assert_eq!(of(true), SettledDirectory::Stay(Errno::EXIST));
        }
    }

    #[test]
    fn a_directory_replaces_another_file_only_by_a_backup() {
        let of = |backs_up, other, led| settled_directory(Occupant::Other, backs_up, other, led);
        let refused = SettledDirectory::Refuse;
        let no_directory = Refusal::NonDirectoryByDirectory;
        assert_eq!(of(true, Some(false), None), SettledDirectory::BackUp);
        assert_eq!(of(true, Some(true), Some(false)), refused(no_directory));
        assert_eq!(of(true, Some(true), Some(true)), refused(Refusal::SameFile));
        assert_eq!(of(false, None, Some(false)), refused(no_directory));
        assert_eq!(of(false, None, Some(true)), refused(Refusal::SameFile));
    }
}
