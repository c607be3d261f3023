//! The deliberate differences. A case is left out if one of them may show in it: from its command line, its tree, and
//! what GNU's command did. Each row names the line of a page that documents it.

use crate::{
    Against,
    case::{
        AclKind, Attributes, Called, Case, Entry, Owner, PRESUME_TERMINAL, PWD, Pair, User, What,
    },
    plan::link_targets,
    run::{ABOVE, Observed, Status, WORKING},
};

/// A deliberate difference: a text in one line of a page, and a function that returns `true` if the difference may
/// show. With [`Against::RealRun`], our real run is in GNU's place.
pub(crate) type Deviation = (&'static str, fn(&Case, &Observed) -> bool);

/// Returns the page that documents the differences that count for a plan, relative to the root of the repository, and
/// the differences.
pub(crate) fn rows(pair: Pair, against: Against) -> (&'static str, &'static [Deviation]) {
    match (pair, against) {
        (Pair::Rm, Against::Gnu) => ("docs/differences.md", RM),
        (Pair::Cp, Against::Gnu) => ("docs/differences.md", CP),
        (Pair::Rm, Against::RealRun) => ("rmz/src/manual.txt", RM_DRY),
        (Pair::Cp, Against::RealRun) => ("cpz/src/manual.txt", CP_DRY),
    }
}

const INTO_ITSELF: &str = "(directory copied into itself)";

const RM: &[Deviation] = &[
    ("| `--help`, `--version` |", has_own_text),
    (
        "| `rmz FILE`, write-protected, at a terminal |",
        |case, gnu| {
            let fails = says(gnu, "write-protected") || says(gnu, "cannot remove");
            fails && case.called == Called::Own && case.has_long(PRESUME_TERMINAL)
        },
    ),
];

const RM_DRY: &[Deviation] = &[(
    "whether a directory is empty that may not be read",
    |case, real| {
        let removes = String::from_utf8_lossy(&real.stdout).contains("removed directory");
        removes && case.user == User::Nobody && has_entry(case, is_unreadable_dir)
    },
)];

const CP_DRY: &[Deviation] = &[
    ("Not known are I/O errors", |_, real| {
        let waits = real.status == Status::Hung;
        waits || says(real, "failed to clone") || says(real, "No such device or address")
    }),
    ("failures to set attributes", |case, real| {
        let merges = has_dots(case) && has_several_sources(case);
        says(real, "preserving ") || case.user == User::Nobody && preserves(case) && merges
    }),
    ("Each source is seen as it is now", |case, real| {
        let from = |first| places(case, case.sources().get(first..).unwrap_or_default());
        if case.has_plain_names() {
            let adds_to_itself = has_parents(case) || has_backup(case);
            let sources = from(usize::from(!adds_to_itself));
            return is_one_within(&places(case, &copies(real)), &sources);
        }
        let (dests, later) = (places(case, &case.dests()), from(1));
        let is_near = is_one_within(&dests, &later) || is_one_within(&later, &dests);
        is_near && !real.stdout.is_empty()
    }),
    ("counts as dangling", |case, real| {
        let links: Vec<_> = link_targets(case).into_keys().collect();
        is_one_within(&places(case, &links), &places(case, &copies(real)))
    }),
];

const CP: &[Deviation] = &[
    ("| `--help`, `--version` |", has_own_text),
    (INTO_ITSELF, |_, gnu| says(gnu, "cannot copy a directory, ")),
    (INTO_ITSELF, |case, gnu| {
        // Instead of the refusal, cp can run into a limit, or into what it has copied.
        let reasons = ["cannot overwrite non-dir", "Permission denied"];
        let has_reason = reasons.iter().any(|reason| says(gnu, reason));
        // A source can also contain the dest through a link that is followed.
        says(gnu, "name too long") || has_dest_in_source(case) && has_reason
    }),
    ("| `cpz a/b a dest`", |_, gnu| {
        says(gnu, "will not create hard link ")
    }),
    ("`cpz a . dest`", |_, gnu| {
        says(gnu, "specified more than once")
    }),
    (
        "`--parents` with several operands or `DIR/..`",
        |case, gnu| {
            let meets = has_several_sources(case) || has_dots(case) || has_source_in_dest(case);
            has_parents(case) && (meets || gnu.status != Status::Exit(0))
        },
    ),
    ("| a source is also a dest", |case, _| {
        preserves(case) && has_several_sources(case) && has_source_in_dest(case)
    }),
    (
        "(dest made by the run, replaced by an operand)",
        |case, _| (has_backup(case) || preserves(case)) && has_two_sources_of_one_name(case),
    ),
    ("| `cpz -sP link dir`", |_, gnu| {
        says(gnu, "can make relative symbolic links only")
    }),
    ("failures with two reasons", |case, gnu| {
        says(gnu, "cannot overwrite directory ")
            && (case.user == User::Nobody || case.dests().iter().any(Vec::is_empty))
    }),
    ("| `--keep-directory-symlink` |", |case, _| {
        case.has_long("keep-directory-symlink") && has_entry(case, is_symlink)
    }),
    ("`POSIXLY_CORRECT=1 cpz -r`", |case, _| {
        case.variables.contains(&("POSIXLY_CORRECT", "")) && has_entry(case, is_symlink)
    }),
    ("or a link leads to one", |case, gnu| {
        has_several_sources(case) && says(gnu, "dangling symlink")
    }),
    ("| a path that the run changes", |case, gnu| {
        has_backup(case) && has_entry(case, is_symlink) && gnu.status != Status::Exit(0)
    }),
    ("forbids access to", |_, gnu| {
        says(gnu, "preserving permissions for ")
    }),
    ("an extended attribute fails", |_, gnu| {
        says(gnu, " attribute '") || says(gnu, "setting attributes for ")
    }),
    ("`umask 0277; cpz -a a b`", |case, _| {
        case.user == User::Nobody && preserves(case) && has_xattr(case)
    }),
    ("fails if an ACL forbids reading", |case, gnu| {
        case.user == User::Nobody && says(gnu, "cannot open ") && has_entry(case, has_acl)
    }),
    ("`cpz --copy-contents fifo dest`", |case, _| {
        case.has_long("copy-contents") && has_entry(case, is_special)
    }),
    ("`cpz -rb a/. file`, `DIR/..`", |case, _| {
        has_backup(case) && has_dots(case)
    }),
    ("| `mkfifo d/f; cpz -r s/. d`", |_, gnu| {
        gnu.status == Status::Hung
    }),
    ("only the dest has an ACL", |case, _| {
        preserves(case) && has_acl_at_dest(case, |_| true)
    }),
    ("a dest directory with a default ACL", |case, _| {
        has_acl_at_dest(case, |kind| kind == AclKind::Default)
    }),
    ("attributes of directories are read and set", |case, _| {
        preserves(case) && has_dots(case) && has_source_in_dest(case)
    }),
    ("may set `trusted` ones", |case, _| {
        case.has_option('s', "symbolic-link") && preserves(case) && has_xattr(case)
    }),
];

fn says(gnu: &Observed, text: &str) -> bool {
    let mut windows = gnu.stderr.windows(text.len());
    windows.any(|window| window == text.as_bytes())
}

/// Returns the dests that a run with `--verbose` has printed, as far as they need no escapes.
fn copies(real: &Observed) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(&real.stdout);
    let working = format!("/{ABOVE}/{WORKING}");
    let dest = |line: &str| {
        let (_, dest) = line.split_once(" -> ")?;
        // The directories that `--parents` makes are not quoted.
        let dest = dest.split('\'').nth(1).unwrap_or(dest);
        Some(dest.split_once(&working).map_or(dest, |it| it.1).into())
    };
    text.lines().filter_map(dest).collect()
}

