//! Identifies the machine and the moment of a measurement, for the head of the tables.

use std::{fmt, fs, path::Path, process::Command, thread};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::command;

/// The sources of what is measured, and of what it is measured against: a commit elsewhere, or to tests, changes no
/// figure.
const MEASURED: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "fuc_engine",
    "fuc_cli",
    "rmz",
    "cpz",
    "cluster",
    "comparisons",
    "benches/src/floor",
    "benches/src/serve",
    ":(exclude,glob)*/tests/**",
];

/// The properties of a machine that matter to the figures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_gib: u64,
}

/// The machine, the date, the commit and the kernel of a measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) machine: Machine,
    pub(crate) date: String,
    pub(crate) commit: String,
    pub(crate) kernel: String,
}

/// Returns the stamp of a measurement that is made now.
pub(crate) fn stamp() -> Result<Stamp> {
    let kernel = rustix::system::uname();
    Ok(Stamp {
        machine: Machine::probe(),
        kernel: format!(
            "{} {}",
            kernel.sysname().to_string_lossy(),
            kernel.release().to_string_lossy()
        ),
        date: command::output("date", &["-u", "+%Y-%m-%d"])?,
        commit: commit().unwrap_or_else(|_| "unknown".to_owned()),
    })
}

/// Returns the newest commit that changes what is measured, with `-dirty` appended if that has changes since.
fn commit() -> Result<String> {
    let git = |args: &[&str]| {
        let here = ["-c", "safe.directory=*", "-C", command::repository()];
        command::run(Command::new("git").args(here).args(args).args(MEASURED))
    };
    let commit = git(&["log", "-1", "--format=%h", "--abbrev=7", "--"])?;
    let changed = !git(&["status", "--porcelain", "--untracked-files=no", "--"])?.is_empty();
    Ok(commit + if changed { "-dirty" } else { "" })
}

impl Machine {
    /// Returns the properties of this machine.
    fn probe() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kib =
            field(&meminfo, "MemTotal").and_then(|v| v.trim_end_matches(" kB").parse::<u64>().ok());
        Self {
            cpu: field(&cpuinfo, "model name")
                .unwrap_or("unknown")
                .to_owned(),
            cores: cores(),
            memory_gib: kib.unwrap_or(0).div_ceil(1 << 20),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cpu,
            cores,
            memory_gib,
        } = self;
        write!(f, "{cores} cores of {cpu}, {memory_gib} GiB")
    }
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
