//! The README's plot and its table of commands, from the figures of full runs.
//!
//! ```text
//! figures ─▶ HEADLINES ─▶ readme-light.svg, readme-dark.svg, a sentence with shares of GNU's time
//!         └▶ TOOLS ─────▶ a table: what each command can do, and its time as a multiple of ours
//! ```

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

use super::{
    format::{NONE, escape, figure},
    markers,
    plot::{self, Theme},
    report::distinct,
};
use crate::results::{CellResult, Results};

/// A cell that the README shows, with its most telling peers.
struct Headline {
    cell: &'static str,
    title: &'static str,
    /// The words for the files in a sentence.
    files: &'static str,
    peers: &'static [&'static str],
}

const HEADLINES: [Headline; 4] = [
    Headline {
        cell: "remove-100k",
        title: "remove 100 000 empty files",
        files: "100 000 empty files",
        peers: &["rmz", "rm -r", "rmz (published)", "find -delete"],
    },
    Headline {
        cell: "copy-100k",
        title: "copy 100 000 empty files",
        files: "100 000 empty files",
        peers: &["cpz", "cp -r", "cpz (published)", "xcp"],
    },
    Headline {
        cell: "remove-linux",
        title: "remove the Linux source",
        files: "the Linux source",
        peers: &["rmz", "rm -r", "rmz (published)"],
    },
    Headline {
        cell: "copy-linux",
        title: "copy the Linux source",
        files: "the Linux source",
        peers: &["cpz", "cp -r", "cpz (published)", "xcp"],
    },
];

/// The cells by which the table compares times.
const COPY: &str = "copy-100k-1gb";
const REMOVE: &str = "remove-100k-1gb";

