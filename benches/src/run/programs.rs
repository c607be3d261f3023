//! Finds the programs of the peers.
//!
//! They are linked into one directory that stands first in PATH, so the tables show the command as it was run.

use std::{
    env, fs, iter,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use testkit::probe::find_program;

use crate::host::command;

/// The programs, each under one name in one directory.
pub(super) struct Programs {
    /// The directory that is first in PATH when a peer runs.
    bin: PathBuf,
}

impl Programs {
    /// Makes `bin`, and links into it each program that is found.
    ///
    /// # Errors
    /// If a program is missing without which nothing can be measured. The message says how to install it.
    pub(super) fn link(bin: PathBuf, peers: &Path) -> Result<Self> {
        fs::create_dir(&bin).with_context(|| format!("cannot make {}", bin.display()))?;
        let root = Path::new(command::repository());
        let target_dir = command::target_dir()?;
        let places = [
            (
                command::built_commands(&target_dir),
                &["rmz", "cpz"][..],
                "",
            ),
            (
                target_dir.join("release"),
                &[
                    "rm_stdlib",
                    "rm_rayon",
                    "rm_remove_dir_all",
                    "rm_fs_extra",
                    "rm_fuc_engine",
                    "cp_stdlib",
                    "cp_rayon",
                    "cp_dircpy",
                    "cp_fs_extra",
                    "cp_fuc_engine",
                ],
                "",
            ),
            (
                peers.join("bin"),
                &["hyperfine", "ftzz", "fcp", "xcp", "cpx", "rcp", "rrm"],
                "",
            ),
            (
                root.join("cluster/target/release"),
                &["rmz-mpi", "cpz-mpi"],
                "",
            ),
            (root.join("benches"), &["as-client"], ""),
            (peers.join("published/bin"), &["rmz", "cpz"], "-published"),
            (peers.join("uutils/bin"), &["rm", "cp"], "-uutils"),
        ];
        for (dir, names, suffix) in places {
            for name in names {
                let Ok(program) = dir.join(name).canonicalize() else {
                    continue;
                };
                let link = bin.join(format!("{name}{suffix}"));
                symlink(&program, &link)
                    .with_context(|| format!("cannot make {}", link.display()))?;
            }
        }
        let programs = Self { bin };
        for program in ["hyperfine", "ftzz", "rmz", "cpz"] {
            programs.command(program)?;
        }
        Ok(programs)
    }

    /// Returns `true` if there is a program of that name.
    pub(super) fn has(&self, program: &str) -> bool {
        self.find(program).is_some()
    }

    /// Returns a command for a program, with the peers first in its PATH.
    ///
    /// # Errors
    /// If the program is missing. The message says how to install it.
    pub(super) fn command(&self, program: &str) -> Result<Command> {
        let missing = || format!("{program} is missing: benches/setup.sh installs it");
        let mut command = Command::new(self.find(program).with_context(missing)?);
        command.env("PATH", env::join_paths(self.dirs())?);
        Ok(command)
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        find_program(program, self.dirs())
    }

    /// Returns the directories in which commands look for programs.
    fn dirs(&self) -> impl Iterator<Item = PathBuf> {
        let inherited = env::var_os("PATH").unwrap_or_default();
        let inherited: Vec<PathBuf> = env::split_paths(&inherited).collect();
        iter::once(self.bin.clone()).chain(inherited)
    }
}
