//! What a run of the benchmarks found: the shape of the JSON files, and the few figures that are made of it.

use serde::{Deserialize, Serialize};

use crate::{
    host::machine::{Machine, Stamp},
    what::cells::{self, Cell},
};

/// What was measured on one machine, in one run or in several.
#[derive(Debug, Default, Serialize, Deserialize)]
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
}

impl Results {
    /// The cell of that name, where it was run.
    pub(crate) fn cell(&self, name: &str) -> Option<&CellResult> {
        self.cells.iter().find(|cell| cell.name == name)
    }

    /// Returns what a new run begins with: these figures, unless they are of another machine. Then `log` gets a line.
    pub(crate) fn carry_over(self, machine: Machine, mode: &str, log: impl Fn(&str)) -> Self {
        let same = self.machine == machine;
        if !same && !self.cells.is_empty() {
            log("the figures so far are another machine's, and are dropped");
        }
        Self {
            mode: mode.to_owned(),
            machine,
            ..if same { self } else { Self::default() }
        }
    }

    /// Adds a cell, or replaces it; figures are not replaced by none. The order is that of all cells; of those that
    /// are no more nothing remains.
    pub(crate) fn put(&mut self, cell: CellResult) {
        let mut old = std::mem::take(&mut self.cells);
        match old.iter_mut().find(|old| old.name == cell.name) {
            Some(old) if cell.rows.is_empty() && !old.rows.is_empty() => {}
            Some(old) => *old = cell,
            None => old.push(cell),
        }
        for Cell { name, .. } in cells::all() {
            let place = old.iter().position(|cell| cell.name == name);
            self.cells.extend(place.map(|place| old.swap_remove(place)));
        }
    }
}

/// What one cell gave. Without rows it was skipped, and the notes say why.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct CellResult {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) title: String,
    pub(crate) stamp: Stamp,
    /// How long all of it took.
    pub(crate) seconds: f64,
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
    /// Of a cell that has not begun.
    pub(crate) fn of(cell: &Cell) -> Self {
        Self {
            name: cell.name.clone(),
            group: cell.group.name().to_owned(),
            title: cell.title.clone(),
            ..Self::default()
        }
    }

    /// Of a cell that was not measured.
    pub(crate) fn skipped(cell: &Cell, reason: &str) -> Self {
        Self {
            notes: vec![format!("skipped: {reason}")],
            ..Self::of(cell)
        }
    }

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

/// System calls of one peer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallsRow {
    pub(crate) work: String,
    pub(crate) peer: String,
    pub(crate) per_empty_file: f64,
    pub(crate) per_data_file: f64,
    pub(crate) per_dir: f64,
}

/// Creations and deletions per second, all threads together.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ContentionRow {
    pub(crate) threads: usize,
    pub(crate) apart_per_second: f64,
    pub(crate) together_per_second: f64,
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

    fn cell(name: &str, rows: Vec<Row>) -> CellResult {
        CellResult {
            name: name.to_owned(),
            rows,
            ..CellResult::default()
        }
    }

    #[test]
    fn new_figures_replace_old_ones_but_none_replace_none() {
        let mut results = Results::default();
        results.put(cell("update-first", vec![row("rmz", &[1.0])]));
        results.put(cell("no-more", vec![row("rmz", &[1.0])]));
        results.put(cell("copy-10", vec![row("rmz", &[1.0])]));
        results.put(cell("copy-10", vec![row("rmz", &[2.0])]));
        results.put(cell("update-first", Vec::new()));
        let figures = |cell: &CellResult| {
            let row = cell.row("rmz").and_then(Row::seconds);
            (cell.name.clone(), row)
        };
        let all: Vec<_> = results.cells.iter().map(figures).collect();
        let expected = [("copy-10", Some(2.0)), ("update-first", Some(1.0))];
        assert_eq!(all, expected.map(|(name, row)| (name.to_owned(), row)));
    }

    #[test]
    fn figures_of_another_machine_are_dropped() {
        let mut results = Results::default();
        results.put(cell("copy-10", vec![row("rmz", &[1.0])]));
        let results = results.carry_over(Machine::default(), "full", |_| panic!());
        assert_eq!(results.cells.len(), 1);
        let other = Machine {
            cores: 64,
            ..Machine::default()
        };
        let results = results.carry_over(other.clone(), "full", |_| ());
        assert!(results.cells.is_empty() && results.machine == other);
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
