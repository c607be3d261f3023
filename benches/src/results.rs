//! The figures of each cell, and the file that holds those of the newest run of each.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::{host::machine::Stamp, what::cells};

/// The name under which the times of the floor are stored beside those of the peers.
pub(crate) const FLOOR: &str = "floor";

/// The figures of all cells that were measured.
#[derive(Debug, Default)]
pub(crate) struct Results(BTreeMap<String, Figures>);

/// The figures of one cell: a line of the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) cell: String,
    pub(crate) stamp: Stamp,
    pub(crate) rows: Vec<Row>,
}

/// The runs of one command, summarised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The label of a peer, or [`FLOOR`].
    pub(crate) peer: String,
    /// The median time.
    pub(crate) seconds: f64,
    /// The shortest and the longest time.
    pub(crate) range: (f64, f64),
    pub(crate) runs: usize,
    /// The median time of all processors, in user space and in the kernel, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) processor: Option<f64>,
}

/// The times of one run, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Run {
    pub(crate) seconds: f64,
    /// The time of all processors, if it was measured.
    pub(crate) processor: Option<f64>,
}

impl Results {
    /// Reads the results in `file`. Returns none if the file does not exist.
    ///
    /// # Errors
    /// If a line is not what [`write`](Self::write) writes.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let mut results = Self::default();
        let Ok(text) = fs::read_to_string(file) else {
            return Ok(results);
        };
        for (number, line) in text.lines().enumerate() {
            let place = || format!("{}: line {}", file.display(), number + 1);
            results.put(serde_json::from_str(line).with_context(place)?);
        }
        Ok(results)
    }

    /// Writes a line for each cell, in the order of the cells. Cells that no longer exist are dropped.
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        let mut text = String::new();
        for cell in cells::all() {
            if let Some(figures) = self.of(&cell.name) {
                text += &(serde_json::to_string(figures)? + "\n");
            }
        }
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Adds the figures of a cell, in place of earlier ones.
    pub(crate) fn put(&mut self, figures: Figures) {
        self.0.insert(figures.cell.clone(), figures);
    }

    /// Returns the figures of the cell of that name, if it was measured.
    pub(crate) fn of(&self, cell: &str) -> Option<&Figures> {
        self.0.get(cell)
    }
}

impl Figures {
    /// Returns the row of a peer, by its label.
    pub(crate) fn row(&self, peer: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.peer == peer)
    }

    /// Returns the time of a peer as a multiple of that of another one.
    pub(crate) fn ratio(&self, peer: &str, base: &str) -> Option<f64> {
        Some(self.row(peer)?.seconds / self.row(base)?.seconds)
    }

    /// Returns the processor time of a peer as a multiple of that of another one.
    pub(crate) fn processor_ratio(&self, peer: &str, base: &str) -> Option<f64> {
        Some(self.row(peer)?.processor? / self.row(base)?.processor?)
    }

    /// Returns the fastest row whose label fits, if there is one. The floor does not compete.
    pub(crate) fn fastest(&self, fits: impl Fn(&str) -> bool) -> Option<&Row> {
        let rows = self.rows.iter();
        rows.filter(|row| row.peer != FLOOR && fits(&row.peer))
            .min_by(|a, b| a.seconds.total_cmp(&b.seconds))
    }
}

impl Row {
    /// Summarises the runs of a peer; `None` if there are none.
    pub(crate) fn of(peer: &str, runs: &[Run]) -> Option<Self> {
        let seconds = sorted(runs.iter().map(|run| run.seconds));
        Some(Self {
            peer: peer.to_owned(),
            seconds: median(&seconds)?,
            range: (*seconds.first()?, *seconds.last()?),
            runs: runs.len(),
            processor: median(&sorted(runs.iter().filter_map(|run| run.processor))),
        })
    }
}

fn sorted(seconds: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut seconds: Vec<_> = seconds.collect();
    seconds.sort_by(f64::total_cmp);
    seconds
}

fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => Some(sorted[middle]),
        _ if sorted.is_empty() => None,
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a row of a peer whose runs took these seconds, and half as much processor time.
    pub(crate) fn row(peer: &str, seconds: &[f64]) -> Option<Row> {
        let run = |&seconds: &f64| Run {
            seconds,
            processor: Some(seconds / 2.0),
        };
        Row::of(peer, &seconds.iter().map(run).collect::<Vec<_>>())
    }

    /// Returns figures of a cell, with a row for each peer whose runs took these seconds.
    pub(crate) fn figures(cell: &str, rows: &[(&str, &[f64])]) -> Figures {
        let row = |(peer, seconds): &(&str, &[f64])| row(peer, seconds);
        Figures {
            cell: cell.to_owned(),
            rows: rows.iter().filter_map(row).collect(),
            ..Figures::default()
        }
    }

    #[test]
    fn the_median_is_the_middle() {
        let median = |seconds: &[f64]| row("rmz", seconds).map(|row| row.seconds);
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 9.0]), Some(3.0));
        assert_eq!(median(&[3.0, 1.0, 9.0, 5.0]), Some(4.0));
        let row = row("rmz", &[3.0, 1.0, 9.0]).unwrap();
        assert_eq!(
            (row.range, row.runs, row.processor),
            ((1.0, 9.0), 3, Some(1.5))
        );
    }

    #[test]
    fn new_figures_replace_old_ones_and_are_read_as_they_were_written() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("results.jsonl");
        let mut results = Results::read(&file).unwrap();
        results.put(figures("remove-10", &[("rmz", &[1.0])]));
        results.put(figures("no-more", &[("rmz", &[1.0])]));
        results.put(figures("copy-10", &[("cpz", &[0.1])]));
        let newest = figures("remove-10", &[("rmz", &[0.2, 0.7, 0.3]), (FLOOR, &[0.1])]);
        results.put(newest.clone());
        results.write(&file).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 2);
        let again = Results::read(&file).unwrap();
        assert_eq!(again.of("remove-10"), Some(&newest));
        assert_eq!(again.of("no-more"), None);
    }

    #[test]
    fn processor_times_are_missing_in_older_figures() {
        let old = r#"{"peer": "rmz", "seconds": 1.0, "range": [1.0, 1.0], "runs": 1}"#;
        let old: Row = serde_json::from_str(old).unwrap();
        assert_eq!(old.processor, None);
        let mut figures = figures("remove-10", &[("rmz", &[2.0]), ("rm -r", &[1.0])]);
        assert_eq!(figures.processor_ratio("rmz", "rm -r"), Some(2.0));
        figures.rows[0] = old;
        assert_eq!(figures.processor_ratio("rmz", "rm -r"), None);
    }

    #[test]
    fn the_line_that_cannot_be_read_is_named() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("results.jsonl");
        fs::write(&file, "{\"cell\": 1}\n").unwrap();
        let error = Results::read(&file).unwrap_err();
        assert!(format!("{error:#}").contains("line 1: "), "{error:#}");
    }

    #[test]
    fn the_fastest_row_has_the_lowest_median_and_is_not_the_floor() {
        let rows: &[(&str, &[f64])] =
            &[("rmz", &[2.0]), ("find", &[1.0, 5.0, 4.0]), (FLOOR, &[0.5])];
        let figures = figures("remove-10", rows);
        let fastest = |without: &str| {
            figures
                .fastest(|peer| peer != without)
                .unwrap()
                .peer
                .clone()
        };
        assert_eq!((fastest(""), fastest("rmz")), ("rmz".into(), "find".into()));
        assert_eq!(figures.ratio("find", "rmz"), Some(2.0));
    }
}
