//! The short way to a comparison.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use testkit::{
    probe::NOBODY,
    run::Parity,
    tree::{Scratch, Tree},
};

pub(crate) const RMZ: &str = env!("CARGO_BIN_EXE_rmz");

/// Compares rmz with rm, both with `-r`.
#[track_caller]
pub(crate) fn rm_r(args: impl IntoIterator<Item = impl AsRef<OsStr>>, build: impl Fn(Tree)) {
    Parity::new(RMZ, "rm").args(["-r"]).args(args).check(build);
}

/// Compares rmz with rm, both with `-r` and run by a user who is not root and owns the tree.
#[track_caller]
pub(crate) fn rm_r_as_nobody(
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    build: impl Fn(Tree),
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

/// Both commands behind the same shell script, which says `"$@"` where the command line belongs.
pub(crate) struct Wrapped {
    dir: Scratch,
}

impl Wrapped {
    /// The scripts are called `rmz` and `rm`, as the commands are.
    #[track_caller]
    pub(crate) fn in_script(script: &str) -> Self {
        Self::in_scripts(script, script)
    }

    #[track_caller]
    pub(crate) fn in_scripts(ours: &str, gnu: &str) -> Self {
        let dir = Scratch::new();
        let command_dir = Path::new(RMZ).parent().expect("a file is in a directory");
        Tree::at(dir.path())
            .file("rmz", wrapper(command_dir, "rmz", ours))
            .mode(0o755)
            .file("rm", wrapper(Path::new(""), "rm", gnu))
            .mode(0o755);
        Self { dir }
    }

    pub(crate) fn parity(&self) -> Parity {
        let gnu = self.dir.path().join("rm");
        let gnu = gnu.to_str().expect("a scratch directory's name is UTF-8");
        Parity::new(self.dir.path().join("rmz"), gnu).args(["-r"])
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

/// A link to rmz that is called otherwise.
pub(crate) struct Link {
    dir: Scratch,
    name: &'static str,
}

impl Link {
    #[track_caller]
    pub(crate) fn named(name: &'static str) -> Self {
        let dir = Scratch::new();
        Tree::at(dir.path()).symlink(name, RMZ);
        Self { dir, name }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join(self.name)
    }
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

/// Where files by the thousand cost least, if there is such a place.
pub(crate) fn memory() -> PathBuf {
    match Path::new("/dev/shm") {
        memory if memory.is_dir() => memory.to_owned(),
        _ => std::env::temp_dir(),
    }
}
