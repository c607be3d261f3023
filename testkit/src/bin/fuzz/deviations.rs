//! The deliberate differences. A case is left out if one of them may show in it: from its command line, its tree, and
//! what GNU's command did. Each row names the line of a page that documents it.

use std::path::{Component, Path, PathBuf};

use testkit::run::{Outcome, Status};

use crate::{
    Against,
    case::{Case, Entry, HUNG, PWD, Pair, What},
};

/// A deliberate difference: a text in one line of a page, and a function that returns `true` if the difference may
/// show. With [`Against::RealRun`], our real run is in GNU's place.
pub(crate) type Deviation = (&'static str, fn(&Case, &Outcome) -> bool);

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
            fails && case.circumstances.has_own_name && has_long(case, "-presume-input-tty")
        },
    ),
];

const RM_DRY: &[Deviation] = &[
    (
        "It takes a directory that may not be read for one that is not empty",
        |case, real| {
            let removes = real.stdout_text().contains("removed directory");
            removes && is_nobody(case) && case.has_entry(is_perhaps_unreadable)
        },
    ),
    ("as if nothing had been removed before it", |case, _| {
        let (operands, _) = case.sources_and_dests();
        has_several_sources(case) && touch_each_other(case, &operands)
    }),
    ("as if nothing had been removed before it", |case, real| {
        // A link with a slash leads to a directory that holds the link itself, which is removed first.
        let is_gone = says(real, "No such file or directory") && !real.stdout.is_empty();
        is_gone && case.has_entry(is_symlink)
    }),
    ("files that stay although", |case, real| {
        is_nobody(case) && says(real, "Operation not permitted")
    }),
];

const CP_DRY: &[Deviation] = &[
    ("does not foresee I/O errors", |_, real| {
        let waits = real.status == HUNG;
        waits || says(real, "failed to clone") || says(real, "No such device or address")
    }),
    ("failures to set attributes", |case, real| {
        let merges = has_dots(case) && has_several_sources(case);
        says(real, "preserving ") || is_nobody(case) && preserves(case) && merges
    }),
    (
        "files that cannot be linked, made or removed",
        |case, real| is_nobody(case) && says(real, "Operation not permitted"),
    ),
    ("as if nothing had been copied before it", |case, _| {
        let (sources, _) = case.sources_and_dests();
        let merges = has_dots(case) || has_parents(case) || has_backup(case);
        let meets = merges || has_two_sources_of_one_name(case) || touch_each_other(case, &sources);
        has_several_sources(case) && meets
    }),
    ("SOURCE is seen as it is now", |case, real| {
        let (mut sources, dests) = case.sources_and_dests();
        // A link in a source may lead to a dest.
        let is_first_unchanged =
            !has_parents(case) && !has_backup(case) && !case.has_entry(is_symlink);
        if is_first_unchanged {
            // The first one is copied before all others.
            sources.drain(..1.min(sources.len()));
        }
        let has_copied = !real.stdout.is_empty();
        let meets = is_one_within(case, &sources, &dests) || is_one_within(case, &dests, &sources);
        has_copied && meets
    }),
    ("as if nothing had been copied before it", |case, _| {
        has_several_sources(case)
            && case.has_entry(|entry| is_symlink(entry) && is_at_dest(case, entry))
    }),
];

