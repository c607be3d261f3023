//! Times one run of one command by hyperfine.
//!
//! hyperfine runs all rounds of a command before those of the next one, so a machine that slows down would favour the
//! first command. It is therefore called for a single run, and the rounds go through all commands in turn.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::host::command;

/// Runs a command once by `hyperfine`, and returns its seconds. The file `export` is written.
///
/// # Errors
/// If the command fails. The error has the first line of its messages.
pub(super) fn time(mut hyperfine: Command, export: &Path, line: &str) -> Result<f64> {
    hyperfine.args([
        "--shell=none",
        "--runs=1",
        "--style=none",
        "--output=inherit",
        "--export-json",
    ]);
    command::run(hyperfine.arg(export).arg(line)).with_context(|| line.to_owned())?;
    let json = fs::read_to_string(export).context("hyperfine wrote no result")?;
    parse(&json)
}

/// Returns the seconds of the only run.
fn parse(json: &str) -> Result<f64> {
    let export: Value = serde_json::from_str(json).context("not what hyperfine exports")?;
    let times = export["results"][0]["times"].as_array();
    let [time] = times.context("not what hyperfine exports")?.as_slice() else {
        bail!("hyperfine exported other than one run");
    };
    time.as_f64().context("not what hyperfine exports")
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPORT: &str = r#"{"results": [{"command": "rmz tree", "mean": 0.25, "stddev": null, "median": 0.25,
        "user": 0.05, "system": 0.3, "min": 0.25, "max": 0.25, "times": [0.25],
        "memory_usage_byte": [1703936], "exit_codes": [0]}]}"#;

    #[test]
    fn an_export_of_one_run_is_read() {
        assert!((parse(EXPORT).unwrap() - 0.25).abs() < 1e-9);
    }

    #[test]
    fn several_runs_are_refused() {
        assert!(parse(&EXPORT.replace("[0.25]", "[0.25, 0.3]")).is_err());
        assert!(parse("{}").is_err());
    }
}
