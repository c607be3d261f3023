//! The short way to a comparison.

use std::{ffi::OsStr, path::Path};

use testkit::{
    probe::{NOBODY, is_root},
    run::{Link, Outcome, Parity, Run, Status, normal_lines, twin},
    tree::{Scratch, Tree},
};

pub(crate) const CPZ: &str = env!("CARGO_BIN_EXE_cpz");

/// Compares cpz with cp, both with `-r`.
#[track_caller]
pub(crate) fn cp_r(
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    build: impl Fn(&Tree),
) -> Option<Outcome> {
    Parity::new(CPZ, "cp").args(["-r"]).args(args).check(build)
}

/// Compares cpz with cp, both with `-r` and run by a user who is not root and owns the tree.
#[track_caller]
pub(crate) fn cp_r_as_nobody(
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    build: impl Fn(&Tree),
) {
    if !is_root() {
        testkit::skip!("only root can become another user");
    }
    Parity::new(CPZ, "cp")
        .args(["-r"])
        .args(args)
        .uid(NOBODY)
        .check(build);
}

/// Compares a link to cpz that is called `cp` with cp, without `-r`.
#[track_caller]
pub(crate) fn strict_cp(args: impl IntoIterator<Item = impl AsRef<OsStr>>, build: impl Fn(&Tree)) {
    Parity::new(link("cp").path(), "cp").args(args).check(build);
}

/// Runs `cp -r` and cpz where GNU's tree is no model; asserts that they say the same, and returns ours.
#[track_caller]
pub(crate) fn same_words(args: &[&str], build: impl Fn(&Tree)) -> Scratch {
    let (ours, gnu) = twin(build);
    let said = |program: &str, tree: &Scratch| {
        let outcome = Run::new(program)
            .arg("-r")
            .args(args)
            .current_dir(tree)
            .output();
        let lines = normal_lines(&outcome.stderr, Path::new(program));
        (outcome.status, lines)
    };
    assert_eq!(said(CPZ, &ours), said("cp", &gnu), "ours, GNU's");
    ours
}

/// Asserts that cpz, run in `dir`, succeeds in silence.
#[track_caller]
pub(crate) fn succeeds(dir: impl AsRef<Path>, args: &[&str]) {
    let outcome = Run::new(CPZ).args(args).current_dir(dir).output();
    assert_eq!(outcome.status, Status::Exit(0), "{outcome}");
    assert!(
        outcome.stdout.is_empty() && outcome.stderr.is_empty(),
        "{outcome}"
    );
}

/// Both commands with `-r`, each run from the same shell script.
pub(crate) fn in_script(script: &str) -> Parity {
    in_scripts(script, script)
}

/// Both commands with `-r`, each run from a shell script of its own.
pub(crate) fn in_scripts(ours: &str, gnu: &str) -> Parity {
    Parity::new(CPZ, "cp").args(["-r"]).in_scripts(ours, gnu)
}

/// What cpz wrote to stderr, as if it had been called by its bare name.
pub(crate) fn complaint(outcome: &Outcome) -> String {
    outcome.stderr_text().replace(CPZ, "cpz")
}

/// A link to cpz that is called otherwise.
#[track_caller]
pub(crate) fn link(name: &str) -> Link {
    Link::named(name, CPZ)
}

/// Bytes that neither repeat nor are zero for long; the same for the same length.
pub(crate) fn noise(len_bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(len_bytes).collect()
}
