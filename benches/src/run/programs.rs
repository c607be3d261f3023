//! Finds the programs of the peers, and their versions.
//!
//! The programs are linked into one directory that stands first in PATH, so the tables show the command as it was run.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::host::command;

/// The programs, each under one name in one directory.
pub(crate) struct Programs {
    /// The directory that is first in PATH when a peer runs.
    pub(crate) bin: PathBuf,
}

impl Programs {
    /// Makes `bin`, and links into it each program that is found.
    pub(crate) fn link(bin: PathBuf, peers: &Path) -> Result<Self> {
        fs::create_dir(&bin).with_context(|| format!("cannot make {}", bin.display()))?;
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
                Path::new(command::repository()).join("cluster/target/release"),
                &["rmz-mpi", "cpz-mpi"],
                "",
            ),
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
        Ok(Self { bin })
    }

    /// Returns `true` if there is a program of that name.
    pub(crate) fn has(&self, program: &str) -> bool {
        command::find(program, std::slice::from_ref(&self.bin)).is_some()
    }

    /// Checks that a program exists that the runner itself needs.
    ///
    /// # Errors If it is missing. The message says how to install it.
    pub(crate) fn need(&self, program: &str) -> Result<()> {
        anyhow::ensure!(
            self.has(program),
            "{program} is missing: benches/setup.sh installs it"
        );
        Ok(())
    }

    /// Returns the versions of the programs, and a line for each one that is missing.
    pub(crate) fn versions(&self) -> (Vec<(String, String)>, Vec<String>) {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for (program, package) in NAMED {
            let Some(path) = command::find(program, std::slice::from_ref(&self.bin)) else {
                missing.push(format!("{program}: not installed, left out"));
                continue;
            };
            let said = command::output(&command::lossy(&path), &["--version"]);
            let version = said
                .ok()
                .and_then(|text| version(&text))
                .or_else(|| installed(&path))
                .unwrap_or_else(|| "unknown version".to_owned());
            found.push(((*program).to_owned(), format!("{package}{version}")));
        }
        (found, missing)
    }
}

/// Programs whose version is shown, and the words before it.
const NAMED: &[(&str, &str)] = &[
    ("rmz", "this repository, "),
    ("cpz", "this repository, "),
    ("rm", "GNU coreutils "),
    ("cp", "GNU coreutils "),
    ("find", ""),
    ("rsync", ""),
    ("perl", ""),
    ("tar", ""),
    ("fcp", ""),
    ("xcp", ""),
    ("cpx", ""),
    ("wcp", ""),
    ("rmz-mpi", "this repository, "),
    ("cpz-mpi", "this repository, "),
    ("drm", "mpifileutils "),
    ("dcp", "mpifileutils "),
    ("rcp", ""),
    ("rm-uutils", ""),
    ("cp-uutils", ""),
    ("rmz-published", ""),
    ("cpz-published", ""),
    ("hyperfine", ""),
    ("ftzz", ""),
];

/// Returns the first word that looks like a version.
fn version(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || "(),".contains(c));
    let numbered = words.map(|word| word.strip_prefix('v').unwrap_or(word));
    numbered
        .into_iter()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
        .map(str::to_owned)
}

/// Returns the version that cargo installed, for a program that does not print it.
fn installed(program: &Path) -> Option<String> {
    let program = program.canonicalize().ok()?;
    let list = program.parent()?.parent()?.join(".crates.toml");
    listed(
        &fs::read_to_string(list).ok()?,
        program.file_name()?.to_str()?,
    )
}

/// Returns the version in cargo's line `"PACKAGE VERSION (SOURCE)" = ["PROGRAM", ...]`.
fn listed(crates: &str, program: &str) -> Option<String> {
    let quoted = format!("\"{program}\"");
    let line = crates
        .lines()
        .filter_map(|line| line.split_once('='))
        .find(|(_, programs)| programs.contains(&quoted));
    Some(line?.0.split_whitespace().nth(1)?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_the_programs_print() {
        let cases = [
            ("rm (GNU coreutils) 9.1\nCopyright 2022", "9.1"),
            (
                "\nThis is perl 5, version 36, subversion 0 (v5.36.0) built",
                "5.36.0",
            ),
            ("rsync  version 3.2.7  protocol version 31", "3.2.7"),
        ];
        for (text, expected) in cases {
            assert_eq!(version(text).as_deref(), Some(expected));
        }
        assert_eq!(version("no numbers"), None);
    }

    #[test]
    fn cargo_knows_the_version_of_a_program_that_does_not() {
        let crates = "[v1]\n\"fcp 0.2.2 (registry+https://example.org/)\" = [\"fcp\"]\n\
                      \"two 1.0.0 (registry+https://example.org/)\" = [\"one\", \"two\"]\n";
        assert_eq!(listed(crates, "fcp").as_deref(), Some("0.2.2"));
        assert_eq!(listed(crates, "one").as_deref(), Some("1.0.0"));
        assert_eq!(listed(crates, "cp"), None);
    }
}
