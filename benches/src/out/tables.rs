//! The tables: each tree with the times of its removal and its copy, the libraries, and all commands of a cell.

use std::{cmp::Reverse, collections::BTreeMap, fmt::Write as _};

use super::format::{NONE, escape, figure_or_none, time, time_and_spread};
use crate::{
    results::{FLOOR, Figures, Results},
    what::{
        cell::{Cell, Table, Work},
        cells,
    },
};

/// Commands whose medians differ by less are level: that is the noise of the machines.
const LEVEL: f64 = 1.05;

/// Returns the tables of all cells but those of libraries, and a line about where ours loses.
pub(super) fn figures(results: &Results) -> String {
    let tables = [
        (Table::Made, "Trees made by ftzz, tmpfs"),
        (Table::Real, "Real trees, filesystems"),
        (Table::Special, "Slow servers, large files, a removal"),
    ];
    let mut text = stamps(results, |table| table != Table::Libraries);
    text.extend(tables.map(|(table, title)| rows(results, table, title)));
    text + &losses(results)
}

/// Returns the cells of some tables.
fn shown(is_shown: impl Fn(Table) -> bool) -> Vec<Cell> {
    let mut cells = cells::all();
    cells.retain(|cell| is_shown(cell.table));
    cells
}

/// Returns a table with a row for each tree.
fn rows(results: &Results, table: Table, title: &str) -> String {
    let mut text = format!(
        "\n| {title} | rmz | floor | rm | next | cpu | cpz | floor | cp | next | cpu |\n|{}\n",
        "---|".repeat(11)
    );
    let cells = shown(|shown| shown == table);
    for cell in &cells {
        let of = |work| {
            let mut cells = cells.iter();
            cells.find(|other| other.title == cell.title && other.work == work)
        };
        let (removal, copy) = (of(Work::Remove), of(Work::Copy));
        // The copy of a tree is in the row of its removal.
        if cell.work == Work::Remove || removal.is_none() {
            let columns = [removal, copy].map(|cell| columns(results, cell).join(" | "));
            let _ = writeln!(text, "| {} | {} |", cell.title, columns.join(" | "));
        }
    }
    text
}

/// Returns the time of ours, those of the floor, of GNU's and of the next command as multiples of it, and the processor
/// time of ours as a multiple of that of GNU's.
fn columns(results: &Results, cell: Option<&Cell>) -> [String; 5] {
    let known = || {
        let cell = cell?;
        let figures = results.of(&cell.name)?;
        let [ours, gnu] = [0, 1].map(|i| cell.peers[i].label);
        let ratio = |peer| figures.ratio(peer, ours);
        let next = figures.fastest(|peer| peer != ours && peer != gnu);
        let next = next.map(|next| {
            let multiple = figure_or_none(ratio(&next.peer));
            format!("{multiple} {}", short(&next.peer))
        });
        Some([
            time_and_spread(figures.row(ours)?),
            figure_or_none(ratio(FLOOR)),
            figure_or_none(ratio(gnu)),
            next.unwrap_or(NONE.to_owned()),
            figure_or_none(figures.processor_ratio(ours, gnu)),
        ])
    };
    known().unwrap_or([NONE; 5].map(str::to_owned))
}

/// Returns a label without the name of ours.
fn short(label: &str) -> String {
    let words = label.trim_start_matches("rmz ").trim_start_matches("cpz ");
    escape(words.trim_matches(['(', ')']))
}

/// Returns a sentence about the cells in which another command is faster, the largest loss first.
fn losses(results: &Results) -> String {
    let cells = shown(|table| table != Table::Libraries);
    let loss = |cell: &Cell| {
        let figures = results.of(&cell.name)?;
        let best = &figures.fastest(|_| true)?.peer;
        let ratio = figures.ratio(cell.peers[0].label, best)?;
        let text = format!("`{}` {ratio:.2} ({})", cell.name, short(best));
        (ratio >= LEVEL).then_some((ratio, text))
    };
    let mut losses: Vec<_> = cells.iter().filter_map(loss).collect();
    losses.sort_by(|a, b| b.0.total_cmp(&a.0));
    let losses: Vec<_> = losses.into_iter().map(|(_, loss)| loss).collect();
    match losses.is_empty() {
        true => "\nrmz and cpz are the fastest in every cell, or level.\n".to_owned(),
        false => format!(
            "\n**Behind** by 5 % or more, as multiples of the fastest: {}.\n",
            losses.join(", ")
        ),
    }
}

/// Returns a line about the commit and the machine of most cells in these tables, and one for each other.
fn stamps(results: &Results, is_shown: impl Fn(Table) -> bool) -> String {
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for cell in shown(is_shown) {
        if let Some(Figures { stamp, .. }) = results.of(&cell.name) {
            let line = format!("commit {}, {}, {}", stamp.commit, stamp.date, stamp.machine);
            names.entry(line).or_default().push(cell.name);
        }
    }
    let mut lines: Vec<_> = names.into_iter().collect();
    lines.sort_by_key(|(_, names)| Reverse(names.len()));
    let show = |(i, (line, names)): (usize, &(String, Vec<String>))| match i {
        0 => format!("**Measured:** {line}.\n"),
        _ => format!("`{}`: {line}.\n", names.join("`, `")),
    };
    lines.iter().enumerate().map(show).collect()
}

