//! The section of the libraries: the times of the engine, and those of the others as multiples of them.

use std::fmt::Write as _;

use super::{
    format::{NONE, escape, figure, time},
    report::machine,
};
use crate::{
    results::{CellResult, Results, Row},
    what::peers::Role,
};

/// The heading and the text before the tables. They are not in the page itself, because they make no sense without
/// figures.
const HEAD: &str = "\
## How long it takes

The median time of seven runs, with the fastest and the slowest one in parentheses; of the others as a multiple of the
median of `fuc_engine`. Each run is a process that calls the library once, and all take turns. Small files are in
directories of 50. \"By hand\" is `std::fs::read_dir` and `std::fs::copy`, `dircpy` has its four threads, `remove_dir_all`
its feature `parallel`. The filesystems are new, ext4 on a loop device. To measure again, run this as root while the
machine does nothing else, once after `benches/setup.sh`: `cargo run --release -p benches -- libraries`.
";

/// Returns the section as Markdown. `details` is the path of the page that has all figures.
pub(super) fn section(results: &Results, details: &str) -> String {
    let mut text = format!("{HEAD}\n{} [All figures]({details}).\n", machine(results));
    for (verb, title) in [("remove", "Removing"), ("copy", "Copying")] {
        let is_of_verb = |cell: &&CellResult| cell.name.contains(verb) && cell.ours().is_some();
        let cells: Vec<_> = results.cells.iter().filter(is_of_verb).collect();
        text += &table(title, &cells);
    }
    text
}

/// Returns a table with a row for each cell: the time of ours, and the times of the others as multiples of it.
fn table(title: &str, cells: &[&CellResult]) -> String {
    let mut peers: Vec<&Row> = Vec::new();
    for row in cells.iter().flat_map(|cell| &cell.rows) {
        if !peers.iter().any(|known| known.peer == row.peer) {
            peers.push(row);
        }
    }
    // Ours comes first, whatever the order of the runs.
    peers.sort_by_key(|row| row.role != Role::Ours);
    if peers.is_empty() {
        return String::new();
    }
    let names: Vec<_> = peers
        .iter()
        .map(|row| format!("`{}`", escape(&row.peer)).replace("`by hand`", "by hand"))
        .collect();
    let mut text = format!("\n| {title} | {} |\n", names.join(" | "));
    let _ = writeln!(text, "|---|{}", "---|".repeat(peers.len()));
    for cell in cells {
        let figures = peers.iter().map(|peer| multiple(cell, &peer.peer));
        let figures: Vec<_> = figures.collect();
        let _ = writeln!(text, "| {} | {} |", cell.title, figures.join(" | "));
    }
    text
}

/// Returns the time of a peer as a multiple of ours, with those of its fastest and slowest run. Of ours, returns the
/// times themselves.
fn multiple(cell: &CellResult, peer: &str) -> String {
    let (Some(ours), Some(row)) = (cell.ours(), cell.row(peer)) else {
        return NONE.to_owned();
    };
    let (fastest, slowest) = row.times.range;
    if row.role == Role::Ours {
        let [median, fastest, slowest] = [row.times.seconds, fastest, slowest].map(time);
        return format!("{median} ({fastest}–{slowest})");
    }
    let multiples = [row.times.seconds, fastest, slowest];
    let [median, fastest, slowest] = multiples.map(|seconds| figure(seconds / ours.times.seconds));
    format!("{median} ({fastest}–{slowest})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::row;

    #[test]
    fn times_are_multiples_of_ours_and_a_peer_that_did_not_run_has_a_dash() {
        let cell = |name: &str, peers: &[(&str, &[f64])]| CellResult {
            name: format!("library-{name}"),
            title: name.to_owned(),
            rows: peers.iter().map(|(peer, runs)| row(peer, runs)).collect(),
            ..CellResult::default()
        };
        let results = Results {
            cells: vec![
                cell("remove-a", &[("rm -r", &[0.2, 0.5, 0.4]), ("rmz", &[0.2])]),
                cell("remove-b", &[("rmz", &[0.1, 0.3, 0.2])]),
                cell("remove-skipped", &[]),
            ],
            ..Results::default()
        };
        let text = section(&results, "figures.md");
        let expected = "\n| Removing | `rmz` | `rm -r` |\n|---|---|---|\n\
            | remove-a | 200 ms (200 ms–200 ms) | 2.00 (1.00–2.50) |\n\
            | remove-b | 200 ms (100 ms–300 ms) | – |\n";
        assert!(text.ends_with(expected), "{text}");
    }
}
