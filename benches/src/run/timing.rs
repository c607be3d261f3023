//! Times one run of one command by hyperfine.
//!
//! hyperfine runs all rounds of a command before those of the next one, so a machine that slows down would favour the
//! first command. It is therefore called for a single run, and the rounds go through all commands in turn.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::{host::command, results::Run};

/// Runs a command once by `hyperfine`, and returns its times. The file `export` is written.
///
/// # Errors
/// If the command fails. The error has the first line of its messages.
pub(super) fn time(mut hyperfine: Command, export: &Path, line: &str) -> Result<Run> {
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

/// Returns the times of the only run.
fn parse(json: &str) -> Result<Run> {
    const OTHER: &str = "not what hyperfine exports";
    let export: Value = serde_json::from_str(json).context(OTHER)?;
    let result = &export["results"][0];
    let times = result["times"].as_array();
    let [time] = times.context(OTHER)?.as_slice() else {
        bail!("hyperfine exported other than one run");
    };
    let in_seconds = |time: &Value| time.as_f64().context(OTHER);
    let processor = in_seconds(&result["user"])? + in_seconds(&result["system"])?;
    Ok(Run {
        seconds: in_seconds(time)?,
        processor: Some(processor),
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
        assert!((run.seconds - 0.25).abs() < 1e-9);
        assert!((run.processor.unwrap() - 0.35).abs() < 1e-9);
    }

    #[test]
    fn several_runs_are_refused() {
        assert!(parse(&EXPORT.replace("[0.25]", "[0.25, 0.3]")).is_err());
        assert!(parse("{}").is_err());
    }
}
