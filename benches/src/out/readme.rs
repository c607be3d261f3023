//! The README's plot, a sentence about each of its panels, and the times in its table of commands.

use super::{
    format::{figure, figure_or_none},
    plot::Panel,
};
use crate::results::Results;

/// The file of the plot.
pub(super) const PLOT: &str = "benches/readme.svg";

/// A cell that the README shows, with its most telling commands: ours, GNU's, and others.
struct Headline {
    cell: &'static str,
    files: &'static str,
    peers: &'static [&'static str],
}

const HEADLINES: [Headline; 4] = [
    Headline {
        cell: "remove-100k",
        files: "100 000 empty files",
        peers: &["rmz", "rm -r", "rmz (published)", "find -delete"],
    },
    Headline {
        cell: "copy-100k",
        files: "100 000 empty files",
        peers: &["cpz", "cp -r", "cpz (published)", "xcp"],
    },
    Headline {
        cell: "remove-linux",
        files: "the Linux source",
        peers: &["rmz", "rm -r", "rmz (published)"],
    },
    Headline {
        cell: "copy-linux",
        files: "the Linux source",
        peers: &["cpz", "cp -r", "cpz (published)", "xcp"],
    },
];

/// The cells by which the table compares times.
const COPY: &str = "copy-100k-1gb";
const REMOVE: &str = "remove-100k-1gb";

/// The first words of the rows of the table, with the labels of the peers that remove and copy.
const TOOLS: [(&str, &str, &str); 8] = [
    ("**rmz, cpz**", "rmz", "cpz"),
    ("GNU", "rm -r", "cp -r"),
    ("uutils", "rm (uutils)", "cp (uutils)"),
    ("fuc", "rmz (published)", "cpz (published)"),
    ("xcp", "", "xcp"),
    ("cpx", "", "cpx"),
    ("rcp", "rrm", "rcp"),
    ("rsync", "rsync --delete", "rsync"),
];

/// Returns the panels of the plot.
pub(super) fn panels(results: &Results) -> Vec<Panel> {
    let panel = |headline: &Headline| {
        let figures = results.of(headline.cell)?;
        let bar = |peer: &&str| Some((String::from(*peer), figures.row(peer)?.seconds));
        Some(Panel {
            title: format!("{}: {}", headline.peers[0], headline.files),
            bars: headline.peers.iter().filter_map(bar).collect(),
        })
    };
    HEADLINES.iter().filter_map(panel).collect()
}

/// Returns the link to the plot, and the time of ours as a share of GNU's for each of its panels.
pub(super) fn headline(results: &Results) -> String {
    let share = |headline: &Headline| {
        let [ours, gnu] = [0, 1].map(|i| headline.peers[i]);
        let share = figure(results.of(headline.cell)?.ratio(ours, gnu)?);
        let files = headline.files;
        Some(format!(
            "- `{ours}` takes **{share}** of the time of `{gnu}` for {files}.\n"
        ))
    };
    let shares: String = HEADLINES.iter().filter_map(share).collect();
    format!(
        "![Times of rmz, cpz and other commands, as in the list below]({PLOT})\n\n\
         On a tmpfs with the cores that [Benchmarks.md](Benchmarks.md#figures) names:\n\n{shares}"
    )
}

/// Returns the table with its second and third column replaced: the times as multiples of ours.
pub(super) fn tools(results: &Results, table: &str) -> String {
    let multiple = |cell, peer, base| {
        let figures = results.of(cell);
        figure_or_none(figures.and_then(|figures| figures.ratio(peer, base)))
    };
    let line = |line: &str| {
        let tool = TOOLS
            .iter()
            .find(|tool| line.starts_with(&format!("| {}", tool.0)));
        let columns: Vec<_> = line.split('|').collect();
        let (Some((_, removes, copies)), [_, name, _, _, rest @ ..]) = (tool, &columns[..]) else {
            return format!("{line}\n");
        };
        let [remove, copy] = [
            multiple(REMOVE, removes, "rmz"),
            multiple(COPY, copies, "cpz"),
        ];
        format!("|{name}| {remove} | {copy} |{}\n", rest.join("|"))
    };
    table.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::figures;

    fn results() -> Results {
        let rows: &[(&str, &[f64])] = &[
            ("rmz", &[0.5]),
            ("rm -r", &[1.0]),
            ("rsync --delete", &[2.0]),
        ];
        let mut results = Results::default();
        results.put(figures("remove-100k", rows));
        results.put(figures("remove-100k-1gb", rows));
        results
    }

    #[test]
    fn shares_come_from_the_figures_and_missing_ones_are_left_out() {
        let text = headline(&results());
        assert_eq!(text.matches("takes **").count(), 1, "{text}");
        let share = "`rmz` takes **0.50** of the time of `rm -r` for 100 000 empty";
        assert!(text.contains(share), "{text}");
        assert_eq!(panels(&results())[0].bars.len(), 2);
    }

    #[test]
    fn times_are_replaced_and_other_columns_stay() {
        let table =
            "| | remove | copy | more |\n| rsync 3.5 | 9 | 9 | yes |\n| other | 9 | 9 | no |\n";
        let expected =
            "| | remove | copy | more |\n| rsync 3.5 | 4.00 | – | yes |\n| other | 9 | 9 | no |\n";
        assert_eq!(tools(&results(), table), expected);
    }
}