const CP: &[Deviation] = &[
    ("| `--help`, `--version` |", has_own_text),
    (INTO_ITSELF, |_, gnu| says(gnu, "cannot copy a directory, ")),
    (INTO_ITSELF, |case, gnu| {
        // Instead of the refusal, cp can run into a limit, or into what it has copied.
        let reasons = ["cannot overwrite non-dir", "Permission denied"];
        let has_reason = reasons.iter().any(|reason| says(gnu, reason));
        says(gnu, "name too long") || has_dest_in_source(case) && has_reason
    }),
    ("| `cpz a/b a dest`", |_, gnu| {
        says(gnu, "will not create hard link ")
    }),
    ("`cpz a . dest`", |_, gnu| {
        says(gnu, "specified more than once")
    }),
    (
        "`--parents` with several operands, `DIR/.` or `DIR/..`",
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
        is_nobody(case) && says(gnu, "cannot overwrite directory ")
    }),
    ("| `--keep-directory-symlink` |", |case, _| {
        has_long(case, "keep-directory-symlink") && case.has_entry(is_symlink)
    }),
    ("`POSIXLY_CORRECT=1 cpz -r`", |case, _| {
        case.circumstances.variables.contains(&"POSIXLY_CORRECT=") && case.has_entry(is_symlink)
    }),
    ("or a link leads to one", |case, gnu| {
        has_several_sources(case) && says(gnu, "dangling symlink")
    }),
    ("| a path that the run changes", |case, gnu| {
        let changes = gnu.status != Status::Exit(0) || has_source_in_dest(case);
        has_backup(case) && case.has_entry(is_symlink) && changes
    }),
    ("| `cpz -r a \"\"` |", |case, _| {
        case.sources_and_dests().1.contains(&"")
    }),
    ("forbids access to", |_, gnu| {
        says(gnu, "preserving permissions for ")
    }),
    ("an extended attribute fails", |_, gnu| {
        says(gnu, " attribute '") || says(gnu, "setting attributes for ")
    }),
    ("`umask 0277; cpz -a a b`", |case, _| {
        is_nobody(case) && preserves(case) && case.has_entry(has_xattr)
    }),
    ("fails if an ACL forbids reading", |case, gnu| {
        is_nobody(case) && says(gnu, "cannot open ") && case.has_entry(has_acl)
    }),
    ("`cpz --copy-contents fifo dest`", |case, _| {
        let is_special =
            |entry: &Entry| matches!(entry.what, What::Fifo | What::Socket | What::Device(..));
        has_long(case, "copy-contents") && case.has_entry(is_special)
    }),
    ("`cpz -rb a/. file`, `DIR/..`", |case, _| {
        has_backup(case) && has_dots(case)
    }),
    ("| `cpz -pu`, and a file has the time of its", |case, _| {
        case.has_option('u', "update") && preserves(case) && has_two_files_of_one_time(case)
    }),
    ("| `mkfifo d/f; cpz -r s/. d`", |_, gnu| gnu.status == HUNG),
    ("only the dest has an ACL", |case, _| {
        preserves(case) && case.has_entry(|entry| has_acl(entry) && is_at_dest(case, entry))
    }),
    ("a dest directory with a default ACL", |case, _| {
        case.has_entry(|entry| has_default_acl(entry) && is_at_dest(case, entry))
    }),
    ("attributes of directories are read and set", |case, _| {
        preserves(case) && has_dots(case) && has_source_in_dest(case)
    }),
    ("may set `trusted` ones", |case, _| {
        case.has_option('s', "symbolic-link") && preserves(case) && case.has_entry(has_xattr)
    }),
];

fn says(gnu: &Outcome, text: &str) -> bool {
    gnu.stderr_text().contains(text)
}

fn has_own_text(_: &Case, gnu: &Outcome) -> bool {
    let text = gnu.stdout_text();
    let mut first = text.lines().take(1);
    first.any(|line| line.starts_with("Usage: ") || line.ends_with("(GNU coreutils) 9.10"))
}

fn is_nobody(case: &Case) -> bool {
    case.circumstances.is_nobody
}

fn is_perhaps_unreadable(entry: &Entry) -> bool {
    let attributes = &entry.attributes;
    let is_open = attributes.mode.is_none_or(|mode| mode & 0o444 == 0o444);
    entry.what == What::Dir && !(is_open && attributes.acl.is_none())
}

fn is_symlink(entry: &Entry) -> bool {
    matches!(entry.what, What::Symlink(_))
}

fn has_xattr(entry: &Entry) -> bool {
    entry.attributes.xattr.is_some()
}

fn has_acl(entry: &Entry) -> bool {
    entry.attributes.acl.is_some()
}

fn has_default_acl(entry: &Entry) -> bool {
    let acl = entry.attributes.acl.as_ref();
    acl.is_some_and(|acl| acl.starts_with("d:"))
}

fn has_long(case: &Case, option: &str) -> bool {
    case.has_option('\0', option)
}

fn has_parents(case: &Case) -> bool {
    has_long(case, "parents") || has_long(case, "path")
}

