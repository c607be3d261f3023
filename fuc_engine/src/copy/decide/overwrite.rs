//! Decides whether a dest that exists is replaced.
//!
//! ```text
//!   is it replaced at all? ──no──▶ skip, or a failure
//!   would that destroy the source? ──yes──▶ a failure
//!   is it older, or changed? (if that matters) ──no──▶ skip; further names of the source are
//!                                                      linked to it
//!   does the user agree? (if asked) ──no──▶ skip
//!   is it another name of the link to copy? ──yes──▶ skip
//!   is it a directory? ──yes──▶ a failure, unless dests are backed up
//!   ──▶ proceed: rename it, unlink it, or write to it
//! ```
//!
//! This is the order in which cp decides. The treatment of the dest decides which names still lead to the file
//! afterwards, and so whether a copy would destroy its source.

use rustix::fs::FileType;

use super::times::{has_time_alone, is_complete, is_older};
use crate::copy::facts::{Facts, Symlinks};
use crate::copy::options::{CopyOp, Replace};
use crate::error::Refusal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overwrite {
    /// Make the copy, after treating the dest as [`DestTreatment`] says.
    Proceed,
    /// Leave the dest as it is, because of the rules or of the user's answer.
    Skip,
    /// The dest is the link to copy. Nothing is left to do.
    AlreadyThere,
    /// Leave the dest as it is, because it is as new as the source, or a copy of it. Further names of
    /// the source are linked to it.
    Adopt,
    Refuse(Refusal),
}

/// Questions that cost system calls or the user's time, so they are asked only if the decision needs the answer.
pub(crate) struct Questions<'a> {
    /// Would a copy destroy its source?
    pub(crate) sameness: &'a dyn Fn() -> Sameness,
    /// Does the filesystem of the dest store the source's time of modification as that of the dest?
    pub(crate) time_stands_for_source: &'a dyn Fn() -> bool,
    /// Has a power cut taken content from a dest that seems to be complete?
    pub(crate) lost_content: &'a dyn Fn() -> bool,
    /// Do the two links lead to the same path?
    pub(crate) targets_are_equal: &'a dyn Fn() -> bool,
    /// Does the user agree?
    pub(crate) ask: &'a dyn Fn() -> bool,
}

/// Decides whether `dest`, which gets this treatment, is replaced by a copy of `source`.
pub(crate) fn overwrite(
    options: &CopyOp<'_>,
    treatment: DestTreatment,
    source: &Facts,
    dest: &Facts,
    questions: &Questions<'_>,
) -> Overwrite {
    let rules = &options.rules;
    match rules.replace {
        Replace::None => return Overwrite::Skip,
        Replace::NoneAndFail => return Overwrite::Refuse(Refusal::NotReplacing),
        Replace::All | Replace::Older | Replace::Changed => {}
    }
    let sameness = (questions.sameness)();
    if sameness == Sameness::SameFile {
        return Overwrite::Refuse(Refusal::SameFile);
    }
    let is_up_to_date = match rules.replace {
        Replace::Older => {
            let copies_times = options.preserve.timestamps;
            let stands_for_source = || copies_times && (questions.time_stands_for_source)();
            let is_emptied = copies_times && has_time_alone(dest, source);
            !is_emptied && !is_older(dest, source, stands_for_source)
        }
        Replace::Changed => {
            let seems_complete = is_complete(
                dest,
                source,
                questions.time_stands_for_source,
                questions.targets_are_equal,
            );
            seems_complete && !(questions.lost_content)()
        }
        Replace::All | Replace::None | Replace::NoneAndFail => false,
    };
    if is_up_to_date {
        return Overwrite::Adopt;
    }
    if rules.ask && !(questions.ask)() {
        return Overwrite::Skip;
    }
    if sameness == Sameness::AlreadyThere {
        return Overwrite::AlreadyThere;
    }
    if dest.kind == FileType::Directory && treatment.refuses_directories() {
        return Overwrite::Refuse(Refusal::DirectoryByNonDirectory);
    }
    Overwrite::Proceed
}