fn has_own_text(_: &Case, gnu: &Observed) -> bool {
    gnu.stdout.starts_with(b"Usage: ") || {
        let first = gnu.stdout.split(|&byte| byte == b'\n').next();
        first.is_some_and(|line| line.ends_with(b"(GNU coreutils) 9.10"))
    }
}

fn has_entry(case: &Case, is_meant: fn(&Entry) -> bool) -> bool {
    case.entries.iter().any(is_meant)
}

fn is_unreadable_dir(entry: &Entry) -> bool {
    let Attributes {
        mode, owner, acl, ..
    } = &entry.attributes;
    let needed = match owner {
        Owner::Runner => 0o400,
        _ => 0o444,
    };
    let is_open = mode.is_none_or(|mode| mode & needed == needed);
    let acl = acl.as_ref().filter(|acl| acl.kind == AclKind::Access);
    matches!(entry.what, What::Dir) && (!is_open || acl.is_some())
}

fn is_special(entry: &Entry) -> bool {
    use What::{BlockDevice, CharDevice, Fifo, Socket};
    matches!(entry.what, Fifo | Socket | CharDevice(..) | BlockDevice(..))
}

fn is_symlink(entry: &Entry) -> bool {
    matches!(entry.what, What::Symlink(_))
}

fn has_acl(entry: &Entry) -> bool {
    entry.attributes.acl.is_some()
}

fn has_parents(case: &Case) -> bool {
    case.has_long("parents") || case.has_long("path")
}

