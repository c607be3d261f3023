//! What a run of the benchmarks found: the shape of the JSON files, and the few figures that are made of it.

use serde::{Deserialize, Serialize};

use crate::{calls::CallsRow, contention::ContentionRow, machine::Machine};

/// One run of the benchmarks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Results {
    /// `quick`, `full`, or the names of cells.
    pub(crate) mode: String,
    pub(crate) machine: Machine,
    /// Each peer that was found, with its version.
    pub(crate) versions: Vec<(String, String)>,
    /// What was left out of everything, and why.
    pub(crate) notes: Vec<String>,
    pub(crate) cells: Vec<CellResult>,
    pub(crate) calls: Vec<CallsRow>,
    pub(crate) contention: Vec<ContentionRow>,
    /// How long all of it took.
    pub(crate) seconds: f64,
}

impl Results {
    /// The cell of that name, where it was run.
    pub(crate) fn cell(&self, name: &str) -> Option<&CellResult> {
        self.cells.iter().find(|cell| cell.name == name)
    }
}

/// What one cell gave. Without rows it was skipped, and the notes say why.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct CellResult {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) title: String,
    pub(crate) filesystem: String,
    pub(crate) files: u64,
    pub(crate) dirs: u64,
    pub(crate) bytes: u64,
    pub(crate) rows: Vec<Row>,
    /// The system calls alone, see `floor`.
    pub(crate) floor: Vec<Run>,
    pub(crate) notes: Vec<String>,
}

impl CellResult {
    /// The median of the floor, in seconds.
    pub(crate) fn floor_seconds(&self) -> Option<f64> {
        median(self.floor.iter().map(|run| run.seconds))
    }

    /// The row of a peer, by its label.
    pub(crate) fn row(&self, peer: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.peer == peer)
    }

    /// The fastest row.
    pub(crate) fn fastest(&self) -> Option<&Row> {
        let measured = self.rows.iter().filter(|row| row.seconds().is_some());
        measured.min_by(|a, b| f64::total_cmp(&a.median_seconds(), &b.median_seconds()))
    }

    /// The rows, fastest first.
    pub(crate) fn ranking(&self) -> Vec<&Row> {
        let mut rows: Vec<_> = self
            .rows
            .iter()
            .filter(|row| row.seconds().is_some())
            .collect();
        rows.sort_by(|a, b| f64::total_cmp(&a.median_seconds(), &b.median_seconds()));
        rows
    }
}

/// One peer in one cell.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) peer: String,
    /// What is measured here, as opposed to what it is measured against.
    pub(crate) ours: bool,
    /// GNU's command, which the others are compared with.
    pub(crate) reference: bool,
    pub(crate) command: String,
    pub(crate) runs: Vec<Run>,
}

impl Row {
    /// The median time.
    pub(crate) fn seconds(&self) -> Option<f64> {
        median(self.runs.iter().map(|run| run.seconds))
    }

    /// The median time; infinite where there is none, so that it sorts last.
    pub(crate) fn median_seconds(&self) -> f64 {
        self.seconds().unwrap_or(f64::INFINITY)
    }

    /// The shortest and the longest time.
    pub(crate) fn range(&self) -> (f64, f64) {
        let times = self.runs.iter().map(|run| run.seconds);
        times.fold((f64::INFINITY, 0.0), |(low, high), t| {
            (low.min(t), high.max(t))
        })
    }

    /// The median of user and system time together.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        median(self.runs.iter().map(|run| run.cpu_seconds))
    }

    /// The largest resident set of any run.
    pub(crate) fn peak_bytes(&self) -> Option<u64> {
        self.runs.iter().filter_map(|run| run.peak_bytes).max()
    }
}

/// One run of one command.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_bytes: Option<u64>,
}

/// The middle value, or the mean of the two in the middle.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A row whose runs took these seconds.
    pub(crate) fn row(peer: &str, seconds: &[f64]) -> Row {
        Row {
            peer: peer.to_owned(),
            ours: peer == "rmz",
            reference: peer == "rm -r",
            command: format!("{peer} tree"),
            runs: seconds
                .iter()
                .map(|&seconds| Run {
                    seconds,
                    cpu_seconds: 2.0 * seconds,
                    peak_bytes: Some(1 << 21),
                })
                .collect(),
        }
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median([].into_iter()), None);
        assert_eq!(median([3.0, 1.0, 9.0].into_iter()), Some(3.0));
        assert_eq!(median([3.0, 1.0, 9.0, 5.0].into_iter()), Some(4.0));
    }

    #[test]
    fn a_row_without_runs_is_never_the_fastest() {
        let cell = CellResult {
            rows: vec![
                row("rm -r", &[]),
                row("rmz", &[2.0]),
                row("find", &[1.0, 5.0, 4.0]),
            ],
            ..CellResult::default()
        };
        assert_eq!(cell.fastest().map(|row| row.peer.as_str()), Some("rmz"));
        assert_eq!(cell.ranking().len(), 2);
        assert_eq!(cell.row("find").map(Row::range), Some((1.0, 5.0)));
    }
}
