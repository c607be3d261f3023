//! The tables: Markdown of what was measured.

use std::fmt::Write as _;

use crate::{
    host::progress,
    results::{CallsRow, CellResult, Results, Row},
    what::cells::{GROUPS, Group},
};

/// All that a run has to say. `plot` gives the path of a group's plot as the document sees it.
pub(crate) fn document(results: &Results, plot: impl Fn(Group) -> Option<String>) -> String {
    let mut text = heading(results);
    for &group in GROUPS {
        let cells: Vec<_> = results
            .cells
            .iter()
            .filter(|cell| cell.group == group.name())
            .collect();
        if cells.is_empty() {
            continue;
        }
        let _ = write!(text, "\n### {}\n", group.title());
        if let Some(plot) = plot(group) {
            let _ = write!(
                text,
                "\n![{}: the time of each peer]({plot})\n",
                group.title()
            );
        }
        text += &summary(&cells);
        for cell in cells {
            text += &cell_table(cell);
        }
    }
    text + &losses(results) + &contention(results) + &calls(results)
}

fn heading(results: &Results) -> String {
    let machine = &results.machine;
    let mut text = format!(
        "**Machine:** {} cores of {}, {} GiB. ",
        machine.cores, machine.cpu, machine.memory_gib
    );
    let cells = &results.cells;
    if !cells.is_empty() {
        let seconds = cells.iter().map(|cell| cell.seconds).sum();
        let _ = write!(
            text,
            "**Kernel:** {}. **Date:** {}. **Commit:** {}. **Taken by:** `{}`, {} cells in {}.",
            distinct(cells.iter().map(|cell| &cell.stamp.kernel)),
            distinct(cells.iter().map(|cell| &cell.stamp.date)),
            distinct(cells.iter().map(|cell| &cell.stamp.commit)),
            results.mode,
            cells.len(),
            progress::show(std::time::Duration::from_secs_f64(seconds)),
        );
    }
    let versions: Vec<_> = results
        .versions
        .iter()
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let _ = write!(text, "\n\n**Versions:** {}.\n", versions.join("; "));
    notes(&mut text, &results.notes);
    text
}

/// Each once, in the order in which they come.
fn distinct<'a>(values: impl Iterator<Item = &'a String>) -> String {
    let mut all: Vec<&str> = Vec::new();
    for value in values {
        if !all.contains(&value.as_str()) {
            all.push(value);
        }
    }
    all.join(", ")
}

fn notes(text: &mut String, notes: &[String]) {
    if !notes.is_empty() {
        text.push('\n');
    }
    for note in notes {
        let _ = writeln!(text, "- {}", cut(note));
    }
}

/// A message that may hold lines and bars of somebody else's, for one line of Markdown.
fn cut(note: &str) -> String {
    let line = note.replace(['\n', '|', '`'], " ");
    line.chars().take(200).collect()
}

/// One row per cell, one column per peer: the time against the floor's.
fn summary(cells: &[&CellResult]) -> String {
    let mut peers: Vec<&str> = Vec::new();
    for row in cells.iter().flat_map(|cell| &cell.rows) {
        if !peers.contains(&row.peer.as_str()) {
            peers.push(&row.peer);
        }
    }
    if peers.is_empty() {
        return String::new();
    }
    let escaped: Vec<_> = peers.iter().map(|peer| peer.replace('|', "\\|")).collect();
    let mut text = format!(
        "\nTime, x floor; the fastest in bold.\n\n| | {} |\n",
        escaped.join(" | ")
    );
    let _ = writeln!(text, "|---|{}", "---|".repeat(peers.len()));
    for cell in cells.iter().filter(|cell| !cell.rows.is_empty()) {
        let figures = peers.iter().map(|peer| {
            match cell.row(peer).and_then(|row| against_floor(cell, row)) {
                None => "–".to_owned(),
                Some(ratio) if cell.fastest().is_some_and(|row| row.peer == *peer) => {
                    format!("**{}**", figure(ratio))
                }
                Some(ratio) => figure(ratio),
            }
        });
        let _ = writeln!(
            text,
            "| {} | {} |",
            cell.title,
            figures.collect::<Vec<_>>().join(" | ")
        );
    }
    text
}

/// All figures of a cell.
pub(crate) fn cell_table(cell: &CellResult) -> String {
    let mut text = format!(
        "\n<details><summary><code>{}</code>: {}</summary>\n\n",
        cell.name, cell.title
    );
    if !cell.rows.is_empty() {
        let _ = write!(
            text,
            "{} files, {} directories, {:.1} MB on {}; {} at {}. Floor: {}, {} runs.\n\n\
             | peer | time | range | runs | x floor | x GNU | CPU | peak memory | command |\n\
             |---|---|---|---|---|---|---|---|---|\n",
            cell.files,
            cell.dirs,
            cell.bytes as f64 / 1e6,
            cell.filesystem,
            cell.stamp.date,
            cell.stamp.commit,
            cell.floor_seconds().map_or_else(dash, time),
            cell.floor.len(),
        );
    }
    for row in cell.ranking() {
        text += &line(cell, row);
    }
    notes(&mut text, &cell.notes);
    text + "\n</details>\n"
}

fn line(cell: &CellResult, row: &Row) -> String {
    let (low, high) = row.range();
    let name = if row.ours {
        format!("**{}**", row.peer)
    } else {
        row.peer.clone()
    };
    let reference = cell
        .rows
        .iter()
        .find(|row| row.reference)
        .and_then(Row::seconds);
    format!(
        "| {} | {} | {}–{} | {} | {} | {} | {} | {} | `{}` |\n",
        name.replace('|', "\\|"),
        row.seconds().map_or_else(dash, time),
        time(low),
        time(high),
        row.runs.len(),
        against_floor(cell, row).map_or_else(dash, figure),
        reference.map_or_else(dash, |gnu| figure(row.median_seconds() / gnu)),
        row.cpu_seconds().map_or_else(dash, time),
        row.peak_bytes().map_or_else(dash, |bytes| format!(
            "{:.1} MiB",
            bytes as f64 / f64::from(1 << 20)
        )),
        row.command.replace('|', "\\|"),
    )
}

