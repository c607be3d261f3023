//! Identifies the machine and the moment of a measurement, for the head of the tables.

use std::{fs, path::Path, thread};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::command::{self, git};

/// The sources of what is measured: a commit elsewhere changes no figure.
const MEASURED: &[&str] = &["Cargo.lock", "fuc_*/src/*", "rmz/src", "cpz/src"];

/// The machine, the date and the commit of a measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    /// The properties of the machine that matter to the figures, its kernel, and the version of GNU's commands.
    pub(crate) machine: String,
    pub(crate) date: String,
    pub(crate) commit: String,
}

/// Returns the stamp of a measurement that is made now.
pub(crate) fn stamp() -> Result<Stamp> {
    Ok(Stamp {
        machine: machine()?,
        date: command::output("date", &["-u", "+%Y-%m-%d"])?,
        commit: commit().unwrap_or_else(|_| "unknown".to_owned()),
    })
}

/// Returns the cores, the memory, the kernel and the version of GNU's commands of this machine.
fn machine() -> Result<String> {
    let gnu = command::output("rm", &["--version"])?;
    let gnu = gnu.lines().next().unwrap_or_default();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let cpu = field(&cpuinfo, "model name").unwrap_or("unknown");
    let kib = field(&meminfo, "MemTotal").and_then(|v| v.trim_end_matches(" kB").parse().ok());
    let gib = kib.unwrap_or(0_u64).div_ceil(1 << 20);
    let uname = rustix::system::uname();
    let kernel = uname.release().to_string_lossy();
    let cores = cores();
    Ok(format!(
        "{cores} cores of {cpu}, {gib} GiB, Linux {kernel}, {gnu}"
    ))
}

/// Returns the newest commit that changes what is measured, with `-dirty` appended if that has changes since.
fn commit() -> Result<String> {
    let newest = &["log", "-1", "--format=%h", "--abbrev=7", "--"];
    let changes = &["status", "--porcelain", "--untracked-files=no", "--"];
    let [commit, changes] = [&newest[..], changes].map(|args| git(&[args, MEASURED].concat()));
    let suffix = if changes?.is_empty() { "" } else { "-dirty" };
    Ok(commit? + suffix)
}

/// Returns how many threads can run at once.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the type of the filesystem of `dir`.
pub(crate) fn filesystem(dir: &Path) -> Result<String> {
    let dir = dir.to_string_lossy();
    command::output("stat", &["--file-system", "--format=%T", "--", &dir])
}

/// Returns the value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    fields
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_cores_names_the_cpu() {
        let cpuinfo =
            "processor\t: 0\nmodel name\t: AMD EPYC: 9\nprocessor\t: 1\nmodel name\t: other\n";
        assert_eq!(field(cpuinfo, "model name"), Some("AMD EPYC: 9"));
        assert_eq!(field(cpuinfo, "flags"), None);
    }
}
