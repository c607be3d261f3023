//! Deviations with `--parents`.

use testkit::snapshot::{Change, Kind};

use super::{Comparison, Deviation, attributes, comparison::Which};
use crate::{
    case::{Entry, Owner, Pair, User, What},
    fact::{Fact, Side},
    run::Status,
};

const JUST_CREATED: &str = "will not overwrite just-created";
/// Failures of cp that an earlier operand can cause.
const FAILURES: [&str; 5] = [
    "specified more than once",
    JUST_CREATED,
    "not writing through dangling symlink",
    "File exists",
    "cannot create directory",
];
const NOT_DIRECTORY: &str = "exists but is not a directory";
const NO_ATTRIBUTES: &str = "failed to get attributes of ";
const NOT_SEEN: &str = "cannot stat ";

/// Returns the places that cp names in such failures: the dest, or the source if it is not copied at all.
fn failed_dests(it: &Comparison<'_>) -> Vec<String> {
    let places = FAILURES.iter().flat_map(|text| {
        let named = [Which::First, Which::Last].map(|which| it.named(Side::Gnu, text, which));
        named.into_iter().flat_map(|places| places.to_vec())
    });
    places.collect()
}

/// Returns `true` if cp could not reach a parent to set its mode. It then ends, and leaves later sources out.
fn is_ended_by_parent(it: &Comparison<'_>) -> bool {
    // The message is the path alone. A path with a space is quoted.
    let is_path_alone = |line: &String| {
        let path = line.strip_suffix(": Permission denied");
        let path = path.and_then(|line| line.split_once(": "));
        path.is_some_and(|(_, path)| !path.contains(' ') || path.starts_with(['\'', '"']))
    };
    let last = it.errors(Side::Gnu).iter().rfind(|line| !line.is_empty());
    last.is_some_and(is_path_alone)
}

/// Returns `true` if only cp copies this source, because it has set the mode of a parent for an earlier source.
fn is_permitted_by_earlier(it: &Comparison<'_>, fact: &Fact) -> bool {
    const NOT_MADE: [&str; 2] = ["cannot make directory ", "cannot create "];
    let denied: Vec<String> = NOT_MADE
        .iter()
        .flat_map(|text| it.named(Side::Ours, text, Which::First).to_vec())
        .collect();
    let is_denied = |line: &str| {
        line.ends_with("Permission denied") && NOT_MADE.iter().any(|text| line.contains(text))
    };
    let is_made_by_gnu =
        || it.has_fact(|other| other.only(Side::Gnu).is_some() && it.is_about(other, &denied));
    let is_in_parent = it.has_absolute_path() || it.is_about(fact, &it.parents_of_dests());
    is_in_parent
        && (fact.error(Side::Ours).is_some_and(is_denied) && is_made_by_gnu()
            || fact.only(Side::Gnu).is_some() && it.is_about(fact, &denied))
}

/// Returns `true` if ours cannot copy an entry of a source like `a/..`, the dest of which cp refuses. The place of such
/// an entry does not show the source.
fn is_below_refused_dots(it: &Comparison<'_>, fact: &Fact) -> bool {
    let operands = it.case.symbolic_arguments().into_iter();
    let mut operands = operands.map(|operand| String::from_utf8_lossy(&operand).into_owned());
    let is_refused = |operand: &str| {
        let dest = format!("/{operand}': File exists");
        it.errors(Side::Gnu)
            .iter()
            .any(|line| line.ends_with(&dest))
    };
    fact.error(Side::Ours).is_some_and(|line| {
        operands.any(|operand| {
            let is_below = operand.ends_with("..") && line.contains(&format!("'{operand}/"));
            is_below && is_refused(&operand)
        })
    })
}

