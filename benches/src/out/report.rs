//! The section of the page: on what was measured, each peer against the floor, and where ours loses.

use std::{fmt::Write as _, time::Duration};

use super::format::{NONE, escape, figure, list, time};
use crate::{
    host::progress,
    results::{CellResult, Results, Row},
    what::{cell::GROUPS, peers::Role},
};

/// A smaller loss is named in a line below the table, because the noise of the machine is of that size.
const NOISE: f64 = 1.03;

/// Returns the section as Markdown. `details` is the path of the page that has all figures.
pub(super) fn section(results: &Results, details: &str) -> String {
    let mut text = format!("{} [All figures]({details}).\n", machine(results));
    text += &list(&results.notes);
    if !results.cells.is_empty() {
        text += "\nTime, x floor; the fastest in bold.\n";
    }
    for &group in GROUPS {
        let of_group = |cell: &&CellResult| cell.group == group.name();
        let cells: Vec<_> = results.cells.iter().filter(of_group).collect();
        for cells in by_program(&cells) {
            text += &summary(group.title(), &cells);
            text += &fixed_numbers(&cells);
        }
    }
    text + &losses(results)
}

/// Returns a paragraph about the machines and the runs.
pub(super) fn machine(results: &Results) -> String {
    let cells = &results.cells;
    if cells.is_empty() {
        return String::new();
    }
    let seconds = cells.iter().map(|cell| cell.seconds).sum();
    let stamps = || cells.iter().map(|cell| &cell.stamp);
    format!(
        "**Machine:** {}. **Kernel:** {}. **Date:** {}. **Commit:** {}. **Taken by:** `{}`, {} cells in {}.",
        distinct(stamps().map(|stamp| &stamp.machine)),
        distinct(stamps().map(|stamp| &stamp.kernel)),
        distinct(stamps().map(|stamp| &stamp.date)),
        distinct(stamps().map(|stamp| &stamp.commit)),
        results.mode,
        cells.len(),
        progress::show(Duration::from_secs_f64(seconds)),
    )
}

/// Returns each value once, in order.
pub(super) fn distinct(values: impl Iterator<Item = impl ToString>) -> String {
    let mut all: Vec<String> = Vec::new();
    for value in values {
        let value = value.to_string();
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all.join("; ")
}

/// Groups the cells by our program, rmz or cpz, because the two have different peers.
fn by_program<'a>(cells: &[&'a CellResult]) -> Vec<Vec<&'a CellResult>> {
    let program = |cell: &CellResult| cell.ours().map(|ours| ours.peer.clone());
    let mut parts: Vec<Vec<&CellResult>> = Vec::new();
    for cell in cells {
        match parts
            .iter_mut()
            .find(|part| program(part[0]) == program(cell))
        {
            Some(part) => part.push(cell),
            None => parts.push(vec![cell]),
        }
    }
    parts
}

/// Returns a table with a row for each cell and a column for each peer: the time against the floor's, or the time itself
/// in a cell without a floor.
fn summary(title: &str, cells: &[&CellResult]) -> String {
    let mut peers: Vec<&str> = Vec::new();
    let rows = cells.iter().flat_map(|cell| &cell.rows);
    for row in rows.filter(|row| row.role != Role::Fixed) {
        if !peers.contains(&row.peer.as_str()) {
            peers.push(&row.peer);
        }
    }
    if peers.is_empty() {
        return String::new();
    }
    let escaped: Vec<_> = peers.iter().map(|peer| escape(peer)).collect();
    let mut text = format!("\n| {title} | {} |\n", escaped.join(" | "));
    let _ = writeln!(text, "|---|{}", "---|".repeat(peers.len()));
    for cell in cells.iter().filter(|cell| !cell.rows.is_empty()) {
        let ranking = cell.ranking();
        let fastest = ranking.into_iter().find(|row| row.role != Role::Fixed);
        let figures = peers.iter().map(|peer| {
            let Some(row) = cell.row(peer) else {
                return NONE.to_owned();
            };
            let seconds = row.times.seconds;
            let shown = against_floor(cell, row).map_or_else(|| time(seconds), figure);
            match fastest {
                Some(fastest) if fastest.peer == row.peer => format!("**{shown}**"),
                _ => shown,
            }
        });
        let figures = figures.collect::<Vec<_>>().join(" | ");
        let _ = writeln!(text, "| {} | {figures} |", cell.title);
    }
    text
}

/// Returns a table of the cells in which ours also ran with fixed numbers of threads: the best of these against the
/// default.
fn fixed_numbers(cells: &[&CellResult]) -> String {
    let lines = cells.iter().filter_map(|cell| {
        let (ours, best) = (cell.ours()?, cell.best_fixed()?);
        let (seconds, default) = (best.times.seconds, ours.times.seconds);
        Some(format!(
            "| {} | `{}` | {} | {} | {} |\n",
            cell.title,
            best.peer,
            time(seconds),
            time(default),
            figure(default / seconds),
        ))
    });
    let lines: String = lines.collect();
    if lines.is_empty() {
        return lines;
    }
    format!(
        "\n| Threads | best fixed number | its time | default | default / best |\n|---|---|---|---|---|\n{lines}"
    )
}

