//! Times one run of one command by hyperfine.
//!
//! hyperfine runs all rounds of a command before those of the next one, so a machine that slows down would favour the
//! first command. It is therefore called for a single run, and the rounds go through all commands in turn.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::programs::Programs;
use crate::{host::command, results::Run};

/// A clock for commands in one directory.
pub(crate) struct Stopwatch<'a> {
    pub(crate) programs: &'a Programs,
    /// The directory in which the commands run.
    pub(crate) dir: &'a Path,
    /// A file that hyperfine may write.
    pub(crate) export: PathBuf,
}

#[derive(Deserialize)]
struct Export {
    results: Vec<Exported>,
}

/// The part of hyperfine's result that is used. `system` and `user` are seconds.
#[derive(Deserialize)]
struct Exported {
    user: f64,
    system: f64,
    times: Vec<f64>,
    /// Missing in older versions of hyperfine.
    memory_usage_byte: Option<Vec<u64>>,
}

impl Stopwatch<'_> {
    /// Runs a command once, and returns its time.
    pub(crate) fn time(&self, line: &str) -> Result<Run> {
        let mut hyperfine = self.command("hyperfine")?;
        hyperfine.args(["--shell=none", "--runs=1", "--style=none", "--export-json"]);
        command::run(hyperfine.arg(&self.export).arg(line)).with_context(|| line.to_owned())?;
        let json = fs::read_to_string(&self.export).context("hyperfine wrote no result")?;
        parse(&json)
    }

    /// Runs a command once, for its effect; an error has the message of the command.
    pub(crate) fn try_out(&self, line: &str) -> Result<()> {
        command::run(self.command("sh")?.args(["-c", line])).map(drop)
    }

    /// Returns a command for a program, with the peers first in its PATH.
    pub(crate) fn command(&self, program: &str) -> Result<Command> {
        let found = command::find(program, std::slice::from_ref(&self.programs.bin));
        let mut command = Command::new(found.with_context(|| format!("{program} is missing"))?);
        command
            .current_dir(self.dir)
            .env("PATH", command::path_with(&self.programs.bin)?);
        Ok(command)
    }
}

fn parse(json: &str) -> Result<Run> {
    let export: Export = serde_json::from_str(json).context("not what hyperfine exports")?;
    let [result] = export.results.as_slice() else {
        anyhow::bail!("hyperfine exported other than one result")
    };
    ensure!(
        result.times.len() == 1,
        "hyperfine ran the command {} times",
        result.times.len()
    );
    Ok(Run {
        seconds: result.times[0],
        cpu_seconds: result.user + result.system,
        peak_bytes: result
            .memory_usage_byte
            .as_ref()
            .and_then(|bytes| bytes.first().copied()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPORT: &str = r#"{"results": [{"command": "rmz tree", "mean": 0.25, "stddev": null, "median": 0.25,
        "user": 0.05, "system": 0.3, "min": 0.25, "max": 0.25, "times": [0.25],
        "memory_usage_byte": [1703936], "exit_codes": [0]}]}"#;

    #[test]
    fn an_export_of_one_run_is_read() {
        let run = parse(EXPORT).unwrap();
        assert_eq!((run.seconds, run.peak_bytes), (0.25, Some(1_703_936)));
        assert!((run.cpu_seconds - 0.35).abs() < 1e-9);
    }

    #[test]
    fn an_old_hyperfine_knows_no_memory() {
        let old = EXPORT.replace("\"memory_usage_byte\": [1703936], ", "");
        assert_eq!(parse(&old).unwrap().peak_bytes, None);
    }

    #[test]
    fn several_runs_are_refused() {
        assert!(parse(&EXPORT.replace("[0.25]", "[0.25, 0.3]")).is_err());
        assert!(parse("{}").is_err());
    }
}
