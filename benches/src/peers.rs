//! Who is measured: how each peer is called, and where its program is.
//!
//! Every command runs in the directory that holds the trees, under fixed names: `tree` is removed, or copied to
//! `copy`; `empty` is an empty directory. The programs are linked into one directory that stands first in PATH,
//! so what the tables show is what was run.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::command;

/// A command that does the cell's work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) label: &'static str,
    /// The program that must be there.
    pub(crate) program: &'static str,
    pub(crate) command: &'static str,
    pub(crate) role: Role,
}

/// What a peer's figures are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// rmz or cpz of this repository.
    Ours,
    /// GNU's command.
    Reference,
    Other,
}

impl Peer {
    const fn new(
        role: Role,
        label: &'static str,
        program: &'static str,
        command: &'static str,
    ) -> Self {
        Self {
            label,
            program,
            command,
            role,
        }
    }
}

use Role::{Other, Ours, Reference};

const RMZ: Peer = Peer::new(Ours, "rmz", "rmz", "rmz tree");
const RM: Peer = Peer::new(Reference, "rm -r", "rm", "rm -r tree");
const RMZ_PUBLISHED: Peer = Peer::new(
    Other,
    "rmz (published)",
    "rmz-published",
    "rmz-published tree",
);
const CPZ: Peer = Peer::new(Ours, "cpz", "cpz", "cpz tree copy");
const CP: Peer = Peer::new(Reference, "cp -r", "cp", "cp -r tree copy");
const CPZ_PUBLISHED: Peer = Peer::new(
    Other,
    "cpz (published)",
    "cpz-published",
    "cpz-published tree copy",
);
const XCP: Peer = Peer::new(
    Other,
    "xcp",
    "xcp",
    "xcp -r --no-timestamps --no-progress tree copy",
);
const CPX: Peer = Peer::new(Other, "cpx", "cpx", "cpx -r -P tree/. copy");
const RSYNC_COPY: Peer = Peer::new(Other, "rsync", "rsync", "rsync -rlp --inplace tree/ copy/");

// In the order in which they begin: who stands last is left out where the time does not suffice for one run of each.

/// For a removal of a whole tree.
pub(crate) const REMOVE: &[Peer] = &[
    RMZ,
    RM,
    RMZ_PUBLISHED,
    Peer::new(Other, "rm_rayon", "rm_rayon", "rm_rayon tree"),
    Peer::new(
        Other,
        "rm_remove_dir_all",
        "rm_remove_dir_all",
        "rm_remove_dir_all tree",
    ),
    Peer::new(Other, "rm_stdlib", "rm_stdlib", "rm_stdlib tree"),
    Peer::new(Other, "find -delete", "find", "find tree -delete"),
    Peer::new(
        Other,
        "rsync --delete",
        "rsync",
        "rsync -r --delete empty/ tree/",
    ),
];

/// What else can remove a directory that has no directories.
pub(crate) const REMOVE_FLAT: &[Peer] = &[Peer::new(
    Other,
    "perl unlink",
    "perl",
    "perl -e 'opendir D, q(tree); unlink map qq(tree/$_), readdir D; rmdir q(tree)'",
)];

/// For a copy of a whole tree.
pub(crate) const COPY: &[Peer] = &[
    CPZ,
    CP,
    CPZ_PUBLISHED,
    Peer::new(Other, "cp_rayon", "cp_rayon", "cp_rayon tree copy"),
    Peer::new(Other, "fcp", "fcp", "fcp tree copy"),
    XCP,
    Peer::new(Other, "wcp", "wcp", "wcp tree copy"),
    Peer::new(Other, "cp_stdlib", "cp_stdlib", "cp_stdlib tree copy"),
    Peer::new(
        Other,
        "tar | tar",
        "tar",
        "sh -c 'mkdir copy && tar -C tree -cf - . | tar -C copy -xmf -'",
    ),
    CPX,
    RSYNC_COPY,
];

/// For real trees.
pub(crate) const REAL_REMOVE: &[Peer] = &[RMZ, RM, RMZ_PUBLISHED];
/// For real trees.
pub(crate) const REAL_COPY: &[Peer] = &[CPZ, CP, RSYNC_COPY, XCP, CPX, CPZ_PUBLISHED];