pub(super) const ROWS: &[Deviation] = &[
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--parents`** sets the modes of the parent directories when everything is copied.",
        applies: |it| it.has_parents(),
        explains: |it, fact| {
            // Below the dest, `--parents` repeats the directories from the root.
            let is_in_parent =
                |fact: &Fact| it.has_absolute_path() || it.is_about(fact, &it.parents_of_dests());
            let is_parent = |change: &Change| {
                it.has_absolute_path() || it.parents_of_dests().contains(&it.place_of(change)[0])
            };
            let is_denied = |line: &str| line.ends_with("Permission denied");
            // Ours gets further, and can fail at the source.
            let is_same_operand =
                || it.is_about(fact, &it.named(Side::Gnu, "Permission denied", Which::Last));
            let is_unseen = |fact: &Fact| {
                let not_made = it.named(Side::Gnu, "Permission denied", Which::Last);
                let is_unseen = [NO_ATTRIBUTES, NOT_SEEN]
                    .iter()
                    .any(|text| fact.is_error(Side::Ours, text));
                is_unseen && it.is_about_operand(fact, &not_made)
            };
            let is_later_source = || {
                fact.error(Side::Gnu).is_some_and(is_denied) && is_in_parent(fact)
                    || fact.error(Side::Ours).is_some() && is_same_operand()
                    || is_unseen(fact)
                    || is_permitted_by_earlier(it, fact)
                    || it.gnu_says("Permission denied")
                        && fact.only(Side::Ours).is_some()
                        && is_in_parent(fact)
            };
            let is_left_out = is_ended_by_parent(it)
                && (fact.error(Side::Ours).is_some()
                    || fact.output(Side::Ours).is_some()
                    || fact.only(Side::Ours).is_some());
            // A later source may contain a parent, and cp has set its attributes.
            let is_copy_of_parent =
                || it.has_several_sources() && it.is_about(fact, &it.copies_of_dests());
            // cp does not set them after an error. Otherwise only a later source finds other ones.
            let may_differ = it.has_several_sources() || it.gnu.status != Status::Exit(0);
            may_differ
                && fact
                    .dir_change(&["mode", "mtime", "owner", "xattrs"])
                    .is_some_and(|change| is_parent(change) || is_copy_of_parent())
                || it.has_several_sources() && (is_later_source() || is_left_out)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "With `--no-preserve=mode`, a parent loses the set-group-ID bit of a group that it inherits",
        applies: |it| {
            it.has_parents() && it.case.user == User::Nobody && it.case.has_long("no-preserve")
        },
        explains: |it, fact| {
            let loses_bit = |change: &Change| {
                let modes = [&change.first, &change.second].map(attributes::mode);
                let [Some(gnu), Some(ours)] = modes else {
                    return false;
                };
                gnu ^ ours == 0o2000
                    && gnu & 0o2000 != 0
                    && it.parents_of_dests().contains(&it.place_of(change)[0])
            };
            fact.dir_change(&["mode"]).is_some_and(loses_bit)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "cp then also takes each dest for a new one.",
        applies: |it| it.has_parents() && it.has_several_sources(),
        // Both refuse the copy. cp finds out when it creates the dest.
        explains: |it, fact| {
            let refused = it.named(Side::Ours, JUST_CREATED, Which::First);
            let exists = |fact: &Fact| {
                fact.error(Side::Gnu)
                    .is_some_and(|line| line.ends_with(": File exists"))
                    && it.is_about(fact, &refused)
            };
            exists(fact) || fact.is_error(Side::Ours, JUST_CREATED) && it.has_fact(exists)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--parents`** treats each operand by itself. In cp 9.10, an operand can",
        // The parents of `a/..` are made for itself.
        applies: |it| {
            it.has_parents() && (it.has_dots() || it.has_several_sources() && !it.can_run_in_turn())
        },
        explains: |it, fact| {
            let failed = failed_dests(it);
            let is_failed = FAILURES.iter().any(|text| fact.is_error(Side::Gnu, text));
            // Ours tries, and can succeed, ask, or fail for another reason.
            let is_ours = fact.only(Side::Ours).is_some()
                || fact.error(Side::Ours).is_some()
                || fact.output(Side::Ours).is_some();
            // cp fails before it writes.
            let content = ["type", "content", "size", "mtime", "holes"];
            let attributes = ["mode", "owner", "xattrs"];
            let preserves = it.preserves_attributes();
            let is_written = fact.change(&content).is_some()
                || preserves && fact.change(&attributes).is_some()
                || fact.dir_change(&attributes).is_some();
            let is_tried = (is_ours || is_written) && it.is_about_operand(fact, &failed);
            let is_announced = it.is_about(fact, &failed) && fact.output(Side::Gnu).is_some();
            // The warning names the source. Its path is the end of that of the dest.
            let skipped = it.named(Side::Gnu, "specified more than once", Which::First);
            let is_second_copy = is_ours
                && skipped
                    .iter()
                    .any(|source| it.has_place_ending_in(fact, source));
            // A later source contains what only ours has made.
            let is_copied_again =
                fact.only(Side::Ours).is_some() && it.is_about(fact, &it.copies_of_dests());
            // cp has not made the dest of an earlier operand, which is in the way.
            let in_the_way = it.named(Side::Ours, NOT_DIRECTORY, Which::First);
            let is_of_unmade = |fact: &Fact| {
                fact.is_error(Side::Gnu, NO_ATTRIBUTES) && it.is_about_operand(fact, &in_the_way)
            };
            let meets_copy = is_of_unmade(fact)
                || fact.is_error(Side::Ours, NOT_DIRECTORY) && it.has_fact(is_of_unmade);
            // cp takes the dest for a new one, and does not look at it.
            let unseen = it.named(Side::Ours, NOT_SEEN, Which::First);
            let is_not_looked_at = fact.is_error(Side::Ours, NOT_SEEN)
                && it.has_fact(|other| {
                    other.error(Side::Gnu).is_some() && it.is_about_operand(other, &unseen)
                })
                || (fact.error(Side::Gnu).is_some() || fact.output(Side::Gnu).is_some())
                    && it.is_about_operand(fact, &unseen);
            is_failed
                || is_tried
                || is_below_refused_dots(it, fact)
                || is_announced
                || is_second_copy
                || is_copied_again
                || meets_copy
                || is_not_looked_at
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--parents`** refuses a symbolic link in place of a parent directory, unless it belongs to",
        applies: |it| {
            let is_of_other_user = |entry: &Entry| {
                matches!(entry.what, What::Symlink(_))
                    && matches!(entry.attributes.owner, Owner::Ids(user, _) if user != 0)
            };
            it.has_parents() && it.has_entry(is_of_other_user) && it.ours_says(NOT_DIRECTORY)
        },
        explains: |it, fact| {
            let refused = it.named(Side::Ours, NOT_DIRECTORY, Which::First);
            fact.is_error(Side::Ours, NOT_DIRECTORY)
                // The link leads nowhere.
                || fact.is_error(Side::Gnu, NO_ATTRIBUTES) && it.is_about_operand(fact, &refused)
                || fact
                    .only_kind(Side::Gnu)
                    .is_some_and(|kind| kind != Kind::Unknown)
        },
    },
];
