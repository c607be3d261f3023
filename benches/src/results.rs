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

    /// Returns the fastest row whose label fits, if there is one. The floor does not compete.
    pub(crate) fn fastest(&self, fits: impl Fn(&str) -> bool) -> Option<&Row> {
        let rows = self.rows.iter();
        rows.filter(|row| row.peer != FLOOR && fits(&row.peer))
            .min_by(|a, b| a.seconds.total_cmp(&b.seconds))
    }
}

impl Row {
    /// Summarises the runs of a peer, in seconds; `None` if there are none.
    pub(crate) fn of(peer: &str, mut seconds: Vec<f64>) -> Option<Self> {
        seconds.sort_by(f64::total_cmp);
        let (shortest, longest) = (*seconds.first()?, *seconds.last()?);
        let middle = seconds.len() / 2;
        let median = match seconds.len() % 2 {
            1 => seconds[middle],
            _ => f64::midpoint(seconds[middle - 1], seconds[middle]),
        };
        Some(Self {
            peer: peer.to_owned(),
            seconds: median,
            range: (shortest, longest),
            runs: seconds.len(),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns figures of a cell, with a row for each peer whose runs took these seconds.
    pub(crate) fn figures(cell: &str, rows: &[(&str, &[f64])]) -> Figures {
        let row = |(peer, seconds): &(&str, &[f64])| Row::of(peer, seconds.to_vec());
        Figures {
            cell: cell.to_owned(),
            rows: rows.iter().filter_map(row).collect(),
            ..Figures::default()
        }
    }

    #[test]
    fn the_median_is_the_middle() {
        let median = |seconds: &[f64]| Row::of("rmz", seconds.to_vec()).map(|row| row.seconds);
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 9.0]), Some(3.0));
        assert_eq!(median(&[3.0, 1.0, 9.0, 5.0]), Some(4.0));
        let row = Row::of("rmz", vec![3.0, 1.0, 9.0]).unwrap();
        assert_eq!((row.range, row.runs), ((1.0, 9.0), 3));
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
