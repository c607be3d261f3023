//! Deviations in how operands that overlap, or that lead to nothing, are taken.

use testkit::snapshot::{Change, Kind};

use super::{Comparison, Deviation, comparison::Which};
use crate::{
    case::{AclKind, Pair, User},
    fact::{Fact, Side, Stream, is_fresh},
    places::is_within,
    run::Status,
};

pub(super) const ROWS: &[Deviation] = &[
    Deviation {
        pair: Pair::Cp,
        readme: "README.md",
        line: "If a directory is copied into itself, the refused part is left out, and the",
        applies: |it| it.one_says(INTO_ITSELF),
        explains: |it, fact| {
            let tops = tops_of_copies_into_themselves(it);
            let is_refusal = [Side::Gnu, Side::Ours]
                .iter()
                .any(|side| fact.is_error(*side, INTO_ITSELF));
            // cp makes the directory that it then refuses, and may copy a part of the rest.
            let is_refused_part = fact.only_kind(Side::Gnu) == Some(Kind::Directory);
            let is_rest = fact.only(Side::Ours).is_some();
            // cp does not get to the attributes of a directory that it refuses.
            let is_unfinished = fact
                .dir_change(&["mtime", "mode", "owner", "xattrs"])
                .is_some();
            // A command that waits for a FIFO, or copies a part again and again, does not get to later operands.
            let is_later =
                is_rest || fact.error(Side::Ours).is_some() || fact.output(Side::Ours).is_some();
            let hangs = it.gnu.status == Status::Hung && (is_later || has_hung(fact))
                || it.ours.status == Status::Hung
                    && (has_hung(fact)
                        || fact.error(Side::Gnu).is_some()
                        || fact.output(Side::Gnu).is_some());
            let is_in_dest = it.is_about(fact, &tops)
                && (is_refused_part
                    || is_rest
                    || is_unfinished
                    || is_consequence_of_partial_copy(it, fact));
            // cp can copy a part of it, down to the limit of a path's length.
            let refused = refused_parts(it);
            let is_below_refused_part = it.is_about(fact, &refused)
                && (fact.only(Side::Gnu).is_some() || fact.error(Side::Gnu).is_some());
            let sources = sources_of_copies_into_themselves(it);
            let is_rest_unreadable = is_failure(fact, Side::Ours)
                && (it.is_about(fact, &sources) || it.is_about(fact, &tops));
            is_refusal
                || is_in_dest
                || is_below_refused_part
                || hangs
                || is_rest_unreadable
                || *fact == Fact::Order(Stream::Stderr)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "README.md",
        line: "`cpz a a/b dest` copies `a/b` twice, as `dest/a/b` and as `dest/b`. cp leaves",
        applies: |it| it.gnu_says(NO_HARD_LINK),
        explains: |it, fact| {
            let left_out = it.named(Side::Gnu, NO_HARD_LINK, Which::First);
            // The entries of `a/.` are copied into the dest itself.
            let is_merged = it.has_dots() && it.dests().iter().any(|dest| left_out.contains(dest));
            // Another operand has the same dest.
            let is_replaced = |change: &Change| {
                change.kinds.1 == Some(Kind::Directory)
                    || !left_out.contains(&it.place_of(change)[0])
            };
            let is_copied = it.is_about(fact, &left_out)
                && (fact.only(Side::Ours).is_some()
                    || fact.change(&["type"]).is_some_and(is_replaced)
                    || fact.error(Side::Ours).is_some()
                    || fact.output(Side::Ours).is_some());
            fact.is_error(Side::Gnu, NO_HARD_LINK)
                || !it.can_run_in_turn()
                    && (is_copied
                        || is_failure(fact, Side::Ours)
                            && (it.is_about_operand(fact, &left_out) || is_merged))
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "README.md",
        line: "`cpz a . dest` copies `a` twice, to the same place. cp copies it once, and warns.",
        applies: |it| it.one_says(WARNING) || it.gnu_says(NO_HARD_LINK) || it.one_says(INTO_ITSELF),
        explains: |it, fact| {
            let is_warning =
                fact.is_error(Side::Gnu, WARNING) || fact.is_error(Side::Ours, WARNING);
            let is_again = |line: &str, stream: &[u8]| {
                String::from_utf8_lossy(stream)
                    .lines()
                    .any(|known| known == line)
            };
            let skipped = it.named(Side::Gnu, WARNING, Which::First);
            // The second copy of a link replaces the first one.
            let is_replaced = |fact: &Fact| {
                let removed = fact.output(Side::Ours);
                removed.is_some_and(|line| line.starts_with("removed "))
                    && !skipped.is_empty()
                    && it.is_about(fact, &it.dests())
            };
            // The same copy is announced, and the same error is reported, as often as the copy is tried.
            // The second copy may not replace the first one.
            let reasons = [": File exists", ": Permission denied"];
            let meets_first = fact.error(Side::Ours).is_some_and(|line| {
                reasons.iter().any(|reason| line.ends_with(reason))
                    && !skipped.is_empty()
                    && it.is_about(fact, &it.dests())
            });
            is_warning
                || !it.can_run_in_turn()
                    && (meets_first
                        || is_failure(fact, Side::Ours) && it.is_about(fact, &skipped)
                        || fact.error(Side::Ours).is_some_and(|line| {
                            let is_repeated =
                                is_again(line, &it.gnu.stderr) || it.is_about(fact, &skipped);
                            line.ends_with("Permission denied") && is_repeated
                        })
                        || fact.output(Side::Ours).is_some_and(|line| {
                            line.contains(" -> ") && is_again(line, &it.gnu.stdout)
                        })
                        || fact
                            .output(Side::Ours)
                            .is_some_and(|_| it.is_about(fact, &skipped) || is_replaced(fact)))
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**A source that is also a dest** of the run",
        applies: |it| it.has_several_sources() && !it.sources_in_dests().is_empty(),
        explains: |it, fact| {
            let is_copied_twice = |change: &Change| {
                let kinds = [change.kinds.0, change.kinds.1];
                change.label != Change::ENTRY
                    && !kinds.contains(&Some(Kind::Directory))
                    && (it.is_about(fact, &it.sources_in_dests())
                        || it.is_about(fact, &it.copies_of_dests())
                        // The other name can be a dest that is a source.
                        || change.label == "link" && it.is_about(fact, &it.dests()))
            };
            // A link that replaces its own source leads to itself.
            let leads_to_itself = |line: &str| {
                line.contains("cannot stat ")
                    && line.ends_with("Too many levels of symbolic links")
                    && it.has_option('s', "symbolic-link")
                    && it.is_about(fact, &it.sources_in_dests())
            };
            matches!(fact, Fact::Tree(change) if is_copied_twice(change))
                || fact.error(Side::Ours).is_some_and(leads_to_itself)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "So is a link to a dest (`cpz -rL a/. b`, where `a/l` leads to `b/d`): cpz finds its target",
        applies: |it| {
            let follows = [('L', "dereference"), ('H', ""), ('l', "link")];
            let mut follows = follows.iter();
            it.has_symlink() && follows.any(|&(short, long)| it.has_option(short, long))
        },
        explains: |it, fact| {
            let sides = [(Side::Gnu, Side::Ours), (Side::Ours, Side::Gnu)];
            sides.iter().any(|&(side, other)| {
                let name = |place: &str| place.rsplit('/').next().map(str::to_owned);
                let is_copy_of = |copy: &Fact, sources: &[String]| {
                    copy.only(other).is_some_and(|change| {
                        let copy = name(&it.place_of(change)[0]);
                        sources.iter().any(|source| name(source) == copy)
                    }) && it.is_about(copy, &it.dests())
                };
                let missing = it.named(side, "cannot stat ", Which::First);
                let is_missing = |fact: &Fact| {
                    let sources = it.places_of(fact);
                    fact.error(side).is_some_and(is_not_found)
                        && it.has_fact(|copy| is_copy_of(copy, &sources))
                };
                is_copy_of(fact, &missing) || is_missing(fact)
            })
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**An empty dest** (`cpz a ''`) does not exist, as POSIX says, so the copy fails.",
        applies: refuses_empty_dest,
        explains: |_, fact| {
            let is_refusal = |line: &str| is_empty_dest_refused(&[line.to_owned()]);
            // A further run finds out whether ours has changed anything.
            let is_done_by_gnu =
                fact.output(Side::Gnu).is_some() || fact.error(Side::Gnu).is_some();
            // cp refuses a directory before it announces the copy.
            let is_announced = |line: &str| line.ends_with(" -> ''");
            fact.error(Side::Ours).is_some_and(is_refusal)
                || fact.output(Side::Ours).is_some_and(is_announced)
                || is_done_by_gnu
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "README.md",
        line: "An empty file is created without opening its source. A file that only an ACL",
        applies: |it| it.case.user == User::Nobody && it.has_acl(AclKind::Access),
        explains: |_, fact| {
            let is_empty = |facts: &Option<String>| {
                facts
                    .as_ref()
                    .is_some_and(|facts| facts.contains(" 0 bytes "))
            };
            fact.error(Side::Gnu).is_some_and(|line| {
                line.contains("cannot open ") && line.ends_with("Permission denied")
            }) || fact
                .only(Side::Ours)
                .is_some_and(|change| is_empty(&change.second))
        },
    },
];

const INTO_ITSELF: &str = "cannot copy a directory, ";
pub(super) const NO_HARD_LINK: &str = "will not create hard link ";
pub(super) const WARNING: &str = "warning: source directory ";

fn is_not_found(line: &str) -> bool {
    line.contains("cannot stat ") && line.ends_with("No such file or directory")
}

pub(super) fn refuses_empty_dest(it: &Comparison<'_>) -> bool {
    it.case.dests().iter().any(Vec::is_empty) && is_empty_dest_refused(it.errors(Side::Ours))
}

fn is_empty_dest_refused(errors: &[String]) -> bool {
    errors.iter().any(|line| {
        line.ends_with("'': No such file or directory")
            || line.contains("cannot create hard link '' ")
            || line.contains("cannot create symbolic link '' ")
    })
}

/// Returns the dests that a command has refused because they lie in their sources.
fn refused_parts(it: &Comparison<'_>) -> Vec<String> {
    let refused = [Side::Gnu, Side::Ours].map(|side| it.named(side, INTO_ITSELF, Which::Last));
    refused.iter().flat_map(|places| places.to_vec()).collect()
}

/// Returns the operands that are copied into themselves.
fn sources_of_copies_into_themselves(it: &Comparison<'_>) -> Vec<String> {
    let refused = [Side::Gnu, Side::Ours].map(|side| it.named(side, INTO_ITSELF, Which::First));
    let mut sources: Vec<String> = refused.iter().flat_map(|places| places.to_vec()).collect();
    let operands = it.operands().into_iter();
    let operands = operands.filter(|operand| sources.iter().any(|place| is_within(place, operand)));
    let operands: Vec<String> = operands.collect();
    sources.extend(operands);
    sources
}

/// Returns the dests of all directories that are copied into themselves.
fn tops_of_copies_into_themselves(it: &Comparison<'_>) -> Vec<String> {
    let mut tops = refused_parts(it);
    let dests = it.dests().into_iter();
    let dests = dests.filter(|dest| tops.iter().any(|top| is_within(top, dest)));
    let dests: Vec<String> = dests.collect();
    tops.extend(dests);
    tops
}

/// Returns `true` if a fact about the dest follows from that cp has copied only a part into it.
fn is_consequence_of_partial_copy(it: &Comparison<'_>, fact: &Fact) -> bool {
    match fact {
        // Later operands meet other entries.
        Fact::Line(Stream::Stdout, _, line) => {
            let begins = ["removed ", "skipped "];
            line.contains(" -> ") || begins.iter().any(|begin| line.starts_with(begin))
        }
        Fact::Line(Stream::Stderr, side, line) => {
            is_failure(fact, *side)
                || line.contains("cannot create ")
                || line.contains("cannot remove ")
                || line.contains("preserving ")
                || line.contains("not replacing ")
                || line.ends_with("? ")
                || line.contains("will not overwrite just-created ")
                || line.contains("not writing through dangling symlink ")
        }
        // Only ours has copied this file, perhaps with the content that it had.
        Fact::Tree(change)
            if change.label == "mtime" && is_fresh(&change.second) && !is_fresh(&change.first) =>
        {
            true
        }
        Fact::Tree(change) => {
            change.label != Change::ENTRY && is_replaced(it, change)
                || change.label == "mode" && has_two_sources(it, change)
                || ["mode", "owner", "xattrs"].contains(&change.label) && it.preserves_attributes()
        }
        _ => false,
    }
}

/// Returns `true` if a source beside the directory that is copied into itself has the name of this file. The first
/// copy decides about its mode.
fn has_two_sources(it: &Comparison<'_>, change: &Change) -> bool {
    let name = |place: &String| place.rsplit('/').next().map(str::to_owned);
    let copy = name(&it.place_of(change)[0]);
    let mut sources = it.operands().into_iter();
    change.kinds.0 != Some(Kind::Directory)
        && it.has_several_sources()
        && sources.any(|source| name(&source) == copy)
}

/// Returns `true` if only one command has replaced this file by another one, perhaps after a backup, or has made this
/// backup of another file.
fn is_replaced(it: &Comparison<'_>, change: &Change) -> bool {
    let is_suffix = |suffix: &str| it.has_backup() && !suffix.contains('/');
    let is_backup_of = |backup: &str, path: &str| backup.strip_prefix(path).is_some_and(is_suffix);
    it.has_fact(|other| {
        let replaced = other.change(&["type", "content", "size", "target", "device"]);
        // A special file differs only in its time from the one that it replaces.
        let is_made = |change: &&Change| is_fresh(&change.second) && !is_fresh(&change.first);
        let made = other.change(&["mtime"]).filter(is_made);
        let replaced = replaced.or(made).or(other.only(Side::Ours));
        replaced.is_some_and(|other| {
            let (one, two) = (&change.path, &other.path);
            one == two || is_backup_of(one, two) || is_backup_of(two, one)
        })
    })
}

/// Returns `true` if only one command waits for a FIFO.
fn has_hung(fact: &Fact) -> bool {
    match fact {
        Fact::Status { gnu, ours } => [*gnu, *ours].contains(&Status::Hung),
        _ => false,
    }
}

/// Returns `true` if only this side reports that it cannot copy an entry. The other one has not tried.
pub(super) fn is_failure(fact: &Fact, side: Side) -> bool {
    let fails = [
        "cannot open ",
        "cannot access ",
        "cannot stat ",
        "cannot copy cyclic symbolic link ",
        "cannot overwrite ",
        "failed to clone ",
        "can make relative symbolic links only in current directory",
    ];
    fails.iter().any(|text| fact.is_error(side, text))
}
