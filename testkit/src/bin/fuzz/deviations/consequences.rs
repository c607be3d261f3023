//! Facts that follow from others: a directory's time from an entry that was made in it, or a status from an error.

use testkit::snapshot::{Change, Kind};

use super::{Comparison, operands::is_failure};
use crate::{
    case::What,
    fact::{Fact, Side, Stream},
    places::{self, parent},
    run::Status,
};

/// Returns `true` if `fact` follows from the facts that are `explained`.
pub(super) fn follows(comparison: &Comparison<'_>, explained: &[&Fact], fact: &Fact) -> bool {
    match fact {
        Fact::Status { gnu, ours } => status_follows((*gnu, *ours), explained),
        Fact::Tree(change) => {
            is_below_made(change, explained)
                || is_time_of_changed(change, comparison, explained)
                || is_other_name_of_changed(change, comparison, explained)
                || is_link_to_made(change, explained)
                || is_of_other_type(change, explained)
                || comparison.has_backup() && is_backup_of_replaced(change, explained)
        }
        Fact::Line(Stream::Stdout, side, line) => is_announced(line, *side, comparison, explained),
        Fact::Line(Stream::Stderr, side, line) => {
            is_in_the_way(line, *side, comparison, explained)
                || is_missing(line, *side, comparison, explained)
                || is_other_reason(fact, *side, comparison, explained)
        }
        Fact::Order(_) => false,
    }
}

/// Returns `true` if only one command failed, and an error that only it reported is explained.
fn status_follows(statuses: (Status, Status), explained: &[&Fact]) -> bool {
    let failed = match statuses {
        (Status::Exit(0), Status::Exit(1)) => Side::Ours,
        (Status::Exit(1), Status::Exit(0)) => Side::Gnu,
        _ => return false,
    };
    let is_failure = |fact: &&Fact| {
        let line = fact.error(failed);
        line.is_some_and(|line| !line.contains("warning: ") && !line.ends_with("? "))
    };
    explained.iter().any(is_failure)
}

/// Returns `true` if an explained entry contains this one, and only the same side has both.
fn is_below_made(change: &Change, explained: &[&Fact]) -> bool {
    let is_above = |fact: &&Fact| {
        let above = match fact {
            Fact::Tree(above) if above.label == Change::ENTRY || above.label == "type" => above,
            _ => return false,
        };
        let lacks_dir = |gnu, ours| {
            (gnu, ours)
                == (
                    above.kinds.0 == Some(Kind::Directory),
                    above.kinds.1 == Some(Kind::Directory),
                )
        };
        let is_missing = match change.kinds {
            (Some(_), None) => lacks_dir(true, false),
            (None, Some(_)) => lacks_dir(false, true),
            _ => false,
        };
        let below = change.path.strip_prefix(&above.path);
        is_missing && below.is_some_and(|rest| rest.starts_with('/'))
    };
    change.label == Change::ENTRY && explained.iter().any(is_above)
}

/// Returns `true` if an entry of this directory is explained that only one tree has, or that only one command
/// removed.
fn is_time_of_changed(change: &Change, comparison: &Comparison<'_>, explained: &[&Fact]) -> bool {
    let dir = Some(Kind::Directory);
    if change.label != "mtime" || change.kinds != (dir, dir) {
        return false;
    }
    let place = &comparison.place_of(change)[0];
    explained.iter().any(|fact| match fact {
        Fact::Tree(entry) if entry.label == Change::ENTRY || entry.label == "type" => {
            parent(&comparison.place_of(entry)[0]) == *place
        }
        Fact::Line(Stream::Stdout, _, line) if line.starts_with("removed ") => {
            let places = comparison.places_in(line);
            places.iter().any(|removed| parent(removed) == *place)
        }
        _ => false,
    })
}

/// Returns `true` if the same difference of another file is explained, and the two may be names of one file.
fn is_other_name_of_changed(
    change: &Change,
    comparison: &Comparison<'_>,
    explained: &[&Fact],
) -> bool {
    let is_same = |fact: &&Fact| match fact {
        Fact::Tree(other) => {
            (other.label, &other.first, &other.second)
                == (change.label, &change.first, &change.second)
        }
        _ => false,
    };
    let has_names = || comparison.has_entry(|entry| matches!(entry.what, What::HardLink(_)));
    change.label != Change::ENTRY && has_names() && explained.iter().any(is_same)
}

/// Returns `true` if this file is another name of an explained entry, or of one in an explained directory.
fn is_link_to_made(change: &Change, explained: &[&Fact]) -> bool {
    let is_named = |path: &str| {
        let names = [&change.first, &change.second].into_iter().flatten();
        let mut names = names.filter_map(|fact| fact.strip_prefix("= "));
        names.any(|name| name == path)
    };
    let is_linked = |fact: &&Fact| match fact {
        Fact::Tree(other) if other.label == Change::ENTRY => {
            let facts = other.first.as_ref().or(other.second.as_ref());
            let facts = facts.map_or("", String::as_str);
            let kind = other.kinds.0.or(other.kinds.1);
            // The first name of a file may stand for all others, and these may be in this directory.
            let may_contain = kind == Some(Kind::Directory) && is_named(&change.path);
            let is_link = is_named(&other.path) || facts.contains(&format!(" = {} ", change.path));
            is_link || may_contain || is_named_below(change, &other.path)
        }
        Fact::Tree(other) if other.label == "type" || other.label == "link" => {
            let is_link = |fact: &Option<String>| {
                fact.as_ref()
                    .is_some_and(|fact| fact.strip_prefix("= ") == Some(&change.path))
            };
            is_named(&other.path) || is_link(&other.first) || is_link(&other.second)
        }
        _ => false,
    };
    change.label == "link" && explained.iter().any(is_linked)
}

