//! On random trees, with random operands and flags, rmz does what `rm` does.

use std::{ffi::OsString, path::Path};

use proptest::{collection::vec, prelude::*, sample::select};
use testkit::{
    or_skip,
    probe::{NOBODY, is_root, newest_gnu},
    random::{self, Entries, Kinds, Operand, operand},
    run::{Link, Parity},
    tree::Tree,
};

const RMZ: &str = env!("CARGO_BIN_EXE_rmz");

#[derive(Clone, Debug)]
struct Case {
    entries: Entries,
    operands: Vec<Operand>,
    flags: Vec<&'static str>,
    threads: &'static str,
    /// Answers to the questions, in order. Then stdin ends.
    answers: Vec<&'static str>,
    personality: Personality,
    user: User,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Personality {
    Rmz,
    Rm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    Same,
    Nobody,
}

fn case() -> impl Strategy<Value = Case> {
    let silent = prop_oneof![
        Just(vec!["-r"]),
        Just(vec!["-rf"]),
        Just(vec!["-rv"]),
        Just(vec!["-fRv"]),
        Just(vec!["--recursive", "--verbose"]),
        Just(vec!["-v", "--no-preserve-root", "-r"]),
        Just(vec!["-rd", "--one-file-system"]),
        Just(vec!["-ivrf"]),
        Just(vec!["-rI", "--interactive=never", "--preserve-root=all"]),
    ];
    // rmz is recursive by default, so only a link called rm can run without `-r`.
    let strict_silent = prop_oneof![
        Just(vec![]),
        Just(vec!["-f"]),
        Just(vec!["-v"]),
        Just(vec!["-vr"]),
        Just(vec!["-rf"]),
        Just(vec!["-d"]),
        Just(vec!["-d", "--one-file-system", "--preserve-root=all"]),
        Just(vec!["--dir", "-fv"]),
    ];
    prop_oneof![
        3 => case_of(Personality::Rmz, silent, Asks::Nothing),
        2 => case_of(Personality::Rm, strict_silent, Asks::Nothing),
        2 => case_of(Personality::Rmz, asking("-r"), Asks::Something),
        3 => case_of(Personality::Rm, asking("-d"), Asks::Something),
    ]
}

/// Generates flags with which rm asks. Most of the time `often` is among them.
fn asking(often: &'static str) -> impl Strategy<Value = Vec<&'static str>> {
    let asks = select(vec![
        "-i",
        "-I",
        "-fi",
        "--interactive",
        "--interactive=once",
        "--interactive=yes",
        "-v",
    ]);
    // With the first of these flags rm asks about write-protected files, and so does rmz with `-I`.
    let terminal = select(vec!["---presume-input-tty", "-v", "--one-file-system"]);
    let recursive = match often {
        "-r" => prop_oneof![3 => Just("-r"), 1 => Just("-rd")].boxed(),
        _ => {
            let others = select(vec![often, "-v", "-rd"]);
            prop_oneof![1 => Just("-r"), 1 => others].boxed()
        }
    };
    (asks, terminal, recursive).prop_map(move |(asks, terminal, recursive)| {
        // Add a flag that asks, because without one rmz never asks, but rm does.
        let asks = if often == "-r" && asks == "-v" {
            "-i"
        } else {
            asks
        };
        vec![recursive, asks, terminal]
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    Nothing,
    Something,
}

fn case_of(
    personality: Personality,
    flags: impl Strategy<Value = Vec<&'static str>> + 'static,
    asks: Asks,
) -> impl Strategy<Value = Case> {
    let user = match is_root() {
        true => prop_oneof![Just(User::Same), Just(User::Nobody)].boxed(),
        false => Just(User::Same).boxed(),
    };
    // Several workers would ask in another order than rm.
    let threads = match asks {
        Asks::Nothing => select(vec!["1", "2", "4"]),
        Asks::Something => select(vec!["1"]),
    };
    let answer =
        prop_oneof![4 => Just("y"), 2 => Just("n"), 1 => select(vec!["", "Yes", "x", " y"])];
    (
        random::entries(Kinds::All),
        vec(operand(), 0..5),
        flags,
        threads,
        vec(answer, 0..40),
        user,
    )
        .prop_map(
            move |(entries, operands, flags, threads, answers, user)| Case {
                entries,
                operands,
                flags,
                threads,
                answers,
                personality,
                user,
            },
        )
}

fn check(case: &Case, rm: &Path) {
    let paths = random::paths(Path::new("s"), &case.entries);
    let operands = case.operands.iter().map(|operand| operand.among(&paths).0);
    let operands: Vec<OsString> = operands.collect();
    let ours = match case.personality {
        Personality::Rmz => Path::new(RMZ),
        Personality::Rm => rm,
    };
    let mut parity = Parity::new(ours, "rm")
        .args(&case.flags)
        .args(["--"])
        .args(&operands)
        .env("RMZ_THREADS", case.threads)
        .stdin(case.answers.join("\n") + "\n");
    if case.user == User::Nobody {
        parity = parity.uid(NOBODY);
    }
    // Some cases use another filesystem, if there is one.
    if case.threads != "1" {
        parity = parity.on(testkit::tree::memory());
    }
    parity.check(|tree: &Tree| {
        let tree = tree.dir("s");
        random::build_entries(tree, Path::new("s"), &case.entries);
    });
}

#[test]
fn does_what_rm_does() {
    // Older releases differ about directories that cannot be read.
    or_skip!(newest_gnu("rm"));
    let rm = Link::named("rm", RMZ);
    proptest!(random::config(300), |(case in case())| check(&case, &rm.path()));
}
