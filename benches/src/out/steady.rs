//! The section of the page about steadiness: how much the runs of the default number of threads differ.

use super::{
    format::{NONE, figure, list, time},
    report::machine,
};
use crate::results::{CellResult, Results, Times};

/// The limits of the target, relative to the median of the best fixed number.
const NINE_IN_TEN_LIMIT: f64 = 1.1;
const WORST_LIMIT: f64 = 1.3;

/// Returns the section as Markdown. `details` is the path of the page that has all figures.
pub(super) fn section(results: &Results, details: &str) -> String {
    let mut text = format!("{} [All figures]({details}).\n", machine(results));
    let rows: String = results.cells.iter().filter_map(row).collect();
    if !rows.is_empty() {
        text += &format!(
            "\nAll figures but times are relative to the median of the best fixed number. In bold: nine of ten runs \
             not within {NINE_IN_TEN_LIMIT:.2}, the worst run not within {WORST_LIMIT:.2}, or a median above that of \
             rm or cp.\n\n\
             | Cell | best fixed number | 9 of 10 | worst | default: runs | median | 9 of 10 | worst | rm, cp |\n\
             |---|---|---|---|---|---|---|---|---|\n{rows}"
        );
    }
    let skipped = results.cells.iter().filter(|cell| cell.rows.is_empty());
    let skipped = skipped.flat_map(|cell| {
        let note = |note| format!("{}: {note}", cell.title);
        cell.notes.iter().map(note)
    });
    text + &list(&skipped.collect::<Vec<_>>())
}

/// Returns the line of a cell, or `None` if it has no figures.
fn row(cell: &CellResult) -> Option<String> {
    let (best, default) = (cell.best_fixed()?, &cell.ours()?.times);
    let unit = best.times.seconds;
    let gnu = cell.reference().map(|gnu| gnu.times.seconds);
    let median_limit = gnu.unwrap_or(f64::INFINITY) / unit;
    Some(format!(
        "| {} | `{}`, {} | {} | {} | {} | {} | {} | {} | {} |\n",
        cell.title,
        best.peer,
        time(unit),
        nine_in_ten(&best.times, unit, f64::INFINITY),
        within(best.times.range.1 / unit, f64::INFINITY),
        default.runs,
        within(default.seconds / unit, median_limit),
        nine_in_ten(default, unit, NINE_IN_TEN_LIMIT),
        within(default.range.1 / unit, WORST_LIMIT),
        gnu.map_or(NONE.to_owned(), |gnu| figure(gnu / unit)),
    ))
}

fn nine_in_ten(times: &Times, unit: f64, limit: f64) -> String {
    let seconds = times.nine_in_ten_seconds;
    seconds.map_or(NONE.to_owned(), |seconds| within(seconds / unit, limit))
}

/// Returns `value` as the table shows it, in bold if it is above `limit`.
fn within(value: f64, limit: f64) -> String {
    let shown = figure(value);
    if value > limit {
        format!("**{shown}**")
    } else {
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Row, tests::row};

    fn cell(rows: Vec<Row>) -> CellResult {
        CellResult {
            title: "ext4: remove".to_owned(),
            rows,
            ..CellResult::default()
        }
    }

    /// Returns the line of ext4 from a section about this cell.
    fn line(cell: CellResult) -> String {
        let results = Results {
            cells: vec![cell],
            ..Results::default()
        };
        let text = section(&results, "steady.md");
        let line = text.lines().find(|line| line.contains("ext4: remove"));
        line.unwrap_or_default().to_owned()
    }

    #[test]
    fn all_figures_are_relative_to_the_best_fixed_number() {
        let rows = vec![
            row("rmz", &[0.21, 0.22, 0.2]),
            row("rm -r", &[0.4, 0.4, 0.4]),
            row("rmz --threads=1", &[0.3, 0.3, 0.3]),
            row("rmz --threads=2", &[0.2, 0.19, 0.25]),
        ];
        assert_eq!(
            line(cell(rows)),
            "| ext4: remove | `rmz --threads=2`, 200 ms | 1.25 | 1.25 | 3 | 1.05 | 1.10 | 1.10 | 2.00 |"
        );
    }

    #[test]
    fn figures_beyond_the_limits_are_bold() {
        let mut seconds = [1.0; 20];
        seconds[..3].copy_from_slice(&[1.4, 1.2, 1.2]);
        let with = |gnu| {
            vec![
                row("rmz", &seconds),
                row("rm -r", &[gnu; 20]),
                row("rmz --threads=1", &[1.0; 20]),
            ]
        };
        let expected = "| ext4: remove | `rmz --threads=1`, 1.00 s | 1.00 | 1.00 | 20 |";
        assert_eq!(
            line(cell(with(1.0))),
            format!("{expected} 1.00 | **1.20** | **1.40** | 1.00 |")
        );
        assert_eq!(
            line(cell(with(0.9))),
            format!("{expected} **1.00** | **1.20** | **1.40** | 0.90 |")
        );
    }

    #[test]
    fn a_cell_that_was_skipped_is_named_with_the_reason() {
        let skipped = CellResult {
            notes: vec!["skipped: mounting needs root".to_owned()],
            ..cell(Vec::new())
        };
        assert_eq!(
            line(skipped),
            "- ext4: remove: skipped: mounting needs root"
        );
    }
}