fn is_named_below(change: &Change, top: &str) -> bool {
    let names = [&change.first, &change.second].into_iter().flatten();
    let mut names = names.filter_map(|fact| fact.strip_prefix("= ")?.strip_prefix(top));
    names.any(|rest| rest.starts_with('/'))
}

/// Returns `true` if the type of this entry differs, too, which is explained.
fn is_of_other_type(change: &Change, explained: &[&Fact]) -> bool {
    let is_type = |fact: &&Fact| match fact {
        Fact::Tree(other) => other.label == "type" && other.path == change.path,
        _ => false,
    };
    explained.iter().any(is_type)
}

/// Returns `true` if this is the backup of an explained entry of which the type differs: only one command has replaced
/// it.
fn is_backup_of_replaced(change: &Change, explained: &[&Fact]) -> bool {
    let is_replaced = |fact: &&Fact| match fact {
        Fact::Tree(other) if other.label == "type" => {
            let suffix = change.path.strip_prefix(&other.path);
            suffix.is_some_and(|suffix| !suffix.contains('/'))
        }
        _ => false,
    };
    change.label == Change::ENTRY && explained.iter().any(is_replaced)
}

/// Returns `true` if the command announced a copy that only it made, or removed a file that the other one kept.
fn is_announced(line: &str, side: Side, comparison: &Comparison<'_>, explained: &[&Fact]) -> bool {
    let places = comparison.places_in(line);
    let other = match side {
        Side::Gnu => Side::Ours,
        Side::Ours => Side::Gnu,
    };
    let is_removal = line.starts_with("removed ");
    let is_meant = |fact: &&Fact| {
        let made = fact.only(if is_removal { other } else { side });
        let is_replaced = fact.change(&["type"]);
        made.or(is_replaced)
            .is_some_and(|change| is_of(comparison, change, &places))
    };
    (line.contains(" -> ") || is_removal) && explained.iter().any(is_meant)
}

/// Returns `true` if the command met an entry that only it had made.
fn is_in_the_way(line: &str, side: Side, comparison: &Comparison<'_>, explained: &[&Fact]) -> bool {
    let meets = [
        "cannot overwrite ",
        "cannot create ",
        "cannot remove ",
        "will not overwrite just-created ",
        "File exists",
        "not replacing ",
    ];
    let is_met = line.ends_with("? ") || meets.iter().any(|text| line.contains(text));
    let places = comparison.places_in(line);
    let is_meant = |fact: &&Fact| {
        let entry = fact.only(side).or(fact.change(&["type"]));
        entry.is_some_and(|change| is_of(comparison, change, &places))
    };
    is_met && explained.iter().any(is_meant)
}

/// Returns `true` if the command cannot read a source that the other one has not read, because an entry was in the way
/// there.
fn is_other_reason(
    fact: &Fact,
    side: Side,
    comparison: &Comparison<'_>,
    explained: &[&Fact],
) -> bool {
    let other = match side {
        Side::Gnu => Side::Ours,
        Side::Ours => Side::Gnu,
    };
    let sources = comparison.places_of(fact);
    let is_met = |met: &&Fact| {
        let places = comparison.places_of(met);
        // These messages can name the dest of the source, or of a directory above it.
        let is_of_dest = ["cannot make directory ", "cannot stat "];
        let is_above = is_of_dest.iter().any(|text| met.is_error(other, text))
            && comparison.is_about_operand(fact, &places);
        let is_same = met.is_error(other, "cannot overwrite ")
            && places.iter().any(|place| sources.contains(place));
        is_above || is_same
    };
    is_failure(fact, side) && explained.iter().any(is_met)
}

/// Returns `true` if the command did not find a source that only the other one has: it has removed it, or has not made
/// it. If a slash comes after the source, the other one reports that it is not a directory.
fn is_missing(line: &str, side: Side, comparison: &Comparison<'_>, explained: &[&Fact]) -> bool {
    let other = match side {
        Side::Gnu => Side::Ours,
        Side::Ours => Side::Gnu,
    };
    let places = comparison.places_in(line);
    let is_only_of = |fact: &&Fact, side| {
        let entry = fact.only(side);
        entry.is_some_and(|change| is_of(comparison, change, &places))
    };
    let is_not_found =
        |fact: &&Fact| line.ends_with(": No such file or directory") && is_only_of(fact, other);
    let is_no_directory = |fact: &&Fact| {
        let is_directory = fact.only_kind(side) == Some(Kind::Directory);
        line.ends_with("/': Not a directory") && is_only_of(fact, side) && !is_directory
    };
    line.contains("cannot stat ")
        && explained
            .iter()
            .any(|fact| is_not_found(fact) || is_no_directory(fact))
}

/// Returns `true` if one of the places is that of the entry or below it.
fn is_of(comparison: &Comparison<'_>, change: &Change, places: &[String]) -> bool {
    let top = comparison.place_of(change);
    places.iter().any(|place| places::is_within(place, &top[0]))
}
