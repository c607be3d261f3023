//! Runs other programs. An error names the program, and has the first line of its messages.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

use super::interrupt;

/// Returns the root of the repository that this runner was built from.
pub(crate) fn repository() -> &'static str {
    // Do not use `trim_end_matches`, which trims twice if the repository itself is called `benches`.
    let package = env!("CARGO_MANIFEST_DIR");
    package.strip_suffix("/benches").unwrap_or(package)
}

/// Returns the output of a program, without the last line's end.
pub(crate) fn output(program: &str, args: &[&str]) -> Result<String> {
    run(Command::new(program).args(args))
}

/// Returns the output of git in the repository.
pub(crate) fn git(args: &[&str]) -> Result<String> {
    // In a CI job, root works in another user's checkout, which git refuses by default.
    let here = ["-c", "safe.directory=*", "-C", repository()];
    run(Command::new("git").args(here).args(args))
}

/// Runs a command to its end, and returns its output without the last newline.
///
/// # Errors
/// If it can't be started, or fails. The error of a failure has the first line that it wrote to stderr.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    interrupt::check()?;
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    // A command that Ctrl-C ended is not a failure.
    interrupt::check()?;
    if !output.status.success() {
        bail!("{name}: {}{}", output.status, said(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned())
}

/// Returns the first line of the messages of a command, to follow its status.
fn said(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let first = text.lines().find(|line| !line.trim().is_empty());
    first.map_or_else(String::new, |line| format!(": {}", line.trim()))
}

/// Returns the directory into which cargo builds this runner, and will build the commands.
pub(crate) fn target_dir() -> Result<PathBuf> {
    let exe = env::current_exe().context("cannot tell where this program is")?;
    let dir = exe.parent().and_then(Path::parent);
    dir.map(Path::to_owned)
        .with_context(|| format!("{} is not where cargo puts programs", exe.display()))
}

/// Returns the target of the published binaries, which are linked statically. Returns `None` if it is not installed.
fn static_target() -> Option<String> {
    let target = format!("{}-unknown-linux-musl", env::consts::ARCH);
    let libraries = output("rustc", &["--print", "target-libdir", "--target", &target]).ok()?;
    Path::new(&libraries).is_dir().then_some(target)
}

/// Returns the directory into which [`build_commands`] puts rmz and cpz.
pub(crate) fn built_commands(target_dir: &Path) -> PathBuf {
    target_dir
        .join(static_target().unwrap_or_default())
        .join("release")
}

/// Builds rmz and cpz of the workspace at `root` as they are published.
///
/// If their target is not installed, prints how to install it, and links the commands dynamically.
pub(crate) fn build_commands(root: &Path, target_dir: &Path) -> Result<()> {
    let target = static_target();
    if target.is_none() {
        let arch = env::consts::ARCH;
        eprintln!(
            "rmz and cpz start slower, for want of: rustup target add {arch}-unknown-linux-musl"
        );
    }
    build(root, target_dir, &["rmz", "cpz"], target.as_deref())
}

/// Builds packages of the workspace at `root`, optimised, so that the programs correspond to the sources.
pub(crate) fn build(
    root: &Path,
    target_dir: &Path,
    packages: &[&str],
    target: Option<&str>,
) -> Result<()> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(root)
        .args(["build", "--release", "--locked", "--quiet", "--target-dir"])
        .arg(target_dir);
    cargo.args(packages.iter().flat_map(|package| ["-p", package]));
    cargo.args(target.into_iter().flat_map(|target| ["--target", target]));
    run(&mut cargo).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_carries_what_was_said() {
        let error = output("sh", &["-c", "echo; echo because >&2; exit 3"])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("exit status: 3") && error.ends_with(": because"),
            "{error}"
        );
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = output("no-such-program", &[]).unwrap_err();
        assert_eq!(error.to_string(), "cannot run no-such-program");
    }
}
