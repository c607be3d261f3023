//! The page that has all figures of a run: a table for each cell, the system calls, and the contention.

use std::fmt::Write as _;

use super::{
    format::{NONE, escape, figure, list, memory, time},
    report::{against_floor, machine},
};
use crate::{
    results::{CallsRow, CellResult, Results, Row},
    what::cell::{GROUPS, Group},
};

/// Returns the page as Markdown. `plot` returns the path of a group's plot, if there is one.
pub(super) fn page(results: &Results, plot: impl Fn(Group) -> Option<String>) -> String {
    let mut text = format!(
        "# All figures of `{}`\n\n<!-- Written by the runner: edit benches/src/out/details.rs instead. -->\n\n{}\n",
        results.mode,
        machine(results)
    );
    text += &versions(results);
    text += &list(&results.notes);
    text += &commands(&results.cells);
    for &group in GROUPS {
        let of_group = |cell: &&CellResult| cell.group == group.name();
        let mut cells = results.cells.iter().filter(of_group).peekable();
        if cells.peek().is_some() {
            let _ = write!(text, "\n## {}\n", group.title());
        }
        if let Some(plot) = plot(group) {
            let title = group.title();
            let _ = write!(text, "\n![{title}: the time of each peer]({plot})\n");
        }
        text.extend(cells.map(cell_table));
    }
    text + &contention(results) + &calls(results)
}

fn versions(results: &Results) -> String {
    let show = |(name, version): &(String, String)| format!("{name} {version}");
    let all: Vec<_> = results.versions.iter().map(show).collect();
    format!("\n**Versions:** {}.\n", all.join("; "))
}

/// Returns a table of the commands, each once.
fn commands(cells: &[CellResult]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for row in cells.iter().flat_map(|cell| &cell.rows) {
        let line = format!("| {} | `{}` |", escape(&row.peer), escape(&row.command));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    format!("\n| peer | command |\n|---|---|\n{}\n", lines.join("\n"))
}

/// Returns all figures of a cell.
fn cell_table(cell: &CellResult) -> String {
    let mut text = format!("\n### `{}`: {}\n", cell.name, cell.title);
    if !cell.rows.is_empty() {
        let _ = write!(
            text,
            "\n{} files, {} directories, {:.1} MB on {}; {} at {}, {}. Floor: {}, {} runs.\n\n\
             | peer | time | range | runs | x floor | x GNU | CPU | peak memory |\n\
             |---|---|---|---|---|---|---|---|\n",
            cell.files,
            cell.dirs,
            cell.bytes as f64 / 1e6,
            cell.filesystem,
            cell.stamp.date,
            cell.stamp.commit,
            cell.stamp.machine,
            cell.floor_seconds().map_or(NONE.to_owned(), time),
            cell.floor.as_ref().map_or(0, |floor| floor.runs),
        );
    }
    for row in cell.ranking() {
        text += &line(cell, row);
    }
    text + &list(&cell.notes)
}

fn line(cell: &CellResult, row: &Row) -> String {
    let peer = escape(&row.peer);
    let is_ours = cell.ours().is_some_and(|ours| ours.peer == row.peer);
    let peer = if is_ours { format!("**{peer}**") } else { peer };
    let times = &row.times;
    let against_gnu = cell
        .reference()
        .map(|gnu| times.seconds / gnu.times.seconds);
    format!(
        "| {peer} | {} | {}–{} | {} | {} | {} | {} | {} |\n",
        time(times.seconds),
        time(times.range.0),
        time(times.range.1),
        times.runs,
        against_floor(cell, row).map_or(NONE.to_owned(), figure),
        against_gnu.map_or(NONE.to_owned(), figure),
        time(times.cpu_seconds),
        memory(times.peak_bytes),
    )
}

fn contention(results: &Results) -> String {
    let Some(one) = results.contention.first() else {
        return String::new();
    };
    let mut text = String::from(
        "\n## Threads in one directory\n\nEach thread creates 16 384 files and deletes them; calls per second of all \
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
        let of_work = |row: &&CallsRow| row.work == work;
        let mut rows = results.calls.iter().filter(of_work).peekable();
        if rows.peek().is_none() {
            continue;
        }
        let _ = write!(
            text,
            "\n## System calls, CPU and memory: {work}\n\nCalls by `strace -f -c`, as differences between small \
             uniform trees, without those for memory and waiting; CPU and memory in `{cell}`.\n\n| peer | calls per \
             empty file | per file of 4 KiB | per directory | CPU | peak memory |\n|---|---|---|---|---|---|\n"
        );
        for row in rows {
            text += &calls_line(row, results.cell(cell));
        }
    }
    text
}

fn calls_line(calls: &CallsRow, cell: Option<&CellResult>) -> String {
    let times = cell
        .and_then(|cell| cell.row(&calls.peer))
        .map(|row| &row.times);
    format!(
        "| {} | {:.1} | {:.1} | {:.1} | {} | {} |\n",
        escape(&calls.peer),
        calls.per_empty_file,
        calls.per_data_file,
        calls.per_dir,
        times.map_or(NONE.to_owned(), |times| time(times.cpu_seconds)),
        memory(times.and_then(|times| times.peak_bytes)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::row;

    #[test]
    fn a_table_has_the_fastest_first_and_compares_with_the_floor_and_gnu() {
        let cell = CellResult {
            name: "remove-10".to_owned(),
            rows: vec![row("rm -r", &[0.4]), row("rmz", &[0.2])],
            floor: Some(row("floor", &[0.1]).times),
            notes: vec!["perl is left out".to_owned()],
            ..CellResult::default()
        };
        let table = cell_table(&cell);
        let rows = "| **rmz** | 200 ms | 200 ms–200 ms | 1 | 2.00 | 0.50 | 400 ms | 2.0 MiB |\n\
                    | rm -r | 400 ms | 400 ms–400 ms | 1 | 4.00 | 1.00 | 800 ms | 2.0 MiB |\n\n\
                    - perl is left out\n";
        assert!(table.ends_with(rows), "{table}");
    }

    #[test]
    fn each_command_is_named_once() {
        let cell = CellResult {
            rows: vec![row("tar | tar", &[0.4])],
            ..CellResult::default()
        };
        let table = commands(&[cell.clone(), cell]);
        let expected = "\n| peer | command |\n|---|---|\n| tar \\| tar | `tar \\| tar tree` |\n";
        assert_eq!(table, expected);
        assert_eq!(commands(&[]), "");
    }
}
