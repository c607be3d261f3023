//! On random trees, with random operands, flags and dests, cpz does what `cp` does.
//!
//! Left out, because GNU's outcome depends there on the order of the listing or on a reader:
//! - a directory copied into itself: GNU stops there, with part of the tree uncopied;
//! - a dest among the sources, if a source is a directory: what is read may be written to meanwhile;
//! - dests that hold symlinks to each other, or FIFOs: what is written through one may be written again,
//!   and a FIFO waits for a reader;
//! - one directory copied to two places (`a/b a`, `a a/.`): cpz does that, while GNU "will not create hard
//!   link 'dest/a/b' to directory 'dest/b'";
//! - `-s` of relative sources over what exists: before GNU finds that it can make no such link, it has
//!   unlinked what was there; cpz leaves it alone;
//! - FIFOs as operands without `-r`, and anywhere with `--copy-contents`: they wait for a writer; sockets
//!   there, for which GNU unlinks the dest before it finds that it cannot open them.
//!
//! Left out with flags about dests that exist:
//! - the exit status after a no to `-i`, which newer versions than the installed one make 1;
//! - simple backups in a target directory, which 9.1 puts into the working directory, and `-n` with a
//!   backup, of which newer versions say other words;
//! - a directory over something else with a backup, which newer versions allow;
//! - `--parents` with a source that is absolute (the twins' own names would be part of the dest) or
//!   that may not exist (GNU leaves the directories that it has made by then with the modes for making);
//! - `--parents` with times and several sources: GNU changes what the earlier ones got;
//! - `--parents` as another user than root: GNU takes away the permission that the next source needs.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use proptest::{collection::vec, option, prelude::*, sample::select};
use testkit::{
    probe::{NOBODY, is_root},
    random::{self, Entries, Kinds, Node, Operand, operand},
    run::{Link, Parity},
    tree::Tree,
};

const CPZ: &str = env!("CARGO_BIN_EXE_cpz");

#[derive(Clone, Debug)]
struct Case {
    entries: Entries,
    /// What is at `dest`.
    existing: Option<Node>,
    sources: Vec<Operand>,
    dest: Dest,
    flags: Vec<&'static str>,
    /// What is said to prompts.
    answers: &'static str,
    threads: &'static str,
    personality: Personality,
    user: User,
}

