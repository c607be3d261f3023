//! Finds and builds the earlier commits that costs are compared with.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use crate::host::command::{self, git};

/// The file with the hash of the fixed base.
const FIXED: &str = "benches/guard-base";

/// An earlier commit, and the directory of its rmz and cpz.
pub(super) struct Base {
    /// The abbreviated commit, for messages.
    pub(super) name: String,
    pub(super) dir: PathBuf,
    /// The `CASE, REASON` of each `Accepts-cost` line in the commits after it.
    pub(super) accepted: Vec<String>,
}

/// Returns the reason why a case may cost more, if one of the lines gives one.
pub(super) fn reason<'a>(lines: &'a [String], case: &str) -> Option<&'a str> {
    let mut named = lines.iter().filter_map(|line| line.split_once(','));
    named
        .find(|(name, _)| name.trim() == case)
        .map(|(_, reason)| reason.trim())
}

impl Base {
    /// Builds the commit that the user asked for, or else the one before this work.
    ///
    /// # Errors
    /// If the commit is missing in this clone, or cannot be built.
    pub(super) fn before(asked: Option<&str>) -> Result<Self> {
        let commit = match asked {
            Some(name) => resolve(name)?,
            None => earlier().context("no earlier commit in this clone")?,
        };
        Self::of(&commit)
    }

    /// Builds the commit that [`FIXED`] names.
    ///
    /// # Errors
    /// If a shallow clone lacks the commit, or if it can't be built.
    pub(super) fn fixed() -> Result<Self> {
        let file = Path::new(command::repository()).join(FIXED);
        let file = fs::read_to_string(file).with_context(|| format!("cannot read {FIXED}"))?;
        let name = file.trim();
        let commit = resolve(name).with_context(|| format!("{name} is not in this clone"))?;
        Self::of(&commit)
    }

    fn of(commit: &str) -> Result<Self> {
        let log = git(&[
            "log",
            "--format=%(trailers:key=Accepts-cost,valueonly)",
            &format!("{commit}..HEAD"),
        ])?;
        let dir = build(commit).with_context(|| format!("cannot build {commit}"))?;
        Ok(Self {
            name: commit.chars().take(10).collect(),
            dir,
            accepted: log.lines().map(str::to_owned).collect(),
        })
    }
}

/// Returns the commit where this work left origin/main, or else the one before HEAD.
///
/// If the only changes are uncommitted, the base is HEAD.
fn earlier() -> Result<String> {
    let head = resolve("HEAD")?;
    let changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    match git(&["merge-base", "HEAD", "origin/main"]) {
        Ok(left) if left != head || changed => Ok(left),
        _ if changed => Ok(head),
        _ => resolve("HEAD~1"),
    }
}

/// Returns the hash of a commit, by any of its names.
fn resolve(name: &str) -> Result<String> {
    git(&[
        "rev-parse",
        "--verify",
        "--quiet",
        &format!("{name}^{{commit}}"),
    ])
}

/// Builds `commit` in a directory of its own, unless that was done before.
fn build(commit: &str) -> Result<PathBuf> {
    let guard = command::target_dir()?.join("guard");
    let builds = command::built_commands(&guard);
    let dir = builds.join(commit);
    if dir.is_dir() {
        return Ok(dir);
    }
    let sources = guard.join("sources");
    unpack(commit, &sources)?;
    let target_dir = guard.join("target");
    command::build_commands(&sources, &target_dir)?;
    let built = command::built_commands(&target_dir);
    let partial = builds.join("partial");
    fs::create_dir_all(&partial)?;
    for program in ["rmz", "cpz"] {
        fs::copy(built.join(program), partial.join(program))?;
    }
    fs::rename(&partial, &dir)?;
    Ok(dir)
}

fn unpack(commit: &str, sources: &Path) -> Result<()> {
    if sources.exists() {
        fs::remove_dir_all(sources)?;
    }
    fs::create_dir_all(sources)?;
    let archive = sources.with_extension("tar");
    let output = format!("--output={}", archive.display());
    git(&["archive", &output, commit])?;
    // Cargo compares times to find out what it has built. Those in the archive may be before the last build.
    command::run(
        Command::new("tar")
            .arg("--touch")
            .arg("-C")
            .arg(sources)
            .arg("-xf")
            .arg(&archive),
    )?;
    fs::remove_file(&archive)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_case_that_is_named_is_accepted() {
        let lines = ["", "rmz-files, asks the clock"].map(str::to_owned);
        assert_eq!(reason(&lines, "rmz-files"), Some("asks the clock"));
        assert_eq!(reason(&lines, "cpz-empty-files"), None);
    }
}
