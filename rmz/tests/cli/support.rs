//! The short way to a comparison.

use std::{ffi::OsStr, path::Path, process::Command};

use testkit::{
    probe::NOBODY,
    run::{Link, Parity},
    tree::Tree,
};

pub(crate) const RMZ: &str = env!("CARGO_BIN_EXE_rmz");

/// Compares rmz with rm, both with `-r`.
#[track_caller]
pub(crate) fn rm_r(args: impl IntoIterator<Item = impl AsRef<OsStr>>, build: impl Fn(&Tree)) {
    Parity::new(RMZ, "rm").args(["-r"]).args(args).check(build);
}

/// Compares rmz with rm, both with `-r` and run by a user who is not root and owns the tree.
#[track_caller]
pub(crate) fn rm_r_as_nobody(
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    build: impl Fn(&Tree),
) {
    if !testkit::probe::is_root() {
        testkit::skip!("only root can become another user");
    }
    Parity::new(RMZ, "rm")
        .args(["-r"])
        .args(args)
        .uid(NOBODY)
        .check(build);
}

/// Both commands with `-r`, each run from the same shell script.
pub(crate) fn in_script(script: &str) -> Parity {
    in_scripts(script, script)
}

/// Both commands with `-r`, each run from a shell script of its own.
pub(crate) fn in_scripts(ours: &str, gnu: &str) -> Parity {
    Parity::new(RMZ, "rm").args(["-r"]).in_scripts(ours, gnu)
}

/// A link to rmz that is called otherwise.
#[track_caller]
pub(crate) fn link(name: &str) -> Link {
    Link::named(name, RMZ)
}

/// Puts GNU rm, rmz and what both load into `dir`, as `rm` and `rmz`, so that they run when `dir` is `/`.
pub(crate) fn furnish_root(dir: &Path) {
    let script = r#"
        set -e
        for program in "$1" "$(command -v rm)"; do
            cp -L "$program" "$2/"
            for library in $(ldd "$program" | grep -o '/[^ )]*'); do
                mkdir -p "$2${library%/*}"
                cp -L "$library" "$2$library"
            done
        done"#;
    let status = Command::new("sh")
        .args(["-c", script, "sh", RMZ])
        .arg(dir)
        .status();
    assert!(status.is_ok_and(|s| s.success()), "no programs in a chroot");
}
