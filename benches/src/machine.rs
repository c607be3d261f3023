//! What stands on top of the tables: on which machine, kernel and filesystem, and when.

use std::{fs, path::Path, thread};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::command;

/// The machine, as far as it matters to the figures.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_gib: u64,
    pub(crate) kernel: String,
    pub(crate) filesystem: String,
    pub(crate) date: String,
    pub(crate) commit: String,
}

impl Machine {
    /// This machine; the filesystem is that of `dir`.
    pub(crate) fn probe(dir: &Path) -> Result<Self> {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kib =
            field(&meminfo, "MemTotal").and_then(|v| v.trim_end_matches(" kB").parse::<u64>().ok());
        let kernel = rustix::system::uname();
        Ok(Self {
            cpu: field(&cpuinfo, "model name")
                .unwrap_or("unknown")
                .to_owned(),
            cores: cores(),
            memory_gib: kib.unwrap_or(0).div_ceil(1 << 20),
            kernel: format!(
                "{} {}",
                kernel.sysname().to_string_lossy(),
                kernel.release().to_string_lossy()
            ),
            filesystem: filesystem(dir)?,
            date: command::output("date", &["-u", "+%Y-%m-%d"])?,
            commit: command::output(
                "git",
                &[
                    "-C",
                    command::repository(),
                    "describe",
                    "--always",
                    "--dirty",
                ],
            )
            .unwrap_or_else(|_| "unknown".to_owned()),
        })
    }
}

/// How many threads the machine lets us run at once.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The type of the filesystem that `dir` is on.
pub(crate) fn filesystem(dir: &Path) -> Result<String> {
    let dir = dir.to_string_lossy();
    command::output("stat", &["--file-system", "--format=%T", "--", &dir])
}

/// The value of the first line `name : value`.
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
