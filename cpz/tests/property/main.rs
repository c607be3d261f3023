//! On random trees, with random operands, flags and dests, cpz does what `cp` does.

use std::path::Path;

use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::select,
    test_runner::{Config, TestCaseError},
};
use testkit::{
    or_skip,
    probe::{NOBODY, is_root, newest_gnu},
    random::{self, Entries, Kinds, Node, Operand, operand},
    run::{Link, Parity},
    tree::Tree,
};

use setting::Setting;

mod setting;

const CPZ: &str = env!("CARGO_BIN_EXE_cpz");

#[derive(Clone, Debug)]
struct Case {
    entries: Entries,
    /// The entry at `dest`.
    existing: Option<Node>,
    sources: Vec<Operand>,
    dest: Dest,
    flags: Vec<&'static str>,
    /// The answers to prompts.
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

const RULES: [&str; 13] = [
    "-u",
    "--update",
    "--update=none",
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

fn check(case: &Case, cp: &Path) -> Result<(), TestCaseError> {
    let setting = Setting::of(case);
    if let Some(reason) = setting.exclusion() {
        return Err(TestCaseError::reject(reason));
    }
    let ours = match case.personality {
        Personality::Cpz => Path::new(CPZ),
        Personality::Cp => cp,
    };
    let mut parity = Parity::new(ours, "cp")
        .args(setting.arguments())
        .env("CPZ_THREADS", case.threads)
        .stdin(case.answers);
    if case.user == User::Nobody {
        parity = parity.uid(NOBODY);
    }
    // Some cases use another filesystem, if there is one.
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
    Ok(())
}

/// Gives sources and dests different times. Either side may be older.
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
    or_skip!(newest_gnu("cp"));
    let cp = Link::named("cp", CPZ);
    let config = Config {
        // Fails if more than half of the cases are left out.
        max_global_rejects: random::config(150).cases,
        ..random::config(150)
    };
    proptest!(config, |(case in case())| check(&case, &cp.path())?);
}