fn has_backup(case: &Case) -> bool {
    case.has_option('b', "backup") || case.has_option('S', "suffix")
}

fn preserves(case: &Case) -> bool {
    case.has_option('a', "archive") || case.has_option('p', "preserve")
}

fn has_several_sources(case: &Case) -> bool {
    case.sources_and_dests().0.len() > 1
}

/// Returns `true` if a source is a directory by its last name, `.` or `..`.
fn has_dots(case: &Case) -> bool {
    let (sources, _) = case.sources_and_dests();
    sources.iter().any(|source| {
        let name = source.trim_end_matches('/').rsplit('/').next();
        name == Some(".") || name == Some("..")
    })
}

fn has_two_sources_of_one_name(case: &Case) -> bool {
    let (sources, _) = case.sources_and_dests();
    let mut names: Vec<_> = sources.iter().map(|it| Path::new(it).file_name()).collect();
    names.sort();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

fn has_two_files_of_one_time(case: &Case) -> bool {
    let is_file = |entry: &&Entry| {
        matches!(
            entry.what,
            What::File(_) | What::Zeros(_) | What::Sparse(..)
        )
    };
    let files = case.entries.iter().filter(is_file);
    let mut times: Vec<_> = files.map(|entry| entry.attributes.time).collect();
    times.sort();
    times.windows(2).any(|pair| pair[0] == pair[1])
}

fn has_source_in_dest(case: &Case) -> bool {
    let (sources, dests) = case.sources_and_dests();
    is_one_within(case, &sources, &dests)
}

fn has_dest_in_source(case: &Case) -> bool {
    let (sources, dests) = case.sources_and_dests();
    is_one_within(case, &dests, &sources)
}

/// Returns `true` if one of the paths may lead to what another one leads to, or below that.
fn touch_each_other(case: &Case, paths: &[&str]) -> bool {
    (1..paths.len()).any(|at| {
        let (before, after) = paths.split_at(at);
        is_one_within(case, before, after) || is_one_within(case, after, before)
    })
}

/// Returns `true` if an entry may be a dest, or above or below one.
fn is_at_dest(case: &Case, entry: &Entry) -> bool {
    let (_, dests) = case.sources_and_dests();
    let entry = [&*entry.at];
    is_one_within(case, &entry, &dests) || is_one_within(case, &dests, &entry)
}

/// Returns `true` if one of the paths may be one of `tops`, or below it.
fn is_one_within(case: &Case, paths: &[&str], tops: &[&str]) -> bool {
    let places = |paths: &[&str]| -> Vec<_> {
        let places = |path: &&str| [plain(path), place(case, path, MAX_LINKS)];
        paths.iter().flat_map(places).collect()
    };
    let (paths, tops) = (places(paths), places(tops));
    paths.iter().any(|path| {
        tops.iter().any(|top| match (path, top) {
            (Some(path), Some(top)) => path.starts_with(top),
            _ => true,
        })
    })
}

/// Most symbolic links on the way to a place.
const MAX_LINKS: usize = 5;

/// Returns where a path leads through the symbolic links of the tree, or `None` if that is not certain.
fn place(case: &Case, path: &str, most_links: usize) -> Option<PathBuf> {
    let path = plain(path)?;
    let followed = case.entries.iter().find_map(|entry| match &entry.what {
        What::Symlink(target) => Some((entry, target, path.strip_prefix(&entry.at).ok()?)),
        _ => None,
    });
    let Some((link, target, rest)) = followed else {
        return Some(path);
    };
    let base = match target.starts_with(PWD) {
        true => Path::new(""),
        false => Path::new(&link.at).parent()?,
    };
    let path = base.join(target).join(rest);
    place(case, path.to_str()?, most_links.checked_sub(1)?)
}

/// Returns the path relative to the working directory, or `None` if it leaves that.
fn plain(path: &str) -> Option<PathBuf> {
    let mut components = Path::new(path).components();
    components.try_fold(PathBuf::new(), |plain, component| match component {
        Component::ParentDir => plain.parent().map(Path::to_owned),
        Component::Normal(name) if name != PWD => Some(plain.join(name)),
        _ => Some(plain),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

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
