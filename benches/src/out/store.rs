//! The files of figures: lines of JSON, the first of which is about the whole run, and each other line about one
//! cell.
//!
//! A later run reads them, so that it has to measure only what is new, and a change of one cell changes only its
//! line.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::results::Results;

/// Returns the file of the figures of a run.
pub(super) fn file(dir: &Path, stem: &str) -> PathBuf {
    dir.join(format!("{stem}.jsonl"))
}

/// Writes `results` to `file`.
pub(super) fn write(results: &Results, file: &Path) -> Result<()> {
    fs::write(file, to_lines(results)?).with_context(|| format!("cannot write {}", file.display()))
}

/// Reads `file`; without such a file there are no results.
///
/// # Errors If a line does not have the format of [`write()`].
pub(super) fn read(file: &Path) -> Result<Results> {
    match fs::read_to_string(file) {
        Ok(text) => from_lines(&text),
        Err(_) => Ok(Results::default()),
    }
}

fn to_lines(results: &Results) -> Result<String> {
    let mut text = serde_json::to_string(results)? + "\n";
    for cell in &results.cells {
        text += &(serde_json::to_string(cell)? + "\n");
    }
    Ok(text)
}

fn from_lines(text: &str) -> Result<Results> {
    let mut lines = text.lines();
    let first = lines.next().context("it is empty")?;
    let mut results: Results = serde_json::from_str(first).context("line 1")?;
    for line in lines {
        let cell = serde_json::from_str(line);
        let number = results.cells.len() + 2;
        results
            .cells
            .push(cell.with_context(|| format!("line {number}"))?);
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{CellResult, tests::row};

    #[test]
    fn results_are_read_as_they_were_written() {
        let results = Results {
            mode: "quick".to_owned(),
            cells: vec![CellResult {
                name: "copy-10".to_owned(),
                rows: vec![row("rmz", &[0.1, 0.7, 0.3])],
                ..CellResult::default()
            }],
            ..Results::default()
        };
        let text = to_lines(&results).unwrap();
        assert_eq!(text.lines().count(), 2);
        let again = from_lines(&text).unwrap();
        assert_eq!(to_lines(&again).unwrap(), text);
        assert_eq!(again.cells[0].rows[0].times, results.cells[0].rows[0].times);
    }

    #[test]
    fn the_line_that_cannot_be_read_is_named() {
        let error = from_lines("{\"mode\": 1}\n").unwrap_err();
        assert!(format!("{error:#}").starts_with("line 1: "), "{error:#}");
        assert!(from_lines("").is_err());
    }
}
