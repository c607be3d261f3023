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
//! This is the order in which cp decides.

use rustix::fs::FileType;

use super::newer::{is_complete, is_older};
use super::same_file::Sameness;
use super::treatment::DestTreatment;
use crate::copy::facts::Facts;
use crate::copy::options::Replace;
use crate::error::Refusal;
use crate::observer::Answer;

pub(in crate::copy) use super::newer::Timestamps;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::copy) enum Overwrite {
    /// Make the copy, after treating the dest as [`DestTreatment`](super::treatment::DestTreatment)
    /// says.
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

/// The parts of the options that decide about an existing dest.
#[derive(Clone, Copy)]
pub(in crate::copy) struct OverwriteRules {
    pub(in crate::copy) replace: Replace,
    pub(in crate::copy) timestamps: Timestamps,
    pub(in crate::copy) ask: bool,
    pub(in crate::copy) treatment: DestTreatment,
}

/// Questions that cost system calls or the user's time, so they are asked only if the decision needs the answer.
pub(in crate::copy) struct Questions<'a> {
    /// Would a copy destroy its source?
    pub(in crate::copy) sameness: &'a dyn Fn() -> Sameness,
    /// Does the filesystem of the dest store the source's time of modification as that of the dest?
    pub(in crate::copy) time_stands_for_source: &'a dyn Fn() -> bool,
    /// Do the two links lead to the same path?
    pub(in crate::copy) targets_are_equal: &'a dyn Fn() -> bool,
    /// Does the user agree?
    pub(in crate::copy) ask: &'a dyn Fn() -> Answer,
}

/// Decides whether `dest` is replaced by a copy of `source`.
pub(in crate::copy) fn overwrite(
    rules: OverwriteRules,
    source: &Facts,
    dest: &Facts,
    questions: &Questions<'_>,
) -> Overwrite {
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
            let stands_for_source = questions.time_stands_for_source;
            !is_older(dest, source, rules.timestamps, stands_for_source)
        }
        Replace::Changed => is_complete(
            dest,
            source,
            questions.time_stands_for_source,
            questions.targets_are_equal,
        ),
        Replace::All | Replace::None | Replace::NoneAndFail => false,
    };
    if is_up_to_date {
        return Overwrite::Adopt;
    }
    if rules.ask && (questions.ask)() == Answer::No {
        return Overwrite::Skip;
    }
    if sameness == Sameness::AlreadyThere {
        return Overwrite::AlreadyThere;
    }
    if dest.kind == FileType::Directory && rules.treatment.refuses_directories() {
        return Overwrite::Refuse(Refusal::DirectoryByNonDirectory);
    }
    Overwrite::Proceed
}

/// Returns the reason why a dest that an earlier operand made is not overwritten by this one.
///
/// `writes_to_dest` is `true` if this operand writes content to the dest's name. The closures
/// return the kind of the dest itself, and that of the file that it leads to as a link.
pub(in crate::copy) fn just_created(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::facts::FileTime;

    fn file(seconds: i64) -> Facts {
        let time = FileTime {
            seconds,
            nanoseconds: 0,
        };
        Facts {
            times: [time; 3],
            ..Facts::example(FileType::RegularFile, 1)
        }
    }

    fn rules(replace: Replace) -> OverwriteRules {
        OverwriteRules {
            replace,
            timestamps: Timestamps::Fresh,
            ask: false,
            treatment: DestTreatment::WrittenTo,
        }
    }

    const QUESTIONS: Questions<'static> = Questions {
        sameness: &|| Sameness::Distinct,
        time_stands_for_source: &|| false,
        targets_are_equal: &|| panic!("BUG: asked about files"),
        ask: &|| panic!("BUG: asked without being told to"),
    };

    /// Decides without asking the user.
    fn decide(
        rules: OverwriteRules,
        source: &Facts,
        dest: &Facts,
        sameness: Sameness,
    ) -> Overwrite {
        let questions = Questions {
            sameness: &|| sameness,
            ..QUESTIONS
        };
        overwrite(rules, source, dest, &questions)
    }

    #[test]
    fn the_first_reason_decides() {
        use Overwrite::{Adopt, Proceed, Refuse, Skip};
        use Replace::{All, Changed, None, NoneAndFail, Older};
        use Sameness::{AlreadyThere, Distinct, SameFile};
        let (old, new) = (file(1), file(2));
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
            let decided = decide(rules(replace), &new, &dest, sameness);
            assert_eq!(decided, decision, "{replace:?} {sameness:?} {dest:?}");
        }
    }

    #[test]
    fn the_user_is_asked_before_a_directory_is_refused() {
        let ask = OverwriteRules {
            ask: true,
            ..rules(Replace::All)
        };
        let directory = Facts::example(FileType::Directory, 1);
        for (answer, decision) in [
            (Answer::No, Overwrite::Skip),
            (
                Answer::Yes,
                Overwrite::Refuse(Refusal::DirectoryByNonDirectory),
            ),
        ] {
            let questions = Questions {
                ask: &|| answer,
                ..QUESTIONS
            };
            let decided = overwrite(ask, &file(1), &directory, &questions);
            assert_eq!(decided, decision, "{answer:?}");
        }
    }

    #[test]
    fn a_directory_is_not_refused_if_dests_are_backed_up() {
        let renamed = OverwriteRules {
            treatment: DestTreatment::Renamed,
            ..rules(Replace::All)
        };
        let directory = Facts::example(FileType::Directory, 1);
        let decided = decide(renamed, &file(1), &directory, Sameness::Distinct);
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
}
