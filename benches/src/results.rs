//! The results of a run: the rows of all tables, and the few figures that are derived from them.

use serde::{Deserialize, Serialize};

use crate::{
    host::machine::Stamp,
    what::{
        cell::Cell,
        cells,
        peers::{Peer, Role},
        steady,
    },
};

/// Everything that was measured, in one run or in several. The stamp of each cell names its machine.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Results {
    /// `quick`, `full`, or the names of cells.
    pub(crate) mode: String,
    /// Each peer that was found, with its version.
    pub(crate) versions: Vec<(String, String)>,
    /// The peers and measurements that were left out, with the reason.
    pub(crate) notes: Vec<String>,
    pub(crate) calls: Vec<CallsRow>,
    pub(crate) contention: Vec<ContentionRow>,
    /// The cells, which are stored one by one; see `out::store`.
    #[serde(skip)]
    pub(crate) cells: Vec<CellResult>,
}

impl Results {
    /// Returns the cell of that name, if it was run.
    pub(crate) fn cell(&self, name: &str) -> Option<&CellResult> {
        self.cells.iter().find(|cell| cell.name == name)
    }

    /// Adds or replaces a cell, but keeps earlier figures if there are no new ones.
    ///
    /// The cells are then in the order of `cells::all` and `steady::all`, and those that no longer exist are dropped.
    pub(crate) fn put(&mut self, cell: CellResult) {
        let mut old = std::mem::take(&mut self.cells);
        match old.iter_mut().find(|old| old.name == cell.name) {
            Some(old) if cell.rows.is_empty() && !old.rows.is_empty() => {}
            Some(old) => *old = cell,
            None => old.push(cell),
        }
        let steady = steady::all().into_iter();
        let steady = steady.flat_map(|alternation| [alternation.copy, alternation.remove]);
        for Cell { name, .. } in cells::all().into_iter().chain(steady) {
            let place = old.iter().position(|cell| cell.name == name);
            self.cells.extend(place.map(|place| old.swap_remove(place)));
        }
    }
}

/// The figures of one cell. If it was skipped there are no rows, and the notes give the reason.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct CellResult {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) title: String,
    pub(crate) stamp: Stamp,
    /// The time that the whole cell took.
    pub(crate) seconds: f64,
    pub(crate) filesystem: String,
    pub(crate) files: u64,
    pub(crate) dirs: u64,
    pub(crate) bytes: u64,
    /// The times of the necessary system calls alone; see `floor`.
    pub(crate) floor: Option<Times>,
    pub(crate) rows: Vec<Row>,
    pub(crate) notes: Vec<String>,
}

impl CellResult {
    /// Returns the result of a cell that has not begun.
    pub(crate) fn of(cell: &Cell) -> Self {
        Self {
            name: cell.name.clone(),
            group: cell.group.name().to_owned(),
            title: cell.title.clone(),
            ..Self::default()
        }
    }

    /// Returns the result of a cell that was not measured.
    pub(crate) fn skipped(cell: &Cell, reason: &str) -> Self {
        Self {
            notes: vec![format!("skipped: {reason}")],
            ..Self::of(cell)
        }
    }

    /// Returns the median time of the floor.
    pub(crate) fn floor_seconds(&self) -> Option<f64> {
        self.floor.as_ref().map(|times| times.seconds)
    }

    /// Returns the row of a peer, by its label.
    pub(crate) fn row(&self, peer: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.peer == peer)
    }

    /// Returns the row of rmz or cpz.
    pub(crate) fn ours(&self) -> Option<&Row> {
        self.rows.iter().find(|row| row.role == Role::Ours)
    }

    /// Returns the row of GNU's command.
    pub(crate) fn reference(&self) -> Option<&Row> {
        self.rows.iter().find(|row| row.role == Role::Reference)
    }

    /// Returns the row of ours with the best fixed number of threads.
    ///
    /// A number that stopped early does not count, because its runs are not those of the same rounds.
    pub(crate) fn best_fixed(&self) -> Option<&Row> {
        let runs = self.ours()?.times.runs;
        let fixed = |row: &&Row| row.role == Role::Fixed && row.times.runs >= runs;
        let order = |a: &&Row, b: &&Row| f64::total_cmp(&a.times.seconds, &b.times.seconds);
        self.rows.iter().filter(fixed).min_by(order)
    }

    /// Returns the row with the lowest median.
    pub(crate) fn fastest(&self) -> Option<&Row> {
        let order = |a: &&Row, b: &&Row| f64::total_cmp(&a.times.seconds, &b.times.seconds);
        self.rows.iter().min_by(order)
    }

    /// Returns the rows, fastest first.
    pub(crate) fn ranking(&self) -> Vec<&Row> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by(|a, b| f64::total_cmp(&a.times.seconds, &b.times.seconds));
        rows
    }
}

/// One peer in one cell.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) peer: String,
    #[serde(default, skip_serializing_if = "Role::is_other")]
    pub(crate) role: Role,
    pub(crate) command: String,
    #[serde(flatten)]
    pub(crate) times: Times,
}

impl Row {
    /// Returns the row of `peer`.
    pub(crate) fn of(peer: &Peer, times: Times) -> Self {
        Self {
            peer: peer.label.to_owned(),
            role: peer.role,
            command: peer.command.to_owned(),
            times,
        }
    }
}

/// One run of one command.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Run {
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_bytes: Option<u64>,
}