/// Returns the tables of the libraries: the times of ours, and those of the others as multiples of them.
pub(super) fn libraries(results: &Results) -> String {
    let mut text = stamps(results, |table| table == Table::Libraries);
    for (work, title) in [(Work::Remove, "Removing"), (Work::Copy, "Copying")] {
        let mut cells = shown(|table| table == Table::Libraries);
        cells.retain(|cell| cell.work == work);
        let labels: Vec<_> = cells[0].peers.iter().map(|peer| peer.label).collect();
        let _ = write!(
            text,
            "\n| {title} | {} |\n|---|{}\n",
            labels.join(" | "),
            "---|".repeat(labels.len())
        );
        for cell in cells {
            let Some(figures) = results.of(&cell.name) else {
                continue;
            };
            let ours = figures
                .row(labels[0])
                .map_or(NONE.to_owned(), time_and_spread);
            let others = labels[1..]
                .iter()
                .map(|peer| figures.ratio(peer, labels[0]));
            let others: Vec<_> = others.map(figure_or_none).collect();
            let _ = writeln!(text, "| {} | {ours} | {} |", cell.title, others.join(" | "));
        }
    }
    text
}

/// Returns lines about all commands of a cell, the fastest first, for a terminal. The processor times are multiples of that
/// of the second one in the cell's list, which is GNU's or the standard library's.
pub(crate) fn commands(figures: &Figures) -> String {
    let mut rows: Vec<_> = figures.rows.iter().collect();
    rows.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let cells = cells::all();
    let cell = cells.iter().find(|cell| cell.name == figures.cell);
    let base = cell.map_or("", |cell| cell.peers[1].label);
    let mut text = format!("{}\n", figures.cell);
    for row in rows {
        let (shortest, longest) = row.range;
        let processor = figures.processor_ratio(&row.peer, base);
        let _ = writeln!(
            text,
            "    {:20} {:>8}   cpu {:>5}   {} to {}, {} runs",
            row.peer,
            time(row.seconds),
            figure_or_none(processor),
            time(shortest),
            time(longest),
            row.runs
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests;

    /// The seconds of the runs of each command.
    type Rows<'a> = &'a [(&'a str, &'a [f64])];

    fn results(cells: &[(&str, Rows)]) -> Results {
        let mut results = Results::default();
        for (cell, rows) in cells {
            results.put(tests::figures(cell, rows));
        }
        results
    }

    #[test]
    fn a_removal_and_a_copy_share_a_row_and_other_times_are_multiples_of_ours() {
        let results = results(&[
            (
                "remove-10",
                &[
                    ("rm -r", &[0.4]),
                    ("rmz", &[0.2, 0.19, 0.25]),
                    ("rrm", &[0.5]),
                    ("rmz (published)", &[0.3]),
                    (FLOOR, &[0.1]),
                ],
            ),
            ("copy-10", &[("cpz", &[0.2]), ("cp -r", &[0.3])]),
            ("remove-1m", &[("rmz", &[0.2])]),
        ]);
        let text = figures(&results);
        for row in [
            "| 10 empty files | 200 ms ±25% | 0.50 | 2.00 | 1.50 published | 0.50 | 200 ms ±0% | – | 1.50 | – | 0.67 |\n",
            "| 1 000 000 empty files | 200 ms ±0% | – | – | – | – | – | – | – | – | – |\n",
        ] {
            assert!(text.contains(row), "{text}");
        }
        assert_eq!(text.matches("10 empty files").count(), 1, "{text}");
    }

    #[test]
    fn losses_below_5_percent_are_level() {
        let behind = |rmz| {
            losses(&results(&[
                ("remove-10", &[("rmz", &[rmz]), ("rmz --threads=1", &[1.0])]),
                ("remove-10k", &[("rmz", &[2.0]), ("rrm", &[1.0])]),
            ]))
        };
        let expected = "fastest: `remove-10k` 2.00 (rrm), `remove-10` 1.06 (--threads=1).\n";
        assert!(behind(1.06).ends_with(expected), "{}", behind(1.06));
        assert!(behind(1.04).ends_with("fastest: `remove-10k` 2.00 (rrm).\n"));
        assert!(losses(&Results::default()).contains("or level"));
    }

    #[test]
    fn a_library_that_did_not_run_has_a_sign() {
        let cell = "library-tmpfs-remove-4k";
        let rows: Rows = &[("fuc_engine", &[0.2]), ("remove_dir_all", &[0.5])];
        let text = libraries(&results(&[(cell, rows)]));
        let expected = "| 100 000 files of 4 KiB, tmpfs | 200 ms ±0% | – | 2.50 | – |\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn the_fastest_command_is_shown_first() {
        let rows: Rows = &[("rm -r", &[0.4]), ("rmz", &[0.2, 0.1, 0.3])];
        let text = commands(&tests::figures("remove-10", rows));
        let lines: Vec<_> = text
            .lines()
            .map(|line| line.split_whitespace().next())
            .collect();
        assert_eq!(lines, ["remove-10", "rmz", "rm"].map(Some));
        let shown = "200 ms   cpu  0.50   100 ms to 300 ms, 3 runs";
        assert!(text.contains(shown), "{text}");
    }
}
