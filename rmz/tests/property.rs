//! On random trees, with random operands and flags, rmz does what `rm` does.

use std::{ffi::OsString, path::Path};

use proptest::{collection::vec, prelude::*, sample::select};
use testkit::{
    probe::{NOBODY, is_root},
    run::Parity,
    tree::{Scratch, Tree},
};

use trees::{Entries, Kinds, Operand, operand};

#[path = "property/trees.rs"]
mod trees;

const RMZ: &str = env!("CARGO_BIN_EXE_rmz");

#[derive(Clone, Debug)]
struct Case {
    entries: Entries,
    operands: Vec<Operand>,
    flags: Vec<&'static str>,
    threads: &'static str,
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
    let flags = prop_oneof![
        Just(vec!["-r"]),
        Just(vec!["-rf"]),
        Just(vec!["-rv"]),
        Just(vec!["-fRv"]),
        Just(vec!["--recursive", "--verbose"]),
        Just(vec!["-v", "--no-preserve-root", "-r"]),
    ];
    // `-r` is what rmz has by default, so only rm can do without it.
    let strict_flags = prop_oneof![
        Just(vec![]),
        Just(vec!["-f"]),
        Just(vec!["-v"]),
        Just(vec!["-vr"]),
        Just(vec!["-rf"]),
    ];
    let personality = prop_oneof![
        3 => (Just(Personality::Rmz), flags),
        1 => (Just(Personality::Rm), strict_flags),
    ];
    let user = match is_root() {
        true => prop_oneof![Just(User::Same), Just(User::Nobody)].boxed(),
        false => Just(User::Same).boxed(),
    };
    (
        trees::entries(Kinds::All),
        vec(operand(), 0..5),
        personality,
        select(vec!["1", "2", "4"]),
        user,
    )
        .prop_map(
            |(entries, operands, (personality, flags), threads, user)| Case {
                entries,
                operands,
                flags,
                threads,
                personality,
                user,
            },
        )
}

fn check(case: &Case, rm: &Path) {
    let paths = trees::paths(Path::new("s"), &case.entries);
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
        .env("RMZ_THREADS", case.threads);
    if case.user == User::Nobody {
        parity = parity.uid(NOBODY);
    }
    // Half of the cases on another filesystem, if there is one.
    if case.threads != "1" {
        parity = parity.on(testkit::tree::memory());
    }
    parity.check(|tree: Tree| {
        let tree = tree.dir("s");
        trees::build(&tree, Path::new("s"), &case.entries);
    });
}

#[test]
fn does_what_rm_does() {
    let links = Scratch::new();
    let rm = Tree::at(links.path()).symlink("rm", RMZ).path().join("rm");
    proptest!(trees::config(300), |(case in case())| check(&case, &rm));
}