fn dash() -> String {
    "–".to_owned()
}

fn against_floor(cell: &CellResult, row: &Row) -> Option<f64> {
    Some(row.seconds()? / cell.floor_seconds()?)
}

/// Where ours is not the fastest: by more than the machine's noise, which is a few per cent at best.
fn losses(results: &Results) -> String {
    if results.cells.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n### Where rmz or cpz is not the fastest\n\n");
    let mut lines = Vec::new();
    for cell in &results.cells {
        let (Some(ours), Some(best)) = (cell.rows.iter().find(|row| row.ours), cell.fastest())
        else {
            continue;
        };
        let ratio = ours.median_seconds() / best.median_seconds();
        if ratio.is_finite() && !best.ours {
            lines.push(format!(
                "- `{}` ({}): {} takes {ratio:.2}x the time of {}.",
                cell.name, cell.title, ours.peer, best.peer
            ));
        }
    }
    if lines.is_empty() {
        lines.push("Nowhere in this run.".to_owned());
    }
    let _ = writeln!(text, "{}", lines.join("\n"));
    text
}

fn contention(results: &Results) -> String {
    let Some(one) = results.contention.first() else {
        return String::new();
    };
    let mut text = String::from(
        "\n### Threads in one directory\n\nEach thread creates 16 384 files and deletes them; calls per second of all \
         threads, against one thread's.\n\n| threads | each in its own directory | all in one |\n|---|---|---|\n",
    );
    for row in &results.contention {
        let apart = row.apart_per_second / one.apart_per_second;
        let together = row.together_per_second / one.apart_per_second;
        let _ = writeln!(text, "| {} | {apart:.2} | {together:.2} |", row.threads);
    }
    text
}

fn calls(results: &Results) -> String {
    let mut text = String::new();
    for (work, cell) in [("remove", "remove-100k"), ("copy", "copy-100k")] {
        let rows: Vec<_> = results
            .calls
            .iter()
            .filter(|row| row.work == work)
            .collect();
        if rows.is_empty() {
            continue;
        }
        let _ = write!(
            text,
            "\n### System calls, CPU and memory: {work}\n\nCalls by `strace -f -c`, as differences between small uniform trees, without those for memory and waiting; CPU and memory in `{cell}`.\n\n| peer | calls per empty file | per file of 4 KiB | per directory | CPU | \
             peak memory |\n|---|---|---|---|---|---|\n"
        );
        for row in rows {
            text += &calls_line(row, results.cell(cell));
        }
    }
    text
}

fn calls_line(calls: &CallsRow, cell: Option<&CellResult>) -> String {
    let measured = cell.and_then(|cell| cell.row(&calls.peer));
    format!(
        "| {} | {:.1} | {:.1} | {:.1} | {} | {} |\n",
        calls.peer.replace('|', "\\|"),
        calls.per_empty_file,
        calls.per_data_file,
        calls.per_dir,
        measured.and_then(Row::cpu_seconds).map_or_else(dash, time),
        measured
            .and_then(Row::peak_bytes)
            .map_or_else(dash, |bytes| format!(
                "{:.1} MiB",
                bytes as f64 / f64::from(1 << 20)
            )),
    )
}

/// Three digits, no more.
fn figure(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// Seconds or milliseconds, three digits.
pub(crate) fn time(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{} ms", figure(seconds * 1e3))
    } else {
        format!("{} s", figure(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Run, tests::row};

    fn cell() -> CellResult {
        CellResult {
            name: "remove-10".to_owned(),
            title: "10 files".to_owned(),
            filesystem: "tmpfs".to_owned(),
            files: 10,
            dirs: 2,
            rows: vec![row("rm -r", &[0.4]), row("rmz", &[0.2])],
            floor: vec![Run {
                seconds: 0.1,
                cpu_seconds: 0.1,
                peak_bytes: None,
            }],
            notes: vec!["perl is left out:\nno | perl".to_owned()],
            ..CellResult::default()
        }
    }

    #[test]
    fn a_table_has_the_fastest_first_and_compares_with_the_floor_and_gnu() {
        let table = cell_table(&cell());
        let rows: Vec<_> = table
            .lines()
            .filter(|line| line.starts_with("| **rmz") || line.starts_with("| rm"))
            .collect();
        assert_eq!(
            rows,
            [
                "| **rmz** | 200 ms | 200 ms–200 ms | 1 | 2.00 | 0.50 | 400 ms | 2.0 MiB | `rmz tree` |",
                "| rm -r | 400 ms | 400 ms–400 ms | 1 | 4.00 | 1.00 | 800 ms | 2.0 MiB | `rm -r tree` |",
            ]
        );
        assert!(table.contains("- perl is left out: no   perl\n"), "{table}");
    }

    #[test]
    fn the_summary_marks_the_fastest_and_leaves_out_who_did_not_run() {
        let mut other = cell();
        other.rows.remove(0);
        let table = summary(&[&cell(), &other]);
        assert!(
            table.contains("| 10 files | 4.00 | **2.00** |\n| 10 files | – | **2.00** |\n"),
            "{table}"
        );
    }

    #[test]
    fn times_and_figures_have_three_digits() {
        assert_eq!(
            [time(0.001_234), time(0.0123), time(0.999), time(12.34)],
            ["1.23 ms", "12.3 ms", "999 ms", "12.3 s"]
        );
    }
}