/// For one filesystem against another.
pub(crate) const FILESYSTEM_REMOVE: &[Peer] = &[
    RMZ,
    RM,
    Peer::new(Other, "rmz --threads=1", "rmz", "rmz --threads=1 tree"),
    RMZ_PUBLISHED,
];
/// For one filesystem against another.
pub(crate) const FILESYSTEM_COPY: &[Peer] = &[
    CPZ,
    CP,
    Peer::new(Other, "cpz --threads=1", "cpz", "cpz --threads=1 tree copy"),
    CPZ_PUBLISHED,
];

/// For bringing a copy up to date, with modes, owners and times.
///
/// `rsync -a` keeps the same of such a tree, but does more for it: any difference in size or time makes it copy,
/// while `-u` asks only whether the source is newer, and each file gets its name only when it is complete.
pub(crate) const UPDATE: &[Peer] = &[
    Peer::new(Ours, "cpz -up", "cpz", "cpz -upT tree copy"),
    Peer::new(Reference, "cp -upr", "cp", "cp -uprT tree copy"),
    Peer::new(Other, "rsync -a", "rsync", "rsync -a tree/ copy/"),
];

/// The programs, each under one name in one directory.
pub(crate) struct Programs {
    /// First in PATH when a peer runs.
    pub(crate) bin: PathBuf,
}

impl Programs {
    /// Links all that are found into `bin`, which is made.
    pub(crate) fn link(bin: PathBuf, peers: &Path) -> Result<Self> {
        fs::create_dir(&bin).with_context(|| format!("cannot make {}", bin.display()))?;
        let built = command::target_dir()?.join("release");
        let places = [
            (
                built,
                &[
                    "rmz",
                    "cpz",
                    "rm_stdlib",
                    "rm_rayon",
                    "rm_remove_dir_all",
                    "cp_stdlib",
                    "cp_rayon",
                ][..],
                "",
            ),
            (
                peers.join("bin"),
                &["hyperfine", "ftzz", "fcp", "xcp", "cpx"],
                "",
            ),
            (peers.join("published/bin"), &["rmz", "cpz"], "-published"),
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

    /// Whether a program is there under that name.
    pub(crate) fn has(&self, program: &str) -> bool {
        command::find(program, std::slice::from_ref(&self.bin)).is_some()
    }

    /// # Errors
    /// Says how to get what the runner itself can't do without.
    pub(crate) fn need(&self, program: &str) -> Result<()> {
        anyhow::ensure!(
            self.has(program),
            "{program} is missing: benches/setup.sh installs it"
        );
        Ok(())
    }

    /// What the programs say of their versions; a line for each that is missing.
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

/// Programs whose version matters, and the package that it is of.
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
    ("rmz-published", ""),
    ("cpz-published", ""),
    ("hyperfine", ""),
    ("ftzz", ""),
];

/// The first word that looks like a version.
fn version(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || "(),".contains(c));
    let numbered = words.map(|word| word.strip_prefix('v').unwrap_or(word));
    numbered
        .into_iter()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
        .map(str::to_owned)
}

/// The version that cargo installed, of a program that does not tell.
fn installed(program: &Path) -> Option<String> {
    let program = program.canonicalize().ok()?;
    let list = program.parent()?.parent()?.join(".crates.toml");
    listed(
        &fs::read_to_string(list).ok()?,
        program.file_name()?.to_str()?,
    )
}

/// The version in cargo's line `"PACKAGE VERSION (SOURCE)" = ["PROGRAM", ...]`.
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

    #[test]
    fn each_set_of_peers_has_one_of_ours_and_one_to_compare_with() {
        for set in [
            REMOVE,
            COPY,
            REAL_REMOVE,
            REAL_COPY,
            FILESYSTEM_REMOVE,
            FILESYSTEM_COPY,
            UPDATE,
        ] {
            for role in [Role::Ours, Role::Reference] {
                assert_eq!(set.iter().filter(|peer| peer.role == role).count(), 1);
            }
        }
    }
}
