//! The short way to a comparison.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use testkit::{
    probe::{NOBODY, is_root},
    run::{Outcome, Parity, Run, Status, normal_lines, twin},
    tree::{Scratch, Tree},
};

pub(crate) const CPZ: &str = env!("CARGO_BIN_EXE_cpz");

/// Compares cpz with cp, both with `-r`.
#[track_caller]
pub(crate) fn cp_r(
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    build: impl Fn(Tree),
) -> Option<Outcome> {
    Parity::new(CPZ, "cp").args(["-r"]).args(args).check(build)
}

/// Compares cpz with cp, both with `-r` and run by a user who is not root and owns the tree.
#[track_caller]
pub(crate) fn cp_r_as_nobody(
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    build: impl Fn(Tree),
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
pub(crate) fn strict_cp(args: impl IntoIterator<Item = impl AsRef<OsStr>>, build: impl Fn(Tree)) {
    Parity::new(Link::named("cp").path(), "cp")
        .args(args)
        .check(build);
}

/// Runs `cp -r` and cpz where GNU's tree is no model; asserts that they say the same, and returns ours.
#[track_caller]
pub(crate) fn same_words(args: &[&str], build: impl Fn(Tree)) -> Scratch {
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

/// Both commands behind the same shell script, which says `"$@"` where the command line belongs.
pub(crate) struct Wrapped {
    dir: Scratch,
}

impl Wrapped {
    /// The scripts are called `cpz` and `cp`, as the commands are. Every user can run them.
    #[track_caller]
    pub(crate) fn in_script(script: &str) -> Self {
        Self::in_scripts(script, script)
    }

    #[track_caller]
    pub(crate) fn in_scripts(ours: &str, gnu: &str) -> Self {
        let dir = Scratch::new();
        let programs = dir.path().join("programs");
        Tree::at(&programs);
        // By another process: a file that this one wrote may be "busy" when it is to be run.
        let copied = Command::new("cp").arg(CPZ).arg(&programs).status();
        assert!(copied.is_ok_and(|status| status.success()), "cp copies");
        Tree::at(dir.path())
            .select("programs/cpz")
            .mode(0o755)
            .file("cpz", wrapper(&programs, "cpz", ours))
            .mode(0o755)
            .file("cp", wrapper(Path::new(""), "cp", gnu))
            .mode(0o755);
        Self { dir }
    }

    pub(crate) fn parity(&self) -> Parity {
        let gnu = self.dir.path().join("cp");
        let gnu = gnu.to_str().expect("a scratch directory's name is UTF-8");
        Parity::new(self.dir.path().join("cpz"), gnu).args(["-r"])
    }
}

fn wrapper(command_dir: &Path, name: &str, script: &str) -> String {
    format!(
        "#!/bin/sh\n\
         PATH={}:$PATH\n\
         test \"$1\" = --version && exec {name} --version\n\
         set -- {name} \"$@\"\n\
         {script}\n",
        command_dir.display()
    )
}

/// A link to cpz that is called otherwise.
pub(crate) struct Link {
    dir: Scratch,
    name: &'static str,
}

impl Link {
    #[track_caller]
    pub(crate) fn named(name: &'static str) -> Self {
        let dir = Scratch::new();
        Tree::at(dir.path()).symlink(name, CPZ);
        Self { dir, name }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join(self.name)
    }
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

/// Where files by the thousand cost least, if there is such a place.
pub(crate) fn memory() -> PathBuf {
    match Path::new("/dev/shm") {
        memory if memory.is_dir() => memory.to_owned(),
        _ => std::env::temp_dir(),
    }
}