/// A command, or a pair of commands, in the table.
struct Tool {
    name: &'static str,
    /// The label of the peer that copies.
    copies: &'static str,
    /// The label of the peer that removes; empty if the tool only copies.
    removes: &'static str,
    /// The answers to [`QUESTIONS`]. They were observed: by the calls that `strace` shows for a tree of three
    /// levels, and by a copy of 2,000 files of which one may not be read.
    answers: [&'static str; QUESTIONS.len()],
}

const QUESTIONS: [&str; 6] = [
    "options of rm and cp",
    "safe from swapped links",
    "goes on after an error, status not 0",
    "progress",
    "resumes a copy",
    "verifies a copy",
];

const TOOLS: [Tool; 8] = [
    Tool {
        name: "**rmz, cpz**",
        copies: "cpz",
        removes: "rmz",
        answers: ["all", "yes", "yes", "yes", "yes", "yes"],
    },
    Tool {
        name: "GNU 9.10",
        copies: "cp -r",
        removes: "rm -r",
        answers: ["all", "rm yes, cp no", "yes", "no", "no", "no"],
    },
    Tool {
        name: "uutils 0.12",
        copies: "cp (uutils)",
        removes: "rm (uutils)",
        answers: ["nearly all", "rm yes, cp no", "yes", "yes", "no", "no"],
    },
    Tool {
        name: "fuc 3.2",
        copies: "cpz (published)",
        removes: "rmz (published)",
        answers: ["few", "no", "stops in places", "no", "no", "no"],
    },
    Tool {
        name: "xcp 0.24",
        copies: "xcp",
        removes: "",
        answers: ["some of cp", "no", "stops", "yes", "no", "no"],
    },
    Tool {
        name: "cpx 0.2",
        copies: "cpx",
        removes: "",
        answers: ["most of cp", "no", "yes", "yes", "yes", "no"],
    },
    Tool {
        name: "rcp 0.41",
        copies: "rcp",
        removes: "rrm",
        answers: ["few", "yes", "yes", "yes", "yes", "no"],
    },
    Tool {
        name: "rsync 3.5",
        copies: "rsync",
        removes: "rsync --delete",
        answers: ["no", "yes", "yes", "yes", "yes", "yes"],
    },
];

/// Returns the sections of the README, by the name in their markers.
fn sections(results: &Results) -> [(&'static str, String); 2] {
    [("headline", headline(results)), ("tools", tools(results))]
}

/// Writes both plots into `dir`, and the sections of `page`.
///
/// # Errors
/// If the page lacks a marker, or if a file cannot be written.
pub(super) fn write(results: &Results, dir: &Path, page: &Path) -> Result<()> {
    let cells: Vec<CellResult> = HEADLINES
        .iter()
        .filter_map(|headline| headline.select(results))
        .collect();
    let cells: Vec<&CellResult> = cells.iter().collect();
    for (name, theme) in [("light", Theme::LIGHT), ("dark", Theme::DARK)] {
        plot::draw(&cells, theme, &dir.join(format!("readme-{name}.svg")))?;
    }
    let name = page.display();
    let mut text = fs::read_to_string(page).with_context(|| format!("cannot read {name}"))?;
    for (section, words) in sections(results) {
        text = markers::replace(&text, section, &words).with_context(|| name.to_string())?;
    }
    fs::write(page, text).with_context(|| format!("cannot write {name}"))
}

impl Headline {
    /// Returns the cell with nothing but the peers to show.
    fn select(&self, results: &Results) -> Option<CellResult> {
        let cell = results.cell(self.cell)?;
        Some(CellResult {
            title: self.title.to_owned(),
            floor: None,
            rows: (self.peers.iter())
                .filter_map(|peer| cell.row(peer).cloned())
                .collect(),
            ..cell.clone()
        })
    }

    /// Returns the time of ours as a share of GNU's.
    fn share(&self, results: &Results) -> Option<String> {
        let cell = results.cell(self.cell)?;
        let (ours, gnu) = (cell.ours()?, cell.reference()?);
        let share = figure(ours.times.seconds / gnu.times.seconds);
        Some(format!(
            "- `{}` takes **{share}** of the time of `{}` for {}.\n",
            ours.peer, gnu.peer, self.files
        ))
    }
}

fn headline(results: &Results) -> String {
    let shares: String = HEADLINES
        .iter()
        .filter_map(|headline| headline.share(results))
        .collect();
    format!(
        "<picture>\n  \
         <source media=\"(prefers-color-scheme: dark)\" srcset=\"benches/results/readme-dark.svg\">\n  \
         <img alt=\"Times of rmz, cpz and other commands, as in the list below\" src=\"benches/results/readme-light.svg\">\n\
         </picture>\n\n\
         On a tmpfs with {} cores:\n\n{shares}",
        cores(results)
    )
}

/// Returns the number of cores of each machine that the cells were measured on.
fn cores(results: &Results) -> String {
    let cells = HEADLINES
        .iter()
        .filter_map(|headline| results.cell(headline.cell));
    distinct(cells.map(|cell| cell.stamp.machine.cores))
}

fn tools(results: &Results) -> String {
    let mut head = format!(
        "| | time to remove | time to copy | {} |\n",
        QUESTIONS.join(" | ")
    );
    head += &"|---".repeat(QUESTIONS.len() + 3);
    head += "|\n";
    let row = |tool: &Tool| {
        format!(
            "| {} | {} | {} | {} |\n",
            tool.name,
            multiple(results, REMOVE, tool.removes),
            multiple(results, COPY, tool.copies),
            tool.answers.map(escape).join(" | ")
        )
    };
    head + &TOOLS.iter().map(row).collect::<String>() + &gnu_version(results)
}

/// Returns a sentence about the measured version of GNU, which may be older than the one in the table.
fn gnu_version(results: &Results) -> String {
    let version = results.versions.iter().find(|(peer, _)| peer == "rm");
    version.map_or_else(String::new, |(_, version)| {
        format!("\nThe times of GNU are those of {version}.\n")
    })
}

/// Returns the time of a peer as a multiple of ours, or a dash if it has not run.
fn multiple(results: &Results, cell: &str, peer: &str) -> String {
    let times = || {
        let cell = results.cell(cell)?;
        Some(cell.row(peer)?.times.seconds / cell.ours()?.times.seconds)
    };
    times().map_or_else(|| NONE.to_owned(), figure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::row;

    fn results() -> Results {
        let cell = |name: &str| CellResult {
            name: name.to_owned(),
            rows: vec![
                row("rmz", &[0.5]),
                row("rm -r", &[1.0]),
                row("rsync --delete", &[2.0]),
            ],
            ..CellResult::default()
        };
        Results {
            versions: vec![("rm".to_owned(), "GNU coreutils 9.1".to_owned())],
            cells: vec![cell("remove-100k"), cell("remove-100k-1gb")],
            ..Results::default()
        }
    }

    #[test]
    fn shares_and_multiples_come_from_the_figures_and_missing_ones_are_left_out() {
        let [(_, headline), (_, tools)] = sections(&results());
        assert_eq!(headline.matches("takes **").count(), 1, "{headline}");
        assert!(
            headline.contains("`rmz` takes **0.50** of the time of `rm -r` for 100 000 empty"),
            "{headline}"
        );
        let rsync = tools.lines().find(|line| line.contains("rsync")).unwrap();
        assert!(rsync.contains("| 4.00 | – |"), "{tools}");
        assert!(
            tools.ends_with("\n\nThe times of GNU are those of GNU coreutils 9.1.\n"),
            "{tools}"
        );
    }

    #[test]
    fn the_plots_and_the_sections_are_written_and_a_page_without_markers_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let page = dir.path().join("README.md");
        let marked =
            |name: &str| format!("<!-- benches {name} -->\n<!-- end of benches {name} -->\n");
        fs::write(&page, marked("headline") + &marked("tools")).unwrap();
        write(&results(), dir.path(), &page).unwrap();
        let [light, dark] = ["light", "dark"].map(|theme| {
            fs::read_to_string(dir.path().join(format!("readme-{theme}.svg"))).unwrap()
        });
        assert!(light.contains("500 ms") && dark.contains("500 ms") && light != dark);
        assert!(!light.contains("floor"), "{light}");
        fs::write(&page, marked("headline")).unwrap();
        assert!(write(&results(), dir.path(), &page).is_err());
    }
}