/// Returns the time of `row` as a multiple of the floor's.
pub(super) fn against_floor(cell: &CellResult, row: &Row) -> Option<f64> {
    Some(row.times.seconds / cell.floor_seconds()?)
}

/// A cell in which another command is faster than ours.
struct Loss<'a> {
    cell: &'a CellResult,
    best: &'a Row,
    ratio: f64,
}

impl<'a> Loss<'a> {
    fn of(cell: &'a CellResult) -> Option<Self> {
        let (ours, best) = (cell.ours()?, cell.fastest()?);
        let ratio = ours.times.seconds / best.times.seconds;
        (best.peer != ours.peer).then_some(Self { cell, best, ratio })
    }
}

/// Returns where ours is not the fastest, the largest loss first.
fn losses(results: &Results) -> String {
    if results.cells.is_empty() {
        return String::new();
    }
    let mut losses: Vec<_> = results.cells.iter().filter_map(Loss::of).collect();
    losses.sort_by(|a, b| f64::total_cmp(&b.ratio, &a.ratio));
    let (large, small) = losses.split_at(losses.partition_point(|loss| loss.ratio >= NOISE));
    let mut text = String::new();
    if !large.is_empty() {
        text += "\n| Where we lose | cell | our time | of the fastest |\n|---|---|---|---|\n";
    }
    for Loss { cell, best, ratio } in large {
        let (title, name, peer) = (&cell.title, &cell.name, escape(&best.peer));
        let _ = writeln!(text, "| {title} | `{name}` | {ratio:.2}x | {peer} |");
    }
    let show = |loss: &Loss<'_>| format!("`{}` {:.2}x", loss.cell.name, loss.ratio);
    let shown: Vec<_> = small.iter().map(show).collect();
    text += &match (large, small) {
        ([], []) => "\nrmz and cpz are the fastest in every cell.\n".to_owned(),
        (_, []) => String::new(),
        _ => format!(
            "\nSmaller losses, within the noise: {}.\n",
            shown.join(", ")
        ),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::row;

    fn cell(name: &str, rows: &[(&str, f64)]) -> CellResult {
        let floor = row("floor", &[0.1]).times;
        CellResult {
            name: name.to_owned(),
            title: "10 files".to_owned(),
            group: "remove".to_owned(),
            rows: rows.iter().map(|(peer, s)| row(peer, &[*s])).collect(),
            floor: Some(floor),
            ..CellResult::default()
        }
    }

    #[test]
    fn the_summary_marks_the_fastest_and_has_a_dash_for_a_peer_that_did_not_run() {
        let both = cell("remove-10", &[("rm -r", 0.4), ("rmz", 0.2)]);
        let one = cell("remove-10k", &[("rmz", 0.2)]);
        let table = summary("Removing", &[&both, &one]);
        assert_eq!(
            table,
            "\n| Removing | rm -r | rmz |\n|---|---|---|\n\
             | 10 files | 4.00 | **2.00** |\n| 10 files | – | **2.00** |\n"
        );
    }

    #[test]
    fn the_best_fixed_number_of_threads_is_compared_with_the_default() {
        let fixed = |threads: u64, seconds| row(&format!("rmz --threads={threads}"), &[seconds]);
        let mut slow = cell("slow-1ms-remove-flat", &[("rmz", 3.0), ("rm -r", 8.0)]);
        slow.floor = None;
        slow.rows.extend([fixed(1, 6.0), fixed(32, 0.5)]);
        assert_eq!(
            fixed_numbers(&[&slow]),
            "\n| Threads | best fixed number | its time | default | default / best |\n|---|---|---|---|---|\n\
             | 10 files | `rmz --threads=32` | 500 ms | 3.00 s | 6.00 |\n"
        );
        let table = summary("Late", &[&slow]);
        assert!(
            table.ends_with("| 10 files | **3.00 s** | 8.00 s |\n"),
            "{table}"
        );
        assert_eq!(fixed_numbers(&[&cell("copy-10", &[("cpz", 1.0)])]), "");
    }

    #[test]
    fn losses_are_sorted_and_small_ones_are_in_one_line() {
        let mut results = Results {
            cells: vec![
                cell("a", &[("rmz", 0.3), ("other", 0.2)]),
                cell("b", &[("rmz", 0.1), ("other", 0.2)]),
                cell("c", &[("rmz", 1.02), ("other", 1.0)]),
                cell("d", &[("rmz", 0.4), ("other", 0.2)]),
            ],
            ..Results::default()
        };
        let text = losses(&results);
        let d = text.find("| 10 files | `d` | 2.00x | other |").unwrap();
        let a = text.find("| 10 files | `a` | 1.50x | other |").unwrap();
        let c = text.find("within the noise: `c` 1.02x.").unwrap();
        assert!(d < a && a < c && !text.contains("`b`"), "{text}");
        results.cells = vec![cell("b", &[("rmz", 0.1), ("other", 0.2)])];
        assert!(losses(&results).contains("the fastest in every cell"));
    }
}