/// Returns the reason why a dest that an earlier operand made is not overwritten by this one.
///
/// `writes_to_dest` is `true` if this operand writes content to the dest's name. The closures
/// return the kind of the dest itself, and that of the file that it leads to as a link.
pub(crate) fn just_created(
    writes_to_dest: bool,
    dest_kind: impl FnOnce() -> Option<FileType>,
    target_kind: impl FnOnce() -> Option<FileType>,
) -> Refusal {
    if !writes_to_dest || dest_kind() != Some(FileType::Symlink) {
        Refusal::JustCreated
    } else if target_kind() == Some(FileType::Directory) {
        Refusal::DirectoryByNonDirectory
    } else {
        Refusal::ThroughJustCreatedLink
    }
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

impl DestTreatment {
    /// Returns `true` if the dest's name is vacant when the copy is made.
    pub(crate) fn vacates(self) -> bool {
        matches!(self, Self::Unlinked | Self::Renamed)
    }

    /// Returns `true` if a directory at the dest is refused at once. Otherwise it stays where it is,
    /// and making the copy fails, as in cp.
    pub(crate) fn refuses_directories(self) -> bool {
        self != Self::Renamed
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
        let distinct_if = |distinct| {
            if distinct {
                Sameness::Distinct
            } else {
                Sameness::SameFile
            }
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

    fn modified_at(seconds: i64) -> Facts {
        let time = FileTime {
            seconds,
            nanoseconds: 0,
        };
        Facts {
            modified: time,
            ..Facts::example(FileType::RegularFile, 1)
        }
    }

    fn replacing(replace: Replace) -> CopyOp<'static> {
        CopyOp::new().with(|options| options.rules.replace = replace)
    }

    const QUESTIONS: Questions<'static> = Questions {
        sameness: &|| Sameness::Distinct,
        time_stands_for_source: &|| false,
        lost_content: &|| false,
        targets_are_equal: &|| panic!("BUG: asked about files"),
        ask: &|| panic!("BUG: asked without being told to"),
    };

    /// Decides without asking the user.
    fn decide(
        replace: Replace,
        treatment: DestTreatment,
        [source, dest]: [&Facts; 2],
        sameness: Sameness,
    ) -> Overwrite {
        let questions = Questions {
            sameness: &|| sameness,
            ..QUESTIONS
        };
        overwrite(&replacing(replace), treatment, source, dest, &questions)
    }

    #[test]
    fn the_filesystem_is_asked_only_about_times_that_copies_get() {
        let (old, new) = (modified_at(1), modified_at(2));
        for (copies_times, stands_for_source, decision) in [
            (false, true, Overwrite::Proceed),
            (true, true, Overwrite::Adopt),
            (true, false, Overwrite::Proceed),
        ] {
            let mut options = replacing(Replace::Older);
            options.preserve.timestamps = copies_times;
            let questions = Questions {
                time_stands_for_source: &|| {
                    assert!(copies_times, "BUG: asked without a doubt");
                    stands_for_source
                },
                ..QUESTIONS
            };
            let decided = overwrite(&options, DestTreatment::WrittenTo, &new, &old, &questions);
            assert_eq!(decided, decision, "{copies_times} {stands_for_source}");
        }
    }

    #[test]
    fn a_file_that_a_power_cut_has_emptied_is_replaced() {
        let source = Facts {
            bytes: 9,
            ..modified_at(2)
        };
        let decide = |replace, copies_times, dest, lost_content: bool| {
            let mut options = replacing(replace);
            options.preserve.timestamps = copies_times;
            let questions = Questions {
                lost_content: &|| lost_content,
                ..QUESTIONS
            };
            overwrite(
                &options,
                DestTreatment::WrittenTo,
                &source,
                &dest,
                &questions,
            )
        };
        let (emptied, newer) = (modified_at(2), modified_at(3));
        let link = Facts {
            kind: FileType::Symlink,
            ..emptied
        };
        for (replace, copies_times, dest, lost_content, decision) in [
            (Replace::Older, true, emptied, false, Overwrite::Proceed),
            (Replace::Older, false, emptied, false, Overwrite::Adopt),
            (Replace::Older, true, newer, false, Overwrite::Adopt),
            (Replace::Older, true, link, false, Overwrite::Adopt),
            (Replace::Older, true, source, true, Overwrite::Adopt),
            (Replace::Changed, true, source, false, Overwrite::Adopt),
            (Replace::Changed, true, source, true, Overwrite::Proceed),
        ] {
            let decided = decide(replace, copies_times, dest, lost_content);
            assert_eq!(decided, decision, "{replace:?} {copies_times} {dest:?}");
        }
    }

    #[test]
    fn the_first_reason_decides() {
        use Overwrite::{Adopt, Proceed, Refuse, Skip};
        use Replace::{All, Changed, None, NoneAndFail, Older};
        use Sameness::{AlreadyThere, Distinct, SameFile};
        let (old, new) = (modified_at(1), modified_at(2));
        let directory = Facts::example(FileType::Directory, 1);
        for (replace, sameness, dest, decision) in [
            (All, Distinct, old, Proceed),
            (All, SameFile, old, Refuse(Refusal::SameFile)),
            (All, AlreadyThere, old, Overwrite::AlreadyThere),
            (
                All,
                Distinct,
                directory,
                Refuse(Refusal::DirectoryByNonDirectory),
            ),
            (Older, Distinct, old, Proceed),
            (Older, Distinct, new, Adopt),
            (Older, SameFile, new, Refuse(Refusal::SameFile)),
            (Changed, Distinct, old, Proceed),
            (Changed, Distinct, new, Adopt),
            (Changed, SameFile, new, Refuse(Refusal::SameFile)),
            (None, SameFile, directory, Skip),
            (
                NoneAndFail,
                SameFile,
                directory,
                Refuse(Refusal::NotReplacing),
            ),
        ] {
            let decided = decide(replace, DestTreatment::WrittenTo, [&new, &dest], sameness);
            assert_eq!(decided, decision, "{replace:?} {sameness:?} {dest:?}");
        }
    }

    #[test]
    fn the_user_is_asked_before_a_directory_is_refused() {
        let mut options = replacing(Replace::All);
        options.rules.ask = true;
        let directory = Facts::example(FileType::Directory, 1);
        for (agrees, decision) in [
            (false, Overwrite::Skip),
            (true, Overwrite::Refuse(Refusal::DirectoryByNonDirectory)),
        ] {
            let questions = Questions {
                ask: &|| agrees,
                ..QUESTIONS
            };
            let (treatment, source) = (DestTreatment::WrittenTo, modified_at(1));
            let decided = overwrite(&options, treatment, &source, &directory, &questions);
            assert_eq!(decided, decision, "{agrees}");
        }
    }

    #[test]
    fn a_directory_is_not_refused_if_dests_are_backed_up() {
        let renamed = DestTreatment::Renamed;
        let directory = Facts::example(FileType::Directory, 1);
        let names = [&modified_at(1), &directory];
        let decided = decide(Replace::All, renamed, names, Sameness::Distinct);
        assert_eq!(decided, Overwrite::Proceed);
    }

    #[test]
    fn a_link_that_was_just_created_is_told_from_a_file() {
        let (link, file, directory) = (
            Some(FileType::Symlink),
            Some(FileType::RegularFile),
            Some(FileType::Directory),
        );
        for (writes_to_dest, dest_kind, target_kind, refusal) in [
            (true, file, file, Refusal::JustCreated),
            (true, link, file, Refusal::ThroughJustCreatedLink),
            (true, link, directory, Refusal::DirectoryByNonDirectory),
            (false, link, directory, Refusal::JustCreated),
        ] {
            let refused = just_created(writes_to_dest, || dest_kind, || target_kind);
            assert_eq!(refused, refusal, "{dest_kind:?} {target_kind:?}");
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
}