fn has_backup(case: &Case) -> bool {
    case.has_option('b', "backup") || case.has_option('S', "suffix")
}

fn preserves(case: &Case) -> bool {
    case.has_option('a', "archive") || case.has_option('p', "preserve")
}

fn has_xattr(case: &Case) -> bool {
    has_entry(case, |entry| entry.attributes.xattr.is_some())
}

fn has_several_sources(case: &Case) -> bool {
    case.sources().len() > 1
}

/// Returns `true` if a source is a directory by its last name, `.` or `..`.
fn has_dots(case: &Case) -> bool {
    case.sources().iter().any(|source| {
        let path = source.strip_suffix(b"/").unwrap_or(source);
        let name = path.rsplit(|&byte| byte == b'/').next();
        name == Some(b".") || name == Some(b"..")
    })
}

fn has_two_sources_of_one_name(case: &Case) -> bool {
    let mut names: Vec<_> = case
        .sources()
        .iter()
        .map(|source| names(source).into_iter().next())
        .collect();
    names.sort();
    let all = names.len();
    names.dedup();
    names.len() < all
}

fn has_dest_in_source(case: &Case) -> bool {
    is_one_within(&places(case, &case.dests()), &places(case, &case.sources()))
}

fn has_source_in_dest(case: &Case) -> bool {
    is_one_within(&places(case, &case.sources()), &places(case, &case.dests()))
}

fn is_one_within(places: &[Vec<u8>], tops: &[Vec<u8>]) -> bool {
    let is_in_top = |place: &Vec<u8>| tops.iter().any(|top| is_within(place, top));
    places.iter().any(is_in_top)
}

/// Returns `true` if a dest, or an entry of it or above it, has such an ACL.
fn has_acl_at_dest(case: &Case, is_meant: fn(AclKind) -> bool) -> bool {
    let dests = places(case, &case.dests());
    let is_at_dest = |at: &[u8]| {
        let mut dests = dests.iter();
        dests.any(|dest| is_within(at, dest) || is_within(dest, at))
    };
    case.entries.iter().any(|entry| {
        let acl = entry.attributes.acl.as_ref();
        acl.is_some_and(|acl| is_meant(acl.kind)) && is_at_dest(&entry.at.path(&case.names))
    })
}

fn places(case: &Case, paths: &[Vec<u8>]) -> Vec<Vec<u8>> {
    paths.iter().map(|path| place(case, path)).collect()
}

/// Most symbolic links on the way to a place.
const MAX_LINKS: usize = 20;

/// Returns the place to which a path leads through the symbolic links of the tree. It is relative to the working
/// directory, without `.`, and has `..` only at its beginning.
fn place(case: &Case, path: &[u8]) -> Vec<u8> {
    let targets = link_targets(case);
    let mut place: Vec<Vec<u8>> = Vec::new();
    let mut rest = names(path);
    let mut followed = 0;
    while let Some(name) = rest.pop() {
        if name == b".." && place.last().is_some_and(|last| last != b"..") {
            place.pop();
            continue;
        }
        place.push(name);
        let target = targets.get(&place.join(&b'/'));
        if let Some(target) = target.filter(|_| followed < MAX_LINKS) {
            followed += 1;
            place.pop();
            if target.starts_with(PWD.as_bytes()) {
                place.clear();
            }
            rest.extend(names(target));
        }
    }
    place.join(&b'/')
}

/// Returns the names of a path, the last one first.
fn names(path: &[u8]) -> Vec<Vec<u8>> {
    let path = path.strip_prefix(PWD.as_bytes()).unwrap_or(path);
    let names = path.rsplit(|&byte| byte == b'/').map(<[u8]>::to_vec);
    names
        .filter(|name| !name.is_empty() && name != b".")
        .collect()
}

/// Returns `true` if a place is `top` or below it.
fn is_within(place: &[u8], top: &[u8]) -> bool {
    let ups = |place: &[u8]| {
        place
            .split(|&byte| byte == b'/')
            .filter(|name| name == b"..")
            .count()
    };
    match top.is_empty() || top.ends_with(b"..") {
        true => ups(place) <= ups(top),
        false => place
            .strip_prefix(top)
            .is_some_and(|rest| rest.is_empty() || rest[0] == b'/'),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn each_deviation_is_documented() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for pair in [Pair::Rm, Pair::Cp] {
            for against in [Against::Gnu, Against::RealRun] {
                let (page, rows) = rows(pair, against);
                let text = fs::read_to_string(root.join(page)).unwrap();
                for (line, _) in rows {
                    let is_there = text.lines().any(|l| l.contains(line));
                    assert!(is_there, "{page} has no line with: {line}");
                }
            }
        }
    }
}