/// The runs of one command, summarised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Times {
    /// The median time.
    pub(crate) seconds: f64,
    /// The shortest and the longest time.
    pub(crate) range: (f64, f64),
    /// The time that nine of ten runs do not exceed. Older figures lack it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) nine_in_ten_seconds: Option<f64>,
    pub(crate) runs: usize,
    /// The median of user and system time together.
    pub(crate) cpu_seconds: f64,
    /// The largest resident set of any run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) peak_bytes: Option<u64>,
}

impl Times {
    /// Summarises `runs`; `None` if there are none.
    pub(crate) fn of(runs: &[Run]) -> Option<Self> {
        let seconds = || runs.iter().map(|run| run.seconds);
        Some(Self {
            seconds: whole_nanoseconds(median(seconds())?),
            range: (
                seconds().fold(f64::INFINITY, f64::min),
                seconds().fold(0.0, f64::max),
            ),
            nine_in_ten_seconds: nine_in_ten(seconds()),
            runs: runs.len(),
            cpu_seconds: whole_nanoseconds(median(runs.iter().map(|run| run.cpu_seconds))?),
            peak_bytes: runs.iter().filter_map(|run| run.peak_bytes).max(),
        })
    }
}

/// The system calls of one peer.
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
    /// With a directory for each thread.
    pub(crate) apart_per_second: f64,
    /// With one directory for all threads.
    pub(crate) together_per_second: f64,
}

/// Rounds to nanoseconds, because digits after the ninth come only from binary arithmetic.
fn whole_nanoseconds(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e9
}

/// Returns the middle value, or the mean of the two in the middle.
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

/// Returns the value that nine of ten values do not exceed. With n values it is the one at rank ceil(0.9 n).
fn nine_in_ten(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let rank = (9 * values.len()).div_ceil(10);
    values.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns runs that took these seconds.
    pub(crate) fn runs(seconds: &[f64]) -> Vec<Run> {
        let run = |&seconds| Run {
            seconds,
            cpu_seconds: 2.0 * seconds,
            peak_bytes: Some(1 << 21),
        };
        seconds.iter().map(run).collect()
    }

    /// Returns a row whose runs took these seconds.
    pub(crate) fn row(peer: &str, seconds: &[f64]) -> Row {
        Row {
            peer: peer.to_owned(),
            role: match peer {
                "rmz" => Role::Ours,
                "rm -r" => Role::Reference,
                _ if peer.contains("--threads=") => Role::Fixed,
                _ => Role::Other,
            },
            command: format!("{peer} tree"),
            times: Times::of(&runs(seconds)).unwrap(),
        }
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median([].into_iter()), None);
        assert_eq!(median([3.0, 1.0, 9.0].into_iter()), Some(3.0));
        assert_eq!(median([3.0, 1.0, 9.0, 5.0].into_iter()), Some(4.0));
    }

    #[test]
    fn nine_of_ten_runs_are_counted_with_the_rest_rounded_up() {
        let of = |n: u8| nine_in_ten((1..=n).rev().map(f64::from));
        let cases = [
            (1, 1.0),
            (2, 2.0),
            (9, 9.0),
            (10, 9.0),
            (11, 10.0),
            (20, 18.0),
            (21, 19.0),
        ];
        for (n, expected) in cases {
            assert_eq!(of(n), Some(expected), "{n} runs");
        }
        assert_eq!(of(0), None);
    }

    #[test]
    fn runs_are_summarised() {
        let mut three = runs(&[3.0, 1.0, 9.0]);
        three[2].peak_bytes = Some(1 << 22);
        let expected = Times {
            seconds: 3.0,
            range: (1.0, 9.0),
            nine_in_ten_seconds: Some(9.0),
            runs: 3,
            cpu_seconds: 6.0,
            peak_bytes: Some(1 << 22),
        };
        assert_eq!(Times::of(&three), Some(expected));
        assert_eq!(Times::of(&[]), None);
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
            let row = cell.row("rmz").map(|row| row.times.seconds);
            (cell.name.clone(), row)
        };
        let all: Vec<_> = results.cells.iter().map(figures).collect();
        let expected = [("copy-10", Some(2.0)), ("update-first", Some(1.0))];
        assert_eq!(all, expected.map(|(name, row)| (name.to_owned(), row)));
    }

    #[test]
    fn the_best_fixed_number_has_the_lowest_median_of_those_that_ran_to_the_end() {
        let rows = vec![
            row("rmz", &[1.0, 1.0, 1.0]),
            row("rmz --threads=1", &[4.0, 2.0, 3.0]),
            row("rmz --threads=2", &[1.0, 2.0, 9.0]),
            row("rmz --threads=8", &[1.5]),
        ];
        let best = |cell: &CellResult| cell.best_fixed().map(|row| row.peer.clone());
        assert_eq!(
            best(&cell("copy-10", rows)).as_deref(),
            Some("rmz --threads=2")
        );
        assert_eq!(best(&cell("copy-10", vec![row("rmz", &[1.0])])), None);
    }

    #[test]
    fn the_fastest_row_has_the_lowest_median() {
        let rows = vec![row("rmz", &[2.0]), row("find", &[1.0, 5.0, 4.0])];
        let cell = cell("copy-10", rows);
        assert_eq!(cell.fastest().map(|row| row.peer.as_str()), Some("rmz"));
        assert_eq!(cell.ranking().len(), 2);
    }
}
