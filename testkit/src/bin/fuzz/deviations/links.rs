//! Deviations in symbolic and hard links.

use testkit::snapshot::{Change, Kind};

use super::{Deviation, comparison::Which, operands::is_failure};
use crate::{
    case::Pair,
    fact::{Fact, Side},
    places::parent,
};

const RELATIVE: &str = "can make relative symbolic links only in current directory";
const NOT_PRESERVED: &str = "preserving permissions for ";
const HARD_LINK: &str = "cannot create hard link ";

pub(super) const ROWS: &[Deviation] = &[
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`-s` with preserved links** (`ln -s f d/l; cpz -rsL --preserve=links",
        applies: |it| it.has_option('s', "symbolic-link") && it.may_preserve_links(),
        explains: |it, fact| {
            let is_linked = |path: &str| {
                it.has_fact(|fact| match fact {
                    Fact::Tree(other) => {
                        other.label == "link" && other.path == path && other.first.is_some()
                    }
                    _ => false,
                })
            };
            let is_hard_link = |change: &Change| {
                change.kinds.1 == Some(Kind::Symlink)
                    && change.kinds.0 != Some(Kind::Directory)
                    && is_linked(&change.path)
            };
            // The path of the source may be impossible for a symbolic link.
            let refused = it.named(Side::Ours, RELATIVE, Which::Last);
            let is_link_to_source = |change: &Change| {
                let facts = change.first.as_deref().unwrap_or_default();
                change.kinds.0 != Some(Kind::Directory)
                    && facts.contains(" = ")
                    && refused.contains(&it.place_of(change)[0])
            };
            fact.change(&["type", "link"]).is_some_and(is_hard_link)
                || fact.only(Side::Gnu).is_some_and(is_link_to_source)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`-s` of a link or a special file** (`cpz -sP link dir`) does not remove the dest",
        applies: |it| it.has_option('s', "symbolic-link") && it.one_says(RELATIVE),
        explains: |it, fact| {
            let refused = it.named(Side::Ours, RELATIVE, Which::Last);
            let is_kept = |change: &Change| refused.contains(&it.place_of(change)[0]);
            let is_later_dest =
                |change: &Change| change.kinds.0 == Some(Kind::Directory) && is_kept(change);
            fact.only(Side::Ours).is_some_and(is_kept)
                || fact.change(&["type"]).is_some_and(is_later_dest)
                // cp cannot remove it.
                || it.is_about(fact, &refused)
                    && (fact.is_error(Side::Gnu, "cannot remove ")
                        || fact.is_error(Side::Ours, RELATIVE))
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`-u`** compares nanoseconds, looks at each file once, and opens no unchanged file.",
        applies: |it| it.has_option('u', "update"),
        explains: |it, fact| {
            let is_linked = |change: &Change| {
                it.has_fact(|other| {
                    let other = other.change(&["link"]);
                    other.is_some_and(|other| other.path == change.path)
                })
            };
            fact.change(&["link"]).is_some()
                || fact.is_error(Side::Gnu, HARD_LINK)
                || fact.is_error(Side::Ours, HARD_LINK)
                || fact.change(&["mtime"]).is_some_and(is_linked)
                || fact.is_dir_changed_by_gnu()
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--keep-directory-symlink`** is honoured as the manual of cp says.",
        applies: |it| {
            it.case.has_long("keep-directory-symlink")
                && it.one_says("cannot overwrite non-directory")
        },
        explains: |it, fact| {
            let links = it.named(Side::Gnu, "cannot overwrite non-directory", Which::First);
            // With `--copy-contents`, cp reports that about a link that leads nowhere, too.
            let is_dangling = |line: &str| {
                line.contains("cannot create directory ") && line.ends_with("File exists")
            };
            fact.is_error(Side::Gnu, "cannot overwrite non-directory")
                || fact.error(Side::Ours).is_some_and(is_dangling) && it.is_about(fact, &links)
                || fact.is_error(Side::Ours, "cannot overwrite non-directory")
                || it.is_about(fact, &links)
                    && (fact.only(Side::Ours).is_some()
                        || fact
                            .dir_change(&["mode", "mtime", "owner", "xattrs"])
                            .is_some())
                || is_failure(fact, Side::Ours)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "cp 9.10 honours it only with `--copy-contents`, and backs up such a link (`-b`).",
        applies: |it| it.case.has_long("keep-directory-symlink") && it.has_backup(),
        explains: |_, fact| {
            let replaced = (Some(Kind::Directory), Some(Kind::Symlink));
            fact.change(&["type"])
                .is_some_and(|change| change.kinds == replaced)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`POSIXLY_CORRECT`**: cpz writes through a dangling dest symlink only if it is the dest of",
        applies: |it| {
            let mut variables = it.case.variables.iter();
            variables.any(|(name, _)| *name == "POSIXLY_CORRECT") && it.one_says("dangling symlink")
        },
        explains: |_, fact| {
            fact.is_error(Side::Gnu, "dangling symlink")
                || fact.is_error(Side::Ours, "dangling symlink")
                || fact.only_kind(Side::Gnu) == Some(Kind::File)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**Links in another dest** (`ln -s ../sub d/x/l; cpz -r sub x d`)",
        applies: |it| it.has_symlink() && it.has_several_sources(),
        explains: |it, fact| {
            // A source that is not a directory waits for those before it.
            let is_below_operand = |fact: &Fact| {
                let places = it.places_of(fact);
                let dests = it.dests();
                places.iter().any(|place| {
                    let dir = parent(place);
                    // The entries of `a/.` are copied into the dest itself.
                    dests.contains(&parent(&dir)) || it.has_dots() && dests.contains(&dir)
                })
            };
            let dangles = |fact: &Fact| {
                let line = fact.error(Side::Ours).or(fact.error(Side::Gnu));
                line.is_some_and(|line| line.contains("dangling")) && is_below_operand(fact)
            };
            // For the other command, the link leads to a directory.
            let is_met = |line: &str| {
                let places = it.places_in(line);
                line.contains("cannot overwrite directory ")
                    && it.has_fact(|other| dangles(other) && it.places_of(other)[0] == places[0])
            };
            let line = fact.error(Side::Ours).or(fact.error(Side::Gnu));
            dangles(fact) || line.is_some_and(is_met)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**Paths that the run changes**: if the run replaces or backs up a link that leads to its own source",
        applies: |it| it.has_symlink() && it.has_backup(),
        explains: |it, fact| {
            let dests = it.dests();
            let unseen = it.named(Side::Ours, "cannot stat", Which::First);
            let exists =
                |line: &str| line.contains("cannot create ") && line.ends_with("File exists");
            let follows = it.case.has_argument_ending_in("/")
                || it.has_option('H', "")
                || it.has_option('L', "dereference")
                || it.has_option('l', "link");
            let is_not_found = |line: &str| {
                line.ends_with("No such file or directory") && !line.contains("cannot create")
            };
            let copies_more = fact.only(Side::Ours).is_some() && it.is_about(fact, &dests)
                || fact
                    .change(&["type"])
                    .is_some_and(|it| it.kinds.1 == Some(Kind::Directory))
                || fact.error(Side::Gnu).is_some_and(is_not_found)
                || is_failure(fact, Side::Ours);
            let is_unlinked = |line: &str| {
                line.contains("cannot create hard link ")
                    && line.ends_with("No such file or directory")
            };
            // cp finds the link, which leads nowhere by then.
            let is_met_late = fact.error(Side::Gnu).is_some_and(is_unlinked)
                || fact.output(Side::Gnu).is_some()
                || fact
                    .output(Side::Ours)
                    .is_some_and(|line| line.ends_with("(unbackup)"));
            // Ours puts the link back. In cp it can lead to itself.
            let is_put_back = |change: &Change| {
                let place = &it.place_of(change)[0];
                let is_suffix = |suffix: &str| !suffix.contains('/');
                let mut suffixes = unseen.iter().filter_map(|link| place.strip_prefix(&**link));
                change.kinds.0 == Some(Kind::Symlink) && suffixes.any(is_suffix)
            };
            let changed = fact.only(Side::Gnu).or(fact.change(&["target", "mtime"]));
            changed.is_some_and(is_put_back)
                || is_met_late && it.is_about(fact, &unseen)
                || follows && copies_more
                || fact.error(Side::Gnu).is_some_and(exists) && it.is_about(fact, &unseen)
                || fact.is_error(Side::Gnu, "cannot un-backup")
                || fact.is_error(Side::Ours, "cannot stat")
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "or forbids access to a directory on the way, cpz still uses the directory that it opened. cp looks at the path again",
        applies: |it| it.gnu_says(NOT_PRESERVED),
        explains: |it, fact| {
            let failed = it.named(Side::Gnu, NOT_PRESERVED, Which::First);
            let is_failed = |change: &Change| failed.contains(&it.place_of(change)[0]);
            fact.is_error(Side::Gnu, NOT_PRESERVED)
                || fact.change(&["mode", "xattrs"]).is_some_and(is_failed)
        },
    },
    Deviation {
        pair: Pair::Cp,
        readme: "cpz/README.md",
        line: "**`--preserve=links`**: a dest that is a hard link to an earlier copy",
        applies: |it| it.may_preserve_links() && it.ours_says("will not overwrite just-created"),
        explains: |it, fact| {
            let refused = it.named(Side::Ours, "will not overwrite just-created", Which::First);
            fact.is_error(Side::Ours, "will not overwrite just-created")
                || it.is_about(fact, &refused)
                    && (fact.only(Side::Ours).is_some()
                        || fact.error(Side::Gnu).is_some()
                        || fact.output(Side::Gnu).is_some()
                        || fact
                            .change(&[
                                "type", "link", "size", "content", "target", "device", "mode",
                                "owner", "mtime", "xattrs",
                            ])
                            .is_some())
        },
    },
];