#[derive(Clone, Debug)]
enum Dest {
    Verbatim(&'static str),
    InExisting(Operand),
    AmongSources(Operand),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Personality {
    Cpz,
    Cp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    Same,
    Nobody,
}

const RULES: [&str; 12] = [
    "-u",
    "--update",
    "-n",
    "-i",
    "-b",
    "--backup=t",
    "--backup=simple",
    "-S.o",
    "--remove-destination",
    "--parents",
    "--strip-trailing-slashes",
    "--no-clobber",
];

fn flags() -> impl Strategy<Value = (Personality, Vec<&'static str>)> {
    let recursive = select(vec!["-r", "-R", "--recursive"]);
    let others = vec(
        select(vec![
            "-f",
            "-v",
            "--verbose",
            "--force",
            "-H",
            "-L",
            "-P",
            "-l",
            "-s",
            "-x",
            "--sparse=always",
            "--sparse=never",
            "--reflink=never",
            "--reflink=auto",
            "--copy-contents",
            "-p",
            "-a",
            "-d",
            "--attributes-only",
            "--preserve=links",
            "--preserve=mode",
            "--preserve=ownership",
            "--preserve=timestamps",
            "--preserve=xattr",
            "--preserve=all",
            "--no-preserve=mode",
            "--no-preserve=ownership,links",
        ]),
        0..4,
    );
    let rules = vec(select(RULES.to_vec()), 0..3);
    let place = prop_oneof![6 => Just(None), 1 => Just(Some("-T"))];
    let personality = prop_oneof![
        4 => recursive.prop_map(|flag| (Personality::Cpz, Some(flag))),
        1 => option::of(Just("-r")).prop_map(|flag| (Personality::Cp, flag)),
    ];
    (personality, others, rules, place).prop_map(
        |((personality, recursive), others, rules, place)| {
            let flags = recursive
                .into_iter()
                .chain(others)
                .chain(rules)
                .chain(place);
            (personality, flags.collect())
        },
    )
}

fn dest() -> impl Strategy<Value = Dest> {
    prop_oneof![
        8 => select(vec!["dest", "dest/", "./dest", "dest/.", "$PWD/dest"]).prop_map(Dest::Verbatim),
        2 => select(vec!["new", "new/", "new/new", "beside/dir"]).prop_map(Dest::Verbatim),
        3 => operand().prop_map(Dest::InExisting),
        2 => operand().prop_map(Dest::AmongSources),
    ]
}

const YES: &str = "y\ny\ny\ny\ny\ny\ny\ny\ny\ny\ny\ny\ny\ny\ny\ny\ny\ny\ny\ny\ny\ny\ny\ny\n";
const NO: &str = "";

fn case() -> impl Strategy<Value = Case> {
    let user = match is_root() {
        true => prop_oneof![Just(User::Same), Just(User::Nobody)].boxed(),
        false => Just(User::Same).boxed(),
    };
    let existing = prop_oneof![
        1 => Just(None),
        1 => random::node(Kinds::Overwritable).prop_map(Some),
        3 => (random::entries(Kinds::Overwritable), Just(0o755))
            .prop_map(|(entries, mode)| Some(Node::Dir { entries, mode })),
    ];
    let sources = prop_oneof![
        4 => vec(operand(), 1..2),
        4 => vec(operand(), 2..5),
        1 => vec(operand(), 0..1),
    ];
    (
        random::entries(Kinds::All),
        existing,
        sources,
        dest(),
        flags(),
        select(vec![YES, NO]),
        select(vec!["1", "2", "4"]),
        user,
    )
        .prop_map(
            |(entries, existing, sources, dest, (personality, flags), answers, threads, user)| {
                Case {
                    entries,
                    existing,
                    sources,
                    dest,
                    flags,
                    answers,
                    threads,
                    personality,
                    user,
                }
            },
        )
}

/// The command line of a case, or `None` for one that is left out.
fn arguments(case: &Case) -> Option<Vec<OsString>> {
    let there = random::paths(Path::new("s"), &case.entries);
    let existing: Vec<(PathBuf, &Node)> = match &case.existing {
        Some(node @ Node::Dir { entries, .. }) => {
            let mut all = random::paths(Path::new("dest"), entries);
            all.push(("dest".into(), node));
            all
        }
        _ => Vec::new(),
    };
    let is_plain = |node: &Node| matches!(node, Node::File { .. });
    let sources: Vec<_> = case
        .sources
        .iter()
        .map(|source| source.among(&there))
        .collect();
    let only_files = sources.iter().all(|(argument, chosen)| {
        let node = there
            .iter()
            .find(|(path, _)| Some(path.as_path()) == *chosen);
        node.is_some_and(|(path, node)| is_plain(node) && argument == path.as_os_str())
    });
    // Sockets cannot be opened, and FIFOs wait for a writer.
    if case.flags.contains(&"--copy-contents")
        && there
            .iter()
            .any(|(_, node)| matches!(node, Node::Fifo { .. } | Node::Socket { .. }))
    {
        return None;
    }
    let recursive = case
        .flags
        .iter()
        .any(|flag| ["-r", "-R", "--recursive", "-a"].contains(flag));
    if !recursive
        && there
            .iter()
            .any(|(_, node)| matches!(node, Node::Fifo { .. }))
    {
        return None;
    }
    let dest = match &case.dest {
        Dest::Verbatim(dest) => OsString::from(dest),
        Dest::InExisting(operand) => operand.among(&existing).0,
        Dest::AmongSources(operand) => {
            let fifo = there
                .iter()
                .any(|(_, node)| matches!(node, Node::Fifo { .. }));
            if !only_files || fifo {
                return None;
            }
            operand.among(&there).0
        }
    };
    // By way of dots, all is among the sources.
    if dest.to_string_lossy().ends_with("..") {
        return None;
    }
    let climbs = |argument: &OsString| argument.to_string_lossy().ends_with("/..");
    if sources.iter().any(|(argument, _)| climbs(argument)) {
        return None;
    }
    let is_relative = |argument: &OsString| !argument.to_string_lossy().starts_with("$PWD");
    if case.flags.contains(&"-s")
        && case.existing.is_some()
        && sources.iter().any(|(argument, _)| is_relative(argument))
    {
        return None;
    }
    let follows = ["-H", "-L", "-l"]
        .iter()
        .any(|flag| case.flags.contains(flag));
    // Followed, a link to what is above it leads to the dest: a directory copied into itself.
    let leads_up = |node: &Node| {
        matches!(
            node,
            Node::Symlink {
                target: random::Target::Verbatim("..")
            }
        )
    };
    if follows && there.iter().any(|(_, node)| leads_up(node)) {
        return None;
    }
    if may_meet_a_directory_twice(&sources, &there, follows) {
        return None;
    }
    if is_newer_than_gnu(case, &there, (&sources, &dest)) {
        return None;
    }
    let sources = sources.into_iter().map(|(argument, _)| argument);
    let mut arguments: Vec<OsString> = case.flags.iter().map(OsString::from).collect();
    arguments.push("--".into());
    arguments.extend(sources);
    arguments.push(dest);
    Some(arguments)
}

/// Whether GNU's outcome would be that of an old version; see above.
fn is_newer_than_gnu(
    case: &Case,
    there: &[(PathBuf, &Node)],
    (sources, dest): (&[(OsString, Option<&Path>)], &OsString),
) -> bool {
    let given = |flags: &[&str]| case.flags.iter().any(|flag| flags.contains(flag));
    let is_plain = |(source, chosen): &(OsString, Option<&Path>)| {
        chosen.is_some_and(|path| path.as_os_str() == source)
    };
    let keeps_times = given(&["-p", "-a", "--preserve=timestamps", "--preserve=all"]);
    let is_odd = case.user == User::Nobody
        || !sources.iter().all(is_plain)
        || keeps_times && sources.len() > 1;
    if given(&["--parents"]) && is_odd {
        return true;
    }
    let backups = ["-b", "--backup=t", "--backup=simple", "-S.o"];
    if !given(&backups) {
        return false;
    }
    if given(&["-n", "--no-clobber"]) {
        return true;
    }
    let mut controls = case
        .flags
        .iter()
        .filter(|flag| flag.starts_with("--backup="));
    let is_numbered = controls.next_back() == Some(&"--backup=t");
    let is_directory = |node: &Node| matches!(node, Node::Dir { .. });
    let goes_into = given(&["--parents"])
        || !given(&["-T"]) && case.existing.as_ref().is_some_and(is_directory)
        || dest.to_string_lossy().contains("beside");
    let has_directory = there.iter().any(|(_, node)| is_directory(node));
    !is_numbered && goes_into || has_directory
}

/// Whether two of the sources may be one directory with different names, or one in the other.
fn may_meet_a_directory_twice(
    sources: &[(OsString, Option<&Path>)],
    there: &[(PathBuf, &Node)],
    follows: bool,
) -> bool {
    // A path as it was chosen leads through no symlink; of all others only the kernel knows.
    let node_at = |path: &Path| there.iter().find(|(p, _)| p == path).map(|(_, node)| *node);
    let mut plain_dirs: Vec<&Path> = Vec::new();
    let mut unclear = 0;
    for (argument, chosen) in sources {
        let path = chosen.unwrap_or(Path::new(argument));
        match node_at(path) {
            Some(Node::Dir { .. }) if path.as_os_str() == argument => plain_dirs.push(path),
            Some(Node::File { .. } | Node::Fifo { .. } | Node::Socket { .. }) => {}
            Some(Node::Symlink { .. }) if !follows && path.as_os_str() == argument => {}
            _ => unclear += 1,
        }
    }
    let nested = plain_dirs
        .iter()
        .any(|a| plain_dirs.iter().any(|b| a != b && b.starts_with(a)));
    nested || unclear > 0 && sources.len() > 1
}

fn check(case: &Case, cp: &Path) {
    let Some(arguments) = arguments(case) else {
        return;
    };
    let ours = match case.personality {
        Personality::Cpz => Path::new(CPZ),
        Personality::Cp => cp,
    };
    let mut parity = Parity::new(ours, "cp")
        .args(arguments)
        .env("CPZ_THREADS", case.threads)
        .stdin(case.answers);
    if case.flags.contains(&"-i") && case.answers == NO {
        parity = parity.in_script(r#""$@"; test $? -le 1"#);
    }
    if case.user == User::Nobody {
        parity = parity.uid(NOBODY);
    }
    // Half of the cases on another filesystem, if there is one.
    if case.threads != "1" {
        parity = parity.on(testkit::tree::memory());
    }
    parity.check(|tree: &Tree| {
        let tree = tree.dir("s").dir("beside/dir");
        random::build_entries(tree, Path::new("s"), &case.entries);
        if let Some(node) = &case.existing {
            random::build_node(tree, Path::new("dest"), node);
        }
        date(tree, case);
    });
}

/// Gives files at both ends times of which either may be the older one.
fn date(tree: &Tree, case: &Case) {
    let mut all = random::paths(Path::new("s"), &case.entries);
    if let Some(Node::Dir { entries, .. }) = &case.existing {
        all.extend(random::paths(Path::new("dest"), entries));
    }
    for (path, node) in all {
        if matches!(node, Node::File { .. }) {
            let length = path.as_os_str().len() + path.components().count();
            let time = std::time::Duration::from_nanos(length as u64 % 3);
            tree.select(&path).mtime(time);
        }
    }
}

#[test]
fn does_what_cp_does() {
    let cp = Link::named("cp", CPZ);
    proptest!(random::config(150), |(case in case())| check(&case, &cp.path()));
}
