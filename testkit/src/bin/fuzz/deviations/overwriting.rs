//! Deviations in what happens to dests that exist.

use testkit::snapshot::{Change, Kind};

use super::{Deviation, attributes::is_special, comparison::Which};
use crate::{
    case::Pair,
    fact::{Fact, Side},
    places::parent,
    run::Status,
};

const REFUSED: &str = "cannot overwrite directory ";
const CYCLIC: &str = "cannot copy cyclic symbolic link ";
const MISSING: &str = ": No such file or directory";
const NO_READER: &str = "No such device or address";
const SAME_FILE: &str = "are the same file";
const JUST_CREATED: &str = "will not overwrite just-created";
const TWICE: &str = "specified more than once";

pub(super) const ROWS: &[Deviation] = &[
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**Two reasons**: if a copy fails for two reasons, cpz can report the other one",
        applies: |it| {
            it.gnu.status == it.ours.status
                && (it.has_option('f', "force")
                    || it.case.has_argument_ending_in("/")
                    || it.case.has_long("remove-destination")
                    || it.ours_says(CYCLIC))
        },
        explains: |it, fact| {
            let links = ["cannot create symbolic link", "cannot create hard link"];
            let is_link = links.iter().any(|link| {
                it.gnu_says(link)
                    && (fact.is_error(Side::Gnu, link)
                        || fact.is_error(Side::Ours, link)
                        || fact.is_dir_changed_by_gnu())
            });
            // cp tries to remove a directory, or a link to itself, that is named with a slash.
            let removal = |line: &str| line.contains("cannot remove ") && line.contains("/': ");
            let first_reason = |line: &str| {
                line.contains("cannot create regular file ")
                    || line.ends_with("Too many levels of symbolic links")
            };
            let is_removal = it.has_option('f', "force")
                && it.errors(Side::Gnu).iter().any(|line| removal(line))
                && (fact.error(Side::Gnu).is_some_and(removal)
                    || fact.error(Side::Ours).is_some_and(first_reason));
            // The dest of a link to a directory around it cannot be looked at.
            let is_unseen =
                |line: &str| line.contains("cannot stat ") && line.ends_with("Permission denied");
            let is_cyclic = it.errors(Side::Gnu).iter().any(|line| is_unseen(line))
                && (fact.is_error(Side::Ours, CYCLIC)
                    || fact.error(Side::Gnu).is_some_and(is_unseen))
                && it.ours_says(CYCLIC);
            // Both have removed a link that is its own dest. cp reports the second reason.
            let is_unlinkable = |line: &str| line.contains(links[1]) && line.ends_with(MISSING);
            let is_missing = |line: &str| line.contains("cannot stat ") && line.ends_with(MISSING);
            let is_removed_itself = it.case.has_long("remove-destination")
                && it.errors(Side::Gnu).iter().any(|line| is_unlinkable(line))
                && (fact.error(Side::Gnu).is_some_and(is_unlinkable)
                    || fact.error(Side::Ours).is_some_and(is_missing));
            is_link || is_removal || is_cyclic || is_removed_itself
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`-S x/`** is ignored, as every suffix with a slash.",
        applies: |it| it.gnu_says("cannot backup") && it.gnu_says("Not a directory"),
        explains: |it, fact| {
            let kept = it.named(Side::Gnu, "cannot backup", Which::First);
            let backups = kept.iter().map(|place| format!("{place}~"));
            let backups: Vec<String> = backups.collect();
            fact.is_error(Side::Gnu, "cannot backup")
                || fact.only(Side::Ours).is_some()
                    && (it.is_about(fact, &kept) || it.is_about(fact, &backups))
                || fact.change(&["type"]).is_some() && it.is_about(fact, &kept)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--backup` with `DIR/.`** or `DIR/..` (`cpz -rb a/. file`) backs up the file",
        applies: |it| it.has_backup() && it.has_dots(),
        explains: |it, fact| {
            let dests = it.dests();
            // cp removes nothing if the directory is unreadable, and fails.
            let is_kept = |line: &str| {
                line.contains("cannot create directory ")
                    && line.ends_with("File exists")
                    && it.places_in(line).iter().any(|place| dests.contains(place))
            };
            let is_backup = |kind: Option<Kind>| kind.is_some_and(|kind| kind != Kind::Directory);
            let is_replaced = |change: &Change| {
                change.kinds.1 == Some(Kind::Directory)
                    && dests.contains(&it.place_of(change)[0])
                    && it.errors(Side::Gnu).iter().any(|line| is_kept(line))
            };
            fact.error(Side::Gnu).is_some_and(is_kept)
                || fact.change(&["type"]).is_some_and(is_replaced)
                || is_backup(fact.only_kind(Side::Ours))
                || fact
                    .output(Side::Gnu)
                    .is_some_and(|line| line.starts_with("removed "))
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "If the dest is a directory, it does not open the FIFO.",
        applies: |it| {
            let waits = it.gnu.status == Status::Hung || it.gnu_says(NO_READER);
            waits && it.ours_says(REFUSED)
        },
        explains: |it, fact| match fact {
            Fact::Status { gnu, .. } => *gnu == Status::Hung,
            Fact::Line(_, Side::Gnu, line) => {
                let refused = it.named(Side::Ours, REFUSED, Which::First);
                line.contains(NO_READER) || line.contains(" -> ") && it.is_about(fact, &refused)
            }
            Fact::Line(_, Side::Ours, line) => {
                it.gnu.status == Status::Hung || line.contains(REFUSED)
            }
            fact => it.gnu.status == Status::Hung && fact.only(Side::Gnu).is_none(),
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**A FIFO in a dest directory** (`mkfifo d/f; cpz -r s/. d`)",
        applies: |it| it.gnu.status == Status::Hung && it.ours_says(NO_READER),
        explains: |_, fact| follows_from_wait(fact),
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**A dest that the run has made** is not overwritten, even if an operand between has",
        // The entries of `a/.` or `.` have the dests of other operands.
        applies: |it| it.case.has_argument_ending_in(".") && it.ours_says(JUST_CREATED),
        explains: |it, fact| {
            let refused = it.named(Side::Ours, JUST_CREATED, Which::First);
            let labels = ["type", "content", "size", "target", "mode", "mtime"];
            let is_overwritten = fact.output(Side::Gnu).is_some()
                || fact.error(Side::Gnu).is_some()
                || fact.change(&labels).is_some();
            fact.is_error(Side::Ours, JUST_CREATED)
                || is_overwritten && it.is_about(fact, &refused)
                || it.gnu.status == Status::Hung && follows_from_wait(fact)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "because that may wait forever, and removes a dest only after that.",
        applies: |it| it.has_entry(|entry| is_special(&entry.what)) && it.gnu_says("cannot open"),
        // cp has removed the dest of a source that it cannot open.
        explains: |it, fact| {
            let unopened = it.named(Side::Gnu, "cannot open", Which::First);
            let name = |place: &str| place.rsplit('/').next().map(str::to_owned);
            let is_dest = |place: &String| {
                it.dests().contains(place)
                    || unopened.iter().any(|source| name(source) == name(place))
            };
            let kept = fact.only(Side::Ours);
            kept.is_some_and(|change| it.place_of(change).iter().any(is_dest))
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**The same file** by two paths (`ln -s . c; cpz -P c/b .`) is always an error",
        applies: |it| it.ours_says(SAME_FILE) || it.ours_says(TWICE),
        explains: |it, fact| {
            let named = |text, which| it.named(Side::Ours, text, which).to_vec();
            let same = [
                named(SAME_FILE, Which::First),
                named(SAME_FILE, Which::Last),
                named(TWICE, Which::First),
            ];
            let same = same.concat();
            // cp tries the copy again, and names only its dest.
            let is_second_copy = || {
                let last_name = |source: &String| source.rsplit('/').next().map(str::to_owned);
                let mut names = same.iter().filter_map(last_name);
                it.ours_says(TWICE) && names.any(|name| it.has_place_ending_in(fact, &name))
            };
            // cp has made a backup, and has taken it back.
            let is_parent = |change: &Change| {
                let place = &it.place_of(change)[0];
                same.iter().any(|same| parent(same) == *place)
            };
            // cp copies the entries of the directory to itself, after a backup.
            let is_entry = |fact: &Fact| {
                let is_dir = |change: &Change| change.kinds.0 == Some(Kind::Directory);
                let is_made =
                    fact.only(Side::Gnu).is_some() || fact.change(&["type"]).is_some_and(is_dir);
                it.has_dots() && it.has_backup() && is_made && it.is_about(fact, &same)
            };
            let is_announced_backup = |line: &str| {
                line.contains(" (backup: ") && line.contains(" -> ")
                    || line.ends_with(" (unbackup)")
            };
            fact.is_error(Side::Ours, SAME_FILE)
                || fact.is_error(Side::Ours, TWICE)
                || is_entry(fact)
                || fact.output(Side::Gnu).is_some_and(is_announced_backup)
                    && it.is_about(fact, &same)
                || fact.error(Side::Gnu).is_some()
                    && (it.is_about_operand(fact, &same) || is_second_copy())
                || fact.is_dir_changed_by_gnu()
                    && fact.dir_change(&["mtime"]).is_some_and(is_parent)
        },
    },
];

/// Returns `true` if a fact follows from that cp waits for a reader of a FIFO, and is killed before it copies the rest.
fn follows_from_wait(fact: &Fact) -> bool {
    match fact {
        Fact::Status { .. } => true,
        Fact::Line(_, side, _) => *side == Side::Ours,
        Fact::Tree(_) => {
            fact.only(Side::Ours).is_some()
                || fact
                    .dir_change(&["mtime", "mode", "owner", "xattrs"])
                    .is_some()
        }
        Fact::Order(_) => false,
    }
}
