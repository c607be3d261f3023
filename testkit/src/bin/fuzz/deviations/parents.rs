//! Deviations with `--parents`.

use testkit::snapshot::{Change, Kind};

use super::{Comparison, Deviation, comparison::Which, operands::is_failure};
use crate::{
    case::{Entry, Owner, Pair, What},
    fact::Side,
};

/// Failures of cp that an earlier operand can cause.
const FAILURES: [&str; 5] = [
    "specified more than once",
    "will not overwrite just-created",
    "not writing through dangling symlink",
    "File exists",
    "cannot create directory",
];

/// Returns the places that cp names in such failures: the dest, or the source if it is not copied at all.
fn failed_dests(it: &Comparison<'_>) -> Vec<String> {
    let places = FAILURES.iter().flat_map(|text| {
        let named = [Which::First, Which::Last].map(|which| it.named(Side::Gnu, text, which));
        named.into_iter().flat_map(|places| places.to_vec())
    });
    places.collect()
}

pub(super) const ROWS: &[Deviation] = &[
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--parents`** sets the modes of the parent directories when everything is copied.",
        applies: |it| it.has_parents(),
        explains: |it, fact| {
            let denied = |line: &str| line.ends_with("Permission denied");
            // Ours gets further, and can fail at the source.
            let is_same_operand = |line: &str| {
                let failed = it.named(Side::Gnu, "Permission denied", Which::Last);
                it.places_in(line)
                    .iter()
                    .any(|place| failed.contains(place))
            };
            let is_parent = |change: &Change| {
                // Below the dest, `--parents` repeats the directories from the root.
                it.has_absolute_path() || it.parents_of_dests().contains(&it.place_of(change)[0])
            };
            fact.dir_change(&["mode", "mtime", "owner", "xattrs"])
                .is_some_and(is_parent)
                || fact.error(Side::Gnu).is_some_and(denied)
                || fact.error(Side::Ours).is_some_and(is_same_operand)
                || it.gnu_says("Permission denied") && fact.only(Side::Ours).is_some()
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--parents`** treats each operand by itself. In cp 9.10, an operand can",
        applies: |it| it.has_parents(),
        explains: |it, fact| {
            let is_same_operand = |_: &str| it.is_about(fact, &failed_dests(it));
            FAILURES.iter().any(|text| fact.is_error(Side::Gnu, text))
                || it.is_about(fact, &failed_dests(it)) && fact.only(Side::Ours).is_some()
                // Ours tries, and can ask or fail for another reason.
                || fact.error(Side::Ours).is_some_and(is_same_operand)
                || !failed_dests(it).is_empty() && is_failure(fact, Side::Ours)
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
            it.has_parents()
                && it.has_entry(is_of_other_user)
                && it.ours_says("exists but is not a directory")
        },
        explains: |_, fact| {
            fact.is_error(Side::Ours, "exists but is not a directory")
                || fact
                    .only_kind(Side::Gnu)
                    .is_some_and(|kind| kind != Kind::Unknown)
        },
    },
];
